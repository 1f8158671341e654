"""Tiles of rows: values that change only with the innermost loop stay in registers while the loops around it run.

    for i in n:                                    for c0 in 0, 4, ... 60:
        for c in 64:                                   s[4] = scale[c0], ... scale[c0 + 3]
            y[i, c] = x[i, c] * scale[c]     ->        for i in n:
                                                           for c in c0, ... c0 + 3: y[i, c] = x[i, c] * s[c - c0]

Compilers cannot do it: they must assume that a store to y changes an element of scale. Values computed only from such
values also qualify.
"""

from __future__ import annotations

import itertools
import math

from ...ir.loop_axes import Axes, axes_of_operands, moving
from ...ir.node import Value
from ...ir.op_kinds import Elementwise
from ...ir.traits import is_work
from ...ir.types import planned
from ..costs import columns_of_a_tile, rows_are_read_by_blocks, uses_column_blocks
from .loop_nest import LoopNest
from .nesting import Body, Root, RootStep, chains


def tile_rows(nest: LoopNest) -> LoopNest:
    """The nest, with tiles for all elementwise loops for which they pay."""
    if _tile_within(nest.top, nest):
        nest.scratch = nest.find_scratch()
    return nest


def _tile_within(body: Body, nest: LoopNest) -> bool:
    """Tiles the loops in `body` for which that pays; returns whether there are any."""
    found = False
    for chain in chains(body):
        tile = _tile_of(chain, nest)
        if tile is None:
            found |= _tile_within(chain[-1], nest)
        else:
            _rewrite(chain, tile, nest)
            found = True
    return found


def _tile_of(chain: list[Body], nest: LoopNest) -> int | None:
    """How many columns a tile has; None where there is nothing to keep, or it does not pay."""
    *around, inner = chain
    rows = _rows(inner, nest)
    tiled = inner.of is not None or inner in nest.row_loops
    if tiled or not around or not rows or not isinstance(inner.extent, int):
        return None
    if rows_are_read_by_blocks(nest.cost, len(rows), inner.extent):
        return None
    most = nest.cost.registers // len(rows)
    columns = columns_of_a_tile(nest.cost, inner.extent, most)
    iterations = math.prod(planned(tuple(b.extent for b in around)))
    if not columns or not uses_column_blocks(nest.cost, len(rows), iterations, inner.extent, columns):
        return None
    return columns


def _rows(inner: Body, nest: LoopNest) -> set[Value]:
    """The values that the statements of a loop read and that change only with this loop. Empty where a statement is not
    elementwise, or calls a function."""
    loads: set[Value] = set()
    for item in inner.items:
        if isinstance(item, Body) or not isinstance(item.root.node.op.lower, Elementwise):
            return set()
        if is_work(item.root.node) or not _loads_of(item.root, inner, nest, loads):
            return set()
    return loads


def _loads_of(root: Root, inner: Body, nest: LoopNest, loads: set[Value]) -> bool:
    """Adds the rows that a root reads; False where the root is not purely elementwise, or calls a function."""
    params = set(nest.region.params)
    pending = [(root.node.results[0], nest.labels.of[root.node.results[0]])]
    seen: set[tuple[Value, Axes]] = set()
    while pending:
        v, axes = pending.pop()
        if (v, axes) in seen:
            continue
        seen.add((v, axes))
        node = v.node
        if v in params or (node in nest.roots and node is not root.node):
            if moving(axes) == {inner.axis}:
                loads.add(v)
            continue
        operands = axes_of_operands(node, axes)
        if operands is None or is_work(node):
            return False
        pending += operands
    return True


def _rewrite(chain: list[Body], columns: int, nest: LoopNest) -> None:
    """Puts the loops of the chain into a loop over blocks of columns, unless one block has all columns."""
    outermost, inner = chain[0], chain[-1]
    parent = outermost.parent
    assert parent is not None
    at = parent.items.index(outermost)
    around = parent
    block = None
    if columns != inner.extent:
        block = around = Body(parent, None, inner.extent, block=columns)
    made: list[Body] = []
    for loop in chain[:-1]:
        made.append(Body(made[-1] if made else around, loop.axis, loop.extent))
    made[-1].rolled = True
    made.append(Body(made[-1], inner.axis, columns, of=block))
    for outer, within in itertools.pairwise(made):
        outer.items.append(within)
    made[-1].items = inner.items
    steps = [item for item in inner.items if isinstance(item, RootStep)]
    for step in steps:
        step.root.inner = step.root.home = made[-1]
    items: list[Body | RootStep] = [RootStep(steps[0].root, "load rows"), made[0]]
    nest.row_loops[made[-1]] = Body(around, inner.axis, columns, of=block)
    if block is not None:
        block.items = items
        items = [block]
    parent.items[at : at + 1] = items
