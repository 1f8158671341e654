"""The comments of generated steps, with the calls below them."""

from __future__ import annotations

from collections.abc import Iterator

from autodiff_gen.codegen.entries import entry_code
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.node import CONST, topological
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query

N = 3  # of the batch


def steps(program: Program) -> Iterator[tuple[str, list[c.Call]]]:
    """Comments of steps with the kernel calls that follow them."""
    for entry in program.entries:
        nodes = [n for plan in entry.plan.all_plans() for n in topological(plan.graph.roots)]
        tables = {n.results[0]: "table" for n in nodes if n.op is CONST}
        for statements in entry_code(entry, program, tables, {}, {}).steps:
            comment, calls = "", []
            for node in c_query.nodes(statements):
                if isinstance(node, c.Comment) and node.step:
                    yield comment, calls
                    comment, calls = node.text, []
                elif isinstance(node, c.Call) and node.function.endswith("_f32_ref"):
                    calls.append(node)
            yield comment, calls


def extents(text: str) -> tuple[int, ...]:
    """The extents in a comment, such as 2n,4, for N samples."""
    return tuple(int(d[:-1] or 1) * N if d.endswith("n") else int(d) for d in text.split(","))
