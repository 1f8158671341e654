"""The decisions of passes that depend on what operations cost on the target: one function for each.

The costs come from the board's table (targets/cost_table.py). Extents are those of the largest batch; an estimate
counts the operations of the loops that lowering writes, not those that a compiler makes of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.types import Size, planned
from ..targets.cost_table import CostTable


def product_is_inlined(cost: CostTable, m: Size, k: Size, n: Size) -> bool:
    """Whether a product [m,k] . [k,n] is computed by loops. They read and write no product in memory, since they join
    the loops around them; the kernel's product is stored, and loaded where it is used."""
    rows, inner, columns = planned((m, k, n))
    results = rows * columns
    is_vector = 1 in (rows, columns)
    called = cost.gemv.total((results,), inner) if is_vector else cost.gemm.total((rows, columns), inner)
    return _is_worth_a_loop(cost, called + results * cost.load, _sums(cost, results, k, cost.mac))


def sums_are_inlined(cost: CostTable, rows: Size, columns: Size) -> bool:
    """Whether the sums of a matrix's columns are computed by loops."""
    m, n = planned((rows, columns))
    in_loops = _sums(cost, n, rows, cost.load + cost.arithmetic) + n * cost.store
    return _is_worth_a_loop(cost, cost.column_sums.total((n,), m), in_loops)


def addition_is_inlined(cost: CostTable, size: int) -> bool:
    """Whether a multiple of a stored value is added to a state of `size` elements by a loop."""
    element = 2 * cost.load + cost.arithmetic + cost.store
    in_loops = size * (element if size <= cost.registers else element + cost.loop)
    return _is_worth_a_loop(cost, cost.axpby.total((size,), 1), in_loops)


def is_recomputed(cost: CostTable, operations: int, loads: int, readers: int) -> bool:
    """Whether a value that takes these operations, on operands of which so many are loaded, is computed again by each
    of its readers, or stored once and loaded by each."""
    again = readers * (operations * cost.arithmetic + loads * cost.load)
    return again <= cost.store + cost.arena + readers * cost.load


def wants_a_flat_loop(cost: CostTable, extents: Sequence[int], size: int) -> bool:
    """Whether a function of `size` elements is computed in vectors, but not along the last of several extents."""
    moving = [d for d in extents if d != 1]
    return len(moving) > 1 and moving[-1] < cost.vector_loop <= size


def _sums(cost: CostTable, results: int, terms: Size, term: float) -> float:
    """Loops for so many sums of so many terms each. Short sums are unrolled if their length is fixed, and grow side by
    side if registers hold all of them; others have a loop each."""
    (n,) = planned((terms,))
    short = n <= cost.registers and (isinstance(terms, int) or results <= cost.registers)
    return results * n * (term + (0.0 if short else cost.sum_loop)) + results * cost.loop


def _is_worth_a_loop(cost: CostTable, kernel: float, in_loops: float) -> bool:
    return kernel >= cost.code * in_loops
