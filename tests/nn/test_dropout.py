"""Dropout: masks by counter, on the device as by their NumPy twin, beside PyTorch with the same masks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.check.gradcheck import check
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.errors import AutodiffError, ModelError, ShapeError
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.counter_rng import rand_u32
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.printer import show
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.layout.rematerialize_random import rematerialize_random
from autodiff_gen.passes.training.resolve_mode import position_key, resolved


def noise(key: int, step: int, shape: tuple[int, ...], p: float) -> Any:
    """0 or 1 / (1 - p), as the module says."""
    drawn = rand_u32(key, step, np.arange(int(np.prod(shape)))).reshape(shape)
    return np.where(drawn < np.floor(p * 2.0**32), 0.0, 1.0 / (1.0 - p)).astype(np.float32)


ROWS: list[tuple[str, tuple[int, ...], tuple[int, ...], float]] = [
    ("dropout", (4, 6), (4, 6), 0.5),
    ("dropout", (3, 2, 5), (3, 2, 5), 0.3),
    ("dropout", (7,), (7,), 0.9),
    ("dropout", (), (), 0.5),
    ("dropout1d", (4, 3, 5), (4, 3, 1), 0.4),
    ("dropout1d", (5, 2), (5, 1), 0.4),
    ("dropout2d", (3, 4, 2, 3), (3, 4, 1, 1), 0.25),
]


@pytest.mark.parametrize("name, shape, mask, p", ROWS)
def test_value_and_gradient_are_the_masks(name: str, shape: Any, mask: Any, p: float) -> None:
    x = ag.Input("x", shape)
    y = getattr(F, name)(x, p, seed=11)
    array = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    roots = resolved([y, *grad(F.sum(y * x), [x])], training=True).roots
    kept = noise(11, 9, mask, p)
    got = evaluate(roots, {x: array, F.random_step(): np.uint32(8)}, float_dtype="float64")
    np.testing.assert_allclose(got[0], array * kept, rtol=1e-7)
    np.testing.assert_allclose(got[1], 2.0 * array * kept, rtol=1e-7)
    (same,) = evaluate(resolved([y], training=False).roots, {x: array})
    np.testing.assert_array_equal(same, array)


@pytest.mark.cc
def test_c_draws_the_same_bits_for_every_n() -> None:
    x, v = ag.Input("x", (4, 3, 2), batch_axis=0), ag.Input("v", (4, 3, 2), batch_axis=0)
    permuted = F.permute(x, (2, 0, 1))  # the index follows the batch in the middle
    ys = [F.dropout(x, 0.5, seed=3), F.dropout1d(x, 0.2, seed=4), F.dropout(permuted, 0.5, seed=5)]
    flat = F.reshape(F.sum(F.permute(ys[2], (1, 2, 0)) * v, 2), (-1,))
    f = ag.function([x, v, F.random_step()], [*ys[:2], flat], training=True).on_host()
    rng = np.random.default_rng(1)
    for n in range(1, 5):
        a, b = (rng.normal(size=(n, 3, 2)).astype(np.float32) for _ in range(2))
        got = f(a, b, np.uint32(2**32 - 1))  # the counter wraps to 0
        np.testing.assert_array_equal(got[0], a * noise(3, 0, (n, 3, 2), 0.5))
        np.testing.assert_array_equal(got[1], a * noise(4, 0, (n, 3, 1), 0.2))
        kept = np.transpose(noise(5, 0, (2, n, 3), 0.5), (1, 2, 0))
        np.testing.assert_allclose(got[2], (a * kept * b).sum(2).reshape(-1), rtol=1e-5, atol=1e-6)


def test_the_share_that_is_dropped() -> None:
    for p in (0.1, 0.5, 0.8):
        kept = noise(position_key(1), 1, (200_000,), p)
        assert np.mean(kept == 0) == pytest.approx(p, abs=0.004)
        assert np.mean(kept) == pytest.approx(1.0, abs=0.02)


@pytest.mark.torch
def test_all_or_nothing() -> None:
    import torch

    x = ag.Input("x", (3,))
    assert F.dropout(x, 0.0) is x and F.dropout(x, 0.5, training=False) is x and nn.Dropout().eval()(x) is x
    roots = resolved([F.dropout(x, 1.0)], training=True).roots
    given = np.array([1.0, -2.0, np.inf], dtype=np.float32)
    expected = torch.nn.functional.dropout(torch.tensor(given), 1.0)
    np.testing.assert_array_equal(evaluate(roots, {x: given})[0], expected.numpy())


# Models


def net(p: float = 0.5, rate: float = 0.2) -> nn.Sequential:
    layers = [nn.Linear(6, 16), nn.Dropout(p), nn.ReLU(), nn.Linear(16, 16), nn.ReLU()]
    return nn.Sequential(*layers, nn.Dropout(rate, seed=7), nn.Linear(16, 3))


def model(p: float = 0.5, rate: float = 0.2) -> ag.Model:
    return ag.Model.supervised(
        net(p, rate), input=(8, 6), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.01)
    )


def data(k: int, rows: int = 8) -> tuple[Any, Any]:
    rng = np.random.default_rng(k)
    return rng.normal(size=(rows, 6)).astype(np.float32), rng.integers(0, 3, rows).astype(np.uint8)


def masked(*arguments: Any) -> Any:
    """PyTorch's module with our masks: key, p and the shape of a mask."""
    import torch

    class Masks(torch.nn.Module):
        def __init__(self, key: int, p: float, per_channel: bool = False) -> None:
            super().__init__()
            self.key, self.p, self.per_channel, self.steps = key, p, per_channel, 0

        def forward(self, x: Any) -> Any:
            if not self.training:
                return x
            self.steps += 1
            shape = (*x.shape[:2], 1, 1) if self.per_channel else tuple(x.shape)
            return x * torch.tensor(noise(self.key, self.steps, shape, self.p))

    return Masks(*arguments)


