"""Differentiate the loss: each entry that trains returns the gradient of every parameter in addition to its loss.

    entry train_step(x: f32[4])              entry train_step(x: f32[4])
      %0: f32[4] = mul(w, x)                   %0: f32[4] = mul(w, x)
      %1: f32[] = sum(%0)            ->        %1: f32[] = sum(%0)
      loss <- %1                               %2: f32[4] = broadcast_to(1.0)
                                               %3: f32[4] = mul(%2, x)
                                               loss <- %1
                                               gradient of w <- %3

With `accumulate`, a second entry returns gradients that add up over small batches: gradients of the numerators of means
(loss_terms.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

from ...autodiff import grad, where_it_stops
from ...errors import GraphError, ModelError
from ...ir.build import apply
from ...ir.graph import Graph, State
from ...ir.module import IRModule
from ...ir.node import CONST, Value, topological
from ...ir.op_kinds import ViewKind
from ...ir.traits import view_kind
from ..context import Context
from .loss_terms import terms_of


def differentiate(module: IRModule[Graph], context: Context) -> IRModule[Graph]:
    """See the module. ModelError where the loss gives a parameter no gradient."""
    training = context.training
    if training is None:
        return module
    step, *others = module.entries
    loss = step.outputs["loss"]
    trained = [(module.state(state), module.old_value(v)) for state, v in training.trained]
    entries = [_with_gradients(step, trained, _gradients(loss, trained))]
    if training.accumulate == "sum":
        entries.append(replace(entries[0], name="accumulate"))
    elif training.accumulate == "mean":
        entries.append(_of_micro_batch(step, trained))
    return module.with_entries(*entries, *others)


def gradient_name(state: State, term: int = 0) -> str:
    """The output that holds the gradient of a parameter, of one term of the loss."""
    return f"gradient of {state.name}" + (f" in term {term + 1}" if term else "")


def _of_micro_batch(step: Graph, trained: Sequence[tuple[State, Value]]) -> Graph:
    """The entry with the gradients of the numerators of all terms of the loss. A term whose denominator is 0 is 0."""
    terms = terms_of(step, [v for _, v in trained])
    loss, outputs = step.outputs["loss"], {}
    for k, term in enumerate(terms):
        gradients = grad(term.numerator, [v for _, v in trained], term.samples)
        pairs = zip(trained, gradients, strict=True)
        outputs.update({gradient_name(state, k): g for (state, _), g in pairs if not k or not _is_zero(g)})
    if any(term.is_weighted for term in terms):
        parts = [
            apply("div", t.numerator, t.divisor(t.counts)) if t.is_weighted else t.numerator for t in terms
        ]
        loss = functools.reduce(lambda a, b: apply("add", a, b), parts)
    return replace(step, name="accumulate", outputs={**step.outputs, "loss": loss, **outputs})


def _with_gradients(step: Graph, trained: Sequence[tuple[State, Value]], gradients: Sequence[Value]) -> Graph:
    named = {gradient_name(state): g for (state, _), g in zip(trained, gradients, strict=True)}
    return replace(step, outputs={**step.outputs, **named})


def _gradients(loss: Value, trained: Sequence[tuple[State, Value]]) -> list[Value]:
    try:
        gradients = grad(loss, [v for _, v in trained])
    except GraphError as error:
        raise ModelError(str(error)) from None
    in_loss = set(topological([loss]))
    for (state, v), g in zip(trained, gradients, strict=True):
        if v.node not in in_loss:
            raise ModelError(
                f"the loss does not reach the parameter {state.name!r}; use it or set requires_grad=False"
            )
        if _is_zero(g):
            raise ModelError(
                f"no gradient reaches the parameter {state.name!r}: it ends at {where_it_stops(loss, v)}; set "
                "requires_grad=False if it shall not learn"
            )
    return gradients


def _is_zero(v: Value) -> bool:
    """Whether v is the array of zeros that `grad` returns for a value on which the loss does not depend."""
    if view_kind(v.node) is ViewKind.BROADCAST:
        v = v.node.operands[0]
    return v.node.op is CONST and not v.node.attrs["value"].any()
