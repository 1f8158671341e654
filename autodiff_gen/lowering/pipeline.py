"""The pipeline, from a model's specification to placed buffers, in two lists that are read top to bottom: `Model` runs
the first one, so that a mistake is reported where it is made, and the compiler runs the second one for a target.

A stage maps a module to a module. The verifier runs after each, and `--dump DIR` writes every result as text. No stage
runs later ones, but two assume later stages: `accumulate_gradients` compares graphs after `fuse_optimizer` and
`finite_guard`, and `rematerialize` assumes the copies of `snapshot_states`.
"""

from __future__ import annotations

import functools
import gc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

from .. import progress
from ..errors import GraphError
from ..ir.graph import Graph
from ..ir.module import IRModule
from ..ir.printer import show
from ..ir.verifier import verify
from ..owned_files import write_file
from ..passes.calls.copy_images import copy_images
from ..passes.calls.fuse_calls import fuse_calls
from ..passes.calls.fuse_epilogues import fuse_epilogues
from ..passes.calls.fuse_optimizer import fuse_optimizer
from ..passes.calls.inline_small_matmul import inline_small_matmul
from ..passes.calls.select_column_sums import select_column_sums
from ..passes.calls.whole_gradients import whole_gradients
from ..passes.context import Context
from ..passes.demand.demand_propagation import demand_propagation
from ..passes.demand.part_propagation import part_propagation
from ..passes.fusion.fuse_elementwise import fuse_elementwise
from ..passes.layout.copy_insertion import copy_insertion
from ..passes.layout.layout_assignment import layout_assignment
from ..passes.layout.rematerialize_random import rematerialize_random
from ..passes.layout.store_in_order import store_in_order
from ..passes.memory.accumulate_gradients import accumulate_gradients
from ..passes.memory.early_derivatives import early_derivatives
from ..passes.memory.micro_batches import is_divided, micro_batches
from ..passes.memory.pack_masks import pack_masks
from ..passes.memory.rematerialize import rematerialize
from ..passes.memory.rematerialize_products import rematerialize_products
from ..passes.memory.snapshot_states import snapshot_states
from ..passes.memory.store_functions import store_functions
from ..passes.memory.tile_and_fuse import tile_and_fuse
from ..passes.regions import Pass, with_regions
from ..passes.simplify.commute_pooling import commute_pooling
from ..passes.simplify.cse import cse
from ..passes.simplify.expand_composites import expand_composites
from ..passes.simplify.fold_constants import fold_constants
from ..passes.simplify.region_dce import region_dce
from ..passes.simplify.scale_weights import scale_weights
from ..passes.simplify.share_functions import share_functions
from ..passes.training.apply_optimizer import apply_optimizer
from ..passes.training.check_indices import check_indices
from ..passes.training.differentiate import differentiate
from ..passes.training.finite_guard import finite_guard
from ..passes.training.freeze_states import freeze_states
from ..passes.training.resolve_mode import resolve_mode
from ..passes.training.select_trained_channels import select_trained_channels
from ..passes.work_estimate import Work, work_of
from . import left_out_stages
from .drop_recomputations import drop_recomputations
from .plan import EntryPlan, ScanPlan
from .plan_printer import show_plan
from .planner import assign_buffers, copy_overwritten_states, schedule, select_kernels

Stage: TypeAlias = Callable[[IRModule[Any], Context], IRModule[Any]]


def on_entries(function: Callable[[Any, Context], Any]) -> Stage:
    """The stage that applies a function of one entry to each."""

    @functools.wraps(function)
    def stage(module: IRModule[Any], context: Context) -> IRModule[Any]:
        return module.map(lambda entry: function(entry, context))

    return stage


def everywhere(function: Pass) -> Stage:
    """The stage that applies a pass to each entry and to the regions inside it."""

    @functools.wraps(function)
    def stage(module: IRModule[Any], context: Context) -> IRModule[Any]:
        return module.map(lambda graph: with_regions(function, graph, context))

    return stage


@functools.wraps(select_kernels)
def kernels_and_regions(graph: Graph, context: Context) -> EntryPlan:
    return select_kernels(graph, context, functools.partial(_lower_region, context))


