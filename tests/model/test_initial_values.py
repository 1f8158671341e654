"""Initial values of parameters: the initialisers, arrays, and seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import init


def test_uniform_is_the_formula_of_the_device() -> None:
    from autodiff_gen.ir.counter_rng import rand_u32

    u = (np.asarray(rand_u32(7, 0, np.arange(6))) >> 8).astype(np.float64) * 2.0**-24
    bound = np.float32(0.3)
    expected = ((2 * u - 1).astype(np.float32) * bound).reshape(2, 3)
    np.testing.assert_array_equal(init.uniform((2, 3), bound=0.3, seed=7).array(), expected)
    between = np.float32(1) + u.astype(np.float32) * np.float32(2)
    np.testing.assert_array_equal(init.uniform(6, low=1.0, high=3.0, seed=7).array(), between)


def test_a_run_time_seed_gives_another_start_and_zero_the_default() -> None:
    w = init.uniform((4, 4), bound=1.0, seed=3)
    np.testing.assert_array_equal(w.array(0), w.array())
    assert not np.array_equal(w.array(1), w.array())
    assert not np.array_equal(w.array(1), w.array(2))
    assert not np.array_equal(w.array(1), init.uniform((4, 4), bound=1.0, seed=4).array(1))


@pytest.mark.parametrize(
    "ours, expected",
    [
        (init.zeros(2), [0, 0]),
        (init.ones((2,)), [1, 1]),
        (init.constant((2,), 0.1), np.float32([0.1, 0.1])),
    ],
)
def test_constants(ours: Any, expected: Any) -> None:
    array = ours.array(5)
    assert array.dtype == np.float32
    np.testing.assert_array_equal(array, expected)


@pytest.mark.parametrize(
    "ours, bound",
    [
        (init.kaiming_uniform((20, 8)), np.sqrt(6 / 8)),
        (init.kaiming_uniform((20, 8), a=np.sqrt(5)), 1 / np.sqrt(8)),
        (init.kaiming_uniform((20, 8), mode="fan_out", nonlinearity="relu"), np.sqrt(6 / 20)),
        (init.kaiming_uniform((20, 8, 3, 3), nonlinearity="tanh"), 5 / 3 * np.sqrt(3 / 72)),
        (init.xavier_uniform((20, 8)), np.sqrt(6 / 28)),
        (init.xavier_uniform((20, 8), gain=2.0), 2 * np.sqrt(6 / 28)),
    ],
)
def test_bounds_of_the_named_initialisers(ours: Any, bound: float) -> None:
    assert ours.bound == pytest.approx(bound, rel=1e-12)


def test_a_parameter_without_seed_draws_by_its_name() -> None:
    a, b = (ag.Param(n, init.uniform((3, 3), bound=1.0)).node.attrs["state"].init.array() for n in ("a", "b"))
    again = ag.Param("a", init.uniform((3, 3), bound=1.0)).node.attrs["state"].init.array()
    np.testing.assert_array_equal(a, again)
    assert not np.array_equal(a, b)


def test_a_parameter_of_an_array_keeps_its_numbers() -> None:
    given = np.arange(6, dtype=np.float64).reshape(2, 3) / 7
    state = ag.Param("w", given).node.attrs["state"]
    given[:] = 0
    np.testing.assert_array_equal(state.init.array(), (np.arange(6).reshape(2, 3) / 7).astype(np.float32))
    assert (state.type.dtype.name, state.init.kind) == ("f32", "array")
