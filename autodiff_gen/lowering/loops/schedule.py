"""The forms of loops that are fast with a target's compiler and memory, chosen by its cost table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...passes.costs import has_wide_vectors
from ...targets.cost_table import CostTable
from ..c import c_ast as c
from ..c import c_query
from .block_moves import with_block_moves
from .collapsed_loops import with_collapsed_loops
from .if_conversion import with_both_alternatives
from .independent_loops import with_independent_loops
from .loop_normalization import with_tiles_from_zero
from .row_results import with_row_results
from .sums_in_order import with_sums_in_order


def scheduled(
    steps: Sequence[c.Statements], cost: CostTable, reorder: bool, taken: Iterable[str]
) -> tuple[c.Statements, ...]:
    """The steps of an entry with loops in these forms, and with expressions of C in place of indices. reorder: whether
    sums may be reordered; taken: the names of arguments."""
    steps = tuple(map(with_collapsed_loops, steps))
    vector = cost.vector if has_wide_vectors(cost) else 0
    steps = with_independent_loops(steps, cost.vector_loop, reorder, vector)
    steps = with_both_alternatives(steps, cost.vector_loop)
    steps = with_block_moves(steps, cost, taken)
    if cost.vector > 1:
        steps = tuple(map(with_sums_in_order, steps))
    if reorder:
        steps = with_row_results(steps, cost)
    return tuple(c_query.with_sums(with_tiles_from_zero(step)) for step in steps)
