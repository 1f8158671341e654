"""Interval analysis: the least and the largest number that an element of a value can be.

    y: s32 input        -2147483648 to 2147483647
    y < 0               0 to 1
    where(y < 0, 0, y)  0 to 2147483647, as y is chosen only where it is not below 0

A sum or product that may leave the range of its dtype may be any number of the dtype.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .node import CONST, Node, Value, topological
from .op_kinds import Assemble, Elementwise, Extent, Iota, Pick, Reduce, View
from .traits import is_sum
from .types import DType, planned, planned_size

Range: TypeAlias = tuple[float, float]
ANY: Range = (-math.inf, math.inf)  # of floats: NaN too
DEPTH = 4  # nested conditions that narrow a range: a limit of compile time

# The range of x where `x OP y` holds, from the ranges of x and y
_HOLDS = {
    "<": lambda x, y: (x[0], min(x[1], y[1] - 1)),
    "<=": lambda x, y: (x[0], min(x[1], y[1])),
    ">": lambda x, y: (max(x[0], y[0] + 1), x[1]),
    ">=": lambda x, y: (max(x[0], y[0]), x[1]),
    "==": lambda x, y: (max(x[0], y[0]), min(x[1], y[1])),
}
_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "!=": "=="}
_SWAPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}


def range_of(v: Value, known: Mapping[Value, Range] | None = None, depth: int = DEPTH) -> Range:
    """The range of a value, given the ranges of some others."""
    found: dict[Value, Range] = dict(known or {})

    def ends(node: Node) -> bool:
        return node.results[0] in found or not _is_followed(node)

    for node in topological([v], stop=ends):
        if ends(node):
            ranges = [_any(r.dtype) for r in node.results]
        else:
            ranges = _ranges(node, [found[x] for x in node.operands], found, depth)
        for r, (low, high) in zip(node.results, ranges, strict=True):
            least, most = _any(r.dtype)
            fits = least <= low <= high <= most
            found.setdefault(r, (low, high) if fits else (least, most))
    return found[v]


def _any(dtype: DType) -> Range:
    if dtype.kind == "f":
        return ANY
    if dtype.kind == "b":
        return 0, 1
    info = np.iinfo(dtype.numpy)
    return int(info.min), int(info.max)


def _is_followed(node: Node) -> bool:
    if node.op is CONST or node.op.known_range(node.attrs) is not None:
        return True
    return isinstance(node.op.lower, Assemble | Elementwise | Extent | Iota | Pick | Reduce | View)


def _ranges(node: Node, of: list[Range], known: Mapping[Value, Range], depth: int) -> list[Range]:
    """The ranges of the results, from the ranges of the operands."""
    lower, attrs, result = node.op.lower, node.attrs, node.results[0]
    if (limits := node.op.known_range(attrs)) is not None:
        return [limits]
    if node.op is CONST:
        array = attrs["value"]
        finite = array.size and array.dtype.kind in "iub"
        return [(int(array.min()), int(array.max())) if finite else _of_floats(array)]
    if isinstance(lower, Iota):
        return [_any(result.dtype) if "strides" in attrs else (0, planned_size(result.type.shape) - 1)]
    if isinstance(lower, Extent):
        return [(0, planned((attrs["extent"],))[0])]
    if isinstance(lower, View | Pick):
        return [of[0]]
    if isinstance(lower, Assemble):
        fill = attrs.get("fill", 0)
        return [_union(*of, (fill, fill))]
    if isinstance(lower, Reduce):
        return _reduced(node, of[0])
    return [_elementwise(node, of, known, depth)]


def _of_floats(array: NDArray[Any]) -> Range:
    if not array.size or not np.isfinite(array).all():
        return ANY
    return float(array.min()), float(array.max())


def _reduced(node: Node, of: Range) -> list[Range]:
    """Sums, and the extremes that come with their index."""
    lower, x = node.op.lower, node.operands[0]
    assert isinstance(lower, Reduce)
    axes = node.attrs["axes"]
    count = planned_size(tuple(x.type.shape[a] for a in axes))
    if is_sum(node) and x.dtype.kind in "iub":
        return [(min(of[0] * count, of[0]), max(of[1] * count, of[1]))]
    if lower.indexed:
        return [of, (0, count - 1)][: len(node.results)]
    return [_any(r.dtype) for r in node.results]


def _elementwise(node: Node, of: list[Range], known: Mapping[Value, Range], depth: int) -> Range:
    op, (result,) = node.op, node.results
    lower = op.lower
    assert isinstance(lower, Elementwise)
    if result.dtype.kind == "b":
        return 0, 1
    if lower.converts:
        (low, high) = of[0]
        if math.isinf(low) or math.isinf(high):
            return _any(result.dtype)
        return (low, high) if result.dtype.kind == "f" else (math.trunc(low), math.trunc(high))
    if op.chooses:
        return _chosen(node, of, known, depth)
    if any(math.isinf(end) for pair in of for end in pair):
        return _any(result.dtype)
    if op.signs and result.dtype.kind != "f":
        ends = [sorted((s * low, s * high)) for s, (low, high) in zip(op.signs, of, strict=True)]
        return sum(low for low, _ in ends), sum(high for _, high in ends)
    if op.powers == (1, 1) and result.dtype.kind != "f":
        products = [a * b for a in of[0] for b in of[1]]
        return min(products), max(products)
    if op.monotone(node.attrs):
        low, high = (float(op.ref(np.float32(end), **node.attrs)) for end in of[0])
        return low, high
    divides = op.powers == (1, -1)
    if (op.signs or divides or op.powers == (1, 1)) and not (divides and of[1][0] <= 0 <= of[1][1]):
        corners = [
            op.ref(*map(np.float32, ends)) for ends in itertools.product(*of)
        ]  # monotone in each operand
        return float(min(corners)), float(max(corners))
    return _any(result.dtype)


def _chosen(node: Node, of: list[Range], known: Mapping[Value, Range], depth: int) -> Range:
    """The range of a selection by a comparison: where the comparison holds, it narrows the ranges of its operands."""
    mask, options = node.operands[0], [node.operands[k] for k in node.op.chooses]
    comparison = _comparison(mask.node) if len(node.operands) > len(options) else ""
    if not comparison or not depth:
        return _union(*(of[k] for k in node.op.chooses))
    x, y = mask.node.operands
    found = []
    for symbol, option in zip((comparison, _OPPOSITE.get(comparison, "")), options, strict=True):
        if symbol in _HOLDS and _is_empty(_HOLDS[symbol](known[x], known[y])) and x.dtype.kind in "iu":
            continue  # never chosen
        narrowed = dict(known)
        for one, other, holds in ((x, y, symbol), (y, x, _SWAPPED.get(symbol, ""))):
            computed = computed_of(option, one) if holds in _HOLDS and one.dtype.kind in "iu" else None
            low, high = _HOLDS[holds](known[one], known[other]) if computed is not None else (1, 0)
            if computed is not None and low <= high:
                narrowed = {v: r for v, r in narrowed.items() if v not in computed}
                narrowed[one] = low, high
        found.append(range_of(option, narrowed, depth - 1))
    return _union(*found) if found else _any(node.results[0].dtype)


def _is_empty(numbers: Range) -> bool:
    return numbers[0] > numbers[1]


def computed_of(option: Value, x: Value) -> set[Value] | None:
    """The values on the way from x to an option, if each element depends only on the element of x at the same place;
    otherwise None."""
    found = {x}
    for node in topological([option], stop=lambda n: n is x.node):
        if node is not x.node and not found.isdisjoint(node.operands):
            if not isinstance(node.op.lower, Elementwise) or node.results[0].type.shape != x.type.shape:
                return None
            found.update(node.results)
    return found


def _comparison(node: Node) -> str:
    """The symbol of a comparison of two integers in C; empty for other nodes."""
    lower = node.op.lower
    if not isinstance(lower, Elementwise) or not lower.is_operator or len(node.operands) != 2:
        return ""
    symbol = lower.c.split()[1]
    return symbol if symbol in _SWAPPED else ""


def _union(*ranges: Range) -> Range:
    return min(low for low, _ in ranges), max(high for _, high in ranges)
