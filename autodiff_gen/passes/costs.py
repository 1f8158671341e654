"""The decisions of passes that depend on what operations cost on the target: one function for each.

The costs come from the board's table (targets/cost_table.py). Extents are given for the largest batch; an estimate
counts the operations of the loops that lowering writes, not of the compiled loops.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..ir.types import Size, planned
from ..targets.cost_table import BLOCK, WIDE, CostTable


def product_is_inlined(cost: CostTable, m: Size, k: Size, n: Size, by_rows: bool) -> bool:
    """Whether a product [m,k] . [k,n] is computed by loops. Loops join the loops that use the product, and do not store
    it. A kernel stores the product, and its readers load it. by_rows: rows of the first factor are contiguous. A kernel
    with tiles then computes the rows one by one if they are fewer than a tile has."""
    rows, inner, columns = planned((m, k, n))
    results = rows * columns
    is_vector = 1 in (rows, columns)
    tile = sums_in_a_tile(cost, (m, n))
    term = cost.mac + cost.load * loads_of_a_product(tile)
    if is_vector:
        called = cost.gemv.total((results,), inner)
    elif by_rows and rows < cost.gemm.tile:
        called = rows * cost.gemv.total((columns,), inner)
    else:
        called = cost.gemm.total((rows, columns), inner)
    return _is_worth_a_loop(cost, called + results * cost.load, _sums(cost, results, tile, inner, term))


def sums_are_inlined(cost: CostTable, rows: Size, columns: Size) -> bool:
    """Whether the sums of a matrix's columns are computed by loops."""
    m, n = planned((rows, columns))
    in_loops = (
        _sums(cost, n, sums_in_a_tile(cost, (columns,)), m, cost.load + cost.arithmetic) + n * cost.store
    )
    return _is_worth_a_loop(cost, cost.column_sums.total((n,), m), in_loops)


def addition_is_inlined(cost: CostTable, size: int) -> bool:
    """Whether a multiple of a stored value is added to a state of `size` elements by a loop."""
    element = 2 * cost.load + cost.arithmetic + cost.store
    in_loops = size * (element if size <= cost.registers else element + cost.loop)
    return _is_worth_a_loop(cost, cost.axpby.total((size,), 1), in_loops)


def result_is_finished_in_loops(
    cost: CostTable, operands: int, residual: bool, limits: bool, in_arena: bool
) -> bool:
    """Whether loops, and not the kernel, finish a kernel's result with this number of operands and with limits.
    residual: one operand has all elements; in_arena: the result is in the arena, where loops can move it in blocks."""
    moved = (operands + 1) * cost.load + cost.store
    moved = moved / BLOCK if in_arena and cost.block_moves else moved + cost.loop
    in_loops = moved + operands * cost.arithmetic + limits * cost.limit
    return in_loops < cost.finish + residual * cost.load


def is_recomputed(cost: CostTable, operations: int, loads: int, readers: int) -> bool:
    """Whether each reader of a value computes it again, rather than loading a value that is stored once. Computing it
    takes these operations and loads."""
    again = readers * (operations * cost.arithmetic + loads * cost.load)
    return again <= cost.store + cost.arena + readers * cost.load


def is_stored_between_passes(cost: CostTable, operations: int, loads: int) -> bool:
    """Whether a first pass stores a value that a second pass would compute again, by these operations and loads. The
    load of the operand whose buffer the value reuses is not counted."""
    return cost.store < operations * cost.arithmetic + loads * cost.load


def is_computed_once(cost: CostTable, operations: int, loads: int, iterations: int, elements: int) -> bool:
    """Whether a value that takes these operations and loads is stored once for each of its `elements`, rather than
    computed in each of the `iterations` of the loops around it."""
    again = operations * cost.arithmetic + loads * cost.load
    once = elements * (again + cost.store + cost.arena + cost.loop)
    return once + iterations * cost.load < iterations * again


