"""Rematerialise masks in the order in which they are read.

    entry f(counter: u32[])
      %0: s32[6,4] = iota(size=(6, 4))
      %1: u32[6,4] = rand_u32(counter, %0, key=5)
      %2: u32[2,3,4] = reshape(%1, shape=(2, 3, 4))
      %3: u32[3,2,4] = permute(%2, dims=(1, 0, 2))
      y <- %3
    ->
    entry f(counter: u32[])
      %0: s32[3,2,4] = places(shape=(3, 2, 4), strides=(4, 12, 1), offset=0)
      %1: u32[3,2,4] = rand_u32(counter, %0, key=5)
      y <- %1

A value that is computed only from indices (a dropout mask) would have to be stored if it is read through a reshape that
splits or merges axes. Its elements are recomputed instead, from the indices of the elements that the view reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.names import adopt
from ...ir.node import Node, Value, base, topological
from ...ir.op_kinds import Elementwise, Iota, View
from ...ir.rewrite import rewritten
from ...ir.strides import Strided
from ...ir.types import varies
from ...ir.views import layout
from ..context import Context


def rematerialize_random(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if not graph.of(Iota):
        return graph
    random = _random_nodes(graph.of(Elementwise))
    made: dict[tuple[Value, Strided], Value] = {}

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        v = node.results[0]
        source, at = base(v), layout(v)
        if source.node not in random or at is None or not _cuts(v):
            return None
        if (source, at) not in made:
            made[source, at] = _recomputed(source, at, random)
        return (made[source, at],)

    return rewritten(graph, rewrite, graph.of(View))


def _random_nodes(elementwise: Sequence[Node]) -> set[Node]:
    """The nodes whose elements depend only on their index and on scalars."""
    found: set[Node] = set()
    for node in elementwise:
        shape = node.results[0].type.shape
        arrays = [v for v in node.operands if v.type.shape != ()]
        moving = [d for d in shape if d != 1]
        if arrays and not varies(moving[1:]):
            same = all(v.type.shape == shape for v in arrays)
            if same and all(v.node in found or _is_plain(v.node) for v in arrays):
                found.add(node)
    return found


def _is_plain(node: Node) -> bool:
    return isinstance(node.op.lower, Iota) and "strides" not in node.attrs


def _cuts(v: Value) -> bool:
    """Whether axes are cut or merged on the way from v to its base."""
    while isinstance(v.node.op.lower, View):
        source = v.node.operands[0]
        lower = v.node.op.lower
        if not lower.window and lower.dims(source.type.shape, v.type.shape, v.node.attrs) is None:
            return True
        v = source
    return False


def _recomputed(source: Value, at: Strided, random: set[Node]) -> Value:
    index = apply("places", shape=at.shape, strides=at.strides, offset=at.offset)
    new: dict[Value, Value] = {}
    for node in topological([source], stop=lambda n: n not in random):
        if node in random:
            operands = [new.get(v, v) for v in node.operands]
            new[node.results[0]] = apply(node.op.name, *operands, **node.attrs)
            adopt(new[node.results[0]], node.results[0])
        elif _is_plain(node):
            new[node.results[0]] = index
    return new[source]
