"""The report as one HTML page: the records, laid out by the template; its script only shows, hides and highlights."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jinja2

from ..codegen.formulas import of_results
from ..errors import counted
from ..ir.origin import BACKWARD, FORWARD, LOSS, UPDATE
from ..targets.installation import __version__
from .data import AGAIN, INSIDE, SCRATCH, EntryRecord, ReportedBuffer, ReportedOperand, ReportedTensor
from .fleet_pictures import fleet_pictures
from .listing import Line
from .network import network_picture
from .program_report import CallWork, Report, three_digits
from .symbols import MemoryUse, Symbol
from .timeline import RoundRow

USES = (FORWARD, LOSS, BACKWARD, UPDATE, AGAIN, SCRATCH, INSIDE)
LABELLED = (
    0.035,
    0.03,
)  # the least part of the width and of the height of a buffer that is labelled in the map
MOST = 12  # rows of a table of the largest


@dataclass(frozen=True)
class Measured:
    """What was measured of the program: its memories, from the ELF file, a record of `bench`, and rounds of a fleet."""

    memories: Sequence[MemoryUse] = ()
    bench: Mapping[str, Any] = field(default_factory=dict)
    fleet: Sequence[RoundRow] = ()


def page(report: Report, listings: Mapping[str, Sequence[Line]], measured: Measured) -> str:
    """The text of the page."""
    entries = [
        {
            "record": e,
            "map": arena_map(e),
            "network": _network(e, report, measured.bench),
            "cost": _costs(e, measured.bench),
            "code": listings[e.name],
        }
        for e in sorted(report.entries, key=lambda e: -e.arena_bytes)
    ]
    return (
        _templates()
        .get_template("report.html.j2")
        .render(
            r=report,
            version=__version__,
            entries=entries,
            memories=[(m, parts(m, report), trainer(m, report)) for m in measured.memories],
            bench=measured.bench,
            work=_work(report, measured.bench),
            fleet=fleet_pictures(measured.fleet) if measured.fleet else None,
            uses=USES,
            most=MOST,
        )
    )


@functools.cache
def _templates() -> jinja2.Environment:
    env = jinja2.Environment(
        loader=jinja2.PackageLoader("autodiff_gen.report"),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    env.filters |= {
        "number": number,
        "kilobytes": kilobytes,
        "kind": kind,
        "keys": keys,
        "digits": three_digits,
    }
    env.filters["percent"] = lambda x: f"{100 * x:.4g}%"
    return env


def number(x: float | None) -> str:
    """A number with thousands separators; `-` for None."""
    return "-" if x is None else f"{x:,.0f}"


def kilobytes(x: int) -> str:
    """Bytes, in KB where that is an integer."""
    return f"{x // 1024:,} KB" if x and x % 1024 == 0 else f"{x:,}"


def keys(operands: Sequence[ReportedOperand]) -> str:
    """The keys of the shapes of a step's operands or results."""
    return " ".join(f"{o.buffer}-{o.tensor}" for o in operands if o.buffer is not None)


def kind(use: str) -> str:
    """The first word of a use or phase, as a class of the style sheet: `forward and loss` is forward."""
    return use.replace(",", " ").split()[0]


# The arena over the steps


@dataclass(frozen=True)
class Shape:
    """A tensor in the map, or the memory of a loop's own steps: key, the indices of its buffer and of the tensor in it,
    and a rectangle in steps and bytes, y from the first arena's start."""

    key: str
    buffer: ReportedBuffer
    tensor: ReportedTensor | None
    step: str  # that writes it
    x: int
    y: int
    width: int
    height: int
    label: str

    @property
    def use(self) -> str:
        return self.buffer.use if self.tensor is None else self.tensor.use

    @property
    def name(self) -> str:
        return self.use if self.tensor is None else self.tensor.name


@dataclass(frozen=True)
class StepRun:
    """Steps in a row that have something in common; `label` is empty where there is no room for the text."""

    text: str
    label: str
    kind: str
    width: int


@dataclass(frozen=True)
class ArenaMap:
    """The arenas of an entry over its steps, one on the other; width in steps, height in bytes, top the height of the
    drawing. live: the bytes in use over the steps, as points of a polyline; bases: where each arena begins; bands: the
    phases and the layers of the steps."""

    width: int
    height: int
    top: int
    shapes: tuple[Shape, ...]
    live: str
    bases: Mapping[str, int]
    bands: tuple[tuple[StepRun, ...], ...]

    def has(self, use: str) -> bool:
        return any(kind(s.use) == kind(use) for s in self.shapes)

    @property
    def ticks(self) -> list[int]:
        """Round numbers of bytes for the axis: 0, and four to eight others."""
        step = 1
        while self.height // step > 8:
            step *= 2
        if self.height >= 4096:
            step = max(1024, 1 << (step - 1).bit_length())
        return list(range(0, self.height + 1, step))


