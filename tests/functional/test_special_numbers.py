"""F of NaN, infinities and signed zeros is what torch computes; and gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import TorchFunctions

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.interpreter import evaluate

ROWS_OF_SPECIALS = np.array(
    [
        [0.0, -0.0, 0.0],
        [1.0, np.nan, 2.0],
        [np.inf, -np.inf, 1.0],
        [-np.inf, -np.inf, -np.inf],
        [np.inf, 1.0, np.inf],
        [2.0, 2.0, 2.0],
        [-np.inf, 0.0, 100.0],
    ],
    dtype=np.float32,
)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize(
    "f",
    [
        lambda F, a: F.prod(a, 1),
        lambda F, a: F.std(a, 1),
        lambda F, a: F.var(a, 1),
        lambda F, a: F.norm(a, dim=1),
        lambda F, a: F.norm(a, 1, 1),
        lambda F, a: F.norm(a, float("inf"), 1),
        lambda F, a: F.logsumexp(a, 1),
        lambda F, a: F.argmax(a, 1),
        lambda F, a: F.argmin(a, 1),
        lambda F, a: F.clamp(a, -1.0, 1.5),
        lambda F, a: F.clamp(a, 1.5, -1.0),
        lambda F, a: F.clamp(a, F.flip(a, (0,)), F.roll(a, 1, 1)),
        lambda F, a: F.clamp(a, min=F.flip(a, (0,))),
        lambda F, a: F.clamp(a, max=F.flip(a, (0,))),
    ],
)
def test_special_numbers_as_torch(f: Callable[..., Any]) -> None:
    """Zeros, infinities and NaN by rows: the interpreter, the generated C, PyTorch."""
    import torch

    x = ag.Input("x", ROWS_OF_SPECIALS.shape)
    y = f(F, x)
    want = f(TorchFunctions(), torch.tensor(ROWS_OF_SPECIALS)).numpy()
    np.testing.assert_allclose(evaluate([y], {x: ROWS_OF_SPECIALS})[0], want, rtol=1e-6)
    np.testing.assert_allclose(
        ag.function([x], [y]).on_host(kernels="ref")(ROWS_OF_SPECIALS)[0], want, rtol=1e-6
    )


@pytest.mark.torch
@pytest.mark.parametrize(
    "f",
    [
        lambda F, a: F.std(a, 1),
        lambda F, a: F.norm(a, dim=1),
        lambda F, a: F.prod(F.relu(a), 1),
        lambda F, a: F.logsumexp(a, 0),
        lambda F, a: F.softplus(a, 2.0),
        lambda F, a: F.clamp(a, -1.0, 1.0) * a,
        lambda F, a: F.clamp(a, F.sin(a), F.exp(a) - 1.0) * a,
    ],
    ids=["std", "norm", "prod_of_zeros", "logsumexp", "softplus", "clamp", "clamp_to_tensors"],
)
def test_second_derivatives_of_compositions(f: Callable[..., Any]) -> None:
    import torch

    array = np.random.default_rng(3).uniform(-2, 2, (3, 4)).astype(np.float32)
    x = ag.Input("x", array.shape)
    t = torch.tensor(array.astype(np.float64), requires_grad=True)
    v = np.cos(np.arange(12.0)).reshape(3, 4).astype(np.float32)
    (first,) = torch.autograd.grad((f(TorchFunctions(), t) ** 2).sum(), t, create_graph=True)
    (second,) = torch.autograd.grad((first * torch.tensor(v.astype(np.float64))).sum(), t)
    g = grad(F.sum(F.square(f(F, x))), x)
    got = evaluate([g, grad(F.sum(g * v), x)], {x: array}, float_dtype="float64")
    np.testing.assert_allclose(got[0], first.detach().numpy(), rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(got[1], second.numpy(), rtol=1e-7, atol=1e-7)
