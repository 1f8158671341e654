"""Ops that depend on the mode, training or evaluation, and ops that update states in a forward pass.

They are in a graph until the pass resolve_mode replaces them; they have no lowering to C.
"""

from __future__ import annotations

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.graph import State
from ..ir.node import OptionalValues, Sample, Values, Wanted, define
from ..ir.op_kinds import Attrs, Moded
from ..ir.types import Type
from .support import by_operand, simple


def _by_mode_type(train_value: Type, eval_value: Type) -> Type:
    if train_value != eval_value:
        raise ShapeError("the value in training and that in evaluation must have one type")
    return eval_value


by_mode = define(
    "by_mode",  # the first operand in training, the second in evaluation
    infer=_by_mode_type,
    ref=lambda train_value, eval_value: eval_value,
    vjp=simple(
        lambda dy, a, b, y: apply("in_mode", dy, training=True),
        lambda dy, a, b, y: apply("in_mode", dy, training=False),
    ),
    lower=Moded(),
    samples=(Sample(((2, 3), (2, 3))),),
)

in_mode = define(
    "in_mode",  # the gradient dy in one mode, zeros in the other
    infer=lambda dy, *, training: dy,
    ref=lambda dy, *, training: dy * 0.0 if training else dy,
    vjp=by_operand(lambda ddy, dy, y, attrs: apply("in_mode", ddy, **attrs)),
    lower=Moded(),
    samples=(Sample(((2, 3),), {"training": False}),),
)


def _with_updates_type(y: Type, *new: Type, states: tuple[State, ...], least_n: int, order: int) -> Type:
    if len(new) != len(states):
        raise ShapeError(f"{len(new)} new values for {len(states)} states")
    for value, state in zip(new, states, strict=True):
        if value != state.type:
            raise ShapeError(f"the new value of {state.name!r} is {value}, the state is {state.type}")
    return y


def _with_updates_vjp(
    dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted
) -> OptionalValues:
    return [dys[0], *(None for _ in inputs[1:])]


with_updates = define(
    # The first operand. In training the other operands become the new values of the states, and a batch has at
    # least `least_n` samples. `order`: the order of calls, in which updates of one state are applied.
    "with_updates",
    infer=_with_updates_type,
    ref=lambda y, *new, states, least_n, order: y,
    vjp=_with_updates_vjp,
    lower=Moded(updates=True),
    samples=(Sample(((2, 3),), {"states": (), "least_n": 1, "order": 0}),),
)
