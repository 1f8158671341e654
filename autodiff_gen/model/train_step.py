"""The entries that update a model's states: train_step, or accumulate and apply with gradients summed in between; each
also updates the parameters' averages.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import init
from ..autodiff import blocked_path, grad, zeros_like
from ..errors import GraphError, ModelError
from ..functional import maximum
from ..ir.build import apply, make_input, make_state
from ..ir.graph import Graph, State
from ..ir.node import CONST, Value, topological
from ..ir.rewrite import replaced
from ..ir.types import Dim, Type, f32, planned
from ..optim import EMA, Optimizer, clip_grad_norm, clip_grad_value
from ..optim.lr_scheduler import LRScheduler
from ..optim.optimizer import Group
from ..passes.resolve_mode import Settled

ACCUMULATE = (None, "mean", "sum")


@dataclass(frozen=True, eq=False)
class TrainingSpec:
    """How a model is trained. `inputs`: inputs and targets of a step; `forward`: the loss and the buffer updates of a
    forward pass; `trained`: the trained parameters with their old values; the rest: see `Model`.
    """

    inputs: Sequence[Value]
    forward: Settled
    trained: Sequence[tuple[State, Value]]
    optimizer: Optimizer
    groups: Sequence[Group]
    schedule: LRScheduler | None
    clip_grad_norm: float | None
    clip_grad_value: float | None
    accumulate: str | None
    ema: EMA | None


@dataclass(frozen=True, eq=False)
class TrainingEntries:
    """`graphs`: the entries, train_step first; `lr`: their learning-rate argument, None with a schedule; `averages`:
    the old value of the average of each trained parameter."""

    graphs: list[Graph]
    lr: Value | None
    averages: dict[State, Value]


def training_entries(training: TrainingSpec) -> TrainingEntries:
    """Differentiate and build the entries. Raises ModelError if a parameter has no gradient."""
    (loss,) = training.forward.roots
    gradients = _gradients(loss, training.trained)
    lr = make_input("lr", Type(f32, ())) if training.schedule is None else None
    # The update rules are applied once, to placeholders for the gradients, so that train_step and apply share their
    # states.
    placeholders = [make_input(f"gradient of {state.name}", state.type) for state, _ in training.trained]
    new = _rules(training, placeholders, lr)
    averages = training.ema.averages([s for s, _ in training.trained]) if training.ema else {}
    if training.ema:
        new = {**new, **training.ema.updates(averages, new)}

    def updates(gradients: Sequence[Value]) -> dict[State, Value]:
        by_placeholder = dict(zip(placeholders, gradients, strict=True))
        return dict(zip(new, replaced(list(new.values()), by_placeholder), strict=True))

    rate = [] if lr is None else [lr]
    forward = training.forward
    step = {**forward.updates, **updates(gradients)}
    graphs = [Graph("train_step", (*training.inputs, *rate), {"loss": loss}, step, forward.least_n)]
    if training.accumulate is not None:
        sums = _GradientSums(training)
        accumulated = {**forward.updates, **sums.increased(loss)}
        graphs.append(
            Graph("accumulate", tuple(training.inputs), {"loss": loss}, accumulated, forward.least_n)
        )
        graphs.append(Graph("apply", tuple(rate), {}, {**updates(sums.gradients()), **sums.cleared()}))
    return TrainingEntries(graphs, lr, averages)


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
                f"no gradient reaches the parameter {state.name!r}: it ends at {blocked_path(loss, v)}"
            )
    return gradients


def _is_zero(v: Value) -> bool:
    """Whether v is the constant zero that `grad` returns for an x on which nothing depends."""
    if v.node.op.name == "broadcast_to":
        v = v.node.operands[0]
    return v.node.op is CONST and not v.node.attrs["value"].any()


def _rules(training: TrainingSpec, gradients: Sequence[Value], lr: Value | None) -> dict[State, Value]:
    """New values of parameters and optimizer state."""
    if training.clip_grad_value is not None:
        gradients = clip_grad_value(gradients, training.clip_grad_value)
    if training.clip_grad_norm is not None:
        gradients = clip_grad_norm(gradients, training.clip_grad_norm)
    params = [(state, v, g) for (state, v), g in zip(training.trained, gradients, strict=True)]
    return training.optimizer.updates(training.groups, params, lr, training.schedule)


class _GradientSums:
    """Sums of gradients over micro-batches, and for a mean the number of samples, each in a state.

    A mean over n samples is weighted by n, so that micro-batches of different sizes together equal one large batch. If
    the batch size is fixed, batches are counted instead of samples.
    """

    def __init__(self, training: TrainingSpec) -> None:
        self.training = training
        self.sums = [make_state(_sum_of(state)) for state, _ in training.trained]
        self.count = make_state(State("grad.count", Type(f32, ()), init.zeros(()), False, "optimizer"))
        self.is_mean = training.accumulate == "mean"

    def increased(self, loss: Value) -> dict[State, Value]:
        """The sums after one more batch."""
        dims = [d for v in self.training.inputs for d in v.shape if isinstance(d, Dim)]
        samples = apply("extent", extent=Dim(1, dims[0].cap)) if dims and self.is_mean else None
        gradients = grad(loss, [v for _, v in self.training.trained], samples)
        new = {_state(old): old + g for old, g in zip(self.sums, gradients, strict=True)}
        if self.is_mean:
            new[_state(self.count)] = self.count + (1.0 if samples is None else samples)
        return new

    def gradients(self) -> list[Value]:
        """The gradients of one batch of all samples."""
        if not self.is_mean:
            return list(self.sums)
        share = 1.0 / maximum(self.count, 1.0)  # before the first batch the gradients are 0
        return [total * share for total in self.sums]

    def cleared(self) -> dict[State, Value]:
        states = [*self.sums, *([self.count] if self.is_mean else [])]
        return {_state(old): zeros_like(old) for old in states}


def _state(old: Value) -> State:
    state: State = old.node.attrs["state"]
    return state


def _sum_of(parameter: State) -> State:
    start = init.zeros(planned(parameter.logical.shape))
    kind, storage = Type(f32, parameter.type.shape), parameter.storage
    return State(f"{parameter.name}.grad", kind, start, False, "optimizer", storage)
