"""The number of a program: what changes it, what does not, and that it is the same everywhere."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from checkout import ROOT

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.canonical_text import canonical_text
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.node import OPS
from autodiff_gen.model.loader import load_model
from autodiff_gen.optim.lr_scheduler import OneCycleLR, StepLR

PINNED = 0xAF7970F2  # of a model of one product, on any machine and with any Python


def net(activation=nn.Tanh, p=0.3):
    return nn.Sequential(nn.Linear(20, 16), activation(), nn.Dropout(p), nn.Linear(16, 4))


def sgd(lr=0.1, momentum=0.9, **more):
    return optim.SGD(lr=lr, momentum=momentum, **more)


def model(network=None, loss=None, optimizer=None, batch=5, **options):
    return ag.Model.supervised(
        network or net(), (batch, 20), loss or nn.CrossEntropyLoss(), optimizer or sgd(), **options
    )


def images(stride=1, kernel=3, batch=2, padding=1):
    """Where a stride is another attribute, but no other shape: the image has one row and column."""
    body = nn.Sequential(nn.Conv2d(2, 3, kernel, stride, padding), nn.Flatten(), nn.Linear(3, 4))
    return ag.Model.supervised(body, (batch, 2, 1, 1), nn.MSELoss(), optim.SGD(lr=0.1))


def frozen(name):
    network = net()
    dict(network.named_parameters())[name].requires_grad = False
    return model(network)


def with_channels(fraction, norm="l1"):
    network = net()
    nn.update_channels(network[3], fraction, norm)
    return model(network)


class Own(optim.SGD):
    """A rule of the user's, of the same name and options."""

    factor = 1.0

    def rule(self, step, parameter, w, g):
        return super().rule(step, parameter, w, g * self.factor)


class Other(Own):
    factor = 2.0


def rates(first, second):
    return sgd(params=[{"params": ["0"], "lr": first}, {"params": ["3"], "lr": second}])


OTHERS = {
    "an activation": lambda: model(net(nn.ReLU)),
    "a slope": lambda: model(net(lambda: nn.LeakyReLU(0.1))),
    "another slope": lambda: model(net(lambda: nn.LeakyReLU(0.2))),
    "the p of a dropout": lambda: model(net(p=0.2)),
    "another loss": lambda: model(loss=nn.NLLLoss()),
    "label smoothing": lambda: model(loss=nn.CrossEntropyLoss(label_smoothing=0.1)),
    "a reduction": lambda: model(loss=nn.CrossEntropyLoss(reduction="sum")),
    "class weights": lambda: model(loss=nn.CrossEntropyLoss(weight=np.array([1, 2, 1, 1], np.float32))),
    "other class weights": lambda: model(loss=nn.CrossEntropyLoss(weight=np.array([1, 3, 1, 1], np.float32))),
    "Nesterov": lambda: model(optimizer=sgd(nesterov=True)),
    "momentum": lambda: model(optimizer=sgd(momentum=0.8)),
    "dampening": lambda: model(optimizer=sgd(dampening=0.1)),
    "weight decay": lambda: model(optimizer=sgd(weight_decay=1e-3)),
    "more weight decay": lambda: model(optimizer=sgd(weight_decay=2e-3)),
    "maximize": lambda: model(optimizer=sgd(maximize=True)),
    "a rule of another name": lambda: model(optimizer=optim.Adam()),
    "epsilon": lambda: model(optimizer=optim.Adam(eps=1e-6)),
    "a rule of the user's": lambda: model(optimizer=Other(lr=0.1, momentum=0.9)),
    "a limit of the norm": lambda: model(clip_grad_norm=1.0),
    "another limit": lambda: model(clip_grad_norm=2.0),
    "a limit of values": lambda: model(clip_grad_value=1.0),
    "averages": lambda: model(ema=optim.EMA(0.9)),
    "slower averages": lambda: model(ema=optim.EMA(0.99)),
    "sums of gradients": lambda: model(accumulate="sum"),
    "means of gradients": lambda: model(accumulate="mean"),
    "a schedule": lambda: model(schedule=StepLR(3)),
    "a slower schedule": lambda: model(schedule=StepLR(4)),
    "a cyclic momentum": lambda: model(schedule=OneCycleLR(0.1, 50)),
    "a frozen layer": lambda: frozen("0.weight"),
    "another frozen layer": lambda: frozen("3.weight"),
    "a part of the channels": lambda: with_channels(0.5),
    "a smaller part": lambda: with_channels(0.25),
    "a part by another norm": lambda: with_channels(0.5, "l2"),
    "a convolution": images,
    "a stride": lambda: images(stride=2),
}
SAME = {
    "another learning rate": lambda: model(optimizer=sgd(lr=0.003)),
    "other rates of groups": lambda: model(optimizer=rates(0.2, 0.5)),
    "a rule that is the same": lambda: model(optimizer=Own(lr=0.1, momentum=0.9)),
    "a batch of one": lambda: model(batch=1),
    "a larger batch": lambda: model(batch=64),
    "what rejects steps": lambda: model(guard="gradients", restore_after=3),
    "parts of steps": lambda: model(split=True, guard=None),
}


