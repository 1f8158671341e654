"""The entries that change a model's states: one step of training at once, or in two halves with gradients summed in
between; and what the parameters' averages add to them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .. import init
from ..autodiff import grad, where_it_stops, zeros_like
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
class Training:
    """How a model is trained. `inputs` are those of a step, targets included; `forward` is its loss and what a pass
    leaves in buffers; `trained` the parameters with their old values; the rest is as `Model` documents it.
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
class Steps:
    """The entries, train_step first; lr: their argument, where no schedule computes it; averages: of each trained
    parameter the old value of its average."""

    entries: list[Graph]
    lr: Value | None
    averages: dict[State, Value]


def steps_of(training: Training) -> Steps:
    """The entries of a training. ModelError where the loss gives a parameter no gradient."""
    (loss,) = training.forward.roots
    gradients = _gradients(loss, training.trained)
    lr = make_input("lr", Type(f32, ())) if training.schedule is None else None
    # One set of update rules over stand-ins, so that both ways of training share their states.
    stands = [make_input(f"gradient of {state.name}", state.type) for state, _ in training.trained]
    new = _rules(training, stands, lr)
    averages = training.ema.averages([s for s, _ in training.trained]) if training.ema else {}
    if training.ema:
        new = {**new, **training.ema.updates(averages, new)}

    def updates(found: Sequence[Value]) -> dict[State, Value]:
        return dict(
            zip(new, replaced(list(new.values()), dict(zip(stands, found, strict=True))), strict=True)
        )

    rate = [] if lr is None else [lr]
    forward = training.forward
    step = {**forward.updates, **updates(gradients)}
    entries = [Graph("train_step", (*training.inputs, *rate), {"loss": loss}, step, forward.least_n)]
    if training.accumulate is not None:
        sums = _Sums(training)
        more = {**forward.updates, **sums.increased(loss)}
        entries.append(Graph("accumulate", tuple(training.inputs), {"loss": loss}, more, forward.least_n))
        entries.append(Graph("apply", tuple(rate), {}, {**updates(sums.gradients()), **sums.cleared()}))
    return Steps(entries, lr, averages)


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
                f"no gradient reaches the parameter {state.name!r}: it ends at {where_it_stops(loss, v)}"
            )
    return gradients


def _is_zero(v: Value) -> bool:
    """Whether v is the zeros that `grad` returns where nothing depends on an x."""
    if v.node.op.name == "broadcast_to":
        v = v.node.operands[0]
    return v.node.op is CONST and not v.node.attrs["value"].any()


def _rules(training: Training, gradients: Sequence[Value], lr: Value | None) -> dict[State, Value]:
    """New values of parameters and optimizer state."""
    if training.clip_grad_value is not None:
        gradients = clip_grad_value(gradients, training.clip_grad_value)
    if training.clip_grad_norm is not None:
        gradients = clip_grad_norm(gradients, training.clip_grad_norm)
    params = [(state, v, g) for (state, v), g in zip(training.trained, gradients, strict=True)]
    return training.optimizer.updates(training.groups, params, lr, training.schedule)


class _Sums:
    """Sums of gradients over small batches, in states of their own; for means beside the number of samples.

    A mean over n samples is weighted with n, so that small batches of any sizes together equal one large batch. Where
    all batches are of one size, they are counted instead.
    """

    def __init__(self, training: Training) -> None:
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
        """What the sums come to: the gradients of one batch that holds all samples."""
        if not self.is_mean:
            return list(self.sums)
        share = 1.0 / maximum(self.count, 1.0)  # where nothing was summed, the gradients are 0
        return [total * share for total in self.sums]

    def cleared(self) -> dict[State, Value]:
        every = [*self.sums, *([self.count] if self.is_mean else [])]
        return {_state(old): zeros_like(old) for old in every}


def _state(old: Value) -> State:
    state: State = old.node.attrs["state"]
    return state


def _sum_of(parameter: State) -> State:
    start = init.zeros(planned(parameter.logical.shape))
    kind, storage = Type(f32, parameter.type.shape), parameter.storage
    return State(f"{parameter.name}.grad", kind, start, False, "optimizer", storage)
