"""Convolutional nets: NHWC inside, NCHW or NHWC at the front, and not one copy for the sake of the layout in the C."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from convolutional_nets import CONVOLUTIONAL, convolutional, samples

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.program import Entry, Program
from autodiff_gen.ir.graph import State
from autodiff_gen.ir.node import INPUT, Value, base, topological
from autodiff_gen.ir.types import planned_size
from autodiff_gen.passes.layout.layout_assignment import Layouts


def layout_copies(entry: Entry) -> list[str]:
    """Values that the entry copies only into another order: as many elements as there were. The caller's arrays are
    in the caller's order; whether they are copied is a question of costs."""
    found = []
    for step in entry.plan.steps:
        for region in step.node.regions:
            outer = dict(zip(region.params, step.node.operands, strict=True))
            for node in region.nodes:
                copies = node.op.name == "copy" and "snapshot" not in node.attrs
                if copies and node.results[0].ndim > 1:
                    source = base(node.operands[0])
                    source = base(outer.get(source, source))
                    if source.node.op is INPUT:
                        continue
                    if planned_size(source.shape) == planned_size(node.results[0].shape):
                        found.append(f"step {step.number}: {node.results[0].type!r}")
    return found


def permutes(entry: Entry) -> list[str]:
    """Permutes of more than a matrix that are left in the graph from which C is written."""
    nodes = topological(entry.plan.graph.roots)
    return [repr(n.results[0]) for n in nodes if n.op.name == "permute" and n.operands[0].ndim > 2]


def check_layouts(program: Program, left: int = 0) -> None:
    for entry in program.entries:
        assert layout_copies(entry) == []
        assert len(permutes(entry)) == left, permutes(entry)


@pytest.mark.parametrize("rule", ["SGD", "Adam"])
@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_no_copy_for_the_sake_of_the_layout(name: str, rule: str) -> None:
    program = compile_model(convolutional(name, getattr(optim, rule)()), "m")
    # The first convolution of `mobile` reads its NCHW images where they are stored, by strides.
    check_layouts(program, left=1 if name == "mobile" else 0)