def compare(trainer: Any, twin: Any, step: Any, given: Callable[[int], tuple[Any, Any]]) -> None:
    """Steps side by side, with predict in between."""
    import torch

    state = trainer.state_dict()
    twin.load_state_dict({k: torch.tensor(state[k]) for k in twin.state_dict()})
    for k in range(16):
        x, label = given(k)
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label.astype("int64")))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=2e-5, abs=1e-6)
        scores = twin.eval()(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(trainer.predict(x), scores, rtol=1e-4, atol=1e-4)
        twin.train()
    assert trainer.state_dict()["random.step"] == 16
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value.numpy(), rtol=1e-4, atol=5e-5)


@pytest.mark.cc
@pytest.mark.torch
def test_steps_equal_pytorchs_with_the_same_masks() -> None:
    import torch

    t = torch.nn
    layers = [t.Linear(6, 16), masked(position_key(1), 0.5), t.ReLU(), t.Linear(16, 16), t.ReLU()]
    twin = t.Sequential(*layers, masked(7, 0.2), t.Linear(16, 3))
    trainer = model().on_host()
    assert list(trainer.state_dict())[:7] == [*twin.state_dict(), "random.step"]
    compare(trainer, twin, torch.optim.Adam(twin.parameters(), lr=0.01), lambda k: data(k, 1 + k % 8))


def images(p: float = 0.3) -> ag.Model:
    first = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout2d(p), nn.AvgPool2d(3)]
    net = nn.Sequential(*first, nn.Flatten(), nn.Dropout(p + 0.1 if p else 0.0), nn.Linear(16, 3))
    return ag.Model.supervised(
        net, input=(4, 1, 6, 6), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )


@pytest.mark.cc
@pytest.mark.torch
def test_masks_follow_the_logical_order_of_images() -> None:
    """Inside, images are channels last, and the flattened mask is drawn in that order."""
    import torch

    t = torch.nn
    first = [t.Conv2d(1, 4, 3, padding=1), t.BatchNorm2d(4), t.ReLU(), masked(position_key(1), 0.3, True)]
    twin = t.Sequential(*first, t.AvgPool2d(3), t.Flatten(), masked(position_key(2), 0.4), t.Linear(16, 3))

    def given(k: int) -> tuple[Any, Any]:
        rng = np.random.default_rng(k)
        n = 1 + k % 4
        return rng.normal(size=(n, 1, 6, 6)).astype(np.float32), rng.integers(0, 3, n).astype(np.uint8)

    compare(images().on_host(), twin, torch.optim.SGD(twin.parameters(), lr=0.1), given)
    plain, dropped = (compile_model(images(p), "m") for p in (0.0, 0.3))
    assert (
        dropped.struct_bytes <= plain.struct_bytes + 4 + 4 * 4
    )  # the counter, and a factor per channel in passing
    step = emit(dropped)["m.c"].split("int m_predict")[0]
    draws = [line for line in step.splitlines() if f"ag_rand_u32({position_key(1)}u" in line]
    assert len(draws) == 2 and all("_row" in line.split("=")[0] for line in draws)  # once per channel


def test_a_mask_seen_otherwise_is_drawn_otherwise() -> None:
    x = ag.Input("x", (2, 3, 4), batch_axis=0)
    flat = F.dropout(F.reshape(x, (x.shape[0], 12)), 0.5, seed=1)
    seen = F.permute(F.reshape(flat, (x.shape[0], 2, 2, 3)), (2, 0, 3, 1))[:, :, ::2]
    graph = Graph("g", (x, F.random_step()), {"y": resolved([seen], training=True).roots[0]})
    noisy = rematerialize_random(graph, Context())
    feeds = {x: np.random.default_rng(0).normal(size=(2, 3, 4)), F.random_step(): np.uint32(4)}
    for n in (1, 2):
        given = {x: feeds[x][:n], F.random_step(): feeds[F.random_step()]}
        before, after = (evaluate(list(g.outputs.values()), given)[0] for g in (graph, noisy))
        np.testing.assert_array_equal(before, after)


