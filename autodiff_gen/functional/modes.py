"""Values that differ between training and evaluation mode, and states that a forward pass updates."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.graph import State
from ..ir.node import STATE, Value
from ..ir.types import bool_
from .arguments import TensorLike, as_value

__all__ = ["by_mode", "with_updates"]

_order = itertools.count()  # of calls of with_updates


def by_mode(train_value: TensorLike, eval_value: TensorLike) -> Value:
    """train_value in training mode (train_step, ag.function with training=True), eval_value in evaluation mode
    (predict, ag.function); both have one type."""
    return apply("by_mode", as_value(train_value), as_value(eval_value))


def with_updates(input: TensorLike, updates: Mapping[Value, Any], least_n: int = 1) -> Value:
    """`input`; a training step whose loss depends on it also updates buffers. Evaluation updates none.

    updates: buffer -> its new value, of the same type. Several calls that update one buffer are applied in order.
    least_n: the fewest samples for which `input` is defined; the generated function rejects fewer. Raises ShapeError
    for keys that are not buffers, and for bool buffers.
    """
    states = []
    for old in updates:
        if not isinstance(old, Value) or old.node.op is not STATE:
            raise ShapeError(f"with_updates: {old!r} is not a buffer; create it with ag.Buffer")
        state: State = old.node.attrs["state"]
        if state.role == "parameter":
            raise ShapeError(f"with_updates: {state.name!r} is a parameter, which the optimizer updates")
        if state.type.dtype is bool_:
            raise ShapeError(
                f"with_updates: {state.name!r} is a mask, a constant; keep integers in its place"
            )
        states.append(state)
    new = [as_value(v) for v in updates.values()]
    order = next(_order)
    return apply("with_updates", as_value(input), *new, states=tuple(states), least_n=least_n, order=order)
