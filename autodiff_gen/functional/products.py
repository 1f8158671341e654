"""Products of matrices, and elements chosen by an index."""

from __future__ import annotations

from typing import Any

from ..dtypes import broadcast, planned, product
from ..errors import ShapeError
from ..ir import CONST, INPUT, Node, Value, apply
from ..op import View
from ..ops.contraction import transposed
from .arguments import as_value, refusal
from .reductions import sum
from .shapes import broadcast_to, reshape


def matmul(input: Any, other: Any) -> Value:
    """The matrix product, as torch.matmul: vectors are rows or columns, leading axes broadcast."""
    a, b = as_value(input), as_value(other)
    if a.ndim == 0 or b.ndim == 0:
        raise refusal("matmul", [a, b], "needs vectors or matrices, not a scalar")
    if a.ndim == b.ndim == 1 and a.shape == b.shape:
        return sum(a * b)
    if a.ndim == 1 or b.ndim == 1:
        left = reshape(a, (1, *a.shape)) if a.ndim == 1 else a
        right = reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
        y = matmul(left, right)
        lost = ([y.ndim - 2] if a.ndim == 1 else []) + ([y.ndim - 1] if b.ndim == 1 else [])
        return reshape(y, tuple(d for i, d in enumerate(y.shape) if i not in lost))
    if a.shape[-1] != b.shape[-2]:
        raise refusal(
            "matmul", [a, b], f"the inner extents differ: {a.shape[-1]} columns against {b.shape[-2]} rows"
        )
    if b.ndim == 2 and a.ndim > 2:  # one product of all the rows
        y = apply("matmul", reshape(a, (product(a.shape[:-1]), a.shape[-1])), b)
        return reshape(y, (*a.shape[:-1], b.shape[-1]))
    try:
        leading = broadcast(a.shape[:-2], b.shape[:-2])
    except ShapeError as error:
        raise refusal("matmul", [a, b], f"leading axes: {error}") from None
    a, b = broadcast_to(a, (*leading, *a.shape[-2:])), broadcast_to(b, (*leading, *b.shape[-2:]))
    return apply("matmul", a, b)


def linear(input: Any, weight: Any, bias: Any = None) -> Value:
    """input . weight' + bias: [..., in], [out, in], [out] -> [..., out]."""
    x, w = as_value(input), as_value(weight)
    if w.ndim != 2 or x.ndim == 0 or x.shape[-1] != w.shape[1]:
        raise refusal(
            "linear", [x, w], "the input's last axis must be as long as a row of the weight [out, in]"
        )
    y = matmul(x, transposed(w))
    if bias is None:
        return y
    b = as_value(bias)
    if b.shape != (w.shape[0],):
        raise refusal("linear", [x, w, b], f"the bias must have shape [{w.shape[0]}]")
    return y + b


def pick(input: Any, index: Any) -> Value:
    """input[..., index[...]]: one element of the last axis each, as torch.gather with one index does.

    The index is an integer input, which the generated function checks against the axis when it is called, a
    constant, or what max or min gave as indices; computed indices are refused, since nothing would check
    them.
    """
    x, i = as_value(input), as_value(index)
    y = apply("pick", x, i)
    known_index("pick", x, i)
    return y


def index_source(i: Value) -> Value:
    """What an index shows through views and conversions."""
    while isinstance(i.node.op.lower, View) or i.node.op.name == "to_s32":
        i = i.node.operands[0]
    return i


def known_index(name: str, x: Value, i: Value, ignored: int | None = None) -> None:
    """Refuse an index of x's last axis that nothing checks; note on an integer input what it may hold.

    `ignored` may stand in the input besides, because its reader never looks there with it; if not all readers
    agree on that, it may not.
    """
    extent = x.shape[-1]
    assert isinstance(extent, int)
    source = index_source(i)
    node = source.node
    if node.op is INPUT and source.dtype.kind in "iu":
        node.attrs["classes"] = min(node.attrs.get("classes", extent), extent)
        if node.attrs.setdefault("ignored", ignored) != ignored:
            node.attrs["ignored"] = None
    elif node.op is CONST:
        value = node.attrs["value"]
        if not (((value >= 0) & (value < extent)) | (value == ignored)).all():
            raise refusal(name, [x, i], f"an index is outside 0 to {extent - 1}")
    elif not (source.index == 1 and node.op.name.endswith("_with_index") and _walked(node) <= extent):
        raise refusal(
            name,
            [x, i],
            "the index must be an integer input, a constant, or indices that F.max or F.min gave",
        )


def _walked(node: Node) -> int:
    """The largest extent of the axis in which max or min looked."""
    axis: int = node.attrs["axes"][0]
    return planned(node.operands[0].type.shape)[axis]
