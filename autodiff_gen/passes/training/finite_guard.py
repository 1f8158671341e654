"""The finite guard: with guard="gradients" one scalar of the graph is finite only if all new states are.

    entry f(x: f32[4], lr: f32[])      entry f(x: f32[4], lr: f32[])
      %0: f32[4] = mul(lr, x)            %0: f32[4] = mul(lr, x)
      %1: f32[4] = sub(w, %0)      ->    %1: f32[4] = sub(w, %0)
      w' <- %1                           %2: f32[] = abs(lr)
                                         %3: f32[] = maximum(%2, 1.0)
                                         %4: f32[4] = abs(x)
                                         %5: f32[] = largest(%4, axes=(0,), keepdim=False)
                                         %6: f32[] = mul(%3, %5)
                                         %7: f32[] = mul(%6, 268435456.0)
                                         w' <- %1
                                         finite only if all new states are: %7

The guard computes no part of an update. It scans values that are stored when the updates begin (inputs of layers,
gradients of their outputs, optimizer state) for their largest magnitudes. The arithmetic of the update maps these to
magnitude bounds: a sum of k products of a and b is at most k max|a| max|b|. The traits of an op say how (ir/node.py);
where they do not, the value itself is computed before the guard and scanned for its largest magnitude.

Bounds are at least 1, so that no product of bounds is smaller than a factor, and the last bound holds for every step
before it. A bound times 2^28 must be finite in float32: so the value is below 2^100. Rounding adds less than a factor
of 4 to it (sums of fewer than 2^24 terms), and 2^102 is too little to lift a finite float32 beyond the largest: w + u
is finite when w is. A parameter is therefore not scanned if the update adds to its old value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from ...ir.added_terms import added_operands, added_to
from ...ir.build import apply, constant, with_shape
from ...ir.dependences import guarded, is_product, state_of
from ...ir.graph import Graph, State
from ...ir.names import with_role
from ...ir.node import CONST, Node, Op, Value, base, topological, users
from ...ir.op_kinds import Assemble, Contraction, KernelOp, RowContraction, View
from ...ir.traits import changes, is_sum
from ...ir.types import planned_size
from ..context import Context

Bound: TypeAlias = float | Value  # at least 1

MARGIN, LIMIT = 2.0**28, 2.0**100
TINY = 2.0**-63  # squares of less than this may vanish


def finite_guard(graph: Graph, context: Context) -> Graph:
    """See the module."""
    if graph.guard != "gradients" or graph.inner or not graph.updates:
        return graph
    bounds = Bounds(graph)
    found = [b for state, new in graph.updates.items() for b in bounds.of_update(state, new)]
    found += bounds.divisors
    scalars = dict.fromkeys(_value(b) for b in found if isinstance(b, Value) or b >= LIMIT)
    below = {v for node in topological(scalars) for v in node.operands}
    total: Value | None = None
    for scalar in scalars:
        if scalar not in below:  # else another bound is computed from it, and is no less
            total = scalar if total is None else _named(apply("add", total, scalar))
    if total is None:
        return graph
    scaled = apply("mul", total, MARGIN)
    return replace(graph, bound=with_role(scaled, "bound_of_updates"))


class Bounds:
    """Bounds of the magnitudes of values, as scalars of the graph."""

    def __init__(self, graph: Graph) -> None:
        order = graph.nodes
        self.readers = users(order)
        self.bounds: dict[Value, Bound] = {}
        self.divisors: list[Bound] = []  # their bounds must be finite too
        self.least: dict[Value, float] = {}  # the lower bounds that are known
        self.assumed: dict[Value, set[Value]] = {}  # the values that must not be negative for a lower bound
        self.checked: set[Value] = set()  # the assumed values that the guard must check
        _, waiting = guarded(graph)
        self.waiting = self._with_rules(order, waiting)
        for node in order:
            if node in self.waiting:
                self._bind(node)

    def _with_rules(self, order: Sequence[Node], waiting: Set[Node]) -> set[Node]:
        """The waiting nodes whose bounds follow from their operands' bounds; values that must not be negative are
        recorded."""
        found = set()
        for node in order:
            self._find_least(node, node in waiting)
            if node in waiting and self._has_rule(node):
                found.add(node)
        return found

    def _has_rule(self, node: Node) -> bool:
        if node.results[0].type.dtype.kind != "f":
            return False
        if is_product(node) or isinstance(node.op.lower, Assemble):
            return True
        if _bounding(node.op) or is_sum(node):
            return True
        bounded_below = [(v, p) for v, p in zip(node.operands, node.op.powers, strict=False) if p < 1]
        if not node.op.powers or any(self.least.get(v, -1.0) < 0 for v, _ in bounded_below):
            return False
        if any(p < 0 and self.least[v] == 0 for v, p in bounded_below):
            return False
        self.checked = self.checked.union(*(self.assumed[v] for v, _ in bounded_below))
        return True

    def _find_least(self, node: Node, waiting: bool) -> None:
        """Find a lower bound of at least 0 for a node's result, and the values that it assumes not to be negative."""
        v, op = node.results[0], node.op
        below = [self.least.get(o) for o in node.operands]
        assumed = set().union(*(self.assumed.get(o, set()) for o in node.operands))
        known = [b for b in below if b is not None]
        if v.type.dtype.kind != "f":
            return
        if node.op is CONST:
            low = float(node.attrs["value"].min())
            if low >= 0:
                self.least[v], self.assumed[v] = low, set()
        elif op.non_negative:
            self.least[v], self.assumed[v] = 0.0, set()
        elif op.signs and min(op.signs) > 0 and len(known) == len(op.signs):
            self.least[v], self.assumed[v] = sum(known), assumed
        elif op.powers and len(known) == len(op.powers):
            grows = min(op.powers) >= 1
            low = math.prod(b**p for b, p in zip(known, op.powers, strict=True)) if grows else 0.0
            self.least[v], self.assumed[v] = low, assumed
        elif isinstance(node.op.lower, View) and not node.op.lower.window:
            if known:
                self.least[v], self.assumed[v] = known[0], assumed
        elif not waiting:  # scanned: the guard may check that it is not negative
            self.least[v], self.assumed[v] = 0.0, {v}

    # Bounds

    def of_update(self, state: State, new: Value) -> list[Bound]:
        """Bounds that must be finite for the new value of a state to be finite; its old value is assumed to be."""
        node = _without_views(new).node
        if new.type.dtype.kind != "f":  # integers are always finite, but not the values that are rounded
            return [self.of(v) for v in node.operands if v.type.dtype.kind == "f" and v.node.op is not CONST]
        if node not in self.waiting:
            return [self.of(new)]
        for own, change, _ in changes(node):
            if _is_old(own, state):
                return [self.of(change)]
        if (old := added_to(node)) is not None:
            grows = _is_old(old, state) and node.attrs["beta"] == 1
            return [self._product(node)] if grows else [self._product(node), self._scaled_old(node, old)]
        return [self.of(new)]

    def of(self, v: Value) -> Bound:
        """The bound of v's magnitude."""
        v = _without_views(v)
        if v not in self.bounds:
            self.bounds[v] = self._scanned(v)
        return self.bounds[v]

    def _scanned(self, v: Value) -> Bound:
        """The bound of a value that the guard reads: its largest magnitude, or the root of the sum of its squares where
        the graph has this sum. The bound is infinite if an element is negative that must not be."""
        if v.node.op is CONST:
            return max(float(np.abs(v.node.attrs["value"].astype(np.float64)).max()), 1.0)
        if v.type.dtype.kind != "f":
            return 2.0 ** (8 * v.type.dtype.size)
        squares = self._sum_of_squares(v)
        if squares is not None and v not in self.checked:
            length = apply("add", apply("sqrt", squares), TINY)
            return with_role(with_shape(apply("maximum", length, 1.0), ()), "most")
        each = apply("abs", v)
        if v in self.checked:
            each = apply("where", apply("ge", v, 0.0), v, constant(math.inf))
        if planned_size(v.type.shape) > 1:
            most = apply("largest", each, axes=tuple(range(v.ndim)), keepdim=False)
        else:
            most = with_shape(apply("maximum", each, 1.0), ())
        return with_role(most, "most")

    def _sum_of_squares(self, v: Value) -> Value | None:
        """The sum of the squares of all elements of v, where the graph has it: its root bounds every element."""
        for node in self.readers.get(v, ()):
            if sum(node.op.powers) == 2 and set(node.operands) == {v}:
                for reader in self.readers.get(node.results[0], ()):
                    if is_sum(reader) and planned_size(reader.results[0].type.shape) == 1:
                        return reader.results[0]
        return None

    def _bind(self, node: Node) -> None:
        (v,) = node.results
        if is_product(node):
            bound = self._product(node)
            if (old := added_to(node)) is not None:
                bound = _sum(bound, self._scaled_old(node, old))
        elif isinstance(node.op.lower, Assemble):
            bound = max(abs(float(node.attrs["fill"])), 1.0)
            for operand in node.operands:
                bound = _sum(bound, self.of(operand))
        else:
            bound = self._of_formula(node)
        self.bounds[v] = bound

    def _product(self, node: Node) -> Bound:
        """The bound of a sum of products, scaled where it is added to memory; the old value is not counted."""
        lower = node.op.lower
        if isinstance(lower, Contraction | RowContraction):
            terms, factors = planned_size(node.operands[0].type.shape[-1:]), node.operands[:2]
        elif isinstance(lower, KernelOp):
            factors = tuple(node.operands[i] for i in lower.summed)
            terms = planned_size(factors[-1].type.shape[:-1])
        else:
            return self._of_formula(node)
        bound: Bound = float(terms)
        for factor in factors:
            bound = _times(bound, self.of(factor))
        for k in added_operands(node)[1:]:
            bound = _times(bound, self.of(node.operands[k]))
        return bound

    def _of_formula(self, node: Node) -> Bound:
        """The bound of a sum over axes or of an elementwise op, from the traits of the op."""
        if is_sum(node):
            (x,) = node.operands
            terms = planned_size(x.type.shape) // planned_size(node.results[0].type.shape)
            return _times(float(terms), self.of(x))
        bound: Bound
        if which := _bounding(node.op):
            bound = self.of(node.operands[which[0]])
            for i in which[1:]:
                bound = _sum(bound, self.of(node.operands[i]))
            return bound
        bound = 1.0
        for v, power in zip(node.operands, node.op.powers, strict=True):
            if power < 0:
                self.divisors.append(self.of(v))
                bound = _times(bound, max(1.0 / self.least[v] ** -power, 1.0))
            for _ in range(math.ceil(power)):
                bound = _times(bound, self.of(v))
        return bound

    def _scaled_old(self, node: Node, old: Value) -> Bound:
        """The bound of beta times the value that a product is added to."""
        return _times(self.of(old), max(abs(float(node.attrs["beta"])), 1.0))


# Numbers and scalars of the graph


def _bounding(op: Op) -> Sequence[int]:
    """The operands whose bounds together bound the result: if it is a sum, a choice, or no larger than they are."""
    return op.chooses or op.bounded_by or range(len(op.signs))


def _times(a: Bound, b: Bound) -> Bound:
    if isinstance(a, float) and isinstance(b, float):
        return a * b
    if a == 1.0 or b == 1.0:
        return b if a == 1.0 else a
    return _named(apply("mul", a, b))


def _sum(a: Bound, b: Bound) -> Bound:
    if isinstance(a, float) and isinstance(b, float):
        return a + b
    return _named(apply("add", a, b))


def _named(v: Value) -> Value:
    return with_role(v, "bound")


def _value(bound: Bound) -> Value:
    return bound if isinstance(bound, Value) else constant(bound)


def _without_views(v: Value) -> Value:
    """The operand of a chain of views that have all of its elements, each once or more."""
    while isinstance(v.node.op.lower, View) and not v.node.op.lower.window:
        v = v.node.operands[0]
    return v


def _is_old(v: Value, state: State) -> bool:
    return state_of(_without_views(v)) is state and _without_views(v) is base(v)
