"""The inputs of a region's graph: outer values that it reads, in the memory of the outer values."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..ir.build import filled, make_input
from ..ir.graph import Graph, State
from ..ir.node import INPUT, STATE, Node, Value
from ..ir.strides import Strided
from ..ir.traits import uniform
from ..ir.types import Dim, Type
from ..ir.views import known_layout
from .plan import Bound, EntryPlan, InnerPlan, Written


class RegionInputs:
    """The outer values that an inner graph reads, and the names of its inputs and states."""

    def __init__(self) -> None:
        self.bound: list[Bound] = []
        self.names: set[str] = set()

    def fresh(self, wish: str) -> str:
        name, k = wish, 1
        while name in self.names:
            k += 1
            name = f"{wish}{k}"
        self.names.add(name)
        return name

    def bring(self, name: str, v: Value) -> Value:
        """The value inside that is the outer value v."""
        known = _uniform(v)
        if known is not None:
            return known
        at = known_layout(v)
        inner = _input(self.fresh(name), v.type, Strided(at.shape, at.strides))
        self.bound.append(Bound(inner, v, at.offset))
        return inner

    def some(self, name: str, v: Value, type: Type) -> Value:
        """The value inside for the rows of v, along its first axis, that are the samples of a micro-batch."""
        at, rows = known_layout(v), v.type.shape[0]
        assert isinstance(rows, Dim)
        inner = _input(self.fresh(name), type, Strided(type.shape, at.strides))
        self.bound.append(Bound(inner, v, at.offset, at.strides[0] * rows.coef))
        return inner

    def element(self, name: str, v: Value, state: State | None = None) -> Value:
        """The value inside that is an element of v along its first axis."""
        element = v.type.with_shape(v.type.shape[1:])
        known = _uniform(v, element)
        if known is not None:
            return known
        at = known_layout(v)
        inside = Strided(at.shape[1:], at.strides[1:])
        if state is not None:
            inner = Node(STATE, (), {"state": state, "layout": inside}, (element,)).results[0]
        else:
            inner = _input(self.fresh(name), element, inside)
        self.bound.append(Bound(inner, v, at.offset, at.strides[0]))
        return inner

    def part(
        self,
        name: str,
        results: Mapping[str | State, Value],
        written: Sequence[Written],
        plan: Callable[[Graph], EntryPlan],
        start: int = 0,
        inner: bool = True,
    ) -> InnerPlan:
        """The plan of an entry over these inputs. results: of outputs by name, and of states."""
        inputs = tuple(b.inner for b in self.bound if b.inner.node.op is INPUT)
        outputs = {k: v for k, v in results.items() if isinstance(k, str)}
        updates = {k: v for k, v in results.items() if isinstance(k, State)}
        graph = Graph(name, inputs, outputs, updates, inner=inner)
        return InnerPlan(plan(graph), tuple(self.bound), tuple(written), start)


def _input(name: str, type: Type, at: Strided) -> Value:
    return make_input(name, type, layout=at)


def _uniform(v: Value, type: Type | None = None) -> Value | None:
    """The constant inside for a value that shows a constant of one element, which expressions contain; None for
    others."""
    known = uniform(v)
    return None if known is None else filled(known, type or v.type)
