"""The program's identifier: 32 bits of a hash of the graph of a model or function, before any pass of the compiler.

Two programs have the same identifier if they compute the same numbers from the same inputs, states and learning rate:
operations, attributes, constants, shapes and dtypes, the loss, the optimizer's rule with its numbers (momentum, weight
decay, limits of clipping), the schedule, the option accumulate, and which parameters are frozen. Not in it are learning
rates, which are set at run time; batch, board, kernels, RAM and the options guard, split and restore_after, which
change no number; the values of parameters; and names of values inside the network. It is in the generated header
(`NET_PROGRAM`), in checkpoints, and in the reply to HELLO (docs/store.md, docs/link.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..ir.build import make_input
from ..ir.canonical_text import canonical_text, number_of
from ..ir.graph import Graph, State
from ..ir.module import IRModule
from ..ir.node import Node, Value
from ..ir.op_kinds import Composite
from ..ir.rewrite import rewritten
from ..ir.types import Type, f32
from ..passes.context import Context, Training
from ..passes.regions import with_regions
from ..passes.training.apply_optimizer import update_rules
from ..passes.training.differentiate import gradient_name


def of_model(step: Graph, predict: Graph, training: Training, states: Sequence[tuple[State, Value]]) -> int:
    """The identifier of a model. step, predict: its entries before the first pass; states: parameters and buffers with
    their old values."""
    trained = {state for state, _ in training.trained}
    frozen = sorted(state.name for state, _ in states if state.role == "parameter" and state not in trained)
    context = Context()  # nodes that both entries have are expanded once
    entries = [with_regions(_expanded, entry, context) for entry in (step, predict)]
    text = canonical_text([*entries, _updates(training)])
    return number_of(f"{text}\nfrozen {frozen}\naccumulate {training.accumulate}")


def _expanded(graph: Graph, context: Context) -> Graph:
    """The graph with each shorthand expanded, since a program has the same identifier without it. For example, a loss
    that states its derivative becomes the plain loss."""

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        lower = node.op.lower
        assert isinstance(lower, Composite)
        if not lower.is_shorthand(node.attrs):
            return None
        return context.analysis((node, operands), lambda: tuple(lower.expand(operands, node.attrs)))

    return rewritten(graph, rewrite, graph.of(Composite))


def _updates(training: Training) -> Graph:
    """The optimizer as an entry: gradients in, new states out. All groups get the same learning rate, so that learning
    rates are not in the identifier: an input, or the schedule's rate for a base of 1."""
    rate = training.optimizer.lr if training.schedule is None else 1.0
    groups = [replace(g, options={**g.options, "lr": rate}) for g in training.groups]
    gradients = [
        make_input(gradient_name(state), Type(f32, state.logical.shape)) for state, _ in training.trained
    ]
    with_equal_rates = replace(training, groups=groups)
    new, _ = update_rules(IRModule(()), with_equal_rates, training.trained, gradients)
    lr = () if training.lr is None else (training.lr,)
    return Graph("update", (*gradients, *lr), {}, new)
