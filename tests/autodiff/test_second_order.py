"""Gradients of gradients through whole networks: Hessian-vector products beside torch.autograd's, in float64 and in C.

Single ops, differentiated twice, are in test_ops_torch.py, which enumerates the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import TorchFunctions, prepared
from op_cases import GRADIENT_ROWS, STRAIGHT_THROUGH

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import OPS, Value

Loss = Callable[..., Any]


def mlp(F: Any, x: Any, w: Any, v: Any) -> Any:
    return F.cross_entropy(F.tanh(x @ w) @ v, np_labels(x))


def np_labels(x: Any) -> Any:
    """Class indices, as both sides take them."""
    labels = np.array([2, 0, 1, 2])
    if isinstance(x, Value):
        return labels.astype(np.int32)
    import torch

    return torch.tensor(labels)


def attention(F: Any, x: Any, w: Any) -> Any:
    y = x @ w
    return F.sum(F.square(F.scaled_dot_product_attention(y, x, y, is_causal=True)))


def block(F: Any, x: Any, w: Any, v: Any) -> Any:
    h = F.layer_norm(x + F.gelu(x @ w) @ v, (3,))
    return F.sum(F.logsumexp(h * h, 1))


def penalty(F: Any, x: Any, w: Any) -> Any:
    return F.mean(F.softplus(F.silu(x @ w))) + F.sum(F.square(w)) / F.norm(x)


def ratios(F: Any, x: Any, y: Any) -> Any:
    a, b = F.exp(x), F.sigmoid(y) + 1.0
    return F.sum(a / b + b**a - F.sqrt(a * b) + F.var(a, 1, keepdim=True) * F.prod(b, 1, keepdim=True))


def shared(F: Any, x: Any, w: Any) -> Any:
    h = x
    for _ in range(3):
        h = F.tanh(h @ w)
    return F.mse_loss(h, x)


def kullback(F: Any, x: Any, y: Any) -> Any:
    return F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="sum")


NETWORKS: list[tuple[Loss, list[tuple[int, ...]]]] = [
    (mlp, [(4, 3), (3, 5), (5, 3)]),
    (attention, [(2, 4, 3), (3, 3)]),
    (block, [(4, 3), (3, 5), (5, 3)]),
    (penalty, [(4, 3), (3, 3)]),
    (ratios, [(4, 3), (4, 3)]),
    (shared, [(4, 3), (3, 3)]),
    (kullback, [(4, 3), (4, 3)]),
]
IN_C = (mlp, attention, shared)


def directions(arrays: list[Any]) -> list[Any]:
    return [np.cos(1.0 + np.arange(a.size)).reshape(a.shape).astype(np.float32) for a in arrays]


def ours(network: Loss, inputs: list[Any], arrays: list[Any]) -> list[Any]:
    """The gradients g, and H v: the gradients of sum(g * v)."""
    first = grad(network(F, *inputs), inputs)
    product: Any = 0.0
    for g, v in zip(first, directions(arrays), strict=True):
        product = F.sum(g * v) + product
    return [*first, *grad(product, inputs)]


def torchs(network: Loss, arrays: list[Any]) -> list[Any]:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel

    leaves = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    with sdpa_kernel(SDPBackend.MATH):  # PyTorch 2.14 has no second derivative of its fused attention
        first = torch.autograd.grad(network(TorchFunctions(), *leaves), leaves, create_graph=True)
    vs = [torch.tensor(v, dtype=torch.float64) for v in directions(arrays)]
    product = torch.stack([(g * v).sum() for g, v in zip(first, vs, strict=True)]).sum()
    return [t.detach().numpy() for t in (*first, *torch.autograd.grad(product, leaves))]


@pytest.mark.torch
@pytest.mark.parametrize("network, shapes", NETWORKS, ids=lambda v: getattr(v, "__name__", ""))
def test_hessian_vector_products_are_torchs(network: Loss, shapes: list[Any]) -> None:
    inputs, arrays = prepared(shapes)
    values = ours(network, inputs, arrays)
    got = evaluate(values, dict(zip(inputs, arrays, strict=True)), float_dtype="float64")
    for a, b in zip(got, torchs(network, arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(b).max()))
    assert any(np.abs(h).max() > 0.01 for h in got[len(inputs) :])


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("network", IN_C, ids=lambda f: f.__name__)
def test_hessian_vector_products_in_c(network: Loss) -> None:
    shapes = next(s for f, s in NETWORKS if f is network)
    inputs, arrays = prepared(shapes)
    got = ag.function(inputs, ours(network, inputs, arrays)).on_host()(*arrays)
    for a, b in zip(got, torchs(network, arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5 * max(1.0, np.abs(b).max()))


def test_a_third_derivative() -> None:
    x = ag.Input("x", ())
    y = F.exp(x) * F.sin(x)
    for _ in range(3):
        y = grad(y, x)
    at = 0.7
    (got,) = evaluate([y], {x: at}, float_dtype="float64")
    assert got == pytest.approx(2 * np.exp(at) * (np.cos(at) - np.sin(at)), rel=1e-12)


def test_the_registry_is_differentiated_twice() -> None:
    """Every op with a gradient has a row in the table that test_ops_torch.py differentiates twice."""
    covered = {name for name, _ in GRADIENT_ROWS}
    missing = {name for name, op in OPS.items() if op.vjp is not None and name not in covered}
    elsewhere = {
        "by_mode",
        "in_mode",
        "with_updates",
        "scan",
        "cond",
    }  # test_modes.py, test_scan.py and test_cond.py
    elsewhere |= {"custom_gradient", "in_range"}  # test_custom_gradient.py; test_index_checks.py, of integers
    assert missing == elsewhere | {name for name in STRAIGHT_THROUGH if OPS[name].vjp is not None}
