"""Elementwise functions of one quantised tensor, as tables with an entry for each integer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ... import functional as F
from ...autodiff import grad
from ...errors import GraphError
from ...ir.build import apply, constant, make_input
from ...ir.interpreter import evaluate
from ...ir.node import Value
from ...ir.quantization import HIGH, LOW, Quantization
from ...ir.types import Type, f32, s8
from ...ops.quantized.functions import ELEMENTS, Slopes, index_of
from .ranges import quantized
from .representations import IntegerFunction, Representation, Static
from .shared_ranges import is_identity


def looked_up(
    v: Value, function: IntegerFunction, x: Value, of: Quantization, known: Mapping[Value, Representation]
) -> Value:
    """The s8 value of v, which is `function` of its source. x: the source's s8 tensor; known: the representations of
    the float graph."""
    of_x = x.type.quantization
    assert of_x is not None
    table = constant(quantized(function.numbers, of), s8, role="table")
    y = apply("lookup_s8", table, index_of(x), quantization=of)
    slopes = _slopes(v, function.source, of_x, known)
    if slopes is None:
        return y
    nearest = np.rint(function.numbers / of.scale) + of.zero_point
    passed = np.where((nearest >= LOW) & (nearest <= HIGH), slopes, 0.0)
    return apply("with_slopes_s8", y, x, slopes=Slopes(tuple(np.broadcast_to(passed, ELEMENTS).tolist())))


def _slopes(v: Value, source: Value, of: Quantization, known: Mapping[Value, Representation]) -> Any:
    """The derivative of v with respect to its source, at the number of each integer; None if an op has no
    derivative."""
    at = make_input("x", Type(f32, (ELEMENTS,)))
    copies = {source: at}

    def copied(u: Value) -> Value:
        if u not in copies:
            form = known[u]
            if isinstance(form, Static):
                copies[u] = constant(form.array.reshape(()))
            elif is_identity(u.node):
                copies[u] = copied(u.node.operands[0])
            else:
                copies[u] = apply(u.node.op.name, *map(copied, u.node.operands), **u.node.attrs)
        return copies[u]

    try:
        (slopes,) = grad(F.sum(copied(v)), [at])
    except GraphError:
        return None
    numbers = of.scale * (np.arange(LOW, HIGH + 1) - of.zero_point)
    return evaluate([slopes], {at: numbers}, float_dtype="float64")[0]
