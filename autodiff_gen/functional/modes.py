"""What differs between training and evaluation, and states that a forward pass changes."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

from ..errors import ShapeError
from ..ir.build import apply
from ..ir.graph import State
from ..ir.node import STATE, Value
from .arguments import as_value

_order = itertools.count()  # of calls of with_updates


def by_mode(train_value: Any, eval_value: Any) -> Value:
    """train_value where the model trains (train_step), eval_value where it is evaluated (predict, ag.function); both
    of one type."""
    return apply("by_mode", as_value(train_value), as_value(eval_value))


def with_updates(input: Any, updates: Mapping[Value, Any], least_n: int = 1) -> Value:
    """`input`, and the wish that a step of training whose loss depends on it leaves new values in states.

    updates: the state's value (a buffer) -> its new value, of the same type. Evaluation leaves all states as they are.
    Where several calls ask for new values of one state, each begins with what the call before it left.
    least_n: the fewest samples for which `input` has a meaning; the generated function refuses fewer.
    """
    states = []
    for old in updates:
        if not isinstance(old, Value) or old.node.op is not STATE:
            raise ShapeError(
                f"with_updates: {old!r} is no state that could be updated; make it with ag.Buffer"
            )
        state: State = old.node.attrs["state"]
        if state.role == "parameter":
            raise ShapeError(f"with_updates: {state.name!r} is a parameter, which the optimizer updates")
        states.append(state)
    new = [as_value(v) for v in updates.values()]
    order = next(_order)
    return apply("with_updates", as_value(input), *new, states=tuple(states), least_n=least_n, order=order)
