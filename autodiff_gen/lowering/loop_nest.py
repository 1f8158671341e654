"""From a fused node to a loop nest: which loops there are, what is computed in each, and what must be kept in
memory.

Only *roots* have a place of their own: results, reductions, rows of products, and expensive values that
several loops want. All else is written into the expressions of the roots (lowering/expressions.py). Roots enter an open
loop wherever their operands are ready.
"""

from __future__ import annotations

from ..ir.loop_axes import Axes, Labels, label, through_views
from ..ir.node import Node, Region, Value
from ..ir.op_kinds import Assemble, Elementwise, Pick, Reduce, RowContraction, View
from ..ir.types import normalise_axes, planned_size
from ..ir.views import picked_axis
from .expense import is_expensive, is_work
from .loops import Body, Root, Scratch, Step
from .unroll_reductions import written_out


class LoopNest:
    """The loop nest of one fused region."""

    def __init__(self, region: Region) -> None:
        self.region = region
        self.nodes = region.nodes
        self.inside = {r for n in self.nodes for r in n.results if not isinstance(n.op.lower, View)}
        labels = label(self.nodes, self.inside)
        assert labels is not None, "fuse_elementwise only makes groups that can be labelled"
        self.labels: Labels = labels
        self.rank = {axis: i for i, axis in enumerate(self._axis_order())}
        promoted: set[Node] = set()
        while True:
            self._place(promoted)
            again = self._computed_twice(promoted) or self._computed_in_vain(promoted)
            more = {again} if again is not None else self._computed_per_element()
            if not more:
                break
            promoted |= more
        self.written_out = written_out(self.roots, self.inside)
        self.scratch = self.find_scratch()

    # Axes

    def _axis_order(self) -> list[int]:
        """Loop axes, outermost first: as the axes of the largest values follow each other."""
        every = [*self.labels.operands.values(), *self.labels.of.values()]
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
        return tuple(sorted({a for a in axes if a is not None}, key=self.rank.__getitem__))

    def _root(self, node: Node) -> Root:
        moving = self._nest(self.labels.of[node.results[0]])
        if isinstance(node.op.lower, RowContraction):
            row = self.labels.of[node.results[0]][0]
            return Root(node, () if row is None else (row,))
        if isinstance(node.op.lower, Reduce):
            reduced = self.labels.operands[node]
            gone = normalise_axes(node.attrs["axes"], len(reduced))
            over = sorted(
                {reduced[i] for i in gone if reduced[i] is not None}, key=lambda a: self.rank[a or 0]
            )
            return Root(node, (*moving, *(a for a in over if a is not None)), len(over))
        return Root(node, moving)

    # Placement

    def _place(self, promoted: set[Node]) -> None:
        results = {v.base.node for v in self.region.results}
        self.top = Body()
        self.roots: dict[Node, Root] = {}
        self.pieces: list[Root] = []
        self._reach: dict[Node, dict[Root, set[int]]] = {}
        for node in self.nodes:
            if isinstance(node.op.lower, View):
                continue
            if isinstance(node.op.lower, Assemble):
                self._place_pieces(node)
            elif node in results or node in promoted or isinstance(node.op.lower, Reduce | RowContraction):
                root = self.roots[node] = self._root(node)
                root.needs = self._needs(node, root.reads)
                self._insert(root)
                self._reach[node] = {root: set()}
            else:
                self._reach[node] = self._needs(node, node.operands)

    def _place_pieces(self, node: Node) -> None:
        """One root for each window of what is assembled, after one for the fill, where there are gaps."""
        (y,) = node.results
        pieces = self.labels.pieces[node]
        partial = {a for a in self.labels.of[y] if a is not None} - set(pieces[0])
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
        """The roots that `node` reads with these operands, itself or through what is written into its
        expression, and the axes that must be complete.
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
                body.items.insert(body.items.index(loop), Step(root, "begin"))
                body.items.insert(body.items.index(loop) + 1, Step(root, "finish"))
                body = loop
                for axis in root.nest[outer + 1 :]:
                    body = self._enter(body, axis, root)
                body.items.append(Step(root, "step"))
            else:
                body.items += [Step(root, "begin"), Step(root, "step"), Step(root, "finish")]
        else:
            body.items.append(Step(root, "step"))
        root.inner = body

    def _enter(self, body: Body, axis: int, root: Root) -> Body:
        """The last loop over `axis` in `body` that the root may join, or a new one at the end."""
        for item in reversed(body.items):
            within = {s.root for s in (item.steps() if isinstance(item, Body) else [item])}
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

    # What must be kept

    def _computed_twice(self, promoted: set[Node]) -> Node | None:
        """An expensive value that would be computed in two different places, first in order; None when there
        is none.
        """
        places: dict[Node, set[Body]] = {}
        picked: dict[Node, int] = {}
        for root in (*self.roots.values(), *self.pieces):
            for node, through_pick in self.inlined(root):
                moving = {a for a in self.labels.of[node.results[0]] if a is not None}
                at = root.inner
                while at.parent is not None and at.axis not in moving:
                    at = at.parent
                places.setdefault(node, set()).add(at)
                picked[node] = max(picked.get(node, 0), int(through_pick))
        for node in self.nodes:
            if len(places.get(node, ())) + picked.get(node, 0) > 1 and node not in promoted:
                return node
        return None

    def _computed_per_element(self) -> set[Node]:
        """Values of few axes that hold something expensive and would be computed in each iteration of an innermost
        loop, though they do not change along a loop around it: a scale per channel, for every sample anew. The largest
        such expressions."""
        holds: dict[Node, bool] = {}
        for node in self.nodes:
            below = (v.base.node for v in node.operands if v.base in self.inside)
            holds[node] = is_work(node) or any(holds[n] for n in below if n not in self.roots)
        found: set[Node] = set()
        for root in (*self.roots.values(), *self.pieces):
            around = {b.axis for b in root.inner.path[1:]}
            pending, seen = [root.node], {root.node}
            while pending:
                node = pending.pop()
                read = root.reads if node is root.node else node.operands
                for v in read if not isinstance(node.op.lower, Pick) else ():
                    source = v.base.node
                    if v.base not in self.inside or source in self.roots or source in seen:
                        continue
                    seen.add(source)
                    moving = {a for a in self.labels.of[source.results[0]] if a is not None}
                    innermost = root.inner.axis in moving
                    if (
                        innermost
                        and around - moving
                        and holds[source]
                        and isinstance(source.op.lower, Elementwise)
                    ):
                        found.add(source)
                    else:
                        pending.append(source)
        return found

    def _computed_in_vain(self, promoted: set[Node]) -> Node | None:
        """An expression of two or more operations that a reduction would compute once more for every iteration of a
        loop on which it does not depend, first in order; None when there is none."""
        for root in self.roots.values():
            if not root.reduced:
                continue
            axes = [body.axis for body in root.inner.path if body.parent is not None]
            pending = [v.base.node for v in root.node.operands]
            while pending:
                node = pending.pop()
                if node in self.roots or node in promoted or node.results[0] not in self.labels.of:
                    continue
                inner = [o.base.node for o in node.operands]
                pending += inner
                moving = {a for a in self.labels.of[node.results[0]] if a is not None}
                first = next((k for k, a in enumerate(axes) if a not in moving), len(axes))
                in_vain = any(a in moving for a in axes[first:])
                computed = any(
                    isinstance(n.op.lower, Elementwise) and n.results[0] in self.inside for n in inner
                )
                if in_vain and computed and isinstance(node.op.lower, Elementwise):
                    return node
        return None

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

    def find_scratch(self) -> dict[Value, Scratch]:
        """Memory for roots that are read outside the body where their value is a local. Results have memory
        anyway.
        """
        results = {v.base for v in self.region.results}
        out: dict[Value, Scratch] = {}
        for root in self.roots.values():
            readers = [r for r in (*self.roots.values(), *self.pieces) if root in r.needs]
            common = list(root.home.path)
            far = root.in_memory_only
            for reader in readers:
                if not root.home.encloses(reader.inner):
                    far = True
                shared = reader.inner.path
                common = [b for b in common if b in shared]
            if not far:
                continue
            within = {b.axis for b in common}
            for v in root.node.results:
                if v not in results:
                    kept = [
                        (a, d)
                        for a, d in zip(self.labels.of[v], v.type.shape, strict=True)
                        if a is not None and a not in within
                    ]
                    out[v] = Scratch(v, tuple(a for a, _ in kept), tuple(d for _, d in kept), v.type.dtype)
        return out
