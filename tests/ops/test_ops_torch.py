"""Every op x sample of the registry against PyTorch: values, gradients of both orders, edges and special numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_cases import EDGES, GRADIENT_ROWS, NOT_IN_TORCH, ROWS, case, torch_outputs
from op_tables import REDUCTIONS, ROWS_OF_SPECIALS, SPECIAL_OPS, special_operands
from row_groups import by_first, each_row, in_groups

from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.build import apply, apply_node, make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.types import Type, f32

pytestmark = pytest.mark.torch


def tensors(c: Any, kind: Any) -> list[Any]:
    import torch

    floats = [
        torch.tensor(a.astype(kind), requires_grad=True) if a.dtype.kind == "f" else None for a in c.arrays
    ]
    return [t if t is not None else torch.tensor(a) for t, a in zip(floats, c.arrays, strict=True)]


def as_numpy(t: Any) -> Any:
    return t.detach().numpy(force=True)


@by_first(r for r in ROWS if r[0] not in NOT_IN_TORCH)
@each_row
def test_values_against_torch(row: tuple[str, int]) -> None:
    c = case(*row)
    for kind, rtol in (("float64", 1e-12), ("float32", 2e-6)):
        want = torch_outputs(c.op, tensors(c, kind), c.sample.attrs)
        got = evaluate(c.outs, dict(zip(c.inputs, c.arrays, strict=True)), float_dtype=kind)
        assert len(want) == len(got)
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, as_numpy(b), rtol=rtol, atol=rtol, err_msg=kind)


@by_first(GRADIENT_ROWS)
@each_row
def test_gradients_of_both_orders_against_torch(row: tuple[str, int]) -> None:
    """The gradient of each input; then the gradient of sum(gradient * v), a Hessian-vector product, v =
    cos(1), cos(2), ..."""
    import torch
    from torch_changes import older_than_second

    c = case(*row)
    if c.op.name == "detach":
        return
    ts = tensors(c, "float64")
    leaves = [ts[i] for i in c.wanted]
    outs = [t for t in torch_outputs(c.op, ts, c.sample.attrs) if t.dtype.is_floating_point]
    y = sum((t * torch.tensor(dy, dtype=torch.float64)).sum() for t, dy in zip(outs, c.dys, strict=True))
    want = torch.autograd.grad(y, leaves, create_graph=True, allow_unused=True)
    assert all(w is not None for w in want), "PyTorch has no gradient for an operand for which we have one"

    xs = [c.inputs[i] for i in c.wanted]
    first = grad(c.weighted(), xs)
    vs = [np.cos(1.0 + np.arange(max(1, np.prod(x.shape)))).reshape(x.shape) for x in xs]
    product: Any = 0.0
    for g, v in zip(first, vs, strict=True):
        product = F.sum(g * v.astype(np.float32)) + product
    got = evaluate([*first, *grad(product, xs)], c.feeds, float_dtype="float64")

    hv = sum(
        (w * torch.tensor(v.astype(np.float32), dtype=torch.float64)).sum()
        for w, v in zip(want, vs, strict=True)
    )
    second: list[Any] = [None] * len(leaves)
    if isinstance(hv, torch.Tensor) and hv.requires_grad:
        second = list(torch.autograd.grad(hv, leaves, allow_unused=True))
    both = [as_numpy(w) for w in want] + [
        np.zeros(x.shape) if w is None else as_numpy(w) for w, x in zip(second, xs, strict=True)
    ]
    count = len(want) if older_than_second(c.op.name) else len(both)
    assert len(got) == len(both)
    for a, b in zip(got[:count], both[:count], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@in_groups(EDGES)
@each_row
def test_the_table_of_edges_is_torchs(row: Any) -> None:
    import torch

    name, operands, attrs, value, gradients = row
    if name == "detach":
        return
    ts = [torch.tensor(np.asarray(a, dtype=np.float64), requires_grad=True) for a in operands]
    y = torch_outputs(OPS[name], ts, attrs)[0]
    np.testing.assert_allclose(as_numpy(y), np.asarray(value), rtol=1e-12)
    for t, want in zip(torch.autograd.grad(y.sum(), ts), gradients, strict=True):
        np.testing.assert_allclose(as_numpy(t), np.asarray(want), rtol=1e-12)


# Where PyTorch departs from its own formula: gelu(inf) is NaN and gelu(3e38) inf in its vectorised loop, and hardswish
# overflows before it divides by 6.
UNLIKE_TORCH = {
    "gelu": {np.inf: np.inf, 3e38: 3e38},
    "hardswish": {3e38: 3e38},
}


@pytest.mark.parametrize("name", SPECIAL_OPS)
def test_special_numbers_as_torch(name: str) -> None:
    import torch

    arrays = special_operands(OPS[name])
    inputs = [make_input("ab"[i], Type(f32, a.shape)) for i, a in enumerate(arrays)]
    attrs = OPS[name].samples[0].attrs
    (got,) = evaluate([apply(name, *inputs, **attrs)], dict(zip(inputs, arrays, strict=True)))
    want = torch_outputs(OPS[name], [torch.tensor(a) for a in arrays], attrs)[0].numpy()
    for x, y in UNLIKE_TORCH.get(name, {}).items():
        want = np.where(arrays[0] == np.float32(x), np.float32(y), want)
    np.testing.assert_allclose(got, want, rtol=2e-6, atol=1e-44)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_special_numbers_as_torch(name: str) -> None:
    import torch

    array = np.array(ROWS_OF_SPECIALS, dtype=np.float32)
    x = make_input("x", Type(f32, array.shape))
    attrs = {"axes": (1,), "keepdim": False}
    got = evaluate(apply_node(name, x, **attrs).results, {x: array})
    for a, b in zip(got, torch_outputs(OPS[name], [torch.tensor(array)], attrs), strict=True):
        np.testing.assert_array_equal(a, b.numpy())
