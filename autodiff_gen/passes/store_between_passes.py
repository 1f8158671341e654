"""Values that are stored because a loop nest reads them in two passes: before a sum is complete, and after it.

    for i in n: s += where(y[i] <= 0, 0, d[i])               for i in n: d[i] = where(y[i] <= 0, 0, d[i]); s += d[i]
    for i in n: x[i] = where(y[i] <= 0, 0, d[i]) - s    ->   for i in n: x[i] = d[i] - s

The value takes the place of an operand that nothing else reads, so it needs no memory of its own, and the second pass
reads it in place of that operand. The cost table says whether a store costs less than the operations and the other
loads of the second pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from ..ir.graph import Graph
from ..ir.node import Node, Value
from ..ir.op_kinds import Elementwise, Leaf, Reduce, View
from ..ir.types import DType, Shape
from ..targets.cost_table import CostTable
from .costs import is_stored_between_passes
from .fusion_groups import Groups, is_free

_Array: TypeAlias = tuple[DType, Shape]


def stored_between_passes(graph: Graph, groups: Groups, needed: set[Value]) -> set[Value]:
    """Such values of all groups, in addition to `needed`, which are stored anyway."""
    found: set[Value] = set()
    order = {n: i for i, n in enumerate(graph.nodes)}
    times = Counter(n for group in groups.groups.values() for n in group.nodes)
    for group in groups.groups.values():
        members = sorted(group.nodes, key=groups.position.__getitem__)
        if any(isinstance(n.op.lower, Reduce) for n in members):
            once = {n for n in members if times[n] == 1}
            found |= _of_group(graph, members, once, needed, order, groups.cost)
    return found


def _of_group(
    graph: Graph,
    members: list[Node],
    once: set[Node],
    needed: set[Value],
    order: Mapping[Node, int],
    cost: CostTable,
) -> set[Value]:
    """`once`: the members that no other group computes too, and so reads their operands."""
    inside = {r for n in members for r in n.results}
    replaced: dict[Node, Value] = {}  # what a candidate can take the place of
    sums: dict[Node, set[Node]] = {}  # the reductions on whose results a node depends
    summed: dict[Node, set[Node]] = {}  # the candidates that such a reduction reads
    early: dict[Node, set[Node]] = {}  # the candidates that a node computes of what is read at one place
    twice: set[Node] = set()
    for n in members:
        sources = [v.base.node for v in n.operands if v.base in inside]
        sums[n] = set().union(*(sums[s] for s in sources))
        early[n] = set().union(*(early[s] for s in sources))
        if isinstance(n.op.lower, Reduce):
            (terms,) = n.operands
            summed[n] = {c for c in early[n] if _array(c.results[0]) == _array(terms)}
            early[n] = set()
            sums[n] = sums[n] | {n}
            continue
        twice |= {c for c in early[n] for r in sums[n] if c in summed[r]}
        place = _replaced(n, graph, inside, replaced) if n in once else None
        if place is not None and n.results[0] not in needed:
            replaced[n] = place
            early[n] = early[n] | {n}
    found = set()
    room = _room(graph, members, needed, order) if twice else Counter()
    for n in members:
        (v,) = n.results if n in twice else (None,)
        if v is None or any(u in twice for u in graph.users[v]) or not room[_array(v)]:
            continue
        if _pays(n, replaced[n], inside, needed, cost):
            room[_array(v)] -= 1
            found.add(v)
    return found


def _room(
    graph: Graph, members: list[Node], needed: set[Value], order: Mapping[Node, int]
) -> Counter[_Array]:
    """How many more arrays of a size a group may store than it does: as many as it reads last."""
    own, first = set(members), order[members[0]]
    inside = {r for n in members for r in n.results}
    roots = {v.base for v in graph.roots}
    read = {v.base for n in members for v in n.operands} - inside - roots
    dying = [
        v
        for v in read
        if not isinstance(v.node.op.lower, Leaf)
        and all(n in own or order[n] < first for n in _readers(v, graph))
    ]
    room = Counter(map(_array, dying))
    room.subtract(map(_array, (inside & needed) - roots))
    return room


def _readers(v: Value, graph: Graph) -> Iterator[Node]:
    """The nodes that read a value, views followed."""
    for n in graph.users[v]:
        if isinstance(n.op.lower, View):
            yield from _readers(n.results[0], graph)
        else:
            yield n


def _array(v: Value) -> _Array:
    """What is equal for arrays that can take each other's place."""
    return v.type.dtype, tuple(d for d in v.type.shape if d != 1)


def _replaced(node: Node, graph: Graph, inside: set[Value], replaced: Mapping[Node, Value]) -> Value | None:
    """A stored array, as large as the result of a cheap elementwise node, which only the node's expression reads."""
    lower = node.op.lower
    if not isinstance(lower, Elementwise) or not lower.cheap:
        return None
    roots = {v.base for v in graph.roots}
    for v in node.operands:
        source = v.base
        alone = len(graph.users[v]) == 1 and source not in roots
        while alone and v is not source:
            v = v.node.operands[0]
            alone = len(graph.users[v]) == 1
        if not alone or isinstance(source.node.op.lower, Leaf):
            continue
        place = replaced.get(source.node) if source in inside else source
        if place is not None and _array(place) == _array(node.results[0]):
            return place
    return None


def _pays(node: Node, replaced: Value, inside: set[Value], needed: set[Value], cost: CostTable) -> bool:
    """Whether a store costs less than computing the value again."""
    operations, loads, pending = 0, set[Value](), [node]
    while pending:
        n = pending.pop()
        operations += 1
        for v in n.operands:
            source = v.base
            if source in inside and source not in needed and isinstance(source.node.op.lower, Elementwise):
                pending.append(source.node)
            elif source is not replaced and not is_free(source.node):
                loads.add(source)
    return is_stored_between_passes(cost, operations, len(loads))
