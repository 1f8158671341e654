"""Indices out of range, rejected on the host: the message names the element of the input that is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, make_input
from ..ir.graph import Check
from ..ir.interpreter import bind, evaluate
from ..ir.node import INPUT, Value, topological
from ..ir.op_kinds import Elementwise, View
from ..ir.types import Dim, Type, s32


def inputs_of(check: Check) -> list[Value]:
    """The inputs from which an index is computed."""
    return [node.results[0] for node in topological([check.value]) if node.op is INPUT]


def reject_wrong_indices(checks: Iterable[Check], arrays: Mapping[Value, Any]) -> None:
    """Raise ShapeError if arrays of inputs give an index out of range. Arrays have the dtypes of the inputs; arrays of
    a data set may have the rows of many calls. Checks that need other inputs are skipped."""
    for check in checks:
        inputs = inputs_of(check)
        if not arrays.keys() >= {*inputs}:
            continue
        for first, given in _calls({v: arrays[v] for v in inputs}):
            (index,) = evaluate([check.value], given)
            wrong = np.argwhere((index < check.low) | (index > check.high))
            if len(wrong):
                at = tuple(int(i) for i in wrong[0])
                text = _text(check, at, index[at], given, first)
                raise ShapeError(f"{text}, outside {check.low} to {check.high}")


def _calls(arrays: Mapping[Value, Any]) -> Iterator[tuple[int, Mapping[Value, Any]]]:
    """(first row, arrays) of each call, if the batch of the model is a number; otherwise the arrays as they are."""
    batches = {v.type.shape[0] if v.ndim else None for v in arrays}
    rows, counts = next(iter(batches)), {len(a) if a.ndim else 0 for a in arrays.values()}
    (count, *others) = counts
    if len(batches) > 1 or others or not isinstance(rows, int) or count in (0, rows):
        yield 0, arrays
        return
    for first in range(0, count, rows):
        first = max(min(first, count - rows), 0)  # the last call repeats rows of the call before
        parts = {v: a[first : first + rows] for v, a in arrays.items()}
        yield first, {v: np.resize(a, (rows, *a.shape[1:])) for v, a in parts.items()}


def _text(check: Check, at: tuple[int, ...], index: Any, arrays: Mapping[Value, Any], first: int) -> str:
    """`x[2] is 7`, and the index computed from it if that is another number. first: the row of the data set at x[0]."""
    found = _element(check.value, at, arrays)
    if found is None:
        names = " and ".join(str(v.name) for v in inputs_of(check))
        return f"{names}: an index that is computed from it is {index}"
    v, place = found
    number = arrays[v][place]
    place = (place[0] + first, *place[1:]) if place else place
    element = f"{v.name}[{', '.join(map(str, place))}]" if place else f"{v.name}"
    return (
        f"{element} is {number}"
        if number == index
        else f"{element} is {number}, which gives the index {index}"
    )


def _element(
    v: Value, at: tuple[int, ...], arrays: Mapping[Value, Any]
) -> tuple[Value, tuple[int, ...]] | None:
    """The input and the position of the element from which the element `at` of a value is computed; None if the value
    is not computed by views and elementwise ops."""
    while v.node.op is not INPUT:
        node = v.node
        if isinstance(node.op.lower, View):
            (operand,) = node.operands
            n = next((a.shape[k] // d.coef for x, a in arrays.items() for k, d in _varying(x)), None)
            shape = bind(operand.type.shape, n)
            places = np.arange(int(np.prod(shape))).reshape(shape)
            positions = make_input("positions", Type(s32, operand.type.shape))
            (shown,) = evaluate([apply(node.op.name, positions, **node.attrs)], {positions: places}, n)
            v, at = operand, tuple(int(i) for i in np.unravel_index(shown[at], shape))
        elif isinstance(node.op.lower, Elementwise):
            chosen = [node.operands[k] for k in node.op.chooses] or node.operands
            varying = [x for x in chosen if any(n.op is INPUT for n in topological([x]))]
            if not varying:
                return None
            v = varying[-1]
            last = at[len(at) - v.ndim :]
            at = tuple(0 if d == 1 else i for i, d in zip(last, v.type.shape, strict=True))
        else:
            return None
    return v, at


def _varying(v: Value) -> list[tuple[int, Dim]]:
    return [(k, d) for k, d in enumerate(v.type.shape) if isinstance(d, Dim)]
