"""Checks of indices: each value that is used as an index is compared with its limits before a call changes anything.

A function that reads by an index marks it, unless its range proves that it is valid (`index_ranges.py`). The mark keeps
the index as an expression of the inputs, so no pass changes the checked values. An index that depends on more than
inputs and constants has no check; functional/index_limits.py clamps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from .build import apply
from .graph import Check
from .index_ranges import Range, range_of
from .node import CONST, INPUT, Node, Value, topological
from .op_kinds import (
    Assemble,
    Cond,
    Elementwise,
    Extent,
    Iota,
    KernelOp,
    Leaf,
    Pick,
    Reduce,
    View,
)
from .rewrite import substitute
from .types import s32

KINDS = (Assemble, Elementwise, Extent, Iota, Pick, Reduce, View)


def of_inputs(value: Value) -> bool:
    """Whether a value can be computed before anything else: of inputs of the entry and constants, without products,
    loops or random numbers."""
    return all(_is_early(node) for node in topological([value]))


def _is_early(node: Node) -> bool:
    lower = node.op.lower
    if isinstance(lower, Leaf):
        return node.op is CONST or (node.op is INPUT and not node.attrs.get("inner"))
    return isinstance(lower, KINDS) or (isinstance(lower, KernelOp) and not lower.summed)


def checks_of(roots: Sequence[Value]) -> tuple[Check, ...]:
    """The checks that the marks below these values request, each value once."""
    found: dict[Value, Check] = {}
    for value, low, high in _marked(topological(roots), None):
        (early,) = substitute([value], _clamped)
        known = found.get(early, Check(early, low, high))
        found[early] = Check(early, max(low, known.low), min(high, known.high))
    return tuple(found.values())


def _marked(nodes: Iterable[Node], condition: Value | None) -> list[tuple[Value, int, int]]:
    """The marked expressions with their limits; those in a branch count only where the branch is taken."""
    found = []
    for node in nodes:
        index = node.attrs.get("index_of_inputs")
        if index is not None:
            low, high = node.attrs["low"], node.attrs["high"]
            if condition is not None:
                index = apply("where", condition, apply("to_s32", index), low)
            found.append((index, low, high))
        for k, region in enumerate(node.regions):
            found += _marked(region.nodes, _taken(node, k, condition))
    return found


def _taken(node: Node, branch: int, condition: Value | None) -> Value | None:
    """Whether a region is executed, as far as inputs tell."""
    if not isinstance(node.op.lower, Cond) or not of_inputs(node.operands[0]):
        return condition
    taken = apply("ne" if branch == 0 else "eq", apply("to_s32", node.operands[0]), 0)
    return taken if condition is None else apply("logical_and", condition, taken)


def _clamped(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
    """A marked index that the expression of another one reads by, within its limits."""
    if node.attrs.get("index_of_inputs") is None:
        return None
    (i,), low, high = operands, node.attrs["low"], node.attrs["high"]
    i = i if i.dtype is s32 else apply("to_s32", i)
    i = apply("where", apply("lt", i, low), low, apply("where", apply("gt", i, high), high, i))
    return (i if node.results[0].dtype is s32 else apply(f"to_{node.results[0].dtype}", i),)


def valid_inputs(inputs: Sequence[Value], checks: Sequence[Check]) -> dict[Value, int]:
    """For each integer input that checks depend on, the largest n for which the ranges prove that no check fails where
    its elements are from 0 to n - 1, as n classes or tokens are; none where any number is valid."""
    read_by = {
        v: [k for k in checks if v.node in topological([k.value])] for v in inputs if v.dtype.kind in "iu"
    }
    found: dict[Value, int] = {}
    for v, own in (*read_by.items(), *read_by.items()):  # again, for inputs that are combined with later ones
        n = _valid(v, own, found)
        if n is not None:
            found[v] = n
    return found


def _valid(v: Value, checks: Sequence[Check], known: Mapping[Value, int]) -> int | None:
    others: dict[Value, Range] = {x: (0, n - 1) for x, n in known.items()}

    def holds(n: int) -> bool:
        found = [range_of(check.value, {**others, v: (0, n - 1)}) for check in checks]
        return all(k.low <= low and high <= k.high for k, (low, high) in zip(checks, found, strict=True))

    least, above = 1, int(np.iinfo(v.dtype.numpy).max) + 1
    if holds(above):
        return None
    while least + 1 < above:
        middle = (least + above) // 2
        least, above = (middle, above) if holds(middle) else (least, middle)
    return least
