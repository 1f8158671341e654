"""Store values in the order in which they are read.

    entry f(a: f32[4,3], b: f32[3,2])              entry f(a: f32[4,3], b: f32[3,2])
      %0: f32[4,2] = matmul(a, b)                    %0: f32[2,3] = permute(b, dims=(1, 0))
      %1: f32[2,4] = permute(%0, dims=(1, 0))        %1: f32[3,4] = permute(a, dims=(1, 0))
      %2: f32[8] = reshape(%1, shape=(8,))     ->    %2: f32[2,4] = matmul(%0, %1)
      %3: f32[8] = exp(%2)                           %3: f32[8] = reshape(%2, shape=(8,))
      y <- %3                                        %4: f32[8] = exp(%3)
                                                     y <- %4

A reader needs a copy of a view that it cannot read in place. For each value, every order in which a reader reads it is
a candidate, and the value is stored in the order for which the fewest bytes are copied.

- A product is stored in the order in which a reshape or an update reads it: (a . b)' = b' . a', and kernels write with
  any leading dimension, so that a product can have any order in which its rows or its columns stay contiguous. If two
  orders need as many copies, the order with fewer bytes that are read by columns is chosen.
- A value that loops compute is copied in the order in which a kernel reads it, and all others read the copy. The loops
  that compute the value store only the copy.

Two permutes in a row become one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import Node, Value, in_form
from ...ir.op_forms import WithLayout
from ...ir.op_kinds import Assemble, Elementwise, Pick, Reduce, View, ViewKind
from ...ir.rewrite import rewritten
from ...ir.strides import Strided, dense
from ...ir.traits import is_plain_product, view_kind
from ...ir.types import Dim, Type, planned_size
from ...ir.views import layout
from ..context import Context
from .copies import copied, unreadable


class _Read(NamedTuple):
    """A view `v` that is operand i of a node that is no view, or, without a node, a root of the graph."""

    v: Value
    node: Node | None = None
    i: int = 0


def store_in_order(graph: Graph, context: Context) -> Graph:
    """See the module."""
    orders = {
        source.node: steps
        for source, reads in _reads(graph).items()
        if _has_any_order(source, graph) and (steps := _best_order(source, reads)) is not None
    }

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        if node in orders:
            return (_in_order(node.with_operands(operands), orders[node]),)
        return (_permuted(operands[0], node.attrs["dims"]),)

    permutes = [n for n in graph.of(View) if view_kind(n) is ViewKind.PERMUTE]
    return rewritten(graph, rewrite, [*orders, *permutes])


def _reads(graph: Graph) -> dict[Value, list[_Read]]:
    """The reads of each value in memory."""
    found: dict[Value, list[_Read]] = defaultdict(list)
    for node in graph.nodes:
        for i, v in enumerate(node.operands if not isinstance(node.op.lower, View) else ()):
            found[v.base].append(_Read(v, node, i))
    for v in graph.roots:
        found[v.base].append(_Read(v))
    return found


def _has_any_order(v: Value, graph: Graph) -> bool:
    """Whether a kernel or a loop can store a value in any order."""
    if isinstance(v.node.op.lower, Elementwise | Reduce | Pick | Assemble):
        return v not in graph.outside_arena and len(v.node.results) == 1 and "layout" not in v.node.attrs
    return is_plain_product(v.node)


def _best_order(source: Value, reads: Sequence[_Read]) -> tuple[int, ...] | None:
    """The strides with the least cost; None where no other strides cost less than those that the value has."""
    least, best = _cost(source, source, reads), None
    for steps in {_steps_of_order(read.v): None for read in reads} if any(least) else ():
        if steps is not None:
            cost = _cost(source, _in_order(source.node, steps), reads)
            least, best = (cost, steps) if cost < least else (least, best)
    return best


def _cost(source: Value, there: Value, reads: Sequence[_Read]) -> tuple[int, int]:
    """The bytes that are copied, and the bytes of a product that are read by columns, if the value `source` is replaced
    by `there`, an equal value that is stored in another order."""
    copies: set[Value] = set()
    by_columns = 0
    for v, node, i in reads:
        moved = _on(v, source, there)
        at = layout(moved)
        if node is None:
            is_copied = at is None or not at.dense
        else:
            is_copied = i in unreadable(node, [moved if k == i else u for k, u in enumerate(node.operands)])
        if is_copied:
            copies.add(v)
        if at is not None and at.strides[-1:] != (1,) and is_plain_product(source.node):
            by_columns += v.type.bytes
    return sum(v.type.bytes for v in copies), by_columns


def _on(v: Value, source: Value, there: Value) -> Value:
    """The same view of `there` as v is of `source`."""
    if v is source or there is source:
        return there if v is source else v
    return v.node.with_operands((_on(v.node.operands[0], source, there),)).results[0]


def _in_order(node: Node, steps: Sequence[int]) -> Value:
    """A value that is equal to the only result of a node, stored with these strides."""
    y, placed = node.results[0], in_form(node.op, WithLayout)
    if not is_plain_product(node) and placed is not None:
        attrs = {**node.attrs, "layout": Strided(y.type.shape, tuple(steps)), "of": ""}
        return Node(placed, node.operands, attrs, (y.type,), origin=node.origin).results[0]
    if not is_plain_product(node):
        dims = sorted(range(y.ndim), key=lambda k: -steps[k])
        return _permuted(copied(_permuted(y, dims)), [dims.index(k) for k in range(y.ndim)])
    a, b = node.operands
    columns = y.type.shape[-1] == 1 or steps[-1] == 1
    if not columns:
        a, b, steps = _transposed(b), _transposed(a), (*steps[:-2], steps[-1], steps[-2])
    shape = (*a.type.shape[:-1], b.type.shape[-1])
    at = Strided(shape, tuple(steps))
    assert placed is not None
    op, attrs = (node.op, node.attrs) if at.dense else (placed, {"layout": at, "of": ""})
    made = Node(op, (a, b), attrs, (Type(y.type.dtype, shape),), origin=node.origin).results[0]
    return made if columns else _transposed(made)


def _transposed(v: Value) -> Value:
    return _permuted(v, (*range(v.ndim - 2), v.ndim - 1, v.ndim - 2))


def _permuted(v: Value, dims: Sequence[int]) -> Value:
    """permute(v), composed with a permute that v already is, and dropped when it is the identity."""
    if view_kind(v.node) is ViewKind.PERMUTE:
        inner = v.node.attrs["dims"]
        return _permuted(v.node.operands[0], [inner[i] for i in dims])
    return v if list(dims) == list(range(v.ndim)) else apply("permute", v, dims=tuple(dims))


def _steps_of_order(v: Value) -> tuple[int, ...] | None:
    """The strides of a value that is stored in the order in which its view v shows all of its elements. None where an
    axis of v is not whole axes of the value, or where neither rows nor columns of a product would be contiguous."""
    while (at := layout(v)) is None:
        v = v.node.operands[0]
    shape = v.base.type.shape
    axes = {step: i for i, (step, d) in enumerate(zip(dense(shape).strides, shape, strict=True)) if d != 1}
    steps: dict[int, int] = {}
    for rest, old, new in zip(at.shape, at.strides, dense(at.shape).strides, strict=True):
        while rest != 1:
            i = axes.pop(old, None)
            if i is None:
                return None
            d = shape[i]
            if rest != d and (isinstance(d, Dim) or planned_size((rest,)) % d):
                return None
            steps[i] = new
            rest = 1 if isinstance(d, Dim) else rest // d
            old, new = (step * planned_size((d,)) for step in (old, new))
    found = tuple(steps.get(i, 1) for i in range(len(shape)))
    return None if axes or (is_plain_product(v.base.node) and 1 not in found[-2:]) else found