def test_noise_of_a_view_is_recomputed_by_position() -> None:
    shape, step = (3, 8), F.random_step()
    drawn = apply("rand_u32", step, apply("iota", size=shape), key=9)
    seen = F.permute(F.reshape(drawn, (3, 2, 4)), (2, 0, 1))
    graph = Graph("g", (step,), {"y": seen})
    again = rematerialize_random(graph, Context())
    assert "places" in show(again) and "reshape" not in show(again)
    one, other = (evaluate(list(g.outputs.values()), {step: np.uint32(3)})[0] for g in (graph, again))
    np.testing.assert_array_equal(one, other)


@pytest.mark.cc
def test_a_checkpoint_resumes_bit_for_bit(tmp_path: Path) -> None:
    trainer = model().on_host()
    for k in range(3):
        trainer.train_step(*data(k))
    trainer.save(tmp_path / "half")
    losses = [trainer.train_step(*data(k)) for k in range(3, 6)]
    end = trainer.state_dict()
    again = model().on_host()
    again.load(tmp_path / "half")
    again.predict(data(9)[0])
    assert [again.train_step(*data(k)) for k in range(3, 6)] == losses
    for name, value in again.state_dict().items():
        np.testing.assert_array_equal(value, end[name])


@pytest.mark.torch
def test_gradients_are_checked_through_the_masks() -> None:
    report, right = check(model(), "m")
    assert right, report
    assert "compared with PyTorch in float64, every element" in report


def test_masks_take_no_memory() -> None:
    plain, dropped = (compile_model(model(p, p / 2), "m") for p in (0.0, 0.5))
    counter = 8  # and its next value until the guard has passed
    # The only stored mask is the second ReLU's, whose result is stored after dropout only: 128 bytes, and
    # 36 are above the peak of the plain model. No mask of dropout is.
    assert dropped.struct_bytes == plain.struct_bytes + counter + 36 <= 7024 + counter
    held = [v for b in dropped.entries[0].plan.placed for v in b.values]
    assert [repr(v.type) for v in held if v.type.dtype.kind in "bu"].count("bool[n,16]") == 1
    assert sum(v.type.dtype.kind in "bu" and v.ndim > 0 for v in held) == 1
    text = emit(dropped)["m.c"]
    step, predict = text.split("int m_predict")
    assert step.count("ag_rand_u32(") == 4 and "ag_rand_u32" not in predict  # forward and backward, twice
    assert '#include "ag_rng.h"' in text and "ag_rng" not in emit(plain)["m.c"]
    assert emit(compile_model(model(), "m")) == emit(compile_model(model(), "m"))


def test_draws_of_one_shape_differ() -> None:
    x = ag.Input("x", (64,))
    ones = {x: np.ones(64), F.random_step(): np.uint32(0)}
    a, b = evaluate(resolved([F.dropout(x), F.dropout(x)], training=True).roots, ones)
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(a, noise(position_key(1), 1, (64,), 0.5))


X = ag.Input("x", (4, 3))
REJECTED: list[tuple[Callable[[], Any], type[AutodiffError], str]] = [
    (
        lambda: F.dropout(X, 1.5),
        ShapeError,
        r"^dropout\(x: f32\[4,3\]\): p=1.5 must be a probability, from 0 to 1$",
    ),
    (lambda: F.dropout(X, inplace=True), ShapeError, r"^dropout: the argument 'inplace' is not supported$"),
    (lambda: F.dropout(X, seed=-1), ShapeError, r"seed=-1 must be an integer from 0 to 2\^32 - 1$"),
    (lambda: F.dropout(ag.Input("i", (2,), "s32")), ShapeError, r"^dropout\(i: s32\[2\]\): needs a float$"),
    (lambda: F.dropout1d(ag.Input("x", (4,))), ShapeError, r"^dropout1d\(.*must be \[N, C, L\] or \[C, L\]$"),
    (lambda: F.dropout2d(X), ShapeError, r"^dropout2d\(.*the input must be \[N, C, H, W\]$"),
    (lambda: nn.Dropout(-0.1), ModelError, r"^Dropout: p=-0.1 must be a probability, from 0 to 1$"),
    (lambda: nn.Dropout2d(inplace=True), ShapeError, r"the argument 'inplace' is not supported$"),
    (
        lambda: ag.function([X], [F.dropout(X)], training=True),
        ModelError,
        r"'random.step' is used, but not among",
    ),
]


@pytest.mark.parametrize("build, error, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], error: type[AutodiffError], message: str) -> None:
    with pytest.raises(error, match=message):
        build()
