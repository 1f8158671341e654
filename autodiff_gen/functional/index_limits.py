"""The range of indices.

The generated function checks an index that is an integer input; constants are checked here, and indices from F.max or
F.min are in range. Other indices that the graph computes are clamped to the valid range, where PyTorch would raise an
error.
"""

from __future__ import annotations

import numpy as np

from ..ir.build import apply, constant, make_input
from ..ir.interpreter import evaluate
from ..ir.node import CONST, INPUT, Node, Value
from ..ir.op_kinds import Assemble, Elementwise, Iota, Pick, Reduce, View
from ..ir.types import Dim, Size, Type, planned, planned_size, product, s32
from ..ops.support import as_s32
from .arguments import TensorLike, shape_error
from .elementwise import ge, lt, where


def index_source(i: Value) -> Value:
    """The value that an index is a view, a conversion, or a loop's element of."""
    while True:
        lower = i.node.op.lower
        if isinstance(lower, View) or (isinstance(lower, Elementwise) and lower.converts and i.dtype is s32):
            i = i.node.operands[0]
        elif i.node.attrs.get("source") is not None:
            i = i.node.attrs["source"]
        else:
            return i


def choices(i: Value) -> list[Value]:
    """The integers of which an integer is computed by choosing elements; none for other values."""
    op = i.node.op
    operands = (0,) if isinstance(op.lower, Pick) else op.chooses
    return [i.node.operands[k] for k in operands] if i.dtype.kind in "iu" else []


def is_known(name: str, x: Value, i: Value, extent: Size, ignored: int | None = None) -> bool:
    """Whether an index of x is guaranteed to be below `extent`; an integer input records that limit, so that the
    generated function checks it. Of an extent that follows the batch, only indices that follow it too are known.

    The input may also contain `ignored`, which this reader does not use as an index; if other readers do not accept it,
    the input may not. Raises ShapeError for a constant that is out of range.
    """
    source = index_source(i)
    node = source.node
    if isinstance(extent, Dim):
        if isinstance(node.op.lower, Iota):
            return product(source.shape) == extent
        return _chosen_along(source) == extent
    if node.op is INPUT and source.dtype.kind in "iu" and not node.attrs.get("inner"):
        _limit(node, i, extent)
        if node.attrs.setdefault("ignored", ignored) != ignored:
            node.attrs["ignored"] = None
        return True
    if node.op is CONST:
        value = node.attrs["value"]
        if not (((value >= 0) & (value < extent)) | (value == ignored)).all():
            raise shape_error(name, [x, i], f"an index is outside 0 to {extent - 1}")
        return True
    if isinstance(node.op.lower, Iota):
        return planned_size(source.shape) <= extent
    if isinstance(node.op.lower, Assemble):
        return all(is_known(name, x, part, extent, ignored) for part in node.operands)
    if choices(source):
        return all(is_known(name, x, choice, extent, ignored) for choice in choices(source))
    chosen = _chosen_along(source)
    return chosen is not None and planned((chosen,))[0] <= extent


def _limit(node: Node, i: Value, extent: int) -> None:
    """Note at an input what its elements are below that the index i, a view of it, shows: `classes`, the smallest limit
    of all, and where parts are shown `limits`, those of the elements of a sample, 0 for what is not shown."""
    (source,), attrs = node.results, node.attrs
    of_all = attrs.get("classes", 0)  # unless there are others for parts
    attrs["classes"] = min(of_all or extent, extent)
    has_window = _has_window(i, source)
    if not has_window and "limits" not in attrs:
        return
    shape = planned(source.shape)
    count = planned_size(shape[1:] if source.shape and isinstance(source.shape[0], Dim) else shape)
    shown = np.arange(planned_size(shape)).reshape(shape) % count
    if has_window:
        positions = make_input("positions", Type(s32, source.shape))
        (shown,) = evaluate([_same_views(i, source, positions)], {positions: shown})
    limits = np.array(attrs.get("limits", (of_all,) * count))
    before = limits[shown.ravel()]
    limits[shown.ravel()] = np.where(before == 0, extent, np.minimum(before, extent))
    attrs["limits"] = tuple(limits.tolist())


def _has_window(i: Value, source: Value) -> bool:
    while i is not source:
        if isinstance(i.node.op.lower, View) and i.node.op.lower.window:
            return True
        i = i.node.operands[0] if i.node.operands else source
    return False


def _same_views(i: Value, source: Value, other: Value) -> Value:
    """What i is of `source`, of another value; conversions are left out."""
    if i is source:
        return other
    x = _same_views(i.node.operands[0], source, other)
    return apply(i.node.op.name, x, **i.node.attrs) if isinstance(i.node.op.lower, View) else x


def _chosen_along(i: Value) -> Size | None:
    """The extent of the axis that max or min reduces, if the index is theirs."""
    lower = i.node.op.lower
    if not (isinstance(lower, Reduce) and lower.indexed and i.index == 1):
        return None
    axis: int = i.node.attrs["axes"][0]
    return i.node.operands[0].type.shape[axis]


def known_index(name: str, x: Value, i: Value, ignored: int | None = None) -> None:
    """Reject an index of x's last axis that nothing checks."""
    if not is_known(name, x, i, x.shape[-1], ignored):
        raise shape_error(
            name,
            [x, i],
            "the index must be an integer input, a constant, or indices from F.max or F.min; of an axis that follows "
            "the batch, F.arange of the batch"
            if isinstance(x.shape[-1], Dim)
            else "the index must be an integer input, a constant, or indices from F.max or F.min",
        )


def in_range(name: str, x: Value, index: TensorLike, extent: int) -> Value:
    """The index, clamped to the valid range unless it is checked elsewhere."""
    i = index if isinstance(index, Value) else constant(index)
    if i.dtype.kind not in "iu":
        raise shape_error(
            name,
            [x, i],
            f"the index must be of an integer dtype, not {i.dtype}; ag.Input(..., dtype='s32') has one",
        )
    if is_known(name, x, i, extent):
        return i
    i = as_s32(i)
    return where(lt(i, 0), 0, where(ge(i, extent), extent - 1, i))
