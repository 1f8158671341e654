"""Tiles of accumulators: the innermost loop that a reduction keeps moves into the loops that are reduced over.

    for c in 64:                           for c0 in 0, 16, ... 48:
        sum = 0                                sum[16] = 0
        for i in n:                ->          for i in n:
            sum += x[i, c]                         for c from c0 to c0 + 15: sum[c - c0] += x[i, c]
        y[c] = sum * f                         for c from c0 to c0 + 15: y[c] = sum[c - c0] * f

Memory is read in the order in which it is stored, values that do not depend on c are loaded once for a tile, and the
sums do not wait for each other. Each sum still adds its terms in the same order: the result has the same bits.
Compilers unroll the inner loops and keep the accumulators in registers, if there are enough.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from ...ir.loop_axes import Axes, axes_of_operands, moving
from ...ir.node import Node, Value, base
from ...ir.op_kinds import Elementwise, Reduce
from ...ir.traits import is_work
from ...ir.types import planned
from ..costs import accumulator_tile, has_wide_vectors, terms_are_repeated, uses_column_blocks
from .loop_nest import LoopNest
from .nesting import AccumulatorTile, Body, Root, RootStep, chains


def tile_accumulators(nest: LoopNest) -> LoopNest:
    """The nest, in which every reduction is tiled for which that pays, except reductions that are written out."""
    if any(root.reduced for root in nest.roots.values()):
        while computed := set(_computed_for_tiles(nest.top, nest)):
            nest.promote(computed)
        if _tile_within(nest.top, nest):
            nest.scratch = nest.find_scratch()
    return nest


def _computed_for_tiles(body: Body, nest: LoopNest) -> Iterator[Node]:
    """Nodes that have one value for all terms of a tiled sum: the nest computes and stores them before the sum."""
    for chain in chains(body):
        found = _accumulators(chain[-1], nest)
        if found is None or not _tiled_loops(chain, nest, found):
            yield from _computed_for_tiles(chain[0], nest)
        else:
            yield from found.computed


def _tile_within(body: Body, nest: LoopNest) -> bool:
    """Tiles the loops in `body` for which that pays; returns whether there are any."""
    found = False
    for chain in chains(body):
        sums = _accumulators(chain[-1], nest)
        tile = _tiled_loops(chain, nest, sums) if sums else None
        if sums is not None and tile is not None:
            _Rewrite(*tile).apply(sums, nest)
        found |= tile is not None or _tile_within(chain[0], nest)
    return found


def _tiled_loops(chain: list[Body], nest: LoopNest, sums: _Sums) -> tuple[list[Body], int] | None:
    """The innermost loops whose iterations fit the registers together, and 0; or the innermost one, and the size of its
    blocks."""
    most = nest.cost.registers // sums.arrays
    loops, block = accumulator_tile(nest.cost, [body.extent for body in chain], most)
    return (chain[-loops:], block) if loops else None


# Where it pays


@dataclass(frozen=True)
class _Sums:
    """The reductions in a loop. arrays: the most accumulators and rows that a loop over terms needs; rows: the rows
    that the terms read; computed: nodes that one iteration computes for all of its terms; stores: whether terms are
    stored."""

    arrays: int
    rows: set[Value]
    computed: set[Node]
    stores: bool


def _accumulators(body: Body, nest: LoopNest) -> _Sums | None:
    """The reductions of `body`. None unless `body` has only loops of reductions, and steps between them."""
    arrays, stores = 0, False
    rows: set[Value] = set()
    computed: set[Node] = set()
    runs: list[list[Root]] = [[]]
    for item in body.items:
        if isinstance(item, RootStep):
            if not _is_plain(item.root, nest):
                return None
            if item.kind == "step":
                runs[-1].append(item.root)
            continue
        runs.append([])
        count = 0
        loads: set[Value] = set()
        for step in item.steps():
            if not _is_plain(step.root, nest):
                return None
            if step.root.node in nest.summed:
                stores = True
                continue
            if step.root.home is not body or not isinstance(step.root.node.op.lower, Reduce):
                return None
            if step.kind == "step":
                count += 1
                if not _terms_fit(step.root, body, nest, loads, computed):
                    return None
        arrays = max(arrays, count + len(loads))
        rows |= loads
    if not arrays or not _runs_are_independent(runs, body, nest):
        return None
    return _Sums(arrays, rows, computed, stores)


def _is_plain(root: Root, nest: LoopNest) -> bool:
    lower = root.node.op.lower
    if isinstance(lower, Reduce):
        return root.reduced > 0 and len(root.node.results) == 1 and root not in nest.written_out
    return isinstance(lower, Elementwise) and root.piece is None


def _terms_fit(root: Root, kept: Body, nest: LoopNest, loads: set[Value], computed: set[Node]) -> bool:
    """Whether the sum of `root` may have a tile of accumulators along the loop `kept`. Adds to `loads` the values that
    change with the kept loop and not with the innermost reduced loop: registers hold them. Adds to `computed` the nodes
    that must be stored for that. A value that changes with another loop too cannot be stored: each term computes it
    again. False where that does not pay or a term calls a function. Also False where memory is not read row by row, if
    the target has wide vectors or a term has an operation that does not change with the innermost reduced loop."""
    innermost, is_row = root.inner.axis, _is_row(kept, root, nest)
    if not is_row and has_wide_vectors(nest.cost):
        return False
    params = set(nest.region.params)
    term, again = 0, 0  # operations and loads of a term; operations that others repeat
    pending = [(root.node.operands[0], nest.labels.operands[root.node])]
    seen: set[tuple[Value, Axes]] = set()
    while pending:
        v, axes = pending.pop()
        if (v, axes) in seen:
            continue
        seen.add((v, axes))
        node, stays = v.node, kept.axis in axes and innermost not in axes
        if v in params or node in nest.roots:
            term += 1
            if stays:
                loads.add(v)
            continue
        operands, is_operation = axes_of_operands(node, axes), isinstance(node.op.lower, Elementwise)
        if operands is None:
            return False
        if is_operation and stays and moving(axes) == {kept.axis} and is_row:
            loads.add(v)
            computed.add(node)
            continue
        if is_operation and (is_work(node) or (stays and not is_row)):
            return False
        term += is_operation
        again += is_operation and stays
        pending += operands
    return terms_are_repeated(nest.cost, term, again)


def _is_row(kept: Body, root: Root, nest: LoopNest) -> bool:
    """Whether memory is read row by row if the kept loop becomes the innermost loop: its axis comes after all reduced
    axes."""
    reduced = root.nest[len(root.nest) - root.reduced :]
    return kept.axis is not None and all(nest.rank[a] < nest.rank[kept.axis] for a in reduced)


def _runs_are_independent(runs: list[list[Root]], kept: Body, nest: LoopNest) -> bool:
    """Whether steps between reductions compute nothing expensive twice, and read from each other only values that are
    in memory anyway, or one element of a row for many terms."""
    results = {base(v) for v in nest.region.results}
    rows = all(_is_row(kept, r, nest) for r in nest.roots.values() if r.reduced and kept.encloses(r.inner))
    seen: set[Node] = set()
    for run in runs:
        for root in run:
            (v,) = root.node.results
            read_elsewhere = any(root in other.needs and other not in run for other in nest.roots.values())
            if read_elsewhere and v not in results and v not in nest.scratch and not rows:
                return False
        expensive = {node for root in run for node, _ in nest.inlined(root)}
        if expensive & seen:
            return False
        seen |= expensive
    return True


# Rewriting


class _Rewrite:
    """Moves `loops` inwards, in blocks of `block` elements where that is not 0."""

    def __init__(self, loops: list[Body], block: int) -> None:
        self.loops, self.size = loops, block
        first, self.inner = loops[0], loops[-1]
        assert first.parent is not None
        self.outer = first.parent
        self.block: Body | None = None
        if block:
            self.block = Body(self.outer, None, self.inner.extent, block=block)
        shape = (block,) if block else tuple(b.extent for b in loops if isinstance(b.extent, int))
        self.tile = AccumulatorTile(tuple(b.axis for b in loops if b.axis is not None), shape, self.block)

    def apply(self, sums: _Sums, nest: LoopNest) -> None:
        at = self.outer.items.index(self.loops[0])
        made = list(self._distributed(self.inner.items, self.block or self.outer))
        if sums.stores and sums.rows and len(self.loops) == 1:
            self._keep_rows(made, sums, nest)
        if self.block is not None:
            self.block.items = made
            made = [self.block]
        self.outer.items[at : at + 1] = made

    def _keep_rows(self, made: list[Body | RootStep], sums: _Sums, nest: LoopNest) -> None:
        """Loads the rows that the terms read into local arrays, as for a tile of rows, where terms are stored: a
        compiler must assume that a store changes the rows."""
        (loop,) = self.loops
        stored = ((k, s.root) for k, item in enumerate(made) if isinstance(item, Body) for s in item.steps())
        at, root = next((k, root) for k, root in stored if root.node in nest.summed)
        parent = self.block or self.outer
        around = planned(tuple(b.extent for b in root.inner.path[parent.depth + 1 : -1]))
        (extent,) = planned((loop.extent,))
        if uses_column_blocks(nest.cost, len(sums.rows), math.prod(around), extent, self.size or extent):
            nest.row_loops[root.inner] = Body(parent, loop.axis, self.size or extent, of=self.block)
            made.insert(at, RootStep(root, "load rows"))

    def _distributed(self, items: list[Body | RootStep], parent: Body) -> Iterator[Body | RootStep]:
        """The items with the loops around every run of steps."""
        run: Body | None = None
        for item in items:
            if isinstance(item, Body):
                run = None
                loop = Body(parent, item.axis, item.extent)
                loop.items = list(self._distributed(item.items, loop))
                yield loop
            elif item.kind == "begin":
                item.root.home, item.root.tile = parent, self.tile
                yield item
            elif item.kind == "begin part":
                yield item
            else:
                if run is None:
                    outermost, run = self._loops_in(parent)
                    yield outermost
                run.items.append(item)
                if item.kind == "step":
                    item.root.inner = run
                if not isinstance(item.root.node.op.lower, Reduce):
                    item.root.home = run

    def _loops_in(self, parent: Body) -> tuple[Body, Body]:
        """New loops in `parent`, the outermost and the innermost."""
        made: list[Body] = []
        for loop in self.loops:
            inner = Body(made[-1] if made else parent, loop.axis, self.size or loop.extent, of=self.block)
            if made:
                made[-1].items.append(inner)
            made.append(inner)
        return made[0], made[-1]