def uses_column_blocks(cost: CostTable, rows: int, iterations: int, extent: int, columns: int) -> bool:
    """Whether loops over rows of `extent` elements iterate over blocks of `columns` columns. `rows` arrays are the same
    for all rows: their elements in a block stay in registers. In vectors, rows are better read one after the other."""
    row_by_row = iterations * (extent * (rows * cost.load + cost.loop) + cost.loop)
    blocks = extent / columns
    in_blocks = blocks * (columns * (rows * (cost.load + cost.store) + cost.loop) + iterations * cost.loop)
    return cost.vector == 1 and cost.code * in_blocks < row_by_row


def rows_are_read_by_blocks(cost: CostTable, rows: int, extent: int) -> bool:
    """Whether loops over rows of `extent` elements read a row block by block, together with blocks of `rows` arrays
    that are the same for all rows. The instruction that loads a block also moves the pointer to the next block."""
    is_wide = extent % WIDE == 0 and cost.registers >= rows * BLOCK
    fits = is_wide or cost.registers >= 2 * rows * BLOCK
    return cost.block_moves and extent % BLOCK == 0 and extent > cost.registers and fits


def columns_of_a_tile(cost: CostTable, extent: int, most: int) -> int:
    """How many columns of rows of `extent` elements are kept at a time: a block that one instruction loads, if the
    board has such an instruction. Otherwise the smallest divisor of `extent` for which the end of an iteration costs
    less than an operation on each column, since code grows with the columns. If there is none, the largest divisor of
    at most `most`. 0 if no block of 2 to `most` columns divides the row."""
    if cost.block_moves and extent % BLOCK == 0 and most >= BLOCK:
        return BLOCK
    blocks = [d for d in divisors(extent) if 1 < d <= most]
    return next((d for d in blocks if cost.loop < d * cost.arithmetic), max(blocks, default=0))


def is_gathered_once(cost: CostTable, elements: int, macs: int, is_tiled: bool = True) -> bool:
    """Whether an operand whose rows are not contiguous is copied before a call of `macs` multiply-accumulates. The
    kernel would gather each element for every tile of results that reads it, or for every result."""
    copy = elements * (cost.load + cost.store + cost.loop + cost.arena)
    return copy < macs / (cost.gemm.tile if is_tiled else 1) * (cost.load + cost.store + cost.loop)


def windows_are_copied(cost: CostTable, elements: int, filters: int, run: int, whole: int) -> bool:
    """Whether the windows of an image, with this number of elements, are copied for a product with `filters` filters.
    A kernel starts again after `run` elements of a window, which are adjacent in the image. In a copy, all `whole`
    elements of a window are adjacent. A kernel without tiles has no registers to load again."""
    copy = elements * (cost.load + cost.store + cost.arena + cost.loop / run)
    begun = elements * filters * cost.gemm.result * (1 / run - 1 / whole)
    return cost.gemm.tile > 1 and copy < begun


def image_is_padded(cost: CostTable, elements: int, calls: int, terms: int) -> bool:
    """Whether an image of `elements` elements is copied with its padding. Kernels then save `calls` calls of kernels
    for vectors for windows that the border cuts, but add up `terms` more products with 0."""
    copy = elements * (cost.load + cost.store + cost.arena)
    return copy < calls * cost.gemv.call - terms * cost.gemv.term


def block_of_a_product(
    cost: CostTable, rows: int, inner: Size, columns: int, gathered: bool, counts: Sequence[int] = ()
) -> tuple[int, int] | None:
    """How many rows and columns of a product [rows,inner] . [inner,columns] are computed at a time before they are
    consumed, never all. None: row by row. gathered: each row of the first factor is then collected first. counts: the
    numbers of rows that may be computed at a time, as whole rows; empty where a block may have any size."""
    (terms,) = planned((inner,))
    kernel = cost.gemm.total((1, columns), terms) if counts else cost.gemv.total((columns,), terms)
    row = kernel + gathered * terms * (cost.load + cost.store + cost.loop)
    least = rows * row + cost.arena * (columns + gathered * terms)
    if counts and 1 not in counts:
        least = math.inf
    best = None
    for r in counts or (divisors(rows) if terms > 1 else ()):
        for c in (columns,) if counts else divisors(columns):
            if r > 1 and r * c < rows * columns:
                calls = rows // r * (columns // c)
                total = calls * cost.gemm.total((r, c), terms) + cost.arena * r * c
                if total < least:
                    least, best = total, (r, c)
    return best


