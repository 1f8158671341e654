"""The names of an entry's values in C: the caller's arrays, states, constants, and pointers into the arena."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..ir.graph import State
from ..ir.identifiers import Scope
from ..ir.names import NO_LAYERS, Called, called
from ..ir.node import CONST, INPUT, STATE, Node, Value
from ..ir.types import Type
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..lowering.c.c_syntax import shown
from ..lowering.loops.pointed_memory import CALLER, PointedMemory
from ..lowering.plan import EntryPlan, PlacedBuffer, PlannedStep
from .c_printer import PRINTER
from .convolution_structs import Geometry

ONE_STRUCT: Mapping[str, c.Expr] = {"float": c.Member("t", "arena"), "int": c.Member("t", "int_arena")}


@dataclass(frozen=True)
class Inside:
    """The context of a region: by pool, the arena around it with its offset there in bytes; names in scope with their
    memory and meaning; and the prefix and start of its step numbers."""

    arenas: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    prefix: str = ""
    start: int = 0
    memories: Mapping[c.Expr, PointedMemory] = field(default_factory=dict)
    called: Mapping[c.Expr, Called] = field(default_factory=dict)

    def place(self, buffer: PlacedBuffer) -> tuple[str, int]:
        """The arena of the entry that has the buffer, and its offset there in bytes."""
        arena, offset = self.arenas.get(buffer.arena_name, (buffer.arena_name, 0))
        return arena, offset + buffer.offset


class Names:
    """The names of one entry. Five maps lead to memory in C: `args` from inputs of the graph, `outputs` from names of
    outputs, `slots` from states, `tables` from constant arrays, and `arenas` from the plan's arenas. `geometry` maps
    structs to their names at file scope, `layers` long paths of modules to short ones. With `poison`, memory is filled
    with NaN after the last step that uses it.
    """

    def __init__(
        self,
        plan: EntryPlan,
        args: Mapping[Value, c.Expr],
        outputs: Mapping[str, c.Expr],
        slots: Mapping[State, c.Expr],
        tables: Mapping[Value, c.Expr],
        inside: Inside | None = None,
        geometry: Mapping[Geometry, str] | None = None,
        layers: Mapping[str, str] = NO_LAYERS,
        poison: bool = False,
        arenas: Mapping[str, c.Expr] = ONE_STRUCT,
    ) -> None:
        self.poison, self.arenas = poison, arenas
        self.plan, self.args, self.slots, self.tables = plan, args, slots, tables
        self.inside = inside or Inside()
        known = [*args.values(), *outputs.values(), *tables.values()]
        self.geometry, self.layers = geometry or {}, layers
        names = [x.text for x in known if isinstance(x, c.Name)]
        names += [x.pointer for x in arenas.values() if isinstance(x, c.Member)]
        self.scope = Scope([*self.inside.taken, *names, *plan.loop_names, *self.geometry.values()])
        self.names: dict[Value, c.Expr] = {v: outputs[name] for v, name in plan.outputs.items()}
        self.memories = {**self._given(), **self.inside.memories}  # of arrays, by their places
        self.called = {
            table: called(v, self.layers) for v, table in tables.items()
        }  # the meaning of names of places
        self.called |= self.inside.called
        self.scratch: dict[tuple[PlannedStep, Value], c.Expr] = {}
        self.pointers: dict[int, list[c.Declare]] = {}  # by the number of the step that first uses them
        numbers = {s.node: s.number for s in plan.steps}
        for buffer in plan.placed:
            self._declare(buffer, numbers)

    def _given(self) -> dict[c.Expr, PointedMemory]:
        """The memory of the caller's arrays, of states and of constants."""
        memories = {
            table: PointedMemory(CALLER, _text(table), 0, v.type.dtype.size)
            for v, table in self.tables.items()
        }
        for v, place in (*self.args.items(), *self.names.items()):
            memories[place] = PointedMemory(CALLER, _text(place), 0, 4).of_type(v.type.dtype)
        for state, place in self.slots.items():
            memories[place] = PointedMemory(_text(place), _text(place), 0, 4).of_type(state.type.dtype)
        return memories

    def _declare(self, buffer: PlacedBuffer, numbers: Mapping[Node, int]) -> None:
        first, last = self.number(buffer.start), self.number(buffer.end)
        ends = f"memory of step {first}" if first == last else f"memory of steps {first} to {last}"
        for k, v in enumerate(buffer.values):
            wanted = called(v, self.layers)
            if buffer.owner is not None and buffer.owner.nest is not None:
                wanted = wanted.with_part("row")
            shape = v.type.shape
            if buffer.owner is not None:
                shape = buffer.owner.scratch[v].shape
            before = buffer.values[:k][-1:] or (buffer.over.values[-1:] if buffer.over is not None else [])
            note = f"in place of {self.bare(self.names[before[0]])}" if before else ends
            step = numbers[v.node] if buffer.owner is None else buffer.owner.number
            name = self.scope.fresh(wanted.text)
            self.called[c.Name(name)] = wanted
            place = self._point(name, Type(v.type.dtype, shape), buffer, note, step)
            if buffer.owner is None:
                self.names[v] = place
            else:
                self.scratch[buffer.owner, v] = place

    def _point(self, name: str, type: Type, buffer: PlacedBuffer, note: str, step: int) -> c.Expr:
        """Declare at a step the pointer `name` to a buffer of the arena. Returns the name."""
        c_type, start = type.dtype.c, self.start_of(buffer)
        if c_type not in ("float", "int32_t"):
            start = c.Cast(f"{c_type} *", start)
        comment = f"{shown(type.shape)} {note}"
        pointer = c.Declare(f"{c_type} *", ((name, start),), True, comment, self.called[c.Name(name)])
        self.pointers.setdefault(step, []).append(pointer)
        self.memories[c.Name(name)] = self._memory_of(buffer, type)
        return c.Name(name)

    def _memory_of(self, buffer: PlacedBuffer, type: Type) -> PointedMemory:
        """The part of the arena that a buffer takes."""
        arena, offset = self.inside.place(buffer)
        root, origin = _text(self.arenas[arena]), offset // 4 * 4
        return PointedMemory(root, root, origin, 4, origin, origin + type.bytes).of_type(type.dtype)

    def start_of(self, buffer: PlacedBuffer, skipped: int = 0) -> c.Expr:
        """The address of a buffer, or `skipped` bytes after it."""
        arena, offset = self.inside.place(buffer)
        offset += skipped
        return c.plus(self.arenas[arena], c_syntax.offset(offset // 4, []))

    def number(self, number: int) -> str:
        return f"{self.inside.prefix}{self.inside.start + number}"

    def bare(self, place: c.Expr) -> str:
        """A place as comments show it: a member of a struct without the pointer."""
        return place.name if isinstance(place, c.Member) else PRINTER.expression(place)

    def place(self, v: Value) -> c.Expr:
        """The memory in which v.base is stored."""
        source = v.base
        if source in self.args:
            return self.args[source]
        if source in self.plan.states:
            return self.slots[self.plan.states[source]]
        if source.node.op is CONST:
            return self.tables[source]
        return self.names[source]

    def by_value(self, v: Value) -> bool:
        source = v.base
        return source in self.args and source.type.shape == () and source.node.op in (INPUT, STATE)

    def scalar(self, v: Value) -> c.Expr:
        source = v.base
        if source.node.op is CONST:
            return c.Literal(c_syntax.literal(source.node.attrs["value"].reshape(-1)[0], v.type.dtype))
        return self.place(v) if self.by_value(v) else self.element(self.place(v), 0, [])

    def element(self, place: c.Expr, start: int, steps: Sequence[tuple[c.Expr | None, int]]) -> c.Element:
        """The element of an array at the index `start` plus each variable times its step."""
        terms = [(v, k) for v, k in ((c.number(start), int(start != 0)), *steps) if v is not None and k]
        return c.Element(place, c.index(*terms), self.memories[place])


def _text(place: c.Expr) -> str:
    """The text that names the memory of a state or an argument."""
    return f"{place.pointer}->{place.name}" if isinstance(place, c.Member) else PRINTER.expression(place)
