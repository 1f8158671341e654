"""Rematerialise products, also known as checkpointing of activations: where the arena exceeds the RAM budget, what the
backward pass reads of the forward pass is computed again, results of products included.

    entry f(x: f32[1,4], w: f32[4,16], u: f32[16,4], dy: f32[1,4])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = tanh(%0)
      %2: f32[1,4] = matmul(%1, u)
      %3: f32[16,1] = permute(%1, dims=(1, 0))
      %4: f32[16,4] = matmul(%3, dy)
      y <- %2
      du <- %4
    ->
    entry f(x: f32[1,4], w: f32[4,16], u: f32[16,4], dy: f32[1,4])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[1,16] = tanh(%0)
      %2: f32[1,4] = matmul(%1, u)
      %3: f32[1,16] = matmul(x, w)
      %4: f32[1,16] = tanh(%3)
      %5: f32[16,1] = permute(%4, dims=(1, 0))
      %6: f32[16,4] = matmul(%5, dy)
      y <- %2
      du <- %6

Of the values that are alive at the peak, those first that take least time for their bytes, as many as the budget needs
are computed again of those that stay. Values that are smaller than what they are computed of, such as statistics and
the results of pooling, stay.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from ..ir.graph import Graph
from ..ir.node import Node, Value, base
from ..ir.op_kinds import Leaf, View
from ..ir.origin import BACKWARD, Label, Origin, is_late
from ..ir.rewrite import rewritten
from .context import Context
from .fusion_groups import is_free
from .work import work


def rematerialize_products(graph: Graph, context: Context) -> Graph:
    """See the module."""
    name = rematerialize_products.__name__
    if context.budget is not None:
        context = replace(context, budget=round(context.slack * context.budget))
    if graph.inner or context.budget is None or not context.excess(name, graph):
        return graph
    forward = context.analysis((Forward, graph), lambda: Forward(graph))
    chosen, best = frozenset[Value](), graph
    while context.excess(name, best):
        before, alive = best, context.live_at_peak(name, best)
        least, now = context.memory(name, best).peak, chosen
        candidates = forward.candidates(alive, now, context)
        needed = _number(candidates, least - context.budget)
        for more in _sets(candidates, needed):
            found = forward.computed_again(now.union(more))
            fewer = chosen != now and len(now.union(more)) < len(chosen)
            peak = context.least_peak(name, found)[0]
            if peak < least:
                peak = context.memory(name, found).peak
            enough = max(least, context.budget)
            if fewer and peak > enough:
                break  # too much stays stored, and more if fewer are computed again
            is_first = chosen == now
            if peak < least or (fewer and peak <= enough):
                least, chosen, best = peak, now.union(more), found
            if peak <= context.budget and is_first and len(more) == needed:
                break
        if best is before:
            break
    return best


def _number(values: Sequence[Value], size: int) -> int:
    """How many of the values, the first ones, have this size together; all of them, if they have less."""
    totals = itertools.accumulate(v.type.bytes for v in values)
    return next((k for k, total in enumerate(totals, start=1) if total >= size), len(values))


def _sets(values: Sequence[Value], count: int) -> Iterator[Sequence[Value]]:
    """So many of the values, the first ones, then all of them, three quarters, half, and so on."""
    parts = [len(values) * m >> k + 2 for k in range(len(values).bit_length()) for m in (4, 3)]
    yield from (values[:k] for k in dict.fromkeys([count, *parts]) if k)


class Forward:
    """The values of the forward pass that are stored for the backward pass."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.made: dict[frozenset[Value], Graph] = {}
        roots = {base(v) for v in graph.roots}
        read = {base(v) for n in graph.nodes if is_late(n.origin) for v in n.operands}
        self.stored = [v for v in read if v not in roots and not _is_leaf(v) and not is_late(v.node.origin)]
        order = {n: k for k, n in enumerate(graph.nodes)}
        self.stored.sort(key=lambda v: (order[v.node], v.index))
        self.wide = [
            v for v in self.stored if all(base(u).type.bytes <= v.type.bytes for u in _computed(v.node))
        ]
        self.readers = [n for n in graph.nodes if is_late(n.origin)]

    def candidates(self, alive: Sequence[Value], chosen: Collection[Value], context: Context) -> list[Value]:
        """What may be computed again, of values that are alive, in addition to the chosen ones; those first that take
        least time for their bytes."""
        origins = {(v.node.origin, v.index) for v in alive}
        found = [v for v in self.wide if (v.node.origin, v.index) in origins and v not in chosen]
        found = [v for v in found if not any(n.regions for n in self.again(v, chosen))]  # loops run once
        return sorted(found, key=lambda v: work(self.again(v, chosen), context.cost) / v.type.bytes)

    def again(self, v: Value, chosen: Collection[Value]) -> list[Node]:
        """The nodes that compute a value again, if all stored values stay but the chosen ones."""
        kept, found, pending = set(self.stored) - {v, *chosen}, dict[Node, None](), [v]
        while pending:
            u = base(pending.pop())
            if not _is_leaf(u) and u not in kept and u.node not in found:
                found[u.node] = None
                pending += u.node.operands
        return list(found)

    def computed_again(self, chosen: frozenset[Value]) -> Graph:
        """The graph whose backward pass computes these values again."""
        if chosen not in self.made:
            self.made[chosen] = self._computed_again(chosen)
        return self.made[chosen]

    def _computed_again(self, chosen: frozenset[Value]) -> Graph:
        kept = set(self.stored) - chosen
        copies: dict[Value, Value] = {}

        def copy(v: Value) -> Value:
            pending = [v]
            while pending:
                u = pending[-1]
                if u in copies or _stays(u):
                    pending.pop()
                    continue
                missing = [o for o in u.node.operands if o not in copies and not _stays(o)]
                pending += missing
                if not missing:
                    pending.pop()
                    node = u.node
                    operands = tuple([copies.get(o, o) for o in node.operands])
                    types = tuple([r.type for r in node.results])
                    labels = {k: Label("again", copy_of=node.results[k]) for k in range(len(types))}
                    again = Origin(node.origin.scope, BACKWARD, labels, node.origin.module, again=True)
                    origin = node.origin if isinstance(node.op.lower, View) else again
                    new = Node(node.op, operands, node.attrs, types, node.regions, origin)
                    copies.update(zip(node.results, new.results, strict=True))
            return copies.get(v, v)

        def _stays(v: Value) -> bool:
            return _is_leaf(base(v)) or (base(v) in kept if isinstance(v.node.op.lower, View) else v in kept)

        def rewrite(node: Node, operands: tuple[Value, ...]) -> Sequence[Value]:
            rows = zip(node.operands, operands, strict=True)
            return node.with_operands(
                tuple([copy(old) if base(old) in chosen else new for old, new in rows])
            ).results

        return rewritten(self.graph, rewrite, self.readers)


def _computed(node: Node) -> list[Value]:
    return [u for u in node.operands if not _is_leaf(base(u))]


def _is_leaf(v: Value) -> bool:
    return isinstance(v.node.op.lower, Leaf) or is_free(v.node)
