"""The cost of a kernel's call, by the board's cost table. Stdlib only."""

from __future__ import annotations

from ..targets.cost_table import CostTable
from .call_parts import Facts, call_parts
from .table import Kernel


def call_cost(kernel: Kernel, facts: Facts, cost: CostTable) -> float:
    """The cost by the parts of the call's work, if the table has the kernel's symbol; otherwise by the cost of a
    product in tiles."""
    known = cost.calls.get(kernel.symbol)
    if known is not None and (parts := call_parts(kernel.symbol.removeprefix("ag_"), facts)):
        return sum(known.get(name, 0.0) * count for name, count in parts.items())
    parts = call_parts(kernel.name, facts)
    results, terms = parts.get("result", 0.0), parts.get("product", parts.get("term", 0.0))
    return cost.gemm.call + results * cost.gemm.result + terms * cost.gemm.term
