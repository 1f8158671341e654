"""`bench`: the cost of a training step on a board, measured in QEMU: instructions by step of the generated C and by
layer, code size and stack, compared with the record of the last run. docs/benchmarks.md describes the record."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ..errors import ToolError
from ..owned_files import write_file
from ..targets.board import BoardSpec
from .cycle_model import estimate
from .linker_map import text_bytes
from .qemu_counter import ProbeCounts, count, disassembly, plugin

SCHEMA = 1
TRAINING = ("train_step", "accumulate", "apply")
Record: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Programs:
    """The benchmark's programs, with the ordinary generated C and with probes in it, and the JSON list of probes."""

    plain: Path
    probed: Path
    probes: Path


def measure(
    board: BoardSpec, kernels: Sequence[str], profile: str, programs: Programs, plugins: Path
) -> Record:
    """The record of a model on a board; `profile` is the build profile (speed or size), `plugins` the folder of the
    compiled plugin. Raises ToolError."""
    listed = json.loads(programs.probes.read_text())
    probes, steps = listed["probes"], listed["steps"]
    plain, probed = (count_program(board, elf, plugins) for elf in (programs.plain, programs.probed))
    entries = [
        {"entry": p["entry"], **measurement(plain, p["id"], steps, _macs(probes, p["entry"]))}
        for p in probes
        if not p["step"]
    ]
    rows = [
        {
            **{k: p[k] for k in ("entry", "step", "layer", "phase", "text", "kernels")},
            **measurement(probed, p["id"], steps, p["macs"]),
        }
        for p in probes
    ]
    trained = [e for e in entries if e["entry"] in TRAINING]
    total = _sum(trained or entries)
    return {
        "schema": SCHEMA,
        "model": listed["model"],
        "board": board.id,
        "core": board.target.core,
        "kernels": list(kernels),
        "profile": profile,
        "batch": listed["batch"],
        "steps": steps,
        "instructions_per_step": total["instructions"],
        "cycles_per_step": total["cycles"],
        "macs_per_step": total["macs"],
        "instructions_per_mac": _ratio(total["instructions"], total["macs"]),
        "entries": entries,
        "layers": _layers(rows),
        "graph_steps": rows,
        "text": text_bytes(programs.plain.with_suffix(".map"), listed["model"]),
        "stack": plain.stack,
        "state_and_arena": listed["bytes"],
        "losses": plain.losses,
    }


# Counting


@dataclass(frozen=True)
class Counted:
    """The counts of a run, estimated cycles by probe, the stack's high-water mark in bytes, and losses."""

    counts: ProbeCounts
    cycles: Mapping[int, float | None]
    stack: int
    losses: list[float]


def count_program(board: BoardSpec, elf: Path, plugins: Path) -> Counted:
    """Run a benchmark program; the plugin is built in `plugins`. Raises ToolError."""
    counts = count(board, elf, plugin(plugins))
    code = disassembly(board, elf)
    cycles = {}
    for number, total in counts.instructions.items():
        profile = counts.profile.get(number, {})
        if sum(profile.values()) != total:
            raise ToolError(
                f"{elf}: the profile of probe {number} has {sum(profile.values())} of {total} instructions"
            )
        cycles[number] = estimate(board.target.core, profile, code)
    words = [line.split() for line in counts.printed]
    stack = [int(w[1]) for w in words if w[:1] == ["stack"]]
    losses = [float(w[1]) for w in words if w[:1] == ["loss"]]
    if not stack:
        raise ToolError(f"{elf}: prints no high-water mark of the stack")
    return Counted(counts, cycles, stack[0], losses)


def measurement(counted: Counted, number: int, steps: int, macs: int) -> Record:
    """Mean instructions and estimated cycles of a probe over `steps` calls, and the MACs of one call."""
    instructions = counted.counts.instructions.get(number, 0) / steps
    cycles = counted.cycles.get(number, 0.0)
    return {
        "instructions": plain(instructions),
        "cycles": None if cycles is None else round(cycles / steps),
        "macs": macs,
        "instructions_per_mac": _ratio(instructions, macs),
    }


def plain(x: float) -> int | float:
    """A mean over steps, as an int when it is integral."""
    return int(x) if x == int(x) else round(x, 2)


def _ratio(a: float, b: float) -> float | None:
    return round(a / b, 3) if b else None


def _macs(probes: Sequence[Record], entry: str) -> int:
    return sum(p["macs"] for p in probes if p["entry"] == entry)


def _sum(rows: Sequence[Record]) -> Record:
    cycles = [r["cycles"] for r in rows]
    instructions, macs = sum(r["instructions"] for r in rows), sum(r["macs"] for r in rows)
    return {
        "instructions": plain(instructions),
        "cycles": None if None in cycles else sum(cycles),
        "macs": macs,
        "instructions_per_mac": _ratio(instructions, macs),
    }


def _layers(rows: Sequence[Record]) -> list[Record]:
    """The graph steps summed by entry, layer and phase, in the order of their first step."""
    groups: dict[tuple[str, str, str], list[Record]] = {}
    for row in rows:
        groups.setdefault((row["entry"], row["layer"], row["phase"]), []).append(row)
    return [
        {"entry": entry, "layer": layer, "phase": phase, **_sum(members)}
        for (entry, layer, phase), members in groups.items()
    ]


# The last record


def last_record(path: Path) -> Record | None:
    """The record of the last run; None without one, or with one of another schema."""
    try:
        record = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return record if isinstance(record, dict) and record.get("schema") == SCHEMA else None


def write_record(path: Path, record: Record, force: bool = False) -> None:
    """Write bench.json."""
    write_file(path, json.dumps(record, indent=1) + "\n", force)
