"""Values with gradients of their own."""

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.interpreter import evaluate


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
