"""Values with custom gradients."""

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import topological
from autodiff_gen.ir.rewrite import replaced


def test_the_gradient_is_what_is_given_for_that_of_the_result():
    x = ag.Input("x", (3,))
    y = x * 2.0
    g = F.gradient_of(y)
    z = F.custom_gradient(F.exp(y), g, [y], [F.clamp(g, -0.5, 0.5) * y])
    array = np.array([0.1, -0.2, 0.3])
    value, gradient = evaluate([z, ag.grad(F.sum(z * 3.0), x)], {x: array}, 1, "float64")
    np.testing.assert_allclose(value, np.exp(2 * array))
    np.testing.assert_allclose(gradient, 2.0 * 0.5 * 2 * array)


def test_a_result_without_gradient_counts_as_one_of_zeros():
    x = ag.Input("x", (3,))
    gs = F.gradient_of(x), F.gradient_of(x)
    first, second = F.custom_gradient((x, x), gs, (x,), (gs[0] * 2.0 + gs[1] * 5.0,))
    for y, factor in ((first, 2.0), (second, 5.0), (first + second, 7.0)):
        np.testing.assert_array_equal(evaluate([ag.grad(F.sum(y), x)], {x: np.ones(3)})[0], factor)


def test_gradients_have_the_shapes_of_their_values():
    x = ag.Input("x", (3,))
    with pytest.raises(ag.AutodiffError, match=r"the gradient of f32\[3\] is f32\[\]"):
        F.custom_gradient(x, F.gradient_of(x), [x], [F.sum(x)])


X, T = ag.Input("x", (4, 5)), ag.Input("t", (4,), dtype="u8")
WITH_DERIVATIVE = {
    "cross_entropy": lambda: F.cross_entropy(X, T),
    "cross_entropy of images": lambda: F.cross_entropy(F.reshape(X, (2, 5, 2)), F.reshape(T, (2, 2))),
    "cross_entropy of one sample": lambda: F.cross_entropy(F.exp(X)[0], T[0]),
    "cross_entropy with other options": lambda: F.cross_entropy(
        X, T, np.linspace(0.5, 2.0, 5), ignore_index=2, reduction="sum", label_smoothing=0.25
    ),
    "nll_loss": lambda: F.nll_loss(F.log_softmax(X * X, 1), T, ignore_index=2),
}


@pytest.mark.parametrize("case", WITH_DERIVATIVE)
def test_a_derivative_in_closed_form_is_the_derivative_of_the_result(case):
    """Differentiated without it, the graph has the same gradient."""
    loss = WITH_DERIVATIVE[case]()
    nodes = [n for n in topological([loss]) if n.op.name == "custom_gradient" and n.attrs["exact"]]
    stated = {n.results[0]: n.operands[0] for n in nodes}
    assert stated
    (derived,) = replaced([loss], stated)
    rng = np.random.default_rng(0)
    feeds = {X: rng.normal(size=(4, 5)), T: np.array([0, 2, 4, 3])}
    closed, expected = evaluate([ag.grad(loss, X), ag.grad(derived, X)], feeds, 1, "float64")
    assert abs(expected).max() > 0.01
    np.testing.assert_allclose(closed, expected, rtol=1e-9, atol=1e-12)
