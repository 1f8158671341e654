"""Select a kernel for sums over all axes except the last ones, such as gradients of biases, if their terms are stored
in any case. The loop that stores the terms then computes nothing else.

    entry f(x: f32[24,8])                                entry f(x: f32[24,8])
      %0: f32[8] = sum(x, axes=(0,), keepdim=False)        %0: f32[24,8] = reshape(x, shape=(24, 8))
      y <- %0                                        ->    %1: f32[8] = column_sums(%0)
                                                           y <- %1

A sum stays in a loop where its terms are computed in that loop, where another sum iterates over the same elements, and
where the loop costs less than the call.
"""

from __future__ import annotations

from collections import deque

from ...ir.build import apply, with_shape
from ...ir.graph import Graph
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Elementwise, Reduce, RowContraction, View
from ...ir.rewrite import rewritten
from ...ir.traits import is_free, is_fusable, is_sum
from ...ir.types import Shape, Size, f32, normalise_axes, product
from ...ir.views import layout
from ..context import Context
from ..costs import sums_are_inlined


def select_column_sums(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.inner:
        return graph
    sums = _Sums(graph)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        sizes = _rows_and_columns(node)
        if (
            sizes is None
            or sums_are_inlined(context.cost, *sizes)
            or not sums.is_stored(node.operands[0])
            or not sums.is_alone(node)
        ):
            return None
        total = apply("column_sums", apply("reshape", operands[0], shape=sizes))
        return (with_shape(total, node.results[0].type.shape),)

    return rewritten(graph, rewrite, filter(is_sum, graph.of(Reduce)))


class _Sums:
    """The sums of a graph: whether their terms are stored, and whether other sums read the same elements."""

    def __init__(self, graph: Graph) -> None:
        self.readers, self.roots = graph.users, set(graph.roots)
        self.position = {n: k for k, n in enumerate(graph.nodes)}

    def is_stored(self, v: Value) -> bool:
        """Whether v is stored even if no sum reads it."""
        source = base(v)
        if not is_fusable(source.node):
            return not is_free(source.node)
        pending = [source]
        while pending:
            w = pending.pop()
            if w in self.roots:
                return True
            for node in self.readers.get(w, ()):
                if isinstance(node.op.lower, View):
                    pending += node.results
                elif not is_fusable(node) or isinstance(node.op.lower, RowContraction):
                    return True
        return False

    def is_alone(self, node: Node) -> bool:
        """Whether no other sum over the same axes iterates over the same elements, or over unstored values that are
        computed from them. Sums that need this one do not count."""
        others: set[Node] = set()
        pending, seen = [base(node.operands[0])], {node}
        while pending:
            for n in self.readers.get(pending.pop(), ()):
                if n in seen:
                    continue
                seen.add(n)
                if isinstance(n.op.lower, Reduce) and _extents(n) == _extents(node):
                    others.add(n)
                elif isinstance(n.op.lower, View | Elementwise):
                    pending += [v for v in n.results if isinstance(n.op.lower, View) or not self.is_stored(v)]
        return self._all_need(others, node)

    def _all_need(self, nodes: set[Node], source: Node) -> bool:
        """Whether all of these nodes need the results of `source`. They are mostly close to it."""
        missing, last = set(nodes), max((self.position[n] for n in nodes), default=0)
        pending, seen = deque([source]), {source}
        while missing and pending:
            readers = [n for v in pending.popleft().results for n in self.readers.get(v, ())]
            new = {n: None for n in readers if n not in seen and self.position[n] <= last}
            seen.update(new)
            pending.extend(new)
            missing.difference_update(new)
        return not missing


def _extents(node: Node) -> tuple[Shape, Shape]:
    return node.operands[0].type.shape, node.results[0].type.shape


def _rows_and_columns(node: Node) -> tuple[Size, Size] | None:
    """The size of the matrix whose columns are summed; None where no such matrix is stored row by row."""
    (x,) = node.operands
    at = layout(x)
    if x.type.dtype != f32 or at is None or not at.dense:
        return None
    gone = normalise_axes(node.attrs["axes"], x.ndim)
    kept = [i for i, d in enumerate(x.type.shape) if d != 1 and i not in gone]
    first = min(kept, default=0)
    if any(d != 1 and (i >= first) == (i in gone) for i, d in enumerate(x.type.shape)):
        return None
    return product(x.type.shape[:first]), product(x.type.shape[first:])