# From the specification of a model to its entries.
MODEL: tuple[Stage, ...] = (
    on_entries(resolve_mode),  # training or evaluation
    on_entries(check_indices),  # collect the indices that a call compares with limits before its first step
    layout_assignment,  # cancel permutes of NCHW and NHWC; store weights as kernels read them
    on_entries(commute_pooling),  # let poolings by maximum come before monotone functions
    on_entries(demand_propagation),  # compute only the range of a value that is read; let kernels pad images
    scale_weights,  # multiply weights by a factor for each channel, instead of the images
    select_trained_channels,  # if only some channels of a parameter train, only they are the state
    differentiate,  # add the gradient of every parameter
    apply_optimizer,  # add the new values of parameters and moments
    freeze_states,  # make parameters and buffers that no entry updates constants
)

# To fewer values; the same for every target.
SIMPLIFY: tuple[Stage, ...] = (
    everywhere(expand_composites),  # expand ops that were kept whole for their gradients
    everywhere(fold_constants),  # fold constants, x * 1, and broadcasts that happen anyway
    everywhere(share_functions),  # let activations call the functions that their gradients call
    everywhere(cse),  # compute the same op on the same operands once
    everywhere(part_propagation),  # compute a value in parts if its readers need only parts or sums
    on_entries(micro_batches),  # divide the batch into a loop where the context limits it
    on_entries(rematerialize_random),  # compute masks in the order in which they are read
    on_entries(store_in_order),  # store values in the order in which they are read with the fewest copies
)

# To the calls of the target's kernels, and the values that the backward pass reads from memory.
FUSE: tuple[Stage, ...] = (
    on_entries(fuse_calls),  # compute a convolution and the pooling of its result in one kernel
    on_entries(inline_small_matmul),  # let small products join the loops around them
    on_entries(select_column_sums),  # let a kernel add up values that are in memory anyway
    on_entries(accumulate_gradients),  # let the kernel of each product in a sum add it to the sum
    on_entries(fuse_optimizer),  # W - lr * (a . b) accumulates into W; other rules read rows of gradients
    on_entries(copy_images),  # copy windows of few channels, and images whose border cuts windows
    on_entries(fuse_epilogues),  # let bias, residual and ReLU join the kernel before them
    on_entries(finite_guard),  # add a number that is finite only if all new states are
    on_entries(early_derivatives),  # store derivatives instead of the larger values they come from
    on_entries(region_dce),  # remove the results of a scan that nothing reads
    on_entries(store_functions),  # store results of tanh and the like that the gradient of a scan reads
    on_entries(rematerialize),  # compute elementwise values again in the backward pass
    on_entries(pack_masks),  # store one bit of a value that the backward pass compares with limits
    on_entries(snapshot_states),  # copy parameters whose gradient would wait for their last reader
    on_entries(whole_gradients),  # compute gradients in one call instead of by rows, where the arena has room
)

# To a graph within the budget of RAM.
BUDGET: tuple[Stage, ...] = (
    on_entries(rematerialize_products),  # compute products again where the arena exceeds the budget
    on_entries(tile_and_fuse),  # compute wide values strip by strip where the arena exceeds the budget
)

# To a plan.
PLAN: tuple[Stage, ...] = (
    on_entries(copy_insertion),  # copy values that a view cannot serve, and old states that are still read
    on_entries(fuse_elementwise),  # turn everything between the contractions into loops
    on_entries(copy_overwritten_states),  # copy old states that a loop overwrites before their last read
    on_entries(kernels_and_regions),  # give every node a call of a kernel or a loop nest
    on_entries(schedule),  # find the order with the lowest peak of live bytes
    on_entries(assign_buffers),  # give every value an offset in the arena
    on_entries(drop_recomputations),  # remove steps whose result an earlier step has left in the arena
)


TARGET = *SIMPLIFY, *FUSE, *BUDGET, *PLAN
PIPELINE = *MODEL, *TARGET


def names() -> list[str]:
    """The stages by name, in order."""
    return [stage.__name__ for stage in PIPELINE]


