"""Layers with some input channels that train, against PyTorch with the gradients of all others set to 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim, quant
from autodiff_gen.check.gradcheck import check
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device.state import state_arrays, state_bytes
from autodiff_gen.errors import ModelError, ShapeError
from autodiff_gen.ir.op_kinds import KernelOp
from autodiff_gen.ir.parameter_layout import PartialStorage
from autodiff_gen.ir.traits import macs

STEPS, BATCH, CLASSES = 5, 3, 4
SHAPE = (6, 8, 8)
CHOSEN = {"1": (0, 3, 4), "3": (1, 5), "7": (2, 9, 14, 40)}  # depthwise, pointwise, linear


def network(nn: Any) -> Any:
    return nn.Sequential(
        nn.Conv2d(6, 6, 3, padding=1),
        nn.Conv2d(6, 6, 3, padding=1, groups=6),
        nn.ReLU(),
        nn.Conv2d(6, 5, (1, 2)),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(60, CLASSES),
    )


def in_part() -> nn.Sequential:
    net = network(nn)
    net[0].requires_grad_(False)
    for name, channels in CHOSEN.items():
        assert nn.update_channels(net[int(name)], channels) is net[int(name)]
    return net


def model(net: nn.Module, optimizer: Any = None, **options: Any) -> ag.Model:
    rule = optimizer or optim.SGD(lr=0.1)
    return ag.Model.supervised(net, (BATCH, *SHAPE), nn.CrossEntropyLoss(), rule, **options)


def data(rows: int = BATCH * STEPS) -> tuple[Any, Any]:
    rng = np.random.default_rng(7)
    return rng.normal(size=(rows, *SHAPE)).astype(np.float32), rng.integers(0, CLASSES, rows)


def axis_of(weight: Any) -> int:
    return 0 if weight.ndim == 4 and weight.shape[1] == 1 else 1


def mask(name: str, weight: Any) -> Any:
    found = np.zeros(weight.shape, bool)
    np.moveaxis(found, axis_of(weight), 0)[list(CHOSEN[name.partition(".")[0]])] = True
    return found


OPTIMIZERS: dict[str, Callable[..., Any]] = {
    "SGD": lambda o, p: o.SGD(p, lr=0.1),
    "momentum": lambda o, p: o.SGD(p, lr=0.05, momentum=0.9),
    "Adam": lambda o, p: o.Adam(p, lr=0.01),
}


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_equals_pytorchs(name: str) -> None:
    import torch

    trainer = model(in_part(), OPTIMIZERS[name](optim, None), clip_grad_norm=0.5).on_host()
    first = {k: v for k, v in trainer.state_dict().items() if k[0].isdigit() and k.count(".") == 1}
    twin = network(torch.nn)
    twin.load_state_dict({k: torch.tensor(v) for k, v in first.items()})
    twin[0].requires_grad_(False)
    for k, p in twin.named_parameters():
        if k.endswith("weight") and k.partition(".")[0] in CHOSEN:
            p.register_hook(torch.tensor(mask(k, p)).mul)
    rule = OPTIMIZERS[name](torch.optim, [p for p in twin.parameters() if p.requires_grad])
    x, label = data()
    for k in range(0, len(x), BATCH):
        loss = torch.nn.functional.cross_entropy(
            twin(torch.tensor(x[k : k + BATCH])), torch.tensor(label[k : k + BATCH])
        )
        rule.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(twin.parameters(), 0.5)
        rule.step()
        assert trainer.train_step(x[k : k + BATCH], label[k : k + BATCH]) == pytest.approx(
            loss.item(), rel=1e-5
        )
    got = trainer.state_dict()
    for k, value in twin.state_dict().items():
        np.testing.assert_allclose(got[k], value, rtol=1e-4, atol=1e-6, err_msg=k)
    for k in ("1.weight", "3.weight", "7.weight"):
        trained = mask(k, first[k])
        np.testing.assert_array_equal(got[k][~trained], first[k][~trained])
        assert (got[k][trained] != first[k][trained]).all()


def test_what_does_not_train_is_neither_computed_nor_kept_in_ram() -> None:
    program = compile_model(model(in_part(), optim.Adam(lr=0.01)), "m")
    shapes = {s.name: s.type.shape for s in program.slots}
    assert shapes["3.weight"] == (5, 1, 2, 2) and shapes["1.weight"] == (3, 3, 3)
    assert shapes["3.weight.exp_avg"] == (5, 1, 2, 2)
    assert np.prod(shapes["7.weight"]) == CLASSES * 4

    def macs_of(net: nn.Module) -> list[int]:
        plan = compile_model(model(net), "m").entries[0].plan
        return [
            macs(s.node)
            for s in plan.steps
            if isinstance(s.node.op.lower, KernelOp) and "_dw" in s.node.op.name
        ]

    assert min(macs_of(in_part())) * 3 == min(m for m in macs_of(network(nn)))


def chosen_of(layer: nn.Module, inputs: Any, name: str = "weight") -> tuple[int, ...]:
    """The channels of a weight that train."""
    program = compile_model(ag.Model.supervised(layer, inputs, nn.MSELoss(), optim.SGD(lr=0.1)), "m")
    (storage,) = (s.state.storage for s in program.slots if s.name == name)
    assert isinstance(storage, PartialStorage)
    return storage.index


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_fraction_chooses_the_largest(norm: str) -> None:
    """Of the weights, by PyTorch's norms; equal ones of several small numbers and of a few large ones."""
    weights = np.random.default_rng(3).normal(size=(6, 8)) ** 3
    weights[:, :2] = np.array([[2.0] * 6, [9.0, 1.0, 0.0, 0.0, 0.0, 0.0]]).T  # l1: 12 and 10; l2: 4.9 and 9.1
    for count, fraction in ((1, 0.1), (3, 0.375), (2, 0.3), (5, 0.6)):
        layer = nn.Linear(8, 6)
        layer.weight = nn.Parameter(weights)
        nn.update_channels(layer, fraction, norm=norm)
        norms = np.linalg.norm(weights, int(norm[1]), axis=0)
        assert chosen_of(layer, (1, 8)) == tuple(sorted(np.argsort(-norms)[:count]))
    assert (np.abs(weights).sum(0)[:2].argmax(), (weights**2).sum(0)[:2].argmax()) == (0, 1)


