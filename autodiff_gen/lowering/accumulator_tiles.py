"""Tiles of accumulators: the innermost loop that a reduction keeps moves into the loops that are reduced over.

    for c in 64:                           for c0 in 0, 16, ... 48:
        sum = 0                                sum[16] = 0
        for i in n:                ->          for i in n:
            sum += x[i, c]                         for c from c0 to c0 + 15: sum[c - c0] += x[i, c]
        y[c] = sum * f                         for c from c0 to c0 + 15: y[c] = sum[c - c0] * f

Memory is read in the order in which it is stored, what does not depend on c is loaded once for a tile, and the sums do
not wait for each other. Each sum still adds its terms in the same order: the result has the same bits. Compilers unroll
the inner loops and keep the accumulators in registers, if there are enough.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..ir.loop_axes import axes_before
from ..ir.node import Node, Value, base
from ..ir.op_kinds import Elementwise, Extent, Iota, Leaf, Reduce, View
from ..passes.costs import accumulator_tile
from .expense import is_work
from .loop_nest import LoopNest
from .loops import Body, Root, Step, Tile


def tile_accumulators(nest: LoopNest, registers: int) -> LoopNest:
    """The nest, every reduction tiled for which it pays, but those that are written out. registers: how many floats
    stay in registers through a loop."""
    if any(root.reduced for root in nest.roots.values()) and _tile_within(nest.top, nest, registers):
        nest.scratch = nest.find_scratch()
    return nest


def _tile_within(body: Body, nest: LoopNest, registers: int) -> bool:
    """Whether anything in `body` is tiled now."""
    found = False
    for item in list(body.items):
        if not isinstance(item, Body):
            continue
        chain = [item]
        while len(chain[-1].items) == 1 and isinstance(inner := chain[-1].items[0], Body):
            chain.append(inner)
        count = _accumulators(chain[-1], nest)
        tile = _tiled_loops(chain, registers // count) if count else None
        if tile is not None:
            _Rewrite(*tile).apply()
        found |= tile is not None or _tile_within(item, nest, registers)
    return found


def _tiled_loops(chain: list[Body], most: int) -> tuple[list[Body], int] | None:
    """The innermost loops that have `most` iterations together, or fewer, and 0; or the innermost one, and the size of
    its blocks."""
    loops, block = accumulator_tile([body.extent for body in chain], most)
    return (chain[-loops:], block) if loops else None


# Where it pays


def _accumulators(body: Body, nest: LoopNest) -> int:
    """The registers that one iteration of `body` takes where it is reductions, each alone in its loops, and steps
    between them; 0 where it is anything else."""
    count = 0
    runs: list[list[Root]] = [[]]
    for item in body.items:
        if isinstance(item, Step):
            if not _is_plain(item.root, nest):
                return 0
            if item.kind == "step":
                runs[-1].append(item.root)
            continue
        runs.append([])
        for step in item.steps():
            if step.root.home is not body or not _is_plain(step.root, nest):
                return 0
            if not isinstance(step.root.node.op.lower, Reduce):
                return 0
            if step.kind != "step":
                continue
            kept = _loaded_once(step.root, body, nest)
            if kept is None:
                return 0
            count += 1 + kept
    return count if count and _runs_are_independent(runs, nest) else 0


def _is_plain(root: Root, nest: LoopNest) -> bool:
    lower = root.node.op.lower
    if isinstance(lower, Reduce):
        return root.reduced > 0 and len(root.node.results) == 1 and root not in nest.written_out
    return isinstance(lower, Elementwise) and root.piece is None


def _loaded_once(root: Root, kept: Body, nest: LoopNest) -> int | None:
    """How many loads of a term change with the kept loop and not with the innermost reduced one: registers hold them.
    None where a term calls a function, or computes something that does not change with the innermost loop."""
    innermost = root.inner.axis
    params = set(nest.region.params)
    loads: set[Value] = set()
    pending = [(root.node.operands[0], nest.labels.operands[root.node])]
    while pending:
        v, axes = pending.pop()
        node, lower = v.node, v.node.op.lower
        stays = kept.axis in axes and innermost not in axes
        if v in params or node in nest.roots:
            if stays:
                loads.add(v)
        elif isinstance(lower, View):
            pending.append((node.operands[0], axes_before(node, axes)))
        elif isinstance(lower, Elementwise):
            if is_work(node) or stays:
                return None
            for operand in node.operands:
                mine = zip(operand.type.shape, axes[len(axes) - operand.ndim :], strict=True)
                pending.append((operand, tuple(None if d == 1 else a for d, a in mine)))
        elif not isinstance(lower, Iota | Extent | Leaf):
            return None
    return len(loads)


def _runs_are_independent(runs: list[list[Root]], nest: LoopNest) -> bool:
    """Whether steps between reductions read from each other only what is in memory anyway, and compute nothing
    expensive twice."""
    results = {base(v) for v in nest.region.results}
    seen: set[Node] = set()
    for run in runs:
        for root in run:
            (v,) = root.node.results
            read_elsewhere = any(root in other.needs and other not in run for other in nest.roots.values())
            if read_elsewhere and v not in results and v not in nest.scratch:
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
        self.tile = Tile(tuple(b.axis for b in loops if b.axis is not None), shape, self.block)

    def apply(self) -> None:
        at = self.outer.items.index(self.loops[0])
        made = list(self._distributed(self.inner.items, self.block or self.outer))
        if self.block is not None:
            self.block.items = made
            made = [self.block]
        self.outer.items[at : at + 1] = made

    def _distributed(self, items: list[Body | Step], parent: Body) -> Iterator[Body | Step]:
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
