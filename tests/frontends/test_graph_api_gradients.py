"""The graph API's gradients, in the C that it prints, are PyTorch's."""

import ctypes
from types import SimpleNamespace

import numpy as np
import pytest
from graph_api_c import Library

from autodiff_gen.frontends import graph as ag
from autodiff_gen.frontends.graph import Interpreter, Param, backward, grads


def t_nll(p, t):
    return -(t * p).sum(-1).mean()


def in_torch():
    import torch

    f = torch.nn.functional
    log_softmax = lambda x: f.log_softmax(x, -1)
    same = {k: getattr(torch, k) for k in ("matmul", "sigmoid", "relu", "tanh")}
    return SimpleNamespace(
        **same,
        log_softmax=log_softmax,
        nll_loss=t_nll,
        mse=f.mse_loss,
        binary_cross_entropy=f.binary_cross_entropy,
        conv2d=f.conv2d,
        max_pool2d=f.max_pool2d,
    )


# name -> (shapes of the parameters; the loss, in our functions or PyTorch's; all parameters get a gradient)
GRAPHS = {
    "two layers": (
        [(2, 6), (5, 6), (3, 5), (2, 3)],
        lambda f, x, w1, w2, t: f.nll_loss(
            f.log_softmax(f.matmul(f.sigmoid(f.matmul(x, w1.t())), w2.t())), t
        ),
    ),
    "a label that is no distribution": ([(4, 5), (4, 5)], lambda f, a, t: f.nll_loss(f.log_softmax(a), t)),
    "nll of anything": ([(3, 4), (3, 4)], lambda f, a, t: f.nll_loss(a * 2.0 - a * a, t)),
    "nll of a vector": ([(4,), (4,)], lambda f, a, t: f.nll_loss(f.log_softmax(a), t)),
    "log_softmax under mse": ([(3, 4), (3, 4)], lambda f, a, t: f.mse(f.log_softmax(a), t)),
    "softmax": ([(3, 4), (3, 4)], lambda f, a, t: f.mse(f.log_softmax(a).exp() * a, t)),
    "used twice": ([(3, 4), (3, 4), (3, 4)], lambda f, a, b, t: f.mse(a * b + a, t)),
    "times itself": ([(3, 4), (3, 4)], lambda f, a, t: f.mse(a * a - a, t)),
    "both ways to use w": ([(4, 3), (2, 3)], lambda f, w, x: f.mse(f.matmul(f.matmul(x, w.t()), w), x)),
    "a weight in two layers": (
        [(2, 3), (3, 3), (2, 3)],
        lambda f, x, w, t: f.mse(f.tanh(f.matmul(f.tanh(f.matmul(x, w)), w)), t),
    ),
    "fan-out of a value": (
        [(2, 3), (3, 3), (3, 3)],
        lambda f, x, w, v: f.mse(f.matmul(f.relu(x), w) + f.relu(x), f.matmul(f.relu(x), v) * f.relu(x)),
    ),
    "broadcast bias": (
        [(4, 3), (2, 3), (2,), (4, 2)],
        lambda f, x, w, b, t: f.mse(f.tanh(f.matmul(x, w.t()) + b), t),
    ),
    "numbers on either side": ([(3,), (3,)], lambda f, a, t: f.mse(1.0 - 2.0 * a + 0.5, (3.0 + -t) * 2)),
    "a scalar": ([(), (2, 2)], lambda f, s, a: f.mse(s * a, a + s)),
    "reshapes": (
        [(2, 6), (4, 3), (3, 3)],
        lambda f, a, b, t: f.mse(f.matmul(a.reshape(3, 4), b.reshape((4, 3))), t.t()),
    ),
    "a reshape of a transpose": ([(2, 3), (6,)], lambda f, a, t: f.mse(a.t().reshape(-1).exp(), t)),
    "binary cross-entropy": (
        [(4, 3), (3, 2), (4, 2)],
        lambda f, x, w, t: f.binary_cross_entropy(f.sigmoid(f.matmul(x, w)), f.sigmoid(t)),
    ),
    "gradients that are one value": ([(3, 2), (3, 2), (3, 2)], lambda f, a, b, t: f.mse(a + b, t)),
    "convolutions": (
        [(2, 1, 7, 7), (3, 1, 2, 2), (3,), (4, 3, 2, 2), (2, 16)],
        lambda f, x, w1, b1, w2, t: f.mse(
            f.conv2d(f.max_pool2d(f.relu(f.conv2d(x, w1, b1)), 2), w2).reshape(2, 16), t
        ),
    ),
    "strides, groups and padding": (
        [(1, 4, 5, 6), (4, 1, 3, 2), (4, 2, 1, 1), (1, 4, 3, 3)],
        lambda f, x, w1, w2, t: f.mse(
            f.conv2d(f.conv2d(x, w1, stride=2, padding=(1, 0), groups=4), w2, groups=2), t
        ),
    ),
    "loss is a view": ([(1, 1), (1, 1)], lambda f, a, t: f.nll_loss(a, t)),
}


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", GRAPHS)
def test_gradients_equal_pytorchs(name, tmp_path, rng):
    import torch

    shapes, loss = GRAPHS[name]
    arrays = [rng.standard_normal(s).astype(np.float32) for s in shapes]
    names = [f"p{i}" for i in range(len(shapes))]
    params = [Param(None, shape=s, var_name=n) for s, n in zip(shapes, names, strict=True)]
    ids = [p.id for p in params]
    c = Interpreter(backward(loss(ag, *params), ids).build(), params)
    library = Library(c.gen_code() + c.gen_sgd(grads, ids), tmp_path)
    library.buf[:] = np.nan  # shows reads before writes
    for n, a in zip(names, arrays, strict=True):
        library.at(n.upper(), a.shape)[...] = a
    tensors = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    expected = loss(in_torch(), *tensors)
    expected.backward()
    for _ in range(2):  # a second call starts from the results of the first
        library.call("forward")
        np.testing.assert_allclose(library.at("LOSS"), expected.item(), rtol=1e-5, atol=1e-6)
        library.call("backward")
    for n, a, t in zip(names, arrays, tensors, strict=True):
        theirs = t.grad.numpy()
        ours = library.at(f"D_{n}".upper(), a.shape)
        np.testing.assert_allclose(
            ours, theirs, rtol=1e-4, atol=2e-6 * max(1, np.abs(theirs).max()), err_msg=n
        )
        assert np.array_equal(library.at(n.upper(), a.shape), a)  # nothing but sgd changes them
    before = {n: library.at(f"D_{n}".upper(), a.shape).copy() for n, a in zip(names, arrays, strict=True)}
    library.call("sgd", ctypes.c_float(0.25))
    for n, a in zip(names, arrays, strict=True):
        np.testing.assert_allclose(library.at(n.upper(), a.shape), a - 0.25 * before[n], rtol=1e-6, atol=1e-7)