def test_a_fraction_of_integers_chooses_the_largest_numbers() -> None:
    """Each channel of a depthwise convolution has a scale."""
    weight = np.full((8, 1, 3, 3), 100, np.int8)
    scales = np.arange(1, 9, dtype=np.float32) / 1000
    layers = [
        {"name": "input", "op": "quantize", "scale": 0.02, "zero_point": 0},
        {"name": "dw", "op": "conv2d", "scale": 0.05, "zero_point": 0, "padding": 1, "groups": 8},
    ]
    net = quant.load({"dw.weight": weight, "dw.weight_scales": scales, "layers": layers})
    nn.update_channels(dict(net.named_modules())["dw"], 0.25)
    assert chosen_of(nn.Sequential(net, nn.Flatten()), (1, 8, 4, 4), "0.dw.weight") == (6, 7)


def test_all_channels_are_no_part() -> None:
    layer = nn.Linear(4, 3)
    layer.weight.requires_grad = False
    for everything in (1, 1.0, range(4)):
        nn.update_channels(layer, everything)
    assert layer.weight.channels is None and layer.weight.requires_grad
    nn.update_channels(layer, 0.9)  # of 4 channels: 3.6
    program = compile_model(ag.Model.supervised(layer, (1, 4), nn.MSELoss(), optim.SGD(lr=0.1)), "m")
    assert [s.state.storage for s in program.slots] == [None, None]


