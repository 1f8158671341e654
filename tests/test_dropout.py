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
from autodiff_gen.compiler import compile_model
from autodiff_gen.emit import emit
from autodiff_gen.errors import AutodiffError, ModelError, ShapeError
from autodiff_gen.interpret import evaluate
from autodiff_gen.passes.specialise import position_key, settled
from autodiff_gen.rng import rand_u32


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
    roots = settled([y, *grad(F.sum(y * x), [x])], training=True).roots
    kept = noise(11, 9, mask, p)
    got = evaluate(roots, {x: array, F.random_step(): np.uint32(8)}, float_dtype="float64")
    np.testing.assert_allclose(got[0], array * kept, rtol=1e-7)
    np.testing.assert_allclose(got[1], 2.0 * array * kept, rtol=1e-7)
    (same,) = evaluate(settled([y], training=False).roots, {x: array})
    np.testing.assert_array_equal(same, array)


@pytest.mark.cc
def test_c_draws_the_same_bits_for_every_n() -> None:
    x, v = ag.Input("x", (4, 3, 2), batch_axis=0), ag.Input("v", (4, 3, 2), batch_axis=0)
    turned = F.permute(x, (2, 0, 1))  # the index follows the batch in the middle
    ys = [F.dropout(x, 0.5, seed=3), F.dropout1d(x, 0.2, seed=4), F.dropout(turned, 0.5, seed=5)]
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
    roots = settled([F.dropout(x, 1.0)], training=True).roots
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


@pytest.mark.cc
@pytest.mark.torch
def test_steps_equal_pytorchs_with_the_same_masks() -> None:
    import torch

    class Masks(torch.nn.Module):
        def __init__(self, key: int, p: float) -> None:
            super().__init__()
            self.key, self.p, self.steps = key, p, 0

        def forward(self, x: Any) -> Any:
            if not self.training:
                return x
            self.steps += 1
            return x * torch.tensor(noise(self.key, self.steps, tuple(x.shape), self.p))

    t = torch.nn
    layers = [
        t.Linear(6, 16),
        Masks(position_key(1), 0.5),
        t.ReLU(),
        t.Linear(16, 16),
        t.ReLU(),
        Masks(7, 0.2),
    ]
    twin = t.Sequential(*layers, t.Linear(16, 3))
    trainer = model().on_host()
    state = trainer.state_dict()
    assert list(state)[:7] == [*twin.state_dict(), "random.step"]
    twin.load_state_dict({k: torch.tensor(v) for k, v in state.items() if k in twin.state_dict()})
    step = torch.optim.Adam(twin.parameters(), lr=0.01)
    for k in range(20):
        x, label = data(k, 1 + k % 8)
        loss = t.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label.astype("int64")))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=2e-5, abs=1e-6)
        scores = twin.eval()(torch.tensor(x)).detach().numpy()
        np.testing.assert_allclose(trainer.predict(x), scores, rtol=1e-4, atol=1e-5)
        twin.train()
    assert trainer.state_dict()["random.step"] == 20
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value.numpy(), rtol=2e-5, atol=2e-5)


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


def test_masks_take_no_memory() -> None:
    plain, dropped = (compile_model(model(p, p / 2), "m") for p in (0.0, 0.5))
    assert dropped.struct_bytes == plain.struct_bytes + 4  # the counter
    text = emit(dropped)["m.c"]
    step, predict = text.split("int m_predict")
    assert step.count("ag_rand_u32(") == 4 and "ag_rand_u32" not in predict  # forward and backward, twice
    assert '#include "ag_rng.h"' in text and "ag_rng" not in emit(plain)["m.c"]
    assert emit(compile_model(model(), "m")) == emit(compile_model(model(), "m"))


def test_draws_of_one_shape_differ() -> None:
    x = ag.Input("x", (64,))
    ones = {x: np.ones(64), F.random_step(): np.uint32(0)}
    a, b = evaluate(settled([F.dropout(x), F.dropout(x)], training=True).roots, ones)
    assert not np.array_equal(a, b)
    np.testing.assert_array_equal(a, noise(position_key(1), 1, (64,), 0.5))


X = ag.Input("x", (4, 3))
REFUSED: list[tuple[Callable[[], Any], type[AutodiffError], str]] = [
    (
        lambda: F.dropout(X, 1.5),
        ShapeError,
        r"^dropout\(x: f32\[4,3\]\): p=1.5 must be a probability, from 0 to 1$",
    ),
    (lambda: F.dropout(X, inplace=True), ShapeError, r"^dropout: the argument 'inplace' is not supported$"),
    (lambda: F.dropout(X, seed=-1), ShapeError, r"seed=-1 must be a whole number from 0 to 2\^32 - 1$"),
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


@pytest.mark.parametrize("build, error, message", REFUSED)
def test_refused_in_one_line(build: Callable[[], Any], error: type[AutodiffError], message: str) -> None:
    with pytest.raises(error, match=message):
        build()
