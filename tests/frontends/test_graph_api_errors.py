"""Wrong use of the graph API: one line with the fault and its place."""

import numpy as np
import pytest
from graph_api_c import classifier

from autodiff_gen.errors import AutodiffError, GraphError, ModelError, ShapeError
from autodiff_gen.frontends import graph as ag
from autodiff_gen.frontends.graph import Interpreter, Param, backward, grads


def a_param(shape=(2, 3), **kwargs):
    return Param(None, shape=shape, **kwargs)


def unreached():
    *_, w, _scores, loss = classifier()
    backward(loss, [w.id, a_param().id])


def no_gradient_wanted():
    a = a_param(var_name="frozen", require_grads=False)
    backward(ag.mse(a, 1.0 * a), [a.id])


def unlisted():
    x, _t, w, _, loss = classifier()
    Interpreter(backward(loss, [w.id]).build(), [w, x])


def listed_twice():
    x, t, w, _, loss = classifier()
    Interpreter(backward(loss, [w.id]).build(), [w, x, t, w])


def one_name():
    a, b = a_param(var_name="a"), a_param(var_name="a")
    Interpreter(backward(ag.mse(a, b), [a.id]).build(), [a, b])


def no_update():
    x, t, w, _, loss = classifier()
    Interpreter(backward(loss, [w.id]).build(), [w, x, t]).gen_sgd(grads, [])


ERRORS = [
    (lambda: Param(None), ShapeError, "without data it needs a shape"),
    (
        lambda: Param(None, shape=(0, 3), var_name="w"),
        ShapeError,
        r"Param w: shape \[0, 3\] must be made of integers",
    ),
    (
        lambda: Param(np.zeros(3), shape=(4,), var_name="w"),
        ShapeError,
        r"w: data has shape \[3\], but shape=\[4\]",
    ),
    (
        lambda: Param([1.0, float("nan")], var_name="w"),
        ModelError,
        "w: data has an element that is not a finite",
    ),
    (lambda: Param([1e39]), ModelError, "not a finite float32"),
    (lambda: Param("zeros", shape=(3,)), ModelError, "data must be numbers or None, got str"),
    (
        lambda: ag.matmul(a_param(var_name="a"), a_param(var_name="b")),
        ShapeError,
        r"a: f32\[2,3\], b: f32\[2,3\]",
    ),
    (lambda: a_param() + a_param((4,)), ShapeError, r"add\(f32\[2,3\], f32\[4\]\)"),
    (lambda: a_param((2,)).t(), ShapeError, "not a matrix"),
    (lambda: a_param().reshape(4, 4), ShapeError, "reshape"),
    (lambda: ag.nll_loss(a_param((1, 3)), a_param((3,))), ShapeError, "a vector of probabilities"),
    (lambda: ag.mse(a_param((1, 3)), a_param((3,))), ShapeError, "same shape"),
    (lambda: backward(a_param(), []), GraphError, "not a scalar"),
    (lambda: backward(3.0, []), GraphError, "must be a Param, got float"),
    (lambda: backward(ag.mse(a_param(), 1.0), [0]), ShapeError, "same shape"),
    (lambda: backward(ag.mse(a := a_param(), 2.0 * a), [a]), GraphError, "give ids"),
    (unreached, GraphError, "does not depend on a Param with id"),
    (no_gradient_wanted, GraphError, r"frozen \[2, 3\] was created with require_grads=False"),
    (lambda: Interpreter([], []), GraphError, "what backward"),
    (unlisted, GraphError, r"reads t \[1, 3\], which is not in the list"),
    (listed_twice, GraphError, r"w \[3, 4\] is listed twice"),
    (one_name, GraphError, "two parameters are called 'a'"),
    (no_update, GraphError, "no ids given"),
    (lambda: bool(a_param()), GraphError, "has no value while the graph is built"),
    (lambda: ag.conv2d(a_param(), a_param()), ShapeError, r"the input must be \[N, C, H, W\]"),
    (lambda: ag.max_pool2d(a_param((1, 1, 2, 2)), 3), ShapeError, "a window of 3 does not fit into 2"),
]


def test_errors_are_one_line(subtests):
    for call, error, message in ERRORS:
        with subtests.test(message):
            with pytest.raises(AutodiffError, match=message) as caught:
                call()
            assert type(caught.value) is error
            assert "\n" not in str(caught.value)
