"""The stages of the pipeline that rewrite a complete graph, for tests of single passes."""

from __future__ import annotations

from collections.abc import Iterator

from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.module import IRModule
from autodiff_gen.lowering.pipeline import TARGET, run
from autodiff_gen.passes.context import Context

LAST = "copy_overwritten_states"
NAMES = [stage.__name__ for stage in TARGET]


def stages(graph: Graph, until: str = LAST, after: str | None = None) -> Iterator[tuple[str, Graph]]:
    """Every stage's name and the graph after it, from the one after `after` (the first) up to `until`."""
    first = 0 if after is None else NAMES.index(after) + 1
    for name, module in run(TARGET[first : NAMES.index(until) + 1], IRModule((graph,)), Context()):
        yield name, module.entries[0]


def rewritten(graph: Graph, until: str = LAST, after: str | None = None) -> Graph:
    """The graph after the stages from the one after `after` up to `until`."""
    *_, (_, last) = stages(graph, until, after)
    return last