def test_what_is_computed_is_the_program():
    ids = {what: make().program_id for what, make in OTHERS.items()}
    ids["the model"] = model().program_id
    assert len(set(ids.values())) == len(ids), sorted(ids.items(), key=lambda item: item[1])


def test_what_is_set_at_run_time_is_not():
    for what, make in SAME.items():
        assert make().program_id == model().program_id, what
    scheduled = [model(optimizer=sgd(lr=lr), schedule=StepLR(3)).program_id for lr in (0.1, 0.5)]
    assert scheduled[0] == scheduled[1] != model().program_id
    assert images(batch=1).program_id == images(batch=4).program_id


def test_it_depends_on_neither_kernels_nor_memory_nor_values():
    network = net()
    network.load_state_dict({n: a * 2 for n, a in network.state_dict().items()})
    programs = [
        compile_model(model(), "net"),
        compile_model(model(), "net", ("fast", "ref")),
        compile_model(model(), "other", ram=30_000),
        compile_model(model(network), "net"),
        compile_model(model(batch=1), "net"),
    ]
    assert {p.program_id for p in programs} == {model().program_id}
    assert len({p.graph_id for p in programs}) == 1


def test_another_process_has_the_same_number():
    code = "from test_program_id import model; print(model().program_id)"
    env = {**os.environ, "PYTHONHASHSEED": "77", "PYTHONPATH": f"{ROOT}:{ROOT / 'tests' / 'support'}"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT / "tests" / "model", env=env, capture_output=True, text=True
    )
    assert done.stdout == f"{model().program_id}\n", done.stderr
    x, w = ag.Input("x", (4,)), ag.Param("w", np.ones(4))
    small = ag.Model([x], [], {"y": x * w}, F.sum(x * w), sgd())
    assert small.program_id == PINNED


def test_the_header_has_it():
    x = ag.Input("x", (4,))
    function = compile_function(ag.function([x], [F.relu(x)], "f"), "f")
    other = compile_function(ag.function([x], [F.tanh(x)], "f"), "f")
    assert function.program_id != other.program_id
    for program in (function, compile_model(model(), "net")):
        wanted = f"#define {program.name.upper()}_PROGRAM 0x{program.program_id:08x}u "
        assert wanted in emit(program)[f"{program.name}.h"]


def test_all_attributes_of_ops_have_a_text():
    """The numbers of every sample; a text with an address would be another one in another process."""
    for op in OPS.values():
        for sample in op.samples:
            for name, value in sample.attrs.items():
                x = ag.Input("x", (1,))
                node = F.relu(x).node
                node.attrs[name] = value
                text = canonical_text([Graph("f", (x,), {"y": node.results[0]})])
                assert " at 0x" not in text, (op.name, name)


def test_control_flow_and_states_have_a_text():
    def recurrent(hidden=3, activation="tanh"):
        cell = nn.RNN(2, hidden, nonlinearity=activation)
        x = ag.Input("x", (5, 1, 2))
        y, _ = cell(x)
        w = ag.Param("w", np.ones(1))
        z = F.cond(F.mean(y) > 0.0, lambda: y * w, lambda: y)
        return ag.Model([x], [], {"y": z}, F.mean(z), optim.SGD(lr=0.1)).program_id

    assert recurrent() == recurrent() != recurrent(activation="relu")


def normalised(momentum=0.1):
    body = nn.Sequential(nn.Linear(20, 16), nn.BatchNorm1d(16, momentum=momentum), nn.Linear(16, 4))
    return model(body).program_id


def test_updates_of_buffers_are_part_of_it():
    assert normalised() == normalised() != normalised(0.2)


@pytest.mark.torch
def test_imported_twice_it_is_the_same_program(tmp_path):
    import torch

    def made(slope=0.1):
        torch.manual_seed(0)
        return torch.nn.Sequential(
            torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.LeakyReLU(slope), torch.nn.Dropout(0.2),
            torch.nn.Flatten(), torch.nn.Linear(144, 5),
        )  # fmt: skip

    def number(network):
        loss, optimizer = nn.CrossEntropyLoss(), optim.SGD(lr=0.1)
        return ag.Model.supervised(network, (2, 1, 8, 8), loss, optimizer).program_id

    imported = [ag.from_torch(made(slope), input=(2, 1, 8, 8)) for slope in (0.1, 0.1, 0.2)]
    first, again, other = map(number, imported)
    assert first == again != other
    exported = made().eval()
    numbers = []
    for k in range(2):
        path = tmp_path / f"{k}.onnx"
        torch.onnx.export(exported, torch.zeros(2, 1, 8, 8), str(path), dynamo=False)
        numbers.append(number(ag.from_onnx(str(path))))
    assert numbers[0] == numbers[1]


def test_a_stated_derivative_is_no_part_of_a_program() -> None:
    """The numbers of 0.1.0, in which cross_entropy stated no derivative and log_softmax was a function."""
    numbers = {"mnist": 0x3FF5E072, "lenet": 0xB304F35E, "gesture": 0x13DBCFEC}
    assert {name: load_model(name)[0].program_id for name in numbers} == numbers