def run(
    stages: Sequence[Stage], module: IRModule[Any], context: Context, check: bool = True
) -> Iterator[tuple[str, IRModule[Any]]]:
    """Each stage's name and its result for the result of the stage before it.

    Raises GraphError, with the stage's name, where a stage leaves a graph that breaks a rule of the IR.
    """
    verified: list[Graph] = []
    for stage in stages:
        progress.step(stage.__name__.replace("_", " "))
        module = left_out_stages.result(stage, module, context)
        graphs = [_graph(entry) for entry in module.entries]
        for graph in graphs if check else ():
            try:
                if graph not in verified:
                    verify(graph, context.verified)
            except GraphError as error:
                raise GraphError(f"after {stage.__name__}: {error}") from None
        verified = graphs
        yield stage.__name__, module


def _graph(entry: Graph | EntryPlan) -> Graph:
    return entry if isinstance(entry, Graph) else entry.graph


@contextmanager
def without_cycle_collection() -> Iterator[None]:
    """Disable the cycle collector. Most objects stay alive until the end, for example in the context of the plans, and
    the collector would take a quarter of the time, and half of the time while a model is built."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def peak_of(plan: EntryPlan) -> int:
    """The bytes of the arenas of an entry."""
    return sum(p.peak for p in plan.plans.values())


def before_budget(graphs: Sequence[Graph], context: Context, dump: Dump | None = None) -> IRModule[Any]:
    """The graphs before the stages that are repeated for closer budgets."""
    return _after((*SIMPLIFY, *FUSE), IRModule(tuple(graphs)), context, dump)


def planned(module: IRModule[Any], context: Context, dump: Dump | None = None) -> list[EntryPlan]:
    """The plans of graphs that `before_budget` returned, with their work where a budget or a cache may change it."""
    within = _after(BUDGET, module, context, dump)
    works = [_work(graph, context) for graph in within.entries]
    plans = _after(PLAN, within, context, dump).entries
    return [
        replace(plan, work=work and _with_micro_batches(work, plan))
        for plan, work in zip(plans, works, strict=True)
    ]


def _after(
    stages: Sequence[Stage], module: IRModule[Any], context: Context, dump: Dump | None
) -> IRModule[Any]:
    """The result of the last of these stages."""
    made = module
    for name, made in run(stages, module, context):
        if dump is not None:
            dump.write(name, made)
    return made


def _work(graph: Graph, context: Context) -> Work | None:
    """The work of a graph without its loop over micro-batches, where the budget or a cache may change it."""
    if not (graph.name in context.over_budget or is_divided(graph) or context.cost.cache is not None):
        return None
    return work_of([n for n in graph.nodes if "samples" not in n.attrs], context.cost)


def _with_micro_batches(work: Work, plan: EntryPlan) -> Work:
    """The work of a plan with the work of its loop over micro-batches."""
    for loop in (s.inner for s in plan.steps):
        if isinstance(loop, ScanPlan) and loop.samples and (body := loop.body.plan.work) is not None:
            macs, instructions = (loop.times * each for each in (body.macs, body.instructions))
            work = Work(work.macs + round(macs), work.instructions + instructions)
    return work


def _lower_region(context: Context, graph: Graph, taken: int) -> EntryPlan:
    """The plan of a region. A micro-batch is no inner graph: it is planned as an entry is, for the budget less `taken`
    bytes."""
    inner = replace(context, training=None, first=(), samples=None)
    if not graph.inner:
        budget = None if context.budget is None else context.budget - taken
        inner = replace(inner, budget=budget, over_budget={graph.name})
    return planned(before_budget([graph], inner), inner)[0]


class Dump:
    """`--dump DIR`: every stage's result as DIR/<entry>.<number>.<stage>.txt; `force`: as in `write_files`."""

    def __init__(self, folder: Path, force: bool = False) -> None:
        self.folder, self._force = folder, force

    def write(self, stage: str, module: IRModule[Any]) -> None:
        for entry in module.entries:
            graph = _graph(entry)
            text = show(entry) if isinstance(entry, Graph) else show_plan(entry)
            name = f"{graph.name}.{names().index(stage):02}.{stage}.txt"
            write_file(self.folder / name, text, self._force)
