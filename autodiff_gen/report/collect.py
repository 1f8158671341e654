"""From a compiled program to the records of its reports: computed once, printed as text and drawn as a page."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..codegen.call_statement import sizes
from ..codegen.entries import step_trees
from ..codegen.entry_names import Inside
from ..codegen.instruction_estimate import instructions_by_step
from ..codegen.program import Entry, Program, RegionStruct
from ..codegen.program_regions import Ram, spaces_of
from ..codegen.stack import stack_of
from ..ir.graph import State
from ..ir.kernel_call import KernelCall
from ..ir.names import name_of
from ..ir.node import CONST, Node, Value
from ..ir.types import planned_size
from ..kernels.table import Kernel
from ..lowering.arena.network_bound import network_bound
from ..lowering.c import c_query
from ..lowering.phases import Phases, layer_of
from ..lowering.plan import EntryPlan, InnerPlan, PlacedBuffer, PlannedStep
from ..lowering.step_order import computing
from ..targets.board import BoardSpec
from ..targets.memory import Space
from .data import (
    INSIDE,
    SCRATCH,
    Again,
    Arena,
    EntryRecord,
    ReportedBuffer,
    ReportedCall,
    ReportedOperand,
    ReportedTensor,
    StepRecord,
)
from .program_report import RegionRecord, Report, StateRecord
from .step_details import again_of, function_of, loops_of, strips_of, type_of, use_of


def collect(program: Program, board: BoardSpec, ram: Ram) -> Report:
    """The records of a program. `ram`: the RAM budget of the trainer in bytes, in total or for each region of memory
    that it may use; None for the board's RAM."""
    spaces = spaces_of(board, ram) if program.is_model else spaces_of(board, ram)[:1]
    priority = ", ".join(program.backends.names)
    priority += "".join(f"; for {k}: {', '.join(names)}" for k, names in program.backends.use.items())
    counts = instructions_by_step(program)
    entries = [_Collector(entry, program, *counts[entry.name]) for entry in program.entries]
    called = {name for entry in entries for name in entry.called}
    return Report(
        program.name,
        program.struct,
        board.name,
        board.id,
        program.samples,
        priority,
        tuple(f.shown for name, f in program.backends.functions.items() if f"ag_{name}" in called),
        tuple(entry.record() for entry in entries),
        tuple(
            StateRecord(
                s.name,
                s.c_name,
                repr(s.state.logical),
                s.type.bytes,
                s.role,
                _stored(s.state),
                next((r.region for r in program.regions if r.pointer == s.owner), ""),
            )
            for s in program.slots
        ),
        {name: array.nbytes for name, array in program.frozen.items()},
        _by_layer(
            (s.name, planned_size(s.state.logical.shape)) for s in program.slots if s.role == "parameter"
        ),
        _by_layer((name, array.size) for name, array in program.frozen.items()),
        program.state_bytes,
        program.struct_bytes,
        program.bound_bytes,
        sum(s.bytes for s in spaces) if spaces else None,
        program.guard_cost,
        stack_of(program) if board.target.core.startswith("cortex-m") else "",
        board.target,
        program.backends.cost.cycles,
        tuple(_region(r, program, spaces) for r in program.regions),
    )


def _region(r: RegionStruct, program: Program, spaces: Sequence[Space]) -> RegionRecord:
    handle = program.handle_bytes if r.region == spaces[0].region else 0
    size = next(s.bytes for s in spaces if s.region == r.region)
    return RegionRecord(r.region, r.state_bytes, r.bytes, handle, size)


def _by_layer(elements: Iterable[tuple[str, int]]) -> dict[str, int]:
    """Sums over the states of a layer."""
    found: dict[str, int] = {}
    for name, count in elements:
        found[layer_of(name)] = found.get(layer_of(name), 0) + count
    return found


def _stored(state: State) -> str:
    return "" if state.storage is None else f"{state.type!r}: {state.storage}"


@dataclass(frozen=True)
class _Part:
    """The plan of an entry, or of a loop or branch in it. top: the step of the entry that contains the plan; known: the
    operands outside for its inputs and states; outputs: the operands outside for its outputs, by name."""

    plan: EntryPlan
    prefix: str = ""
    start: int = 0
    top: PlannedStep | None = None
    inside: Inside = field(default_factory=Inside)  # where its arenas begin
    known: Mapping[object, ReportedOperand] = field(default_factory=dict)
    outputs: Mapping[str, ReportedOperand] = field(default_factory=dict)

    def number(self, k: int) -> str:
        return f"{self.prefix}{self.start + k}"


