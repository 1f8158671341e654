"""`explain`: the report of a compiled model as text: a summary, or with every step, every buffer and the graphs."""

from __future__ import annotations

from itertools import zip_longest

from ..codegen.program import Program
from ..codegen.program_regions import Ram
from ..errors import counted
from ..targets.board import BoardSpec
from .collect import collect
from .data import EntryRecord, ReportedBuffer, ReportedCall
from .program_report import Report, three_digits
from .text_table import table

MOST = 8  # rows of a table of the largest


def explain(program: Program, board: BoardSpec, ram: Ram, full: bool = False) -> str:
    """The report of a program. `ram`: see `collect`; `full`: see `text`."""
    return text(collect(program, board, ram), full)


def text(report: Report, full: bool = False) -> str:
    """The report; `full`: with all steps, arena maps, states and the IR."""
    parts = [_heading(report), _sizes(report), _work(report)]
    parts += [p for e in report.entries for p in (_peak(e), _samples(e), _strips(e), _again(e)) if p]
    parts += [_largest(report), *filter(None, map(_kernels, report.entries))]
    if full:
        for entry in report.entries:
            parts += [f"{entry.name}\n{'=' * len(entry.name)}", entry.graph, _steps(entry), _arena(entry)]
        parts.append(_states(report))
    return "\n\n".join(parts)


def _heading(report: Report) -> str:
    functions = "".join(f"\n  {f}" for f in report.functions)
    what = f"{report.name} for {report.board} ({report.board_id}); batch {report.batch}"
    return f"{what}; kernel backends by priority: {report.priority}{functions}"


# Summary


def _sizes(report: Report) -> str:
    lines = [table(("memory", "bytes"), [(what, str(size)) for what, size in report.memory], right=(1,))]
    lines += [line for line in (report.guard_cost, report.stack) if line]
    if report.ram is not None and report.struct_bytes > report.ram:
        live = ", ".join(f"{name} {size}" for name, size in report.live[:6])
        lines.append(f"does not fit {report.board_id}; live at the peak: {live}")
    return "\n".join(lines)


def _work(report: Report) -> str:
    """A row for each entry, with the columns that the board's file allows."""
    work = [report.work(e) for e in report.entries]
    columns = {
        "work of a call, estimated": [e.name for e in report.entries],
        "instructions": [f"{w.instructions:,.0f}" for w in work],
        "cycles": [f"{w.cycles:,.0f}" for w in work if w.cycles is not None],
        "ms": [three_digits(w.milliseconds) for w in work if w.milliseconds is not None],
        "mJ": [three_digits(w.millijoules) for w in work if w.millijoules is not None],
    }
    known = {head: cells for head, cells in columns.items() if len(cells) == len(work)}
    rows = list(zip(*known.values(), strict=True))
    text = table(list(known), rows, right=range(1, len(known)))
    return f"{text}\n{report.assumed()}".rstrip("\n")


def _peak(entry: EntryRecord) -> str:
    """The sizes of the arenas, and the tensors that are alive where most is."""
    lines = []
    for pool, arena in entry.arenas.items():
        bounds = [("the lower bound of this schedule", arena.bound)]
        if pool == next(iter(entry.arenas)) and entry.network_bound:
            bounds.append(("the bound of the network", entry.network_bound))
        ratios = "".join(f", {arena.peak / b:.2f} x {name} ({b})" for name, b in bounds if b)
        steps = counted(len(entry.steps), "step")
        lines.append(f"{entry.name}: {steps}, {pool} arena: peak {arena.peak} bytes{ratios}")
    live = entry.live(entry.peak) if entry.steps else []
    if live:
        step = entry.steps[entry.peak]
        where = f"{step.phase}: {step.layer}" if step.layer else step.phase
        head = (f"live at the peak, step {step.number} ({where})", "layer", "steps", "bytes")
        held = [(b, b.at(entry.peak)) for b in live[:MOST]]
        rows = [(f"{t.name} {t.type}", t.layer or "-", b.steps, str(b.bytes)) for b, t in held]
        rest = live[MOST:]
        rows += [(counted(len(rest), "other"), "", "", str(sum(b.bytes for b in rest)))] if rest else []
        lines.append(table(head, rows, right=(3,)))
    return "\n".join(lines)