@pytest.mark.cc
def test_states_go_to_the_device_and_back(tmp_path: Any) -> None:
    trainer = model(in_part(), optim.Adam(lr=0.01), ema=optim.EMA(0.9)).on_host()
    x, label = data(BATCH)
    trainer.train_step(x, label)
    state = trainer.state_dict()
    back = state_arrays(trainer.program, state_bytes(trainer.program, state))
    for k, value in state.items():
        np.testing.assert_array_equal(back[k], value, err_msg=k)
    assert state["3.weight.exp_avg"].shape == (5, 6, 1, 2)
    assert not state["3.weight.exp_avg"][:, [0, 2, 3, 4]].any()
    np.testing.assert_array_equal(state["ema.3.weight"][:, 0], state["3.weight"][:, 0])
    trainer.save(tmp_path / "c.bin")
    other = model(in_part(), optim.Adam(lr=0.01), ema=optim.EMA(0.9)).on_host()
    other.load(tmp_path / "c.bin")
    np.testing.assert_array_equal(other.predict(x), trainer.predict(x))
    np.testing.assert_array_equal(other.predict_averaged(x), trainer.predict_averaged(x))


@pytest.mark.cc
def test_other_values_of_channels_that_do_not_train_are_rejected() -> None:
    trainer = model(in_part()).on_host()
    state = trainer.state_dict()
    state["3.weight"] = state["3.weight"].copy()
    state["3.weight"][0, 1] += 1
    trainer.load_state_dict(state)
    np.testing.assert_array_equal(trainer.state_dict()["3.weight"], state["3.weight"])
    state["3.weight"][0, 0] += 1
    with pytest.raises(ModelError, match=r"3.weight: channels that do not train have other values"):
        trainer.load_state_dict(state)
    with pytest.raises(ShapeError, match=r"3.weight has shape \[5, 6, 1, 2\], got \[\]"):
        trainer.load_state_dict({**state, "3.weight": "x"})
    with pytest.raises(ModelError, match=r"0.weight is frozen"):
        trainer.load_state_dict({**state, "0.weight": "x"})


def test_check_compares_what_trains() -> None:
    report, good = check(model(in_part()), "net")
    assert good, report


@pytest.mark.parametrize(
    ("layer", "channels", "message"),
    [
        (nn.Linear(4, 3), 0.0, "the fraction 0.0 must be above 0 and at most 1"),
        (nn.Linear(4, 3), 1.5, "the fraction 1.5 must be above 0 and at most 1"),
        (nn.Linear(4, 3), float("nan"), "the fraction nan must be"),
        (nn.Linear(4, 3), 2, "the fraction 2 must be above 0 and at most 1; for single channels give a list"),
        (nn.Linear(4, 3), [], "give at least one channel"),
        (nn.Linear(4, 3), [1, 1], "each of them once"),
        (nn.Linear(4, 3), [4], "4 is no channel; the layer has 0 to 3"),
        (nn.Linear(4, 3), ["a"], "'a' is no channel"),
        (nn.Linear(4, 3), [None], "None is no channel"),
        (nn.Linear(4, 3), None, "expected a fraction or a sequence of channels, not None"),
        (nn.ReLU(), 0.5, "ReLU has no weights by input channel"),
        (nn.Conv2d(4, 4, 3, groups=2), 0.5, "Conv2d has no weights by input channel"),
        (3, 0.5, "expected a layer, not 3"),
    ],
)
def test_rejected(layer: Any, channels: Any, message: str) -> None:
    with pytest.raises(ModelError, match=message):
        nn.update_channels(layer, channels)


@pytest.mark.parametrize("norm", ["L1", "l3", 2, None, ["l1"]])
def test_other_norms_are_rejected(norm: Any) -> None:
    layer = nn.Linear(4, 3)
    with pytest.raises(ModelError) as error:
        nn.update_channels(layer, 0.5, norm=norm)
    assert str(error.value) == f"update_channels: norm={norm!r} must be 'l1' or 'l2'"


def test_a_model_that_is_built_keeps_its_channels() -> None:
    net = nn.Linear(4, 3)
    ag.Model.supervised(net, (1, 4), nn.MSELoss(), optim.SGD(lr=0.1))
    with pytest.raises(ModelError, match="is in a model already"):
        nn.update_channels(net, 0.5)
