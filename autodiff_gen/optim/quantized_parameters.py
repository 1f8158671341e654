"""Updates of quantised parameters. Rules see the real numbers that the integers represent. The change is rounded down
or up at random, so that changes of less than one integer take effect on average.

For plain gradient descent this is the quantisation-aware scaling of Lin et al. 2022: the gradient with respect to the
integers is divided by scale^2."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

from .. import functional as F
from ..errors import ModelError
from ..functional.dropout import random_bits
from ..ir.build import apply, constant
from ..ir.graph import State
from ..ir.names import with_role
from ..ir.node import Value
from ..ir.origin import UPDATE, building
from ..ir.types import f32, planned
from .optimizer import Gradients


def real_numbers(params: Gradients) -> Gradients:
    """The same parameters and gradients, with dequantised values."""
    return [(state, _number(state, v), g) for state, v, g in params]


def _number(state: State, v: Value) -> Value:
    if state.type.quantization is None:
        return v
    with building(state.name, UPDATE):
        return with_role(F.dequantize(v), "numbers")


def rounded(
    old: Sequence[tuple[State, Value]], real: Gradients, new: Mapping[State, Value]
) -> dict[State, Value]:
    """The updates `new`, with integers instead of real numbers for the quantised parameters. old: their integers; real:
    the result of real_numbers."""
    updates = dict(new)
    for (state, q), (_, before, _) in zip(old, real, strict=True):
        of = state.type.quantization
        if of is None or state not in new:
            continue
        with building(state.name, UPDATE):
            scales = constant(of.along(planned(q.shape)), f32)
            change = with_role((new[state] - before) / scales, "change")
            bits, counted = random_bits(q.shape, zlib.crc32(state.name.encode()))
            updates[state] = apply("step_s8", q, change, bits)
        updates |= counted
    return updates


def check_averages(states: Sequence[State]) -> None:
    """Raise ModelError if a parameter to be averaged is quantised."""
    for state in states:
        if state.type.quantization is not None:
            raise ModelError(
                f"ema: the parameter {state.name!r} is quantised, and has no average; train without ema, or quantise a "
                "float parameter in the network (F.quantize)"
            )
