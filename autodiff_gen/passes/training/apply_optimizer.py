"""Apply the optimizer: gradients become new values of parameters and of the optimizer's state.

    entry train_step(x: f32[4])              entry train_step(x: f32[4], lr: f32[])
      ...                                      ...
      loss <- %1                     ->        %4: f32[4] = mul(lr, %3)
      gradient of w <- %3                      %5: f32[4] = sub(w, %4)
                                               loss <- %1
                                               w' <- %5

Clipping comes before the update rules. With `accumulate`, the entry of that name adds gradients up in separate states,
and `apply` makes a step with the total. With averages of the parameters there is an entry `predict_averaged`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ... import init
from ...autodiff import zeros_like
from ...errors import ModelError
from ...functional import maximum
from ...ir.build import make_input, make_state, with_shape
from ...ir.graph import Graph, State
from ...ir.module import IRModule
from ...ir.node import Value
from ...ir.origin import OPTIMIZER, UPDATE, building
from ...ir.rewrite import replaced
from ...ir.types import Type, f32, planned
from ...optim import clip_grad_norm, clip_grad_value
from ...optim.quantized_parameters import check_averages, real_numbers, rounded
from ..context import Context, Training
from .differentiate import gradient_name
from .loss_terms import Term, terms_of


def apply_optimizer(module: IRModule[Graph], context: Context) -> IRModule[Graph]:
    """See the module."""
    training = context.training
    if training is None:
        return module
    step, *others = module.entries
    trained = [(module.state(state), module.old_value(v)) for state, v in training.trained]
    states = [state for state, _ in trained]
    loss, gradients = _split(step, states)
    shown = gradients
    if training.accumulate is not None:
        # One set of update rules over placeholders, so that both ways of training share their states.
        shown = [
            make_input(gradient_name(state), Type(f32, state.type.shape), state.name) for state in states
        ]
    new, averages = update_rules(module, training, trained, shown)

    def updates(gradients: Sequence[Value]) -> dict[State, Value]:
        if gradients is shown:
            return new
        known = dict(zip(shown, gradients, strict=True))
        return dict(zip(new, replaced(list(new.values()), known), strict=True))

    lr = () if training.lr is None else (training.lr,)
    entries = [
        replace(
            step, inputs=(*step.inputs, *lr), outputs=loss, updates={**step.updates, **updates(gradients)}
        )
    ]
    if training.accumulate is not None:
        accumulate, *others = others
        terms = terms_of(step, [v for _, v in trained]) if training.accumulate == "mean" else []
        sums = _Sums(accumulate, states, terms)
        increased = {**accumulate.updates, **sums.increased()}
        loss = {"loss": accumulate.outputs["loss"]}
        entries.append(replace(accumulate, outputs=loss, updates=increased))
        entries.append(Graph("apply", lr, {}, {**updates(sums.gradients()), **sums.cleared()}))
    entries = [with_guard(graph, training.guard) for graph in entries]
    if averages:
        (predict,) = others
        old = {old: averages[state] for state, old in trained}
        averaged = dict(zip(predict.outputs, replaced(list(predict.outputs.values()), old), strict=True))
        others.append(replace(predict, name="predict_averaged", outputs=averaged))
    _check_names([*entries, *others])
    return module.with_entries(*entries, *others)


def _check_names(entries: Sequence[Graph]) -> None:
    """ModelError for a parameter or buffer that has the name of a state that the optimizer adds."""
    states = dict.fromkeys(s for graph in entries for s in graph.states)
    names: set[str] = set()
    for state in states:
        if state.name in names:
            raise ModelError(f"two states are called {state.name!r}; rename the parameter or buffer")
        names.add(state.name)


def with_guard(graph: Graph, guard: str | None) -> Graph:
    """An entry that changes states, with a guard. A guard that checks the loss needs an entry that returns the loss:
    other entries have none."""
    return replace(graph, guard=guard if guard == "gradients" or "loss" in graph.outputs else None)


def _split(graph: Graph, states: Sequence[State]) -> tuple[dict[str, Value], list[Value]]:
    """The outputs of an entry without the gradients, and the gradients."""
    gradients = [graph.outputs[gradient_name(state)] for state in states]
    return {"loss": graph.outputs["loss"]}, gradients


def update_rules(
    module: IRModule[Graph],
    training: Training,
    trained: Sequence[tuple[State, Value]],
    gradients: Sequence[Value],
) -> tuple[dict[State, Value], dict[State, Value]]:
    """New values of parameters and optimizer state; and the old values of the parameters' averages."""
    states = [state for state, _ in trained]
    with building(OPTIMIZER, UPDATE):
        new = _rules(module, training, trained, gradients)
        averages = training.ema.averages(states) if training.ema else {}
        if training.ema:
            check_averages(states)
            new = {**new, **training.ema.updates(averages, new)}
    return new, averages


