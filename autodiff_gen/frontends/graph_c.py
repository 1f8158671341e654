"""C in one file over one `float *buf`: the compiler's plan and text, with addresses written `buf + NAME_OFFSET`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..codegen.c_printer import Printer
from ..codegen.constants import ConstantArray, constant_names, constant_tables, table
from ..codegen.entry_body import EntryBody
from ..codegen.files import templates
from ..ir.build import make_input, make_state
from ..ir.graph import Graph, State
from ..ir.identifiers import identifier, unused
from ..ir.liveness import needed_by
from ..ir.node import Value
from ..ir.types import Type, f32
from ..kernels import registry
from ..lowering.c import c_ast as c
from ..lowering.c import c_query
from ..lowering.c.c_syntax import shown
from ..lowering.plan import EntryPlan, PlacedBuffer
from ..lowering.plan_search import lower
from ..passes.context import Context
from ..targets.installation import __version__
from .inline_c import header_files, static_functions

_PRINTER = Printer({"ptrdiff_t": "intptr_t"})  # intptr_t needs no <stddef.h>


@dataclass(frozen=True)
class BufferRange:
    """A part of buf, `words` floats from `offset`; values with disjoint lifetimes may share it."""

    name: str  # in comments
    macro: str  # the name of its offset
    type: Type
    offset: int
    words: int
    note: str = ""

    @property
    def at(self) -> c.Expr:
        """Its address, in C."""
        place = c.Binary("+", c.Name("buf"), c.Name(self.macro))
        return place if self.type.dtype.c == "float" else c.Cast(f"{self.type.dtype.c} *", place)

    @property
    def shown(self) -> str:
        return f"{self.name}{shown(self.type.shape)}" if self.type.shape else self.name


@dataclass(eq=False)
class BufferLayout:
    """The layout of buf: first the values that persist over calls, then the arena of the steps."""

    places: list[BufferRange] = field(default_factory=list)
    kept: int = 0  # floats that persist over calls
    names: set[str] = field(default_factory=set)

    def keep(self, name: str, type: Type, note: str = "") -> BufferRange:
        place = self.add(name, type, self.kept, note)
        self.kept += place.words
        return place

    def add(self, name: str, type: Type, offset: int, note: str = "") -> BufferRange:
        base = identifier(name)
        unique = unused(base.upper(), self.names)
        self.names.add(unique)
        base += unique[len(base) :]
        self.places.append(BufferRange(base, f"{unique}_OFFSET", type, offset, (type.bytes + 3) // 4, note))
        return self.places[-1]


class BufferBody(EntryBody):
    """The steps of one function over buf."""

    def __init__(
        self,
        plan: EntryPlan,
        buffer: BufferLayout,
        homes: Mapping[State, BufferRange],
        outputs: Mapping[str, BufferRange],
        tables: Mapping[Value, str],
        args: Mapping[Value, c.Expr],
    ) -> None:
        self.buffer = buffer
        self.plain = {p.at: p.name for p in (*homes.values(), *outputs.values())}
        slots = {s: p.at for s, p in homes.items()}
        constants = {v: c.Name(name) for v, name in tables.items()}
        super().__init__(plan, args, {k: p.at for k, p in outputs.items()}, slots, constants)
        self.scope.taken.add("buf")

    def _point(self, name: str, type: Type, buffer: PlacedBuffer, note: str, step: int) -> c.Expr:
        # Integers are stored after the floats, so that no byte is used as both.
        pool = self.plan.plans["float"].peak if buffer.pool == "int" else 0
        place = self.buffer.add(name, type, self.buffer.kept + (pool + buffer.offset) // 4, note)
        self.plain[place.at] = name
        self.memories[place.at] = self._memory_of(buffer, type)
        return place.at

    def bare(self, place: c.Expr) -> str:
        return self.plain.get(place) or super().bare(place)


@dataclass(frozen=True)
class InputParam:
    """A parameter or input of the graph. `data`: initial values; `role`: "weight" or "input"."""

    name: str
    state: State
    data: np.ndarray[Any, Any] | None
    role: str


class GraphC:
    """The C of one differentiated graph.

    inputs: every parameter and input, in buf's order; outputs: name -> value, including "loss"; first: the outputs that
    `forward` computes; gradients: a parameter's state -> the name of its gradient among the outputs.
    """

    def __init__(
        self,
        inputs: Sequence[InputParam],
        outputs: Mapping[str, Value],
        first: Sequence[str],
        gradients: Mapping[State, str],
    ) -> None:
        self.inputs, self.tables = inputs, registry.load(["ref"])
        graph = Graph("graph", (), outputs)
        (self.plan,) = lower([graph], Context(backends=self.tables, first=first))
        self.buffer = BufferLayout()
        self.homes: dict[State, BufferRange] = {}
        for p in inputs:
            self.homes[p.state] = self.buffer.keep(
                p.name, p.state.type, "you set it" if p.role == "input" else "weight"
            )
        self.outputs = {k: self.buffer.keep(k, v.type, "result") for k, v in outputs.items()}
        self.gradients = {s: self.outputs[name] for s, name in gradients.items()}
        names = constant_names([self.plan])
        constants = constant_tables(names)
        self.constants = [*constants, *(self._initial(p) for p in inputs if p.data is not None)]
        body = BufferBody(self.plan, self.buffer, self.homes, self.outputs, names, {})
        forward = needed_by(self.plan.graph, first)
        self.forward = [body.statements(s) for s in self.plan.steps if s.node in forward]
        self.backward = [body.statements(s) for s in self.plan.steps if s.node not in forward]
        self.floats = self.buffer.kept + sum(p.peak for p in self.plan.plans.values()) // 4

    def code(self) -> str:
        """Includes, offsets, kernels, `graph_new`, `forward` and `backward`."""
        steps = (*self.forward, *self.backward)
        headers = header_files(self.tables.root)
        offsets = [f"{p.macro} = {p.offset}," for p in self.buffer.places]
        width = max(len(o) for o in offsets)
        return _render(
            "graph.c.j2",
            version=__version__,
            floats=self.floats,
            first=self._copies("weight"),
            inputs=self._copies("input"),
            results=_columns((_reached(p), p.shown) for p in self.outputs.values()),
            offsets=[
                f"{o:<{width}} /* {p.shown}: {p.note} */"
                for o, p in zip(offsets, self.buffer.places, strict=True)
            ],
            tables=self.constants,
            functions=static_functions(
                self.plan.kernels, headers, c_query.calls(steps) | c_query.types(steps)
            ),
            initial=[
                (self.homes[p.state].macro, f"{self.homes[p.state].name}_initial")
                for p in self.inputs
                if p.data is not None
            ],
            forward=[_PRINTER.lines(s) for s in self.forward],
            backward=[_PRINTER.lines(s) for s in self.backward],
        )

    def sgd(self, states: Sequence[State]) -> str:
        """The function `sgd`: W <- W - lr * dW for each of `states`."""
        lr = make_input("lr", Type(f32, ()))
        homes = dict(self.homes)
        updates: dict[State, Value] = {}
        for state in states:
            gradient = State("", state.type, None)
            homes[gradient] = self.gradients[state]
            updates[state] = make_state(state) - lr * make_state(gradient)
        (plan,) = lower([Graph("sgd", (lr,), {}, updates)], Context(backends=self.tables))
        assert not plan.placed, "an update needs no arena"
        body = BufferBody(plan, BufferLayout(), homes, {}, {}, {lr: c.Name("lr")})
        return _render(
            "graph_sgd.c.j2",
            inputs=self._copies("input"),
            loss=_reached(self.outputs["loss"]),
            steps=[_PRINTER.lines(body.statements(s)) for s in plan.steps],
        )

    def _copies(self, role: str) -> list[str]:
        """Lines for a comment: how the caller sets the inputs, or the weights without initial values."""
        chosen = [x for x in self.inputs if x.role == role and (role == "input" or x.data is None)]
        places = [self.homes[x.state] for x in chosen]
        return _columns(
            (f"memcpy(buf + {p.macro}, {p.name}, {p.words} * sizeof(float));", p.shown) for p in places
        )

    def _initial(self, p: InputParam) -> ConstantArray:
        assert p.data is not None
        return table(f"{self.homes[p.state].name}_initial", p.data, p.state.type.dtype)


def _reached(place: BufferRange) -> str:
    return _PRINTER.expression(c.Element(place.at, c.number(0)) if place.words == 1 else place.at)


def _columns(rows: Iterable[tuple[str, str]]) -> list[str]:
    rows = list(rows)
    width = max((len(left) for left, _ in rows), default=0)
    return [f"{left:<{width}}  {right}" for left, right in rows]


def _render(template: str, **values: Any) -> str:
    return templates().get_template(template).render(**values)
