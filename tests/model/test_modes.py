"""Training and evaluation: values that differ between them, and states that a forward pass changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import AutodiffError, ModelError, ShapeError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import topological
from autodiff_gen.ir.printer import show
from autodiff_gen.passes.training.resolve_mode import resolved

X = ag.Input("x", (2, 3))
ONES = np.ones((2, 3), dtype=np.float32)


def value(training: bool, *roots: Any) -> list[float]:
    """The sums of the roots for x = 1."""
    found = evaluate(resolved(roots, training).roots, {X: ONES}, float_dtype="float64")
    return [float(np.sum(array)) for array in found]


def test_by_mode_is_the_one_or_the_other_and_so_is_its_gradient() -> None:
    y = F.sum(F.by_mode(X * 2.0, X * 3.0))
    (slope,) = grad(y, [X])  # differentiated before the mode is known
    assert value(True, y, slope) == [12.0, 12.0]
    assert value(False, y, slope) == [18.0, 18.0]
    (slope,) = grad(F.sum(F.by_mode(X * X * X, F.square(X))), [X])
    (second,) = grad(F.sum(slope), [X])
    assert value(True, slope, second) == [18.0, 36.0] and value(False, slope, second) == [12.0, 12.0]


def test_what_the_other_mode_computes_is_gone() -> None:
    s = ag.Buffer("s", 1.0)
    y = F.by_mode(F.with_updates(X * 2.0, {s: s + 1.0}), F.exp(X))
    training, evaluation = resolved([y], True), resolved([y], False)
    assert [state.name for state in training.updates] == ["s"] and not evaluation.updates
    f = ag.function([X], [y])
    (slope,) = grad(F.sum(F.by_mode(X * 2.0, X * s - F.sum(X, 1, keepdim=True) * s)), [X])
    assert {n.op.name for n in topological(resolved([slope], True).roots)} == {
        "const",
        "reshape",
        "broadcast_to",
        "mul",
    }
    assert "exp" in show(f.graph) and "exp" not in show(ag.function([X], [y], training=True).graph)


def test_with_updates_is_the_identity() -> None:
    s = ag.Buffer("s", 1.0)
    y = F.sum(F.with_updates(X * 2.0, {s: F.sum(X)}))
    (slope,) = grad(y, [X])
    assert value(True, y, slope) == value(False, y, slope) == [12.0, 12.0]


def test_a_model_updates_what_its_loss_depends_on() -> None:
    w = ag.Param("w", np.ones(3, dtype=np.float32))
    seen, unseen = ag.Buffer("seen", 0.0), ag.Buffer("unseen", 5.0)
    y = F.with_updates(X * w, {seen: seen + F.sum(X)})
    shown = F.with_updates(y * 1.0, {unseen: unseen + 1.0})
    model = ag.Model([X], [], {"y": shown}, F.sum(y), optim.SGD(lr=0.5))
    assert [s.name for s in model.states] == ["w", "seen"] and list(model.frozen) == ["unseen"]
    step, predict = model.entries()
    assert [s.name for s in step.updates] == ["seen", "w"] and not predict.updates


@pytest.mark.cc
def test_predict_leaves_every_state_as_it_is() -> None:
    w = ag.Param("w", np.ones(3, dtype=np.float32))
    s, count = ag.Buffer("s", np.zeros(3)), ag.Buffer("count", np.int32(7), "s32")
    y = F.with_updates(F.by_mode(X * w, X * w + s), {s: s + F.sum(X, 0), count: count + F.to(1.0, "s32")})
    trainer = ag.Model([X], [], {"y": y}, F.sum(y), optim.SGD(lr=0.5)).on_host()
    before = trainer.state_dict()
    np.testing.assert_array_equal(trainer.predict(ONES), ONES)
    for name, array in trainer.state_dict().items():
        np.testing.assert_array_equal(array, before[name])
    assert trainer.train_step(ONES) == 6.0
    after = trainer.state_dict()
    assert after["count"] == 8 and after["count"].dtype == np.int32
    np.testing.assert_array_equal(after["s"], np.full(3, 2.0))
    np.testing.assert_array_equal(trainer.predict(ONES), np.full((2, 3), 2.0))  # w = 0, s = 2
    with pytest.raises(ShapeError, match=r"^load_state_dict: count is s32\[\], got an array of float64$"):
        trainer.load_state_dict({"count": np.array(1.5)}, strict=False)
    with pytest.raises(ShapeError, match=r"^load_state_dict: count is s32\[\], got 4294967296$"):
        trainer.load_state_dict({"count": np.array(2**32)}, strict=False)
    with pytest.raises(ShapeError, match=r"^load_state_dict: s has shape \[3\], got \[\]$"):
        trainer.load_state_dict({"s": [[1.0], [2.0, 3.0]]}, strict=False)


# Modules


def net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Sequential(nn.BatchNorm1d(4)))


@pytest.mark.torch
def test_buffers_have_pytorchs_names_and_order() -> None:
    import torch

    ours = net()
    twin = torch.nn.Sequential(
        torch.nn.Linear(3, 4),
        torch.nn.BatchNorm1d(4),
        torch.nn.ReLU(),
        torch.nn.Sequential(torch.nn.BatchNorm1d(4)),
    )
    assert [k for k, _ in ours.named_parameters()] == [k for k, _ in twin.named_parameters()]
    assert [k for k, _ in ours.named_buffers()] == [k for k, _ in twin.named_buffers()]
    assert len(list(ours.buffers())) == 6


def test_train_and_eval_reach_every_module() -> None:
    ours = net()
    assert all(m.training for _, m in ours.named_modules())
    assert ours.eval() is ours and not any(m.training for _, m in ours.named_modules())
    ours.train()
    ours[3].eval()
    assert [m.training for _, m in ours.named_modules()] == [True, True, True, True, False, False]


def test_buffers_are_attributes() -> None:
    class Own(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.seen = nn.Buffer(np.zeros(2))
            self.register_buffer("none", None)
            self.given = ag.Buffer("given", 1.0)

    own = Own()
    assert [k for k, _ in own.named_buffers()] == ["seen", "given"] and own.none is None
    assert own.seen.name == "seen" and list(own.named_parameters()) == []
    own.seen = 3
    assert [k for k, _ in own.named_buffers()] == ["given"]


def twice() -> Any:
    given, buffer = ag.Input("x", (4, 3)), ag.Buffer("seen", np.zeros(3, np.float32))
    p = ag.Param("p", np.ones(3, np.float32))
    x = given
    for _ in range(2):
        mean = 0.5 * (buffer + F.mean(x, 0))
        x = F.with_updates((x - mean) * p, {buffer: mean})
    return ag.Model([given], [], {"y": x}, F.sum(x), optim.SGD(lr=0.1))


P = ag.Param("p", 1.0)
REJECTED: list[tuple[Callable[[], Any], type[AutodiffError], str]] = [
    (
        twice,
        ModelError,
        r"^'seen' would be updated twice in one step, and is read elsewhere: its module is called twice; use one",
    ),
    (
        lambda: F.with_updates(X, {P: P}),
        ShapeError,
        r"^with_updates: 'p' is a parameter, which the optimizer",
    ),
    (
        lambda: F.with_updates(X, {ag.Buffer("b", 1.0, "bool"): 1.0}),
        ShapeError,
        r"^with_updates: 'b' is a mask, a constant; keep integers in its place$",
    ),
    (lambda: F.with_updates(X, {X: X}), ShapeError, r"^with_updates: <x: f32\[2,3\]> is not a buffer"),
    (
        lambda: F.with_updates(X, {ag.Buffer("b", 1.0): X}),
        ShapeError,
        r"with_updates\(.*the new value of 'b' is f32",
    ),
    (
        lambda: F.by_mode(X, F.sum(X)),
        ShapeError,
        r"^by_mode\(x: f32\[2,3\], f32\[\]\): .* must have one type$",
    ),
    (lambda: ag.Buffer("b", 1.0, "u8"), ModelError, r"^buffer 'b': dtype='u8'; known: 'f32', 's32', 'bool'$"),
    (
        lambda: nn.Module().register_buffer("b", 1.0, persistent=False),
        ShapeError,
        r"argument 'persistent' is not",
    ),
    (
        lambda: ag.function([X], [F.by_mode(X, X * P)]),
        ModelError,
        r"^function 'f': 'p' is used, but not among",
    ),
]


@pytest.mark.parametrize("build, error, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], error: type[AutodiffError], message: str) -> None:
    with pytest.raises(error, match=message):
        build()
