"""The range of indices.

Some indices are known to be valid (ir/index_ranges.py): constants, indices from F.max or F.topk, clamped labels. The
generated function checks any other index that is computed from inputs, before it changes anything. An index that
depends on parameters or on products is clamped to the valid range, or rejected by F.pick; PyTorch would raise an error.
"""

from __future__ import annotations

from ..ir.build import apply, constant
from ..ir.index_checks import of_inputs
from ..ir.index_ranges import computed_of, range_of
from ..ir.node import CONST, INPUT, Value, topological, users
from ..ir.op_kinds import Elementwise, Iota, Reduce, View
from ..ir.traits import uniform
from ..ir.types import Dim, Size, product, s32
from ..ops.support import as_s32
from .arguments import TensorLike, shape_error
from .elementwise import ge, lt, where


def index_source(i: Value) -> Value:
    """The value from which an index follows by views, conversions, range checks and the selection of a loop's
    element."""
    while True:
        lower = i.node.op.lower
        converts = isinstance(lower, Elementwise) and lower.converts and i.dtype is s32
        if isinstance(lower, View) or converts or i.node.op.known_range(i.node.attrs) is not None:
            i = i.node.operands[0]
        elif i.node.attrs.get("source") is not None:
            i = i.node.attrs["source"]
        else:
            return i


def is_below_batch(i: Value, extent: Dim) -> bool:
    """Whether an index is known to be below an extent that follows the batch, because it comes from an iota or from an
    argmax of that extent."""
    source = index_source(i)
    lower = source.node.op.lower
    if isinstance(lower, Iota):
        return product(source.shape) == extent
    if not (isinstance(lower, Reduce) and lower.indexed and source.index == 1):
        return False
    return bool(source.node.operands[0].type.shape[source.node.attrs["axes"][0]] == extent)


def is_constant(i: Value) -> bool:
    """Whether a value depends on constants only."""
    return all(node.op is CONST or node.operands for node in topological([i]))


def checked(name: str, x: Value, i: Value, extent: Size, low: int = 0) -> Value | None:
    """An index of x from `low` to extent - 1. If it is not known to be valid, it is marked so that the generated
    function checks it; None if nothing can check it. Raises ShapeError for a constant that is out of range."""
    if isinstance(extent, Dim):
        return i if is_below_batch(i, extent) else None
    least, most = range_of(i)
    if low <= least and most < extent:
        return i
    if i.node.op is CONST or (is_constant(i) and (most < low or least >= extent)):
        raise shape_error(name, [x, i], f"an index is outside {low} to {extent - 1}")
    early = _before_loops(i)
    if early is None or not of_inputs(early):
        return None
    return apply("in_range", i, low=low, high=extent - 1, index_of_inputs=early)


def _before_loops(i: Value) -> Value | None:
    """The values of an index in all iterations of the loops around it, computed from the whole sequence as the index is
    computed from an element. None if the index depends on anything else in a loop."""
    nodes = topological([i])
    inner = [n.results[0] for n in nodes if n.op is INPUT and n.attrs.get("inner")]
    if not inner:
        return i
    element, source = inner[0], inner[0].node.attrs.get("source")
    readers = users(nodes)
    while len(readers.get(element, ())) == 1 and isinstance(readers[element][0].op.lower, View):
        element = readers[element][0].results[0]  # a view: its numbers are in the sequence too
    if len(inner) > 1 or source is None or computed_of(i, element) is None:
        return None
    of_sequence = {element: source}
    for node in nodes:
        if any(v in of_sequence for v in node.operands):
            numbers = [uniform(v) for v in node.operands]
            if any(n is None and v not in of_sequence for n, v in zip(numbers, node.operands, strict=True)):
                return None
            operands = [
                of_sequence[v] if n is None else constant(n, v.dtype)
                for n, v in zip(numbers, node.operands, strict=True)
            ]
            of_sequence[node.results[0]] = apply(node.op.name, *operands, **node.attrs)
    return _before_loops(of_sequence[i])


def needs_integers(name: str, x: Value, i: Value) -> None:
    if i.dtype.kind not in "iu":
        raise shape_error(
            name,
            [x, i],
            f"the index must be of an integer dtype, not {i.dtype}; ag.Input(..., dtype='s32') has one",
        )


def known_index(name: str, x: Value, i: Value) -> Value:
    """An index of x's last axis, checked if necessary. Raises ShapeError if nothing can check it."""
    extent = x.shape[-1]
    found = checked(name, x, i, extent)
    if found is not None:
        return found
    raise shape_error(
        name,
        [x, i],
        "the index of an axis that follows the batch must be indices from F.max or F.min, or F.arange of the batch"
        if isinstance(extent, Dim)
        else "the index depends on parameters, products or a loop, so nothing checks it before the call; limit it by "
        f"F.clamp(index, 0, {extent - 1})",
    )


def in_range(name: str, x: Value, index: TensorLike, extent: int) -> Value:
    """The index, which is known to be in range, is checked, or is clamped."""
    i = index if isinstance(index, Value) else constant(index)
    needs_integers(name, x, i)
    found = checked(name, x, i, extent)
    return _clamped(i, 0, extent) if found is None else found


def from_end(name: str, x: Value, index: TensorLike, extent: int) -> Value:
    """`in_range` of an index whose negative numbers count from the end."""
    i = index if isinstance(index, Value) else constant(index)
    needs_integers(name, x, i)
    if range_of(i)[0] >= 0:
        return in_range(name, x, i, extent)
    found = checked(name, x, i, extent, -extent)
    i = as_s32(_clamped(i, -extent, extent) if found is None else found)
    return apply("in_range", where(lt(i, 0), i + extent, i), low=0, high=extent - 1)


def _clamped(i: Value, low: int, extent: int) -> Value:
    i = as_s32(i)
    return where(lt(i, low), low, where(ge(i, extent), extent - 1, i))
