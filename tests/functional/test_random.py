"""Random numbers: the numbers of their NumPy twin, new ones in every training step, their mean in evaluation mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.counter_rng import rand_u32

SHAPE = (5, 3)


def uniform(seed: int, step: int) -> Any:
    bits = rand_u32(seed, step, np.arange(15)).reshape(SHAPE)
    return np.minimum(bits.astype(np.float32) * np.float32(2.0**-32), np.float32(1.0 - 2.0**-24))


def normal(seed: int, step: int) -> Any:
    distance = np.sqrt(-2.0 * np.log(1.0 - uniform(seed, step).astype(np.float64)))
    return distance * np.cos(2.0 * np.pi * uniform(seed + 1, step))


@pytest.mark.cc
def test_generated_c_draws_those_of_the_twin() -> None:
    x = ag.Input("x", SHAPE, batch_axis=0)
    drawn = [
        F.rand(x.shape, seed=3),
        F.rand_like(x, seed=4),
        F.randn(x.shape[0], 3, seed=5),
        F.randn_like(x, seed=7),
    ]
    drawn = [F.reshape(y * 1.0, (-1, 3)) for y in drawn]
    zeros = np.zeros(SHAPE, "float32")
    training = ag.function([x, F.random_step()], drawn, training=True).on_host()(zeros, np.uint32(8))
    for got, want in zip(training, [uniform(3, 9), uniform(4, 9), normal(5, 9), normal(7, 9)], strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    evaluation = ag.function([x], drawn).on_host()(zeros)
    assert [np.unique(y).tolist() for y in evaluation] == [[0.5], [0.5], [0.0], [0.0]]


@pytest.mark.cc
def test_a_model_draws_anew_in_every_step() -> None:
    x, w = ag.Input("x", (500, 4), batch_axis=0), ag.Param("w", np.zeros(4, "float32"))
    noisy = x + F.randn_like(x) + w
    model = ag.Model([x], [], {"y": noisy}, F.mean(F.square(noisy)), optim.SGD(lr=0.0))
    trainer = model.on_host()
    zeros = np.zeros((500, 4), "float32")
    losses = [float(trainer.train_step(zeros)) for _ in range(20)]
    assert len(set(losses)) == 20 and abs(np.mean(losses) - 1.0) < 0.02
    assert not np.any(trainer.predict(zeros))


def test_moments() -> None:
    numbers = np.concatenate([normal(seed, step).ravel() for seed in range(1, 99, 2) for step in range(40)])
    assert abs(numbers.mean()) < 0.02 and abs(numbers.var() - 1.0) < 0.02
    assert abs((numbers**4).mean() - 3.0) < 0.2


def test_rejected() -> None:
    with pytest.raises(ShapeError, match="seed=-1 must be an integer"):
        F.rand(2, 3, seed=-1)
    with pytest.raises(ShapeError, match="the argument 'generator' is not supported"):
        F.randn(2, generator=1)
