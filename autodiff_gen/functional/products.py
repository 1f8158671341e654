"""Products of vectors and matrices."""

from __future__ import annotations

from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.types import Dim, broadcast, product
from ..ops.products.contraction import transposed
from .arguments import TensorLike, as_value, shape_error, torch_lacks
from .reductions import sum
from .shapes import broadcast_to, permute, reshape, transpose, unsqueeze

__all__ = ["addmm", "baddbmm", "bilinear", "bmm", "dot", "linear", "matmul", "mm", "mv", "outer"]


def matmul(input: TensorLike, other: TensorLike) -> Value:
    """The matrix product, as torch.matmul: [..., m, k], [..., k, n] -> [..., m, n]; leading axes broadcast. A vector is
    a row on the left and a column on the right; the result has no axis for it."""
    a, b = as_value(input), as_value(other)
    if a.ndim == 0 or b.ndim == 0:
        raise shape_error("matmul", [a, b], "needs vectors or matrices, not a scalar")
    if a.ndim == b.ndim == 1 and a.shape == b.shape:
        return sum(a * b)
    if a.ndim == 1 or b.ndim == 1:
        left = reshape(a, (1, *a.shape)) if a.ndim == 1 else a
        right = reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
        y = matmul(left, right)
        removed = ([y.ndim - 2] if a.ndim == 1 else []) + ([y.ndim - 1] if b.ndim == 1 else [])
        return reshape(y, tuple(d for i, d in enumerate(y.shape) if i not in removed))
    if a.shape[-1] != b.shape[-2]:
        raise shape_error(
            "matmul", [a, b], f"the inner extents differ: {a.shape[-1]} columns against {b.shape[-2]} rows"
        )
    if b.ndim == 2 and a.ndim > 2:  # one product of all rows
        axis = next((i for i, d in enumerate(a.shape[:-1]) if isinstance(d, Dim)), 0)
        if axis:  # only if the batch axis comes first, other axes can be merged with it
            return transpose(matmul(transpose(a, 0, axis), b), 0, axis)
        y = apply("matmul", reshape(a, (product(a.shape[:-1]), a.shape[-1])), b)
        return reshape(y, (*a.shape[:-1], b.shape[-1]))
    try:
        leading = broadcast(a.shape[:-2], b.shape[:-2])
    except ShapeError as error:
        raise shape_error("matmul", [a, b], f"leading axes: {error}") from None
    a, b = broadcast_to(a, (*leading, *a.shape[-2:])), broadcast_to(b, (*leading, *b.shape[-2:]))
    return apply("matmul", a, b)


def linear(input: TensorLike, weight: TensorLike, bias: TensorLike | None = None) -> Value:
    """input . weight' + bias: [..., in], [out, in], [out] -> [..., out]."""
    x, w = as_value(input), as_value(weight)
    if w.ndim != 2 or x.ndim == 0 or x.shape[-1] != w.shape[1]:
        raise shape_error("linear", [x, w], "the input's last extent must be the weight's, [out, in]")
    y = matmul(x, transposed(w))
    if bias is None:
        return y
    with_role(y, "xw")
    b = as_value(bias)
    if b.shape != (w.shape[0],):
        raise shape_error("linear", [x, w, b], f"the bias must have shape [{w.shape[0]}]")
    return y + b


def _with_ranks(name: str, a: Any, b: Any, ranks: tuple[int, int]) -> tuple[Value, Value]:
    x, y = as_value(a), as_value(b)
    if (x.ndim, y.ndim) != ranks:
        raise shape_error(name, [x, y], f"needs operands of {ranks[0]} and {ranks[1]} axes")
    return x, y


@torch_lacks(out_dtype=None)
def mm(input: TensorLike, mat2: TensorLike) -> Value:
    """The product of two matrices: [m, k], [k, n] -> [m, n]."""
    return matmul(*_with_ranks("mm", input, mat2, (2, 2)))


@torch_lacks(out_dtype=None)
def bmm(input: TensorLike, mat2: TensorLike) -> Value:
    """The products of two batches of matrices: [b, m, k], [b, k, n] -> [b, m, n]."""
    a, b = _with_ranks("bmm", input, mat2, (3, 3))
    if a.shape[0] != b.shape[0]:
        raise shape_error("bmm", [a, b], f"batches of {a.shape[0]} and {b.shape[0]} matrices differ")
    return matmul(a, b)


def mv(input: TensorLike, vec: TensorLike) -> Value:
    """A matrix times a vector: [m, k], [k] -> [m]."""
    return matmul(*_with_ranks("mv", input, vec, (2, 1)))


def dot(input: TensorLike, tensor: TensorLike) -> Value:
    """The scalar product of two vectors: [k], [k] -> []."""
    return matmul(*_with_ranks("dot", input, tensor, (1, 1)))


def outer(input: TensorLike, vec2: TensorLike) -> Value:
    """y[i, j] = input[i] * vec2[j]."""
    a, b = _with_ranks("outer", input, vec2, (1, 1))
    return reshape(a, (a.shape[0], 1)) * b


def bilinear(
    input1: TensorLike, input2: TensorLike, weight: TensorLike, bias: TensorLike | None = None
) -> Value:
    """y[..., o] = sum of input1[..., i] * weight[o, i, j] * input2[..., j] over i and j, plus bias[o]."""
    a, b, w = as_value(input1), as_value(input2), as_value(weight)
    if (
        w.ndim != 3
        or not a.ndim == b.ndim >= 1
        or a.shape[:-1] != b.shape[:-1]
        or (a.shape[-1], b.shape[-1]) != w.shape[1:]
    ):
        raise shape_error("bilinear", [a, b, w], "needs [..., I], [..., J] and a weight [O, I, J]")
    o, i, j = w.shape
    rows = reshape(matmul(a, reshape(permute(w, (1, 0, 2)), (i, product((o, j))))), (*a.shape[:-1], o, j))
    y = sum(rows * unsqueeze(b, -2), -1)
    if bias is None:
        return y
    c = as_value(bias)
    if c.shape != (o,):
        raise shape_error("bilinear", [a, b, w, c], f"the bias must have shape [{o}]")
    return y + c


def _scaled(y: Value, factor: float) -> Value:
    return y if factor == 1 else y * float(factor)


@torch_lacks(out_dtype=None)
def addmm(
    input: TensorLike, mat1: TensorLike, mat2: TensorLike, *, beta: float = 1.0, alpha: float = 1.0
) -> Value:
    """beta * input + alpha * mat1 . mat2; input broadcasts to [m, n]."""
    return _scaled(mm(mat1, mat2), alpha) + _scaled(as_value(input), beta)


@torch_lacks(out_dtype=None)
def baddbmm(
    input: TensorLike, batch1: TensorLike, batch2: TensorLike, *, beta: float = 1.0, alpha: float = 1.0
) -> Value:
    """beta * input + alpha * batch1 . batch2; input broadcasts to [b, m, n]."""
    return _scaled(bmm(batch1, batch2), alpha) + _scaled(as_value(input), beta)
