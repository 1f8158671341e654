"""Every pass's docstring shows one graph before and one after, and they are true."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import cast

import pytest
from checkout import ROOT
from graph_text import example, normalised, parsed

from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.liveness import Liveness
from autodiff_gen.ir.node import topological
from autodiff_gen.ir.op_kinds import Elementwise, KernelOp, RowContraction
from autodiff_gen.ir.origin import BACKWARD, is_after_loss
from autodiff_gen.kernels import registry
from autodiff_gen.lowering import pipeline
from autodiff_gen.passes.calls.copy_images import copy_images
from autodiff_gen.passes.calls.gradient_rows import gradient_rows
from autodiff_gen.passes.calls.whole_gradients import with_whole
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.layout.copy_insertion import with_old_states_copied
from autodiff_gen.passes.layout.layout_assignment import assign_layouts
from autodiff_gen.passes.memory.accumulate_gradients import accumulate_gradients
from autodiff_gen.passes.memory.early_derivatives import early_derivatives
from autodiff_gen.passes.memory.micro_batches import divided
from autodiff_gen.passes.memory.pack_masks import pack_masks
from autodiff_gen.passes.memory.recomputation import Recomputation
from autodiff_gen.passes.memory.rematerialize import rematerialize
from autodiff_gen.passes.memory.snapshot_states import larger_results
from autodiff_gen.passes.memory.store_functions import repeated_functions, with_stored_functions
from autodiff_gen.passes.memory.strips import StripRegion
from autodiff_gen.passes.simplify.scale_weights import scale_entry
from autodiff_gen.targets import board

ABRIDGED = (
    "differentiate",
    "apply_optimizer",
    "freeze_states",
    "select_trained_channels",
)  # passes on modules, whose graphs are shown in part
PASSES = tuple(s.__name__ for s in pipeline.PIPELINE if s.__module__.startswith("autodiff_gen.passes."))

# Those that are not a function of one graph.
RUN: dict[str, Callable[[Graph], Graph]] = {
    "layout_assignment": lambda graph: graph.with_roots(assign_layouts(graph.roots).roots),
    "scale_weights": scale_entry,
    "early_derivatives": lambda graph: _forward_pass(
        early_derivatives(_with_rest_as_backward_pass(graph), Context())
    ),
    "pack_masks": lambda graph: pack_masks(_with_backward_pass(graph), Context()),
    "copy_images": lambda graph: copy_images(graph, _for_a_board()),
    "gradient_rows": lambda graph: gradient_rows(graph, Context()),
    "whole_gradients": lambda graph: with_whole(graph, graph.of(RowContraction)),
    "rematerialize_products": lambda graph: _computed_again(_with_backward_pass(graph)),
    "snapshot_states": lambda graph: with_old_states_copied(
        graph, [(n, i) for n, i, _ in larger_results(_with_backward_pass(graph))]
    ),
    "accumulate_gradients": lambda graph: accumulate_gradients(_in_backward_pass(graph), Context()),
    "tile_and_fuse": lambda graph: _in_two_strips(graph),
    "micro_batches": lambda graph: divided(graph, 3),
    "store_functions": lambda graph: with_stored_functions(graph, *next(repeated_functions(graph))),
    "rematerialize": lambda graph: rematerialize(_with_backward_pass(graph), Context()),
}


def _for_a_board() -> Context:
    return Context(backends=registry.for_board(board.load("mps2_an386")))


def _computed_again(graph: Graph) -> Graph:
    """The graph whose backward pass computes the operand of the forward pass's last product again."""
    nodes = [n for n in graph.nodes if n.operands]
    last = next(n for n in nodes if n is graph.outputs["y"].node)
    (operand,) = (v for v in last.operands if v.node in nodes)
    at = nodes.index(last)
    steps, ranges = {n: {k} for k, n in enumerate(nodes)}, {operand: range(at, at + 1)}
    use = cast(Liveness, SimpleNamespace(graph=graph, at=at, steps_of=steps, ranges=ranges))
    return Recomputation(use).computed_again(frozenset([operand]), apart=False)


def _in_two_strips(graph: Graph) -> Graph:
    """The graph with the region around the result of its first kernel in strips of rows."""
    region = StripRegion.around(graph, graph.of(KernelOp)[0].results[0], 1)
    strips = None if region is None else region.in_strips(0, 2)
    assert strips is not None
    return strips


def _with_backward_pass(graph: Graph) -> Graph:
    """The graph whose outputs d... a backward pass computes."""
    for name, value in graph.outputs.items():
        if name.startswith("d"):
            value.node.origin.phase = BACKWARD
    return graph


def _with_rest_as_backward_pass(graph: Graph) -> Graph:
    """The graph in which a backward pass computes everything that the output y does not need."""
    forward = topological([graph.outputs["y"]])
    for node in graph.nodes:
        if node not in forward:
            node.origin.phase = BACKWARD
    return graph


def _forward_pass(graph: Graph) -> Graph:
    """The forward pass of a graph, with what loops of the backward pass read of it, one value, as the output dx."""
    late = [n for n in graph.of(Elementwise) if is_after_loss(n.origin)]
    (stored,) = {v for n in late for v in n.operands if not is_after_loss(v.node.origin)}
    return graph.with_roots([graph.outputs["y"], stored])


def _in_backward_pass(graph: Graph) -> Graph:
    """The graph as a part of a backward pass."""
    for node in graph.nodes:
        node.origin.phase = BACKWARD
    return graph


def _module(name: str) -> ModuleType:
    (path,) = (ROOT / "autodiff_gen/passes").rglob(f"{name}.py")
    return importlib.import_module(f"autodiff_gen.passes.{path.parent.name}.{name}")


def _example(name: str) -> tuple[str, str]:
    doc = _module(name).__doc__
    assert doc is not None
    found = example(doc)
    assert found is not None, f"the docstring of {name} has no graph before and after"
    return found


@pytest.mark.parametrize("name", [name for name in (*PASSES, *RUN) if name not in ABRIDGED])
def test_the_example_of_a_pass_is_true(name: str) -> None:
    before, after = _example(name)
    graph = parsed(before, guard="gradients" if name == "finite_guard" else None)
    assert normalised(str(graph)) == normalised(before)
    run = RUN.get(name, lambda graph: getattr(_module(name), name)(graph, Context()))
    assert normalised(str(run(graph))) == normalised(after)


@pytest.mark.parametrize("name", ABRIDGED)
def test_abridged_examples_show_two_entries(name: str) -> None:
    assert all(text.lstrip().startswith("entry train_step(") for text in _example(name))


@pytest.mark.parametrize("stage", [s for s in pipeline.PIPELINE if s.__name__ not in PASSES])
def test_stages_of_the_lowering_show_an_example(stage: pipeline.Stage) -> None:
    assert "->" in (stage.__doc__ or ""), stage.__name__