def arena_map(entry: EntryRecord) -> ArenaMap:
    """The drawing of an entry's arenas. The memory of loops and branches comes first, so that the buffers in it are
    drawn over it."""
    bases, height = {}, 0
    for pool, arena in entry.arenas.items():
        bases[pool] = height
        height += arena.peak
    width, top = len(entry.steps), height + (height + 11) // 12
    shapes: list[Shape] = []
    for index, b in enumerate(entry.buffers):
        y = bases[b.pool] + b.offset
        starts = [b.first, *(t.first for t in b.tensors[1:])]
        ends = [*(start - 1 for start in starts[1:]), b.last]
        for k, (first, last) in enumerate(zip(starts, ends, strict=True)):
            tensor = b.tensors[k] if b.tensors else None
            w = last - first + 1
            wide = w >= LABELLED[0] * width and b.size >= LABELLED[1] * height
            label = tensor.name if tensor is not None and wide else ""
            step = entry.steps[first].number
            shapes.append(Shape(f"{index}-{k}", b, tensor, step, first, y, w, b.size, label))
    shapes.sort(key=lambda s: s.tensor is not None)
    points = [f"{x},{top - bytes}" for k, bytes in enumerate(entry.live_bytes) for x in (k, k + 1)]
    bands = (
        _runs([(s.phase, kind(s.phase)) for s in entry.steps]),
        _runs([(s.layer, "layer") for s in entry.steps]),
    )
    return ArenaMap(width, height, top, tuple(shapes), " ".join(points), bases, bands)


def _runs(steps: Sequence[tuple[str, str]]) -> tuple[StepRun, ...]:
    runs = []
    for (text, what), some in itertools.groupby(steps):
        width = len(list(some))
        runs.append(StepRun(text, text if width >= LABELLED[0] * len(steps) else "", what, width))
    return tuple(runs)


# What was measured


def other_program(report: Report, bench: Mapping[str, Any]) -> str:
    """The difference between this program and the program of a record of `bench`; empty if they are the same."""
    ours = {"model": report.name, "board": report.board_id, "batch": report.batch}
    for key, value in ours.items():
        if bench.get(key) != value:
            return f"it is of {key} {bench.get(key)}, not {value}"
    steps = {(e.name, s.number, of_results(s.text)) for e in report.entries for s in e.steps}
    same = steps == {(r["entry"], r["step"], r["text"]) for r in bench["graph_steps"] if r["step"]}
    return "" if same else "its steps are others"


def _costs(entry: EntryRecord, bench: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """The rows of a record by the numbers of an entry's steps, "" for the row outside of all steps."""
    return {r["step"]: r for r in bench.get("graph_steps", ()) if r["entry"] == entry.name}


def _network(entry: EntryRecord, report: Report, bench: Mapping[str, Any]) -> str:
    """The picture of an entry's layers, with the time that was measured, or by the estimate; empty without layers."""
    costs = {s.number: s.instructions for s in entry.steps}
    if bench:
        costs = {step: float(row["instructions"]) for step, row in _costs(entry, bench).items() if step}
    return str(network_picture(entry, report, costs) or "")


def _work(report: Report, bench: Mapping[str, Any]) -> CallWork | None:
    """The work of a training step, counted by `bench` or estimated; None for a program without one."""
    step = next((e for e in report.entries if e.name == "train_step"), None)
    if step is None:
        return None
    if bench:
        return report.work_of(bench["instructions_per_step"], bench["cycles_per_step"])
    return report.work(step)


@dataclass(frozen=True)
class MemoryShare:
    """Part of a memory that a program occupies, for a bar; `share` of the memory, or of its used bytes if its size is
    not known."""

    name: str
    bytes: int
    share: float
    use: str


def parts(memory: MemoryUse, report: Report) -> list[MemoryShare]:
    """The contents of a memory: the struct as states and arena, then the largest symbols, then the rest."""
    whole = memory.usage.size or memory.usage.used
    rows: list[tuple[str, int, str]] = []
    rest: list[Symbol] = []
    struct = trainer(memory, report)
    for symbol in memory.symbols:
        if symbol is struct:
            states = _structs(memory, report)[symbol.bytes]
            rows.append(("states", states, UPDATE))
            rows.append(("arena", symbol.bytes - states, FORWARD))
        elif symbol.bytes >= whole / 50 and len(rows) < MOST:
            rows.append((symbol.name, symbol.bytes, f"is-{symbol.kind}"))
        else:
            rest.append(symbol)
    if rest:
        rows.append((counted(len(rest), "other"), sum(s.bytes for s in rest), "is-other"))
    return [MemoryShare(name, size, size / whole, use) for name, size, use in rows if size]


def trainer(memory: MemoryUse, report: Report) -> Symbol | None:
    """The variable that is the program's struct, or the one in this region, by its size; None where there is none."""
    sizes = _structs(memory, report)
    found = [s for s in memory.symbols if s.kind == "variable" and s.bytes in sizes]
    return found[0] if found else None


def _structs(memory: MemoryUse, report: Report) -> dict[int, int]:
    """The size of the program's struct in a memory, with the bytes of its states."""
    if not report.regions:
        return {report.struct_bytes: report.state_bytes}
    return {r.struct_bytes: r.state_bytes for r in report.regions if r.name == memory.usage.region}