def test_what_settling_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it there are copies, which the other test would see."""
    names = ("lenet of 8", "mobile")
    assigned = [compile_model(convolutional(name, optim.SGD()), "m") for name in names]
    monkeypatch.setattr("autodiff_gen.passes.layout.layout_assignment.assign_layouts", unpropagated)
    for name, program in zip(names, assigned, strict=True):
        other = compile_model(convolutional(name, optim.SGD()), "m")
        assert layout_copies(other.entries[0]) and layout_copies(other.entries[1])
        assert program.struct_bytes < 0.97 * other.struct_bytes


def unpropagated(roots: list[Value], may_store: bool) -> Layouts:
    return Layouts(list(roots), {})


@pytest.mark.cc
@pytest.mark.parametrize("name", CONVOLUTIONAL)
def test_losses_are_those_of_pytorch(name: str) -> None:
    trainer = convolutional(name, optim.SGD(lr=0.01)).on_host()
    x, label = samples(name)
    batch, expected = CONVOLUTIONAL[name][4:]
    losses = []
    for k in range(50):
        rows = np.arange(k * batch, (k + 1) * batch) % len(x)
        losses.append(trainer.train_step(x[rows], label[rows]))
    assert [losses[k] for k in (0, 1, 2)] == pytest.approx(expected[:3], abs=5e-6)
    assert losses[49] == pytest.approx(expected[3], abs=2e-4)


# A net of layers, beside PyTorch's


class Net(nn.Module):
    """Convolutions with and without groups, batch norm, both poolings, dropout where `p` is not 0, and a flatten."""

    def __init__(self, p: float = 0.0, channels_last: bool = False) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2, groups=8)
        self.conv3 = nn.Conv2d(8, 6, 1, bias=False)
        self.fc1, self.fc2 = nn.Linear(24, 7), nn.Linear(7, 3)
        self.drop, self.drop_channels = nn.Dropout(p), nn.Dropout2d(p)
        self.channels_last = channels_last

    def forward(self, x: Value) -> Value:
        if self.channels_last:
            x = F.permute(x, (0, 3, 1, 2))
        h = F.max_pool2d(F.relu(self.norm(self.conv1(x))), 2)
        h = self.drop_channels(F.tanh(self.conv2(h)))
        h = F.avg_pool2d(F.relu(self.conv3(h)) * 2.0, (1, 1))
        h = self.drop(F.flatten(h, 1))
        return self.fc2(F.relu(self.fc1(h)))


def trained(
    net: nn.Module, optimizer: optim.Optimizer, shape: tuple[int, ...] = (4, 3, 10, 10), **more: Any
) -> ag.Model:
    return ag.Model.supervised(net, shape, nn.CrossEntropyLoss(), optimizer, **more)


def batches(steps: int, *shape: int) -> list[tuple[Any, Any]]:
    numbers = np.random.default_rng(3)
    sizes = [2 + k % 3 for k in range(steps)]
    return [(numbers.normal(size=(n, *shape)).astype("f"), numbers.integers(0, 3, n)) for n in sizes]


def torch_net(torch: Any) -> Any:
    class TorchNet(torch.nn.Module):  # type: ignore[name-defined,misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False)
            self.norm = torch.nn.BatchNorm2d(8)
            self.conv2 = torch.nn.Conv2d(8, 8, 3, stride=2, groups=8)
            self.conv3 = torch.nn.Conv2d(8, 6, 1, bias=False)
            self.fc1, self.fc2 = torch.nn.Linear(24, 7), torch.nn.Linear(7, 3)

        def forward(self, x: Any) -> Any:
            h = torch.max_pool2d(self.norm(self.conv1(x)).relu(), 2)
            h = torch.nn.functional.avg_pool2d(self.conv3(self.conv2(h).tanh()).relu() * 2.0, 1)
            return self.fc2(self.fc1(h.flatten(1)).relu())

    return TorchNet()


RULES = {"SGD": {"lr": 0.05, "momentum": 0.9}, "Adam": {"lr": 0.01}}
MOMENTS = {"SGD": ("momentum_buffer",), "Adam": ("exp_avg", "exp_avg_sq")}


@pytest.mark.torch
@pytest.mark.cc
@pytest.mark.parametrize("rule", RULES)
def test_training_beside_pytorch(rule: str, tmp_path: Path) -> None:
    """Every parameter, buffer and moment in PyTorch's layout, for any n up to the batch."""
    import torch

    model = trained(Net(), getattr(optim, rule)(**RULES[rule]))
    stored = {s.name for s in model.states if s.storage is not None and not s.storage.in_order}
    assert {"conv1.weight", "conv2.weight", "fc1.weight"} <= stored
    assert f"fc1.weight.{MOMENTS[rule][0]}" in stored
    trainer = model.on_host()
    check_layouts(trainer.program, left=1)
    net = torch_net(torch)
    ours = {**trainer.state_dict(), **net.state_dict()}
    trainer.load_state_dict(ours, strict=False)
    theirs = getattr(torch.optim, rule)(net.parameters(), **RULES[rule])
    for x, label in batches(8, 3, 10, 10):
        net.train()
        loss = torch.nn.functional.cross_entropy(net(torch.tensor(x)), torch.tensor(label))
        theirs.zero_grad()
        loss.backward()
        theirs.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), abs=1e-4)
        net.eval()
        np.testing.assert_allclose(trainer.predict(x), net(torch.tensor(x)).detach().numpy(), atol=5e-4)
    ours = trainer.state_dict()
    for name, tensor in net.state_dict().items():
        if name in ours:
            np.testing.assert_allclose(ours[name], tensor.numpy(), atol=5e-4, err_msg=name)
    for name, parameter in net.named_parameters():
        for moment in MOMENTS[rule]:
            array = theirs.state[parameter][moment].numpy()
            np.testing.assert_allclose(ours[f"{name}.{moment}"], array, atol=5e-4, err_msg=name)

    trainer.save(tmp_path / "saved")
    state = bytes(trainer.memory)[: trainer.program.state_bytes]
    for restore in (lambda: trainer.load(tmp_path / "saved"), lambda: trainer.load_state_dict(ours)):
        trainer.init(5)
        assert bytes(trainer.memory)[: len(state)] != state
        restore()
        assert bytes(trainer.memory)[: len(state)] == state


