"""From a fused node to a loop nest: the loops, the values that each loop computes, and the values that must be kept in
memory.

Only *roots* have statements in the nest (placement.py): results, reductions, rows of products, expensive values that
several loops want, and values that are compared with their extremes. All else is written into the expressions of the
roots (expressions.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from ...ir.loop_axes import moving
from ...ir.node import Node, Region, Value
from ...ir.op_kinds import Elementwise, Pick
from ...ir.traits import compared_with_their_extremes, is_work
from ...ir.types import planned, planned_size
from ...targets.cost_table import CostTable
from ..costs import is_computed_once
from .nesting import Body, Root, Scratch
from .placement import Placement
from .unroll_reductions import written_out


class LoopNest(Placement):
    """The loop nest of one fused region. `row_loops`: for each innermost loop of a tile of rows, the loop that loads
    the tile's columns of the rows."""

    def __init__(self, region: Region, cost: CostTable, in_order_of_sums: bool = False) -> None:
        super().__init__(region, in_order_of_sums)
        self.cost = cost
        self.row_loops: dict[Body, Body] = {}
        once = {v.node for v in compared_with_their_extremes(self.nodes)}
        self.promote([n for n in self.nodes if n in once])

    def promote(self, nodes: Collection[Node]) -> None:
        """Place all roots: `nodes`, the nodes that must be roots, and the nodes that loops would otherwise compute too
        often."""
        self.promoted |= set(nodes)
        while True:
            self.place()
            again = self._computed_twice() or self._computed_in_vain()
            more = {again} if again is not None else self._computed_per_element()
            if not more:
                break
            self.promoted |= more
        self.written_out = written_out(self.roots, self.inside)
        self.scratch = self.find_scratch()

    def _computed_twice(self) -> Node | None:
        """An expensive value that would be computed in two different places, first in order; None when there
        is none.
        """
        places: dict[Node, set[Body]] = {}
        picked: dict[Node, int] = {}
        for root in (*self.roots.values(), *self.pieces):
            for node, through_pick in self.inlined(root):
                at = root.inner.innermost_of(moving(self.labels.of[node.results[0]]))
                places.setdefault(node, set()).add(at)
                picked[node] = max(picked.get(node, 0), int(through_pick))
        for node in self.nodes:
            if len(places.get(node, ())) + picked.get(node, 0) > 1 and node not in self.promoted:
                return node
        return None

    def _computed_per_element(self) -> set[Node]:
        """Values of few axes that a loop would compute in each iteration, though they do not change along a loop around
        it: a scale per channel, once more for every sample. Only the largest expressions that cost less to store."""
        found: set[Node] = set()
        for root in (*self.roots.values(), *self.pieces):
            pending, seen = [root.node], {root.node}
            while pending:
                node = pending.pop()
                read = root.reads if node is root.node else node.operands
                for v in read if not isinstance(node.op.lower, Pick) else ():
                    source = v.base.node
                    if v.base not in self.inside or source in self.roots or source in seen:
                        continue
                    seen.add(source)
                    own = moving(self.labels.of[source.results[0]])
                    around = {b.axis for b in root.inner.innermost_of(own).path[1:] if b.axis is not None}
                    if (
                        around - own
                        and isinstance(source.op.lower, Elementwise)
                        and self._is_worth_storing(source, around, own)
                    ):
                        found.add(source)
                    else:
                        pending.append(source)
        return found

    def _is_worth_storing(self, node: Node, around: set[int], own: set[int]) -> bool:
        """Whether an elementwise value over the axes `own` is stored, rather than computed in loops over `around`."""
        operations, loads, pending = 0, set[Value](), {node}
        work = False
        while pending:
            n = pending.pop()
            operations += 1
            work |= is_work(n)
            for v in n.operands:
                source = v.base
                if isinstance(source.node.op.lower, Elementwise) and self.is_inlined(source):
                    pending.add(source.node)
                elif any(d != 1 for d in v.type.shape):
                    loads.add(source)
        extents = {a: planned((self.labels.extents[a],))[0] for a in around}
        iterations = math.prod(extents.values())
        elements = math.prod(extents[a] for a in own)
        return work or is_computed_once(self.cost, operations, len(loads), iterations, elements)

    def _computed_in_vain(self) -> Node | None:
        """An expression of two or more operations that a reduction would compute once more for every iteration of a
        loop on which it does not depend, first in order; None when there is none."""
        for root in self.roots.values():
            if not root.reduced:
                continue
            axes = [body.axis for body in root.inner.path if body.parent is not None]
            pending, seen = [v.base.node for v in root.node.operands], set[Node]()
            while pending:
                node = pending.pop()
                known = node in seen or node in self.roots or node in self.promoted
                if known or node.results[0] not in self.labels.of:
                    continue
                seen.add(node)
                inner = [o.base.node for o in node.operands]
                pending += inner
                own = moving(self.labels.of[node.results[0]])
                first = next((k for k, a in enumerate(axes) if a not in own), len(axes))
                in_vain = any(a in own for a in axes[first:])
                computed = any(
                    isinstance(n.op.lower, Elementwise) and n.results[0] in self.inside for n in inner
                )
                if in_vain and computed and isinstance(node.op.lower, Elementwise):
                    return node
        return None

    def block_of(self, v: Value) -> tuple[int, int] | None:
        """The rows and columns of a product that are computed at a time; None where it is computed row by row."""
        scratch = self.scratch.get(v)
        if scratch is None or not scratch.blocks:
            return None
        rows, columns = planned(scratch.shape)
        return rows, columns

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
            for v in root.node.results:
                if v not in results:
                    out[v] = self._scratch_of(v, root, common)
        return out

    def _scratch_of(self, v: Value, root: Root, common: Sequence[Body]) -> Scratch:
        """Memory for the elements that one iteration of the loops `common` to the root and its readers computes."""
        within = {b.axis for b in common}
        path = root.home.path if root.node in self.summed else ()
        blocks = {b.axis: b.of for b in path if b.of is not None and b.of in common}
        kept = [
            (a, blocks[a].block if a in blocks else d, blocks.get(a))
            for a, d in zip(self.labels.of[v], v.type.shape, strict=True)
            if a is not None and a not in within
        ]
        axes, shape, over = zip(*kept, strict=True) if kept else ((), (), ())
        return Scratch(v, axes, shape, v.type.dtype, over if any(over) else ())

    @property
    def scratch_bytes(self) -> int:
        """The memory that the nest needs in addition while it runs."""
        return sum(planned_size(s.shape) * s.dtype.size for s in self.scratch.values())