def _rules(
    module: IRModule[Graph],
    training: Training,
    trained: Sequence[tuple[State, Value]],
    gradients: Sequence[Value],
) -> dict[State, Value]:
    if training.clip_grad_value is not None:
        gradients = clip_grad_value(gradients, training.clip_grad_value)
    if training.clip_grad_norm is not None:
        gradients = clip_grad_norm(gradients, training.clip_grad_norm)
    groups = [replace(group, states=tuple(map(module.state, group.states))) for group in training.groups]
    params = real_numbers([(state, v, g) for (state, v), g in zip(trained, gradients, strict=True)])
    new = training.optimizer.updates(groups, params, training.lr, training.schedule)
    return rounded(trained, params, new)


class _Sums:
    """Sums over small batches, in separate states: the gradients of each term of the loss, and the counts in the
    denominator of its mean. A mean over samples is weighted with their number; where all batches have one size, batches
    are counted instead. A loss that is a sum has no terms.
    """

    def __init__(self, entry: Graph, states: Sequence[State], terms: Sequence[Term]) -> None:
        self.states, self.terms = states, terms
        self.added: dict[Value, Value] = {}  # the old sum of a gradient or a count -> a batch's summand
        self.of_terms: list[dict[State, Value]] = []
        for k in range(max(1, len(terms))):
            sums = {}
            for state in states:
                gradient = entry.outputs.get(gradient_name(state, k))
                if gradient is not None:
                    sums[state] = make_state(_sum_of(state, k))
                    self.added[sums[state]] = gradient
            self.of_terms.append(sums)
        self.counts: dict[Value, Value] = {}  # a count -> the old sum
        for v in (v for term in terms for v in term.counts):
            if v not in self.counts:
                name = f"grad.count{f'.{len(self.counts) + 1}' if self.counts else ''}"
                self.counts[v] = make_state(
                    State(name, Type(v.dtype, ()), init.zeros(()), False, "optimizer")
                )
                self.added[self.counts[v]] = v

    def increased(self) -> dict[State, Value]:
        """The sums after one more batch."""
        return {_state(old): old + with_shape(new, old.shape) for old, new in self.added.items()}

    def gradients(self) -> list[Value]:
        """The gradients of one batch that holds all samples, computed from the sums."""
        if not self.terms:
            return [self.of_terms[0][state] for state in self.states]
        found: dict[State, Value] = {}
        for term, sums in zip(self.terms, self.of_terms, strict=True):
            divisor = term.divisor([self.counts[v] for v in term.counts])
            # where nothing was summed, the gradients are 0
            share = 1.0 / (divisor if term.is_weighted else maximum(divisor, 1.0))
            for state, total in sums.items():
                found[state] = found[state] + total * share if state in found else total * share
        return [found[state] for state in self.states]

    def cleared(self) -> dict[State, Value]:
        return {_state(old): zeros_like(old) for old in self.added}


def _state(old: Value) -> State:
    state: State = old.node.attrs["state"]
    return state


def _sum_of(parameter: State, term: int) -> State:
    start = init.zeros(planned(parameter.logical.shape))
    kind = Type(f32, parameter.type.shape)
    storage = parameter.storage and parameter.storage.of_zeros
    name = f"{parameter.name}.grad" + (f".{term + 1}" if term else "")
    return State(name, kind, start, False, "optimizer", storage)
