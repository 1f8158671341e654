"""`explain`: a report of a compiled model: graphs, the kernel of every step, the arena map, and sizes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest

from ..codegen.compiler import live_at_peak
from ..codegen.entries import step_comments
from ..codegen.kernel_call import sizes
from ..codegen.program import Entry, Program
from ..ir.kernel_call import KernelCall
from ..ir.names import name_of
from ..ir.node import Value
from ..kernels.table import Kernel
from ..lowering.plan import EntryPlan, Placed, ScanPlan, Step
from ..targets.board import Board
from .text_table import table


def explain(program: Program, board: Board, ram: int | None) -> str:
    """The report. `ram`: the RAM budget of the trainer in bytes, None for no limit."""
    parts = [_heading(program, board)]
    for entry in program.entries:
        parts += [f"{entry.name}\n{'=' * len(entry.name)}", str(entry.plan.graph).rstrip()]
        parts += [_steps(entry, program), _arena(entry, program.layers)]
    parts += [_states(program), _sizes(program, board, ram)]
    return "\n\n".join(parts)


def _heading(program: Program, board: Board) -> str:
    priority = ", ".join(program.backends.names)
    functions = "".join(f"\n  {f.shown}" for f in program.backends.functions.values())
    priority += "".join(f"; for {k}: {', '.join(names)}" for k, names in program.backends.use.items())
    what = f"{program.name} for {board.name} ({board.id}); batch {program.batch}"
    return f"{what}; kernel backends by priority: {priority}{functions}"


# Steps


def _steps(entry: Entry, program: Program) -> str:
    comments = step_comments(entry, program)
    rows = []
    for number, step in entry.plan.all_steps():
        calls = [t for c, k in step.calls.values() for t in _call(c, k, program)] or [_loops(step)]
        beside = zip_longest(comments[number].split("\n"), calls, fillvalue="")
        rows += [(number if k == 0 else "", *cells) for k, cells in enumerate(beside)]
    lines = [table(("step", "what it computes", "by"), rows, right=(0,))]
    lines += [f"{state} is copied: its old value is read after its update" for state in entry.plan.copies]
    return "\n".join(lines)


def _loops(step: Step) -> str:
    if isinstance(step.inner, ScanPlan):
        return f"a loop of {step.inner.length} iterations with its own steps"
    return "loops" if step.inner is None else "a branch with its own steps"


def _call(call: KernelCall, kernel: Kernel, program: Program) -> list[str]:
    """The kernel, then why those of higher priority were rejected."""
    conditions = f", chosen for {' and '.join(map(str, kernel.when))}" if kernel.when else ""
    owner = "" if kernel.declared else f" of {kernel.backend}"
    rejected = program.backends.rejected(call.kernel, call.facts())
    return [f"{kernel.symbol}{owner} ({sizes(call)}{conditions})", *(f"  not {why}" for why in rejected)]


# Memory


def _arena(entry: Entry, layers: Mapping[str, str]) -> str:
    rows = _buffers(entry.plan, "", 0, {}, layers)
    lines = [table(("arena", "offset", "bytes", "steps", "tensor"), rows, right=(1, 2))] if rows else []
    for pool, plan in entry.plan.plans.items():
        if plan.peak or pool == "float":
            verdict = "the bound is met" if plan.peak == plan.bound else f"{plan.peak - plan.bound} above it"
            lines.append(
                f"{pool} arena: peak {plan.peak} bytes, lower bound of this schedule {plan.bound}: {verdict}"
            )
    return "\n".join(lines)


def _buffers(
    plan: EntryPlan, prefix: str, start: int, offsets: Mapping[str, int], layers: Mapping[str, str]
) -> list[tuple[str, ...]]:
    """A row per buffer of a plan whose arenas start at `offsets`; the buffers of a scan or cond follow the buffer that
    contains them."""
    rows: list[tuple[str, ...]] = []
    for b in sorted(plan.placed, key=lambda b: (b.pool, b.offset, b.start)):
        first, last = f"{prefix}{start + b.start}", f"{prefix}{start + b.end}"
        offset = offsets.get(b.pool, 0) + b.offset
        rows.append(
            (
                b.pool,
                str(offset),
                str(b.bytes),
                first if first == last else f"{first} to {last}",
                _tensors(b, first, layers),
            )
        )
        if not b.values and b.owner is not None and b.owner.inner is not None:
            for part in b.owner.inner.parts:
                inner = _buffers(part.plan, f"{first}.", part.start, {b.pool: offset}, layers)
                rows += [row for row in inner if row[0] == b.pool]
    return rows


def _tensors(b: Placed, step: str, layers: Mapping[str, str]) -> str:
    if not b.values:
        return "for the steps inside"
    tensors = ", reused in place by ".join(f"{name_of(v, layers)} {_type(v, b)}" for v in b.values)
    return tensors if b.owner is None else f"scratch of step {step}: {tensors}"


def _type(v: Value, b: Placed) -> str:
    if b.owner is None:
        return repr(v.type)
    return f"{v.type.dtype}[{','.join(map(repr, b.owner.scratch[v].shape))}]"


def _states(program: Program) -> str:
    rows = [(s.name, s.c_name, repr(s.state.logical), str(s.type.bytes), s.role) for s in program.slots]
    orders = [
        f"{s.name} is stored as {s.type!r}: {o}" for s in program.slots if (o := s.state.storage) is not None
    ]
    frozen = sum(a.nbytes for a in program.frozen.values())
    constants = [f"frozen, constants in flash: {', '.join(program.frozen)}; {frozen} bytes"] if frozen else []
    return "\n".join([table(("state", "in C", "type", "bytes", ""), rows, right=(3,)), *orders, *constants])


def _sizes(program: Program, board: Board, ram: int | None) -> str:
    total = program.struct_bytes
    rows = [
        ("parameters and optimizer state", str(program.state_bytes)),
        ("arena, the largest over the entries", str(total - program.state_bytes)),
        (f"sizeof({program.struct})", str(total)),
        ("lower bound of these schedules", str(program.bound_bytes)),
    ]
    if ram is not None:
        rows += [("RAM budget", str(ram)), ("free" if total <= ram else "MISSING", str(abs(ram - total)))]
    lines = [table(("memory", "bytes"), rows, right=(1,))]
    lines += [program.guard_cost] if program.guard_cost else []
    if ram is not None and total > ram:
        live = ", ".join(f"{name} {size}" for name, size in live_at_peak(program)[:6])
        lines.append(f"does not fit {board.id}; live at the peak: {live}")
    return "\n".join(lines)
