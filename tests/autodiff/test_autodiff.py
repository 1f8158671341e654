"""grad(): sums at fan-out, long chains, gradients of gradients, and what has none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from call_count import growth
from op_cases import finite_differences, gradient_error

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import GraphError
from autodiff_gen.ir import graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import topological


def value(v: object, **feeds: object) -> float:
    """The scalar v, inputs given by name, in float64."""
    leaves = {n.results[0].name: n.results[0] for n in topological([v]) if n.op.name == "input"}  # type: ignore[list-item]
    arrays = {leaves[k]: a for k, a in feeds.items() if k in leaves}
    return float(evaluate([v], arrays, float_dtype="float64")[0])  # type: ignore[list-item]


X, Z = ag.Input("x", ()), ag.Input("z", ())

# expression of x and z, its derivatives at x = 2, z = 3
EXPRESSIONS = [
    (lambda x, z: x * x, 4.0, 0.0),
    (lambda x, z: x * x * x, 12.0, 0.0),
    (lambda x, z: x * z + x, 4.0, 2.0),
    (lambda x, z: x + x * z, 4.0, 2.0),
    (lambda x, z: (x + z) * (x + z), 10.0, 10.0),
    (lambda x, z: (lambda s: s * s * s)(x * z), 3 * 36 * 3.0, 3 * 36 * 2.0),
    (lambda x, z: x - x, 0.0, 0.0),
    (lambda x, z: x / x, 0.0, 0.0),
    (lambda x, z: z - (z - x), 1.0, 0.0),
    (lambda x, z: 3.0 * x + x**2 - F.sqrt(x), 3.0 + 4.0 - 0.5 / np.sqrt(2.0), 0.0),
    (lambda x, z: x**z, 12.0, 8.0 * np.log(2.0)),
    (lambda x, z: (lambda a: a * (a + a))(F.exp(x)), 4.0 * np.exp(4.0), 0.0),
    (lambda x, z: x * F.detach(x), 2.0, 0.0),
]


@pytest.mark.parametrize("case", EXPRESSIONS)
def test_a_value_that_is_used_twice_receives_both_gradients(case: object) -> None:
    f, dx, dz = case  # type: ignore[misc]
    y = f(X, Z)
    assert value(grad(y, X), x=2.0, z=3.0) == pytest.approx(dx, rel=1e-7)
    assert value(grad(y, Z), x=2.0, z=3.0) == pytest.approx(dz, rel=1e-7)


def test_a_list_gives_a_list_and_zeros_where_nothing_depends() -> None:
    x, w = ag.Input("x", (2, 3)), ag.Input("w", (4,))
    y = F.sum(F.square(x))
    dx, dw = grad(y, [x, w])
    assert (dx.shape, dw.shape) == ((2, 3), (4,))
    np.testing.assert_array_equal(evaluate([dw], {})[0], np.zeros(4))
    assert isinstance(grad(y, x), graph.Value)


def test_gradient_of_y_with_respect_to_itself_and_to_values_inside() -> None:
    h = F.exp(X)
    y = h * h
    assert value(grad(y, y)) == 1.0
    assert value(grad(y, h), x=1.0) == pytest.approx(2 * np.exp(1.0))


def test_dy_weighs_the_result() -> None:
    x, dy = ag.Input("x", (3,)), ag.Input("dy", (3,))
    (dx,) = evaluate([grad(F.square(x), x, dy=dy)], {x: [1.0, 2.0, 3.0], dy: [1.0, 0.0, 2.0]})
    np.testing.assert_array_equal(dx, [2.0, 0.0, 12.0])


def sum_of_one(length: int) -> tuple[graph.Value, graph.Value]:
    """An input, and the sum of that input with itself, one addition after the other."""
    x = ag.Input("x", (2,))
    y = x
    for _ in range(length):
        y = y + x
    return x, F.sum(y)


def test_a_deep_chain_does_not_overflow() -> None:
    x, y = sum_of_one(100_000)
    np.testing.assert_array_equal(evaluate([grad(y, x)], {x: [1.0, 1.0]})[0], [100_001.0, 100_001.0])


def test_differentiating_a_chain_is_linear_work() -> None:
    def work(length: int) -> Callable[[], Any]:
        x, y = sum_of_one(length)
        return lambda: grad(y, x)

    assert growth(work, 1000) < 2.1


def test_derivatives_of_higher_order() -> None:
    y: graph.Value = F.sin(X) * F.exp(X)
    at = 0.7
    expected = [
        np.exp(at) * (np.sin(at) + np.cos(at)),
        2 * np.exp(at) * np.cos(at),
        2 * np.exp(at) * (np.cos(at) - np.sin(at)),
        -4 * np.exp(at) * np.sin(at),
    ]
    for want in expected:
        y = grad(y, X)
        assert value(y, x=at) == pytest.approx(want, rel=1e-9)


def test_hessian_vector_product_of_a_network() -> None:
    rng = np.random.default_rng(3)
    x, w, v = ag.Input("x", (4, 3)), ag.Input("w", (2, 3)), ag.Input("v", (2, 3))
    feeds = {t: rng.uniform(-1, 1, t.shape) for t in (x, w, v)}
    loss = F.mean(F.log_softmax(F.tanh(F.linear(x, w)), 1) ** 2)
    slope = F.sum(grad(loss, w) * v)
    assert gradient_error(slope, feeds, [w, x]) < 1e-7


def test_gradient_through_a_value_that_is_half_detached() -> None:
    x = ag.Input("x", (3,))
    y = F.sum(F.detach(x) * x)
    feeds = {x: np.array([1.0, 2.0, 3.0])}
    np.testing.assert_array_equal(evaluate([grad(y, x)], feeds)[0], [1.0, 2.0, 3.0])
    assert not np.allclose(finite_differences(y, feeds, x), [1.0, 2.0, 3.0])


REJECTED = [
    (lambda: grad(F.square(ag.Input("x", (3,))), X), r"y is f32\[3\], not a scalar; reduce it"),
    (lambda: grad(X, X, dy=ag.Input("dy", (3,))), r"dy is f32\[3\], but y is f32\[\]"),
    (
        lambda: grad(X, ag.Input("k", (), dtype="s32")),
        "is neither a float nor quantised; only these have gradients",
    ),
    (
        lambda: grad(ag.Input("k", (), dtype="s32"), X),
        "is neither a float nor quantised; only these have gradients",
    ),
]


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected(build: object, message: str) -> None:
    with pytest.raises(GraphError, match=message):
        build()  # type: ignore[operator]


def test_an_op_without_gradient_is_named_with_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    import dataclasses

    from autodiff_gen.ir.node import OPS

    monkeypatch.setitem(OPS, "cos", dataclasses.replace(OPS["cos"], vjp=None))
    y = F.cos(F.exp(X)) * 2.0
    with pytest.raises(GraphError, match=r"^cos has no gradient; it is on the path x -> exp -> cos$"):
        grad(y, X)