def divisors(number: int) -> list[int]:
    """The divisors of a number, in ascending order."""
    return [d for d in range(1, number + 1) if number % d == 0]


def flat_loop_pays(cost: CostTable, extents: Sequence[int], size: int) -> bool:
    """Whether a function of `size` elements is computed in vectors, but not along the last of several extents."""
    moving = [d for d in extents if d != 1]
    if len(moving) < 2 or not 0 < cost.vector_loop <= size:
        return False
    row = moving[-1]
    return row < cost.vector_loop or (row < 2 * cost.vector <= size and row % cost.vector != 0)


def accumulator_tile(cost: CostTable, extents: Sequence[Size], most: int) -> tuple[int, int]:
    """The tile of loops that compute a sum in each iteration: the number of innermost loops in the tile, and 0; or 1,
    and the size of the innermost loop's blocks; or 0, 0. extents: of the loops, outermost first. A tile is as large as
    `most` accumulators allow. A block is loaded by one instruction, if the board has it; otherwise blocks are whole
    vectors where the extent allows."""
    loops, iterations = 0, 1
    for extent in reversed(extents):
        if not isinstance(extent, int) or iterations * extent > most:
            break
        iterations *= extent
        loops += 1
    if loops or not extents or not isinstance(extents[-1], int):
        return loops, 0
    if cost.block_moves and extents[-1] % BLOCK == 0 and most >= BLOCK // 2:
        return 1, BLOCK
    blocks = [d for d in reversed(divisors(extents[-1])) if 1 < d <= most]
    block = next((d for d in blocks if d % cost.vector == 0), blocks[0] if blocks else 0)
    return (1, block) if block else (0, 0)


def has_wide_vectors(cost: CostTable) -> bool:
    """Whether loops are written so that compilers vectorise them. A contiguous row is added up in vectors, as with
    AG_REDUCTION on hosts. This is faster than sums of several rows at a time, which load each term by itself. Masks are
    computed again rather than stored."""
    return cost.vector > 4


def terms_are_repeated(cost: CostTable, operations: int, again: int) -> bool:
    """Whether adjacent sums of a tile compute their terms together. A term takes `operations` operations and loads;
    `again` of them are then not shared by the terms of one sum. In return the terms share the loop, and are computed in
    vectors."""
    together = (operations + again) * cost.arithmetic / cost.vector
    return together <= operations * cost.arithmetic + cost.loop


def sums_in_a_tile(cost: CostTable, extents: Sequence[Size]) -> tuple[int, ...]:
    """The extents of the tile of sums that share a loop over their terms. extents: of all sums."""
    moving = [i for i, d in enumerate(extents) if d != 1]
    loops, block = accumulator_tile(cost, [extents[i] for i in moving], cost.registers)
    inside = moving[len(moving) - loops :]
    return tuple(block or d if i in inside else 1 for i, d in enumerate(planned(tuple(extents))))


def loads_of_a_product(tile: Sequence[int]) -> float:
    """Loads for a term of a product in loops: an iteration loads each element of the rows and columns of its tile
    once."""
    return sum(1 / d for d in tile)


def _sums(cost: CostTable, sums: int, tile: Sequence[int], terms: int, term: float) -> float:
    """The cost of loops for `sums` sums of `terms` terms; each term costs `term`. The sums of a tile share the loop
    over their terms."""
    return sums * (terms * (term + cost.loop / math.prod(tile)) + cost.loop)


def _is_worth_a_loop(cost: CostTable, kernel: float, in_loops: float) -> bool:
    return kernel >= cost.code * in_loops
