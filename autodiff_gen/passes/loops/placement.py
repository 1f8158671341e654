"""Where the roots of a loop nest are computed: each root enters an open loop wherever its operands are ready."""

from __future__ import annotations

from ...ir.loop_axes import Axes, Labels, label, moving, through_views
from ...ir.node import Node, Region, Value
from ...ir.op_kinds import Assemble, Elementwise, Pick, Reduce, RowContraction, View
from ...ir.traits import is_expensive, is_sum, is_work
from ...ir.types import normalise_axes, planned_size
from ...ir.views import picked_axis
from .nesting import Body, Root, RootStep, roots_of
from .partial_sums import inner_loops, is_longer_outside


class Placement:
    """The roots of a fused region in loops. `promoted`: values that are roots though they need not be.
    in_order_of_sums: if a sum reads a promoted value, whether other values computed from the promoted value join the
    loops of the sum."""

    def __init__(self, region: Region, in_order_of_sums: bool) -> None:
        self.region, self.in_order_of_sums = region, in_order_of_sums
        self.nodes = region.nodes
        self.inside = {r for n in self.nodes for r in n.results if not isinstance(n.op.lower, View)}
        labels = label(self.nodes, self.inside)
        assert labels is not None, "fuse_elementwise only makes groups that can be labelled"
        self.labels: Labels = labels
        self.rank = {axis: i for i, axis in enumerate(self._axis_order())}
        self.promoted: set[Node] = set()

    # Axes

    def _axis_order(self) -> list[int]:
        """Loop axes, outermost first, in the order of the axes of the largest values. Axes of products by rows come
        before others."""
        every = [self.labels.of[n.results[0]] for n in self.nodes if isinstance(n.op.lower, RowContraction)]
        every += [*self.labels.operands.values(), *self.labels.of.values()]
        every += [axes for pieces in self.labels.pieces.values() for axes in pieces]
        order: list[int] = []
        for axes in sorted(dict.fromkeys(every), key=lambda a: -sum(x is not None for x in a)):
            for i, axis in enumerate(axes):
                if axis is not None and axis not in order:
                    later = [order.index(a) for a in axes[i + 1 :] if a in order]
                    order.insert(min(later, default=len(order)), axis)
        return order

    def axes_of(self, v: Value) -> tuple[int | None, ...]:
        """The labels of a value of the region, views included."""
        axes = through_views(v, self.labels)
        assert axes is not None
        return self.labels.resolved(axes)

    def _nest(self, axes: Axes) -> tuple[int, ...]:
        """The loops over these axes, outermost first."""
        return tuple(sorted(moving(axes), key=self.rank.__getitem__))

    def _root(self, node: Node) -> Root:
        outer = self._nest(self.labels.of[node.results[0]])
        if isinstance(node.op.lower, RowContraction):
            row = self.labels.of[node.results[0]][0]
            return Root(node, () if row is None else (row,))
        if isinstance(node.op.lower, Reduce):
            reduced = self.labels.operands[node]
            gone = normalise_axes(node.attrs["axes"], len(reduced))
            reduced_loops = self._nest(tuple(reduced[i] for i in gone))
            extents = [self.labels.extents[a] for a in reduced_loops]
            inner = inner_loops(extents) if is_sum(node) else 0
            apart = bool(inner and outer) and self.rank[reduced_loops[-1]] < self.rank[outer[-1]]
            if apart and is_longer_outside(extents):
                reduced_loops = reduced_loops[::-1]
            return Root(node, (*outer, *reduced_loops), len(reduced_loops), inner_loops=inner)
        return Root(node, outer)

    # Placement

    def place(self) -> None:
        """Place all roots anew."""
        results = {v.base.node for v in self.region.results}
        self.top = Body()
        self.summed = self._nests_of_summed(results)
        self.roots: dict[Node, Root] = {}
        self.pieces: list[Root] = []
        self._reach: dict[Node, dict[Root, set[int]]] = {}
        for node in self.nodes:
            if isinstance(node.op.lower, View):
                continue
            if isinstance(node.op.lower, Assemble):
                self._place_pieces(node)
            elif (
                node in results
                or node in self.promoted
                or isinstance(node.op.lower, (Reduce, RowContraction))
            ):
                root = self.roots[node] = self._root(node)
                root.nest = self.summed.get(node, root.nest)
                root.needs = self._needs(node, root.reads)
                self._insert(root)
                self._reach[node] = {root: set()}
            else:
                self._reach[node] = self._needs(node, node.operands)

    def _nests_of_summed(self, results: set[Node]) -> dict[Node, tuple[int, ...]]:
        """Elementwise results that a reduction reads in another order than the order in memory, with the loops of the
        reduction. The results join these loops: they are stored while they are added up."""
        found: dict[Node, tuple[int, ...]] = {}
        for node in self.nodes:
            pending = [v.base.node for v in node.operands] if isinstance(node.op.lower, Reduce) else []
            nest, seen = self._root(node).nest if pending else (), set[Node]()
            while pending:
                n = pending.pop()
                if n in seen or not isinstance(n.op.lower, Elementwise) or n.results[0] not in self.inside:
                    continue
                seen.add(n)
                own = self._nest(self.labels.of[n.results[0]])
                if n not in results:
                    pending += [v.base.node for v in n.operands]
                elif own != nest and {*own} == {*nest} and not self._computes_work(n, results):
                    found.setdefault(n, nest)
                    pending += [v.base.node for v in n.operands]  # results that n is computed from
        return {**found, **self._nests_of_promoted(results)} if self.in_order_of_sums else found

    def _nests_of_promoted(self, results: set[Node]) -> dict[Node, tuple[int, ...]]:
        """Elementwise nodes computed from a promoted value that a sum over the same axes reads too, with the loops of
        the sum."""
        read: dict[Node, set[Node]] = {}  # node -> the promoted nodes that it is computed from
        sums: dict[Node, tuple[int, ...]] = {}
        for node in self.nodes:
            sources = {v.base.node for v in node.operands if v.base in self.inside} - results
            read[node] = {p for n in sources for p in read[n]}
            if isinstance(node.op.lower, Reduce):
                nest = self._root(node).nest
                sums |= {p: nest for p in read[node] if {*self._own_nest(p)} == {*nest}}
                read[node] = set()
            elif node in self.promoted:
                read[node].add(node)
        return {
            n: sums[p]
            for n, promoted in read.items()
            for p in sums
            if p in promoted and isinstance(n.op.lower, Elementwise) and {*self._own_nest(n)} == {*sums[p]}
        }

    def _own_nest(self, node: Node) -> tuple[int, ...]:
        return self._nest(self.labels.of[node.results[0]])

    def _computes_work(self, node: Node, results: set[Node]) -> bool:
        """Whether the expression of a result has an operation that costs more than a load, such as a random number."""
        pending, seen = [node], {node}
        while pending:
            n = pending.pop()
            if is_work(n):
                return True
            sources = {v.base.node for v in n.operands if v.base in self.inside}
            sources = {s for s in sources - results - seen if isinstance(s.op.lower, Elementwise)}
            seen |= sources
            pending += sources
        return False

    def _place_pieces(self, node: Node) -> None:
        """One root for each window of an assembled value, after a root for the fill, where there are gaps."""
        (y,) = node.results
        pieces = self.labels.pieces[node]
        partial = moving(self.labels.of[y]) - set(pieces[0])
        fill: Root | None = None
        if sum(planned_size(v.type.shape) for v in node.operands) < planned_size(y.type.shape):
            fill = Root(node, self._nest(self.labels.of[y]), piece=-1)
            self.pieces.append(fill)
            self._insert(fill)
        for k, axes in enumerate(pieces):
            root = Root(node, self._nest(axes), piece=k)
            root.needs = self._needs(node, root.reads)
            if fill is not None:
                root.needs[fill] = partial
            self.pieces.append(root)
            self._insert(root)

    def _needs(self, node: Node, reads: tuple[Value, ...]) -> dict[Root, set[int]]:
        """The roots that `node` reads with these operands, directly or through nodes written into its expression, and
        the axes that must be complete.
        """
        out: dict[Root, set[int]] = {}
        for k, v in enumerate(reads):
            source = v.base
            if source not in self.inside:
                continue
            for root, complete in self._reach[source.node].items():
                out.setdefault(root, set()).update(complete)
                if root.node is source.node:
                    out[root].update(root.nest[len(root.nest) - root.reduced :])
                if isinstance(node.op.lower, Pick) and k == 0:
                    picked = self.labels.operands[node][picked_axis(node)]
                    out[root].update(() if picked is None else (picked,))
        return out

    def _insert(self, root: Root) -> None:
        body = self.top
        outer = len(root.nest) - root.reduced
        for axis in root.nest[:outer]:
            body = self._enter(body, axis, root)
        root.home = body
        if isinstance(root.node.op.lower, Reduce):
            if root.reduced:
                loop = self._enter(body, root.nest[outer], root)
                body.items.insert(body.items.index(loop), RootStep(root, "begin"))
                body.items.insert(body.items.index(loop) + 1, RootStep(root, "finish"))
                body = loop
                for k, axis in enumerate(root.nest[outer + 1 :], start=1):
                    around, body = body, self._enter(body, axis, root)
                    if k == root.reduced - root.inner_loops:
                        around.items.insert(around.items.index(body), RootStep(root, "begin part"))
                        around.items.insert(around.items.index(body) + 1, RootStep(root, "add part"))
                body.items.append(RootStep(root, "step"))
            else:
                body.items += [RootStep(root, "begin"), RootStep(root, "step"), RootStep(root, "finish")]
        else:
            body.items.insert(self._first_place(root, body), RootStep(root, "step"))
        root.inner = body

    def _first_place(self, root: Root, body: Body) -> int:
        """Where in `body` a step is inserted. A promoted value comes as early as possible, so that sums that read it
        and sums that do not can share their loops."""
        if root.node not in self.promoted:
            return len(body.items)
        reads = [k for k, item in enumerate(body.items) if not root.needs.keys().isdisjoint(roots_of(item))]
        return reads[-1] + 1 if reads else 0

    def _enter(self, body: Body, axis: int, root: Root) -> Body:
        """The last loop over `axis` in `body` that the root may join, or a new one at the end."""
        for item in reversed(body.items):
            within = roots_of(item)
            needed = within & root.needs.keys()
            if (
                isinstance(item, Body)
                and item.axis == axis
                and not any(axis in root.needs[r] for r in needed)
            ):
                return item
            if needed:
                break
        loop = Body(body, axis, self.labels.extents[axis])
        body.items.append(loop)
        return loop

    # Nodes written into the expressions of roots

    def is_inlined(self, v: Value) -> bool:
        """Whether a value of the region is computed where it is read."""
        return v in self.inside and v.node not in self.roots

    def inlined(self, root: Root) -> list[tuple[Node, bool]]:
        """The expensive elementwise nodes that the expression of a root computes, and whether a pick chooses
        the element.
        """
        out: list[tuple[Node, bool]] = []
        picks = isinstance(root.node.op.lower, Pick)
        pending = [(v, picks and k == 0) for k, v in enumerate(root.node.operands) if root.piece in (None, k)]
        seen = set()
        while pending:
            v, through_pick = pending.pop()
            source = v.base.node
            if v.base not in self.inside or source in self.roots or (source, through_pick) in seen:
                continue
            seen.add((source, through_pick))
            if is_expensive(source):
                out.append((source, through_pick))
            for k, o in enumerate(source.operands):
                pending.append((o, through_pick or (isinstance(source.op.lower, Pick) and k == 0)))
        return out
