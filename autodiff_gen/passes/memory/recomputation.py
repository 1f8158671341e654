"""Values that are recomputed after a step of an entry: the values alive at the step that may be recomputed, the nodes
that recompute them, and the graph with the copies."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence, Set
from dataclasses import replace
from functools import cached_property

from ...ir.graph import Graph
from ...ir.liveness import Liveness
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Leaf, View
from ...ir.origin import Label, is_after_loss
from ...ir.rewrite import rewritten
from ...ir.traits import compared_with_their_extremes, is_free
from ..context import Context

# A share of the forward values that the backward pass reads. For a smaller part no arena is measured: a limit of
# compile time.
SMALLEST_PART = 0.01


class Recomputation:
    """at: the step that needs most memory; steps: the steps that compute each node; read: the steps that read each
    stored value; idle: the values that are alive at the step, are not read by it, and may be recomputed."""

    def __init__(self, use: Liveness) -> None:
        self.graph, self.at, self.steps = use.graph, use.at, use.steps_of
        self.made: dict[tuple[frozenset[Value], bool], Graph] = {}
        self.stored = {*use.ranges}
        self.read: dict[Value, set[int]] = {v: set() for v in self.stored}
        for n, steps in self.steps.items():
            for v in {*map(base, n.operands)} & self.stored:
                self.read[v] |= steps

    @cached_property
    def idle(self) -> list[Value]:
        alive = [
            v
            for v in self.stored
            if max(self.steps[v.node]) < self.at < max(self.read[v], default=0)
            and self.at not in self.read[v]
        ]
        order = {n: k for k, n in enumerate(self.graph.nodes)}
        once = {v.node for v in compared_with_their_extremes(self.graph.nodes)}
        alive = [v for v in alive if all(_is_repeatable(n) and n not in once for n in self.nodes(v))]
        return sorted(alive, key=lambda v: (order[v.node], v.index))

    def _first_read(self, v: Value) -> int:
        """The first step after the peak that reads an idle value."""
        return min(step for step in self.read[v] if step > self.at)

    def _stays(self, u: Value, v: Value, chosen: Set[Value]) -> bool:
        """Whether a copy of v is computed from u, and not from a copy of u."""
        u = u.base
        if _is_leaf(u):
            return True
        if u not in self.stored or u in chosen:
            return False
        if u.type.bytes < v.type.bytes:
            return True
        return max(self.read[u], default=0) >= self._first_read(v)

    def nodes(self, v: Value) -> list[Node]:
        """The nodes that recompute an idle value, if no other value is recomputed."""
        found, pending = dict[Node, None](), [v]
        while pending:
            u = base(pending.pop())
            if u.node not in found and (u is v or not self._stays(u, v, {v})):
                found[u.node] = None
                pending += u.node.operands
        return list(found)

    def computed_again(self, chosen: frozenset[Value], apart: bool) -> Graph:
        """The graph in which the nodes after the step read copies of these values. apart: whether copies share no
        nodes, so that none waits for another."""
        if (chosen, apart) not in self.made:
            self.made[chosen, apart] = self._computed_again(chosen, apart)
        return self.made[chosen, apart]

    def _computed_again(self, chosen: frozenset[Value], apart: bool) -> Graph:
        after = {n for n, steps in self.steps.items() if min(steps) > self.at and is_after_loss(n.origin)}
        made: dict[Value | None, dict[Value, Value]] = defaultdict(dict)  # copies
        changed: dict[
            Value, Value | None
        ] = {}  # a value that is not stored -> the chosen value that it is computed from

        def source(u: Value) -> Value | None:
            """The chosen value that u is, or that u is computed from where u is not stored."""
            pending = [u]
            while pending:
                w = pending[-1]
                if w in changed:
                    pending.pop()
                elif w in chosen or w in self.stored or w.node in after or _is_leaf(w):
                    changed[w] = w if w in chosen else None
                else:
                    missing = [o for o in w.node.operands if o not in changed]
                    pending += missing
                    if not missing:
                        found = [changed[o] for o in w.node.operands]
                        changed[w] = next((f for f in found if f is not None), None)
            return changed[u]

        def copy(u: Value, v: Value, phase: str) -> Value:
            return copy_of(u, lambda w: not self._stays(w, v, chosen), made[v if apart else None], phase)

        def rewrite(node: Node, operands: tuple[Value, ...]) -> Sequence[Value]:
            new = []
            for old, given in zip(node.operands, operands, strict=True):
                v = source(old)
                new.append(given if v is None else copy(old, v, node.origin.phase))
            return node.with_operands(tuple(new)).results

        return rewritten(self.graph, rewrite, after)


def is_large_part(values: Iterable[Value], graph: Graph, context: Context) -> bool:
    """Whether these values are a large part of the forward values that the backward pass reads. If so, the arena is
    measured without them. Every part counts as large where all values of the graph together exceed the budget: a small
    part may then be enough to meet it."""
    if context.budget is not None:
        size = sum(
            r.type.bytes for n in graph.nodes if not isinstance(n.op.lower, Leaf | View) for r in n.results
        )
        if size > context.budget:
            return True
    late = [n for n in graph.nodes if is_after_loss(n.origin)]
    read = {
        v.base for n in late for v in n.operands if not is_after_loss(v.base.node.origin) and not _is_leaf(v)
    }
    return sum(v.type.bytes for v in values) >= SMALLEST_PART * sum(v.type.bytes for v in read)


def copy_of(v: Value, is_copied: Callable[[Value], bool], copies: dict[Value, Value], phase: str) -> Value:
    """A copy of v, recomputed from copies of the operands that `is_copied` selects and from the other operands
    themselves. copies: the known copies, to which new ones are added."""
    pending = [v]
    while pending:
        u = pending[-1]
        if u in copies or not is_copied(u):
            pending.pop()
            continue
        missing = [o for o in u.node.operands if o not in copies and is_copied(o)]
        pending += missing
        if not missing:
            new = _copied(u.node, tuple([copies.get(o, o) for o in u.node.operands]), phase)
            copies.update(zip(u.node.results, new.results, strict=True))
    return copies.get(v, v)


def _copied(node: Node, operands: tuple[Value, ...], phase: str) -> Node:
    """The node over other operands, with results that are labelled as copies of the node's results."""
    types = tuple([r.type for r in node.results])
    labels = {k: Label("again", copy_of=node.results[k]) for k in range(len(types))}
    again = replace(node.origin, phase=phase, labels=labels, recomputed=True, strip=None)
    origin = node.origin if isinstance(node.op.lower, View) else again
    return Node(node.op, operands, node.attrs, types, node.regions, origin)


def _is_repeatable(node: Node) -> bool:
    """Whether a node is no loop, and belongs to the forward pass or recomputes a node of the forward pass."""
    return not node.regions and (node.origin.recomputed or not is_after_loss(node.origin))


def _is_leaf(v: Value) -> bool:
    return isinstance(base(v).node.op.lower, Leaf) or is_free(base(v).node)