@pytest.mark.cc
def test_dropout_and_batch_norm_do_not_see_the_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    """Masks follow the logical index: the net whose values stay in NCHW drops the same elements. Sums of gradients and
    averages of weights have the layout of the weights."""
    more: dict[str, Any] = {"accumulate": "mean", "ema": optim.EMA(0.9)}
    assigned = trained(Net(0.3), optim.Adam(lr=0.01), **more).on_host()
    assert not any(layout_copies(entry) for entry in assigned.program.entries)
    monkeypatch.setattr("autodiff_gen.passes.layout.layout_assignment.assign_layouts", unpropagated)
    other = trained(Net(0.3), optim.Adam(lr=0.01), **more).on_host()
    for k, (x, label) in enumerate(batches(6, 3, 10, 10)):
        if k < 4:
            assert assigned.train_step(x, label) == pytest.approx(other.train_step(x, label), abs=1e-5)
        else:
            assert assigned.accumulate(x, label) == pytest.approx(other.accumulate(x, label), abs=1e-5)
    assigned.apply()
    other.apply()
    np.testing.assert_allclose(assigned.predict_averaged(x), other.predict_averaged(x), atol=1e-4)
    for name, array in other.state_dict().items():
        np.testing.assert_allclose(assigned.state_dict()[name], array, atol=1e-4, err_msg=name)


@pytest.mark.cc
def test_images_with_the_channels_last() -> None:
    """The same net fed with NHWC: its permute meets the permute of the first convolution."""
    program = compile_model(trained(Net(channels_last=True), optim.SGD(), (4, 10, 10, 3)), "m")
    check_layouts(program, left=0)
    first, last = (
        trained(Net(channels_last=flag), optim.SGD(lr=0.1), shape).on_host()
        for flag, shape in ((False, (4, 3, 10, 10)), (True, (4, 10, 10, 3)))
    )
    for x, label in batches(4, 3, 10, 10):
        assert first.train_step(x, label) == last.train_step(
            np.ascontiguousarray(x.transpose(0, 2, 3, 1)), label
        )


def test_feature_maps_as_outputs_are_copied_once() -> None:
    """An output that the caller requested in NCHW is written in NCHW; training does not pay for it."""
    x = ag.Input("x", (2, 3, 8, 8), batch_axis=0)
    maps = F.relu(nn.Conv2d(3, 4, 3)(x))
    model = ag.Model([x], [], {"maps": maps}, F.mean(F.square(maps)), optim.SGD())
    step, predict = compile_model(model, "m").entries
    assert layout_copies(step) == [] and len(layout_copies(predict)) <= 1


def test_functions_with_gradients_of_their_own() -> None:
    """Permutes propagate in a function as well, where the caller differentiated."""
    x = ag.Input("x", (2, 3, 8, 8), batch_axis=0)
    w, v = (ag.Param(name, np.ones(shape, "f")) for name, shape in (("w", (4, 3, 3, 3)), ("v", (4, 4, 3, 3))))
    y = F.tanh(F.conv2d(F.relu(F.conv2d(x, w)), v))
    dx = ag.grad(F.sum(F.square(y)), x)
    (entry,) = compile_function(ag.function([x, w, v], [dx]), "f").entries
    # The weights, which a function takes in PyTorch's order, and the result.
    assert len(layout_copies(entry)) <= 3, layout_copies(entry)


def test_groups_refer_to_the_parameters_of_the_net() -> None:
    net = Net()
    groups = [{"params": net.conv1, "lr": 0.5}, {"params": [net.fc1.weight]}]
    model = trained(net, optim.SGD(groups, lr=0.1))
    updated: list[State] = [s for s in model.entries()[0].updates if s.role == "parameter"]
    assert [s.name for s in updated] == ["conv1.weight", "fc1.weight"]
    assert all(s in model.states for s in updated)