def _samples(entry: EntryRecord) -> str:
    if not entry.samples:
        return ""
    return f"{entry.name} computes its batch {counted(entry.samples, 'sample')} at a time, for {entry.divided_for}"


def _strips(entry: EntryRecord) -> str:
    rows = [(str(s.count), f"{s.first} to {s.last}", ", ".join(s.layers)) for s in entry.strips]
    head = ("strips", "steps", f"layers of {entry.name} in strips, for the RAM budget")
    return table(head, rows, right=(0,)) if rows else ""


def _again(entry: EntryRecord) -> str:
    if not entry.again:
        return ""
    again = sorted(entry.again, key=lambda a: -a.bytes)
    rows = [(a.step, a.name, a.type, a.layer or "-", a.until or "-", str(a.bytes)) for a in again[:MOST]]
    rest = [a.bytes for a in again[MOST:]]
    rows += [("", counted(len(rest), "other"), "", "", "", str(sum(rest)))] if rest else []
    head = ("step", f"computed again in {entry.name}", "type", "layer", "stored until", "bytes")
    return table(head, rows, right=(0, 4, 5))


def _largest(report: Report) -> str:
    rows = [(name, what, type, str(size)) for name, what, type, size in report.tensors[:MOST]]
    return table(("largest tensors", "", "type", "bytes"), rows, right=(3,))


def _kernels(entry: EntryRecord) -> str:
    """A row for each kernel with its sizes, and the steps that call it."""
    calls: dict[ReportedCall, list[str]] = {}
    for step in entry.steps:
        for call in step.calls:
            calls.setdefault(call, []).append(step.number)
    rows = []
    for call, steps in calls.items():
        lines = [str(call), *(f"  not {why}" for why in call.rejected)]
        rows += [(", ".join(steps) if k == 0 else "", line) for k, line in enumerate(lines)]
    return table((f"{entry.name}, steps", "kernel"), rows) if rows else ""


# Everything


def _steps(entry: EntryRecord) -> str:
    rows = []
    for step in entry.steps:
        by = [line for c in step.calls for line in (str(c), *(f"  not {why}" for why in c.rejected))]
        beside = zip_longest(step.text.split("\n"), by or [step.by], fillvalue="")
        rows += [(step.number if k == 0 else "", *cells) for k, cells in enumerate(beside)]
    lines = [table(("step", "computation", "by"), rows, right=(0,))]
    lines += [f"{state} is copied: its old value is read after its update" for state in entry.copies]
    return "\n".join(lines)


def _arena(entry: EntryRecord) -> str:
    buffers = sorted(entry.buffers, key=lambda b: (b.pool, b.offset, b.first, b.nested))
    rows = [(b.pool, str(b.offset), str(b.bytes), b.steps, _names(b)) for b in buffers]
    return table(("arena", "offset", "bytes", "steps", "tensor"), rows, right=(1, 2))


def _names(b: ReportedBuffer) -> str:
    tensors = ", reused in place by ".join(f"{t.name} {t.type}" for t in b.tensors)
    return f"{b.use}: {tensors}" if b.is_scratch else tensors or b.use


def _states(report: Report) -> str:
    places = [f"{s.role} in {s.region}" if s.region else s.role for s in report.states]
    rows = [(s.name, s.c_name, s.type, str(s.bytes), p) for s, p in zip(report.states, places, strict=True)]
    orders = [f"{s.name} is stored as {s.stored}" for s in report.states if s.stored]
    frozen = sum(report.frozen.values())
    constants = [f"frozen, constants in flash: {', '.join(report.frozen)}; {frozen} bytes"] if frozen else []
    return "\n".join([table(("state", "in C", "type", "bytes", ""), rows, right=(3,)), *orders, *constants])