class _Collector:
    """The record of one entry, plan by plan. instructions: about how many it executes, and each of its steps."""

    def __init__(
        self, entry: Entry, program: Program, instructions: float, by_step: Mapping[str, float]
    ) -> None:
        self.instructions, self.by_step = instructions, by_step
        self.entry, self.program, self.layers = entry, program, program.layers
        trees = step_trees(entry, program)
        self.comments, self.called = c_query.step_comments(trees), c_query.calls(trees)
        self.phases = Phases(entry.plan)
        self.spans: dict[str, tuple[int, int]] = {}  # of each step, the steps inside included
        for k, (number, _) in enumerate(entry.plan.all_steps()):
            self.spans[number] = (k, k)
            while "." in number:
                number = number.rpartition(".")[0]
                self.spans[number] = (self.spans[number][0], k)
        self.buffers: list[ReportedBuffer] = []
        self.steps: list[StepRecord] = []
        self.again: list[tuple[Again, str]] = []

    def record(self) -> EntryRecord:
        plan = self.entry.plan
        self._add(_Part(plan))
        found = ((a, p) for a, p in plan.plans.items() if p.peak or a == "float")
        arenas = {a: Arena(p.peak, p.bound) for a, p in found}
        record = EntryRecord(
            self.entry.name,
            self.entry.c_name,
            tuple(self.steps),
            tuple(self.buffers),
            arenas,
            (),
            tuple(plan.copies),
            str(plan.graph).rstrip(),
            {v.name: repr(v.type) for v in plan.graph.inputs if v.name},
            {name: repr(v.type) for v, name in plan.outputs.items()},
            self.instructions,
            network_bound(plan),
            tuple(strips_of(plan)),
            plan.samples,
            "the cache" if plan.work is None else "the RAM budget",
        )
        again = dict.fromkeys(self._with_end(a, name, record) for a, name in self.again)
        return replace(record, again=tuple(again))

    def _with_end(self, again: Again, original: str, record: EntryRecord) -> Again:
        at = self.spans[again.step][0]
        ends = [last for _, last in record.lives.get(original, ()) if last < at]
        return replace(again, until=self.steps[max(ends)].number) if ends else again

    def _add(self, part: _Part) -> None:
        plan = part.plan
        by_number, steps = {s.number: s for s in plan.steps}, {s.node: s for s in plan.steps}
        places: dict[Value, ReportedOperand] = {}
        for b in plan.placed:
            for k, v in enumerate(b.values if b.owner is None else ()):
                places[v] = ReportedOperand(name_of(v, self.layers), len(self.buffers), k)
            self.buffers.append(self._buffer(b, part, by_number[b.start], steps))
        for step in plan.steps:
            self.steps.append(self._step(step, part, places))
            self.again += again_of(step, part.number(step.number), self.layers)
            for inner in step.inner.parts if step.inner is not None else ():
                self._add(self._inside(inner, step, part, places))

    def _inside(
        self, inner: InnerPlan, step: PlannedStep, part: _Part, places: Mapping[Value, ReportedOperand]
    ) -> _Part:
        number = f"{part.number(step.number)}."
        memory = [b for b in part.plan.placed if b.owner is step and not b.values]
        inside = Inside({b.pool: part.inside.place(b) for b in memory})
        known: dict[object, ReportedOperand] = {}
        for bound in inner.bound:
            known[bound.inner] = self._operand(bound.outer, part, places)
        outputs: dict[str, ReportedOperand] = {}
        for written in inner.written:
            result = self._operand(step.node.results[written.index], part, places)
            if isinstance(written.key, State):
                known[written.key] = result
            else:
                outputs[written.key] = result
        return _Part(inner.plan, number, inner.start, part.top or step, inside, known, outputs)

    def _operand(self, v: Value, part: _Part, places: Mapping[Value, ReportedOperand]) -> ReportedOperand:
        """The buffer, state, argument or constant that stores a value."""
        source = v.base
        state = part.plan.states.get(source)
        if state is not None and state in part.known:
            return part.known[state]
        if state is not None:
            return ReportedOperand(state.name)
        output = part.plan.outputs.get(source)
        if output is not None:
            return part.outputs.get(output, ReportedOperand(output))
        called = self.program.constant_names.get(source) or name_of(source, self.layers)
        return places.get(source) or part.known.get(source) or ReportedOperand(called)

    def _step(self, step: PlannedStep, part: _Part, places: Mapping[Value, ReportedOperand]) -> StepRecord:
        number = part.number(step.number)
        phase, layer = self.phases.inside(step, part.top or step)
        read = (v for v in step.node.operands if v.base.node.op is not CONST or v.type.shape)
        return StepRecord(
            number,
            self.comments[number],
            layer,
            phase,
            "" if step.calls else loops_of(step),
            tuple(self._call(c, k) for c, k in step.calls.values()),
            tuple(dict.fromkeys(self._operand(v, part, places) for v in read)),
            tuple(dict.fromkeys(self._operand(r, part, places) for r in step.node.results)),
            tuple(dict.fromkeys(map(function_of, computing(step)))),
            self.by_step.get(number, 0.0),
        )

    def _call(self, call: KernelCall, kernel: Kernel) -> ReportedCall:
        owner = "" if kernel.declared else kernel.backend
        rejected = self.program.backends.rejected(call.kernel, call.facts())
        return ReportedCall(kernel.symbol, owner, sizes(call), " and ".join(map(str, kernel.when)), rejected)

    def _buffer(
        self, b: PlacedBuffer, part: _Part, writer: PlannedStep, steps: Mapping[Node, PlannedStep]
    ) -> ReportedBuffer:
        first, last = part.number(b.start), part.number(b.end)
        unit = self.program.backends.cost.alignment
        phase, layer = self.phases.inside(writer, part.top or writer)
        arena, offset = part.inside.place(b)
        return ReportedBuffer(
            arena,
            offset,
            b.bytes,
            -(-b.bytes // unit) * unit,
            self.spans[first][0],
            self.spans[last][1],
            first if first == last else f"{first} to {last}",
            tuple(self._tensor(v, b, part, steps.get(v.node, writer)) for v in b.values),
            INSIDE if not b.values else SCRATCH if b.owner is not None else use_of(b.values[0], phase),
            layer,
            part.top is not None,
        )

    def _tensor(self, v: Value, b: PlacedBuffer, part: _Part, writer: PlannedStep) -> ReportedTensor:
        phase, layer = self.phases.inside(writer, part.top or writer)
        use = SCRATCH if b.owner is not None else use_of(v, phase)
        first = self.spans[part.number(writer.number)][0]
        return ReportedTensor(
            name_of(v, self.layers),
            type_of(v, b),
            v.type.bytes if b.owner is None else b.bytes,
            first,
            use,
            layer,
        )
