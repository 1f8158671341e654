"""The memory that training takes, by workload and network: states, arena and its bounds, beside other programs.

    .venv/bin/python bench/memory.py                               all, as tables
    .venv/bin/python bench/memory.py w1 mcunet                     some
    .venv/bin/python bench/memory.py --docs docs/benchmarks.md     all, into the section `memory` of the document

Nothing is run: the numbers come from the plan, which the generated C holds by its `sizeof`.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from document_section import command

from autodiff_gen.bench.markdown import markdown_table
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.report.collect import collect
from autodiff_gen.report.program_report import Report
from autodiff_gen.targets import board, installation

HERE = Path(__file__).parent
BOARD = str(HERE / "qemu" / "mps2_an386_psram.toml")  # a Cortex-M4F with memory for all of them
KERNELS = ("armv7em", "ref")
SCHEDULE = "lower bound of this schedule"  # as a report names it
GROUPS = {
    "workloads": installation.workloads,
    "networks": installation.networks,
    "8-bit networks": installation.sparse_updates,
}


def report(path: Path) -> Report:
    """The records of a model file."""
    b, file = board.load(BOARD), load_file(str(path))
    return collect(compile_file(file.made, file.name, KERNELS, b), b, b.ram_bytes)


def others() -> dict[str, dict[str, int]]:
    """Bytes by program and by model."""
    table = tomllib.loads((HERE / "memory.toml").read_text(encoding="utf-8"))
    return {program: rows for program, rows in table.items() if program != "schema"}


def times(bytes: int, larger: int, smaller: int) -> str:
    return f"{bytes:,} ({larger / smaller:.2f}x)"


def table(reports: Mapping[str, Report], group: str) -> str:
    """A row for each model; columns of other programs that have one of them, and of bounds of the arena: the bound of
    the schedule only if an arena exceeds it. Times: the arena by its bound; what another program takes by states and
    arena."""
    programs = {name: rows for name, rows in others().items() if rows.keys() & reports.keys()}
    bounds = dict.fromkeys(
        what
        for r in reports.values()
        for what, bytes in r.largest.bounds
        if what != SCHEDULE or r.largest.arena_bytes > bytes
    )
    head = (group, "states", "arena", *bounds, "states and arena", *programs)
    rows = []
    for name, r in reports.items():
        known, arena = dict(r.largest.bounds), r.largest.arena_bytes
        rows.append(
            (
                installation.title(name),
                f"{r.state_bytes:,}",
                f"{arena:,}",
                *(times(known[b], arena, known[b]) if b in known else "-" for b in bounds),
                f"{r.struct_bytes:,}",
                *(times(p[name], p[name], r.struct_bytes) if name in p else "-" for p in programs.values()),
            )
        )
    return markdown_table(head, rows, right=tuple(range(1, len(head))))


def text(names: Sequence[str]) -> str:
    """The tables of some models, of all if none is named."""
    parts = []
    for group, models in GROUPS.items():
        chosen = {name: path for name, path in models().items() if not names or name in names}
        if chosen:
            parts.append(table({name: report(path) for name, path in chosen.items()}, group))
    return "\n\n".join(parts)


def main(words: Sequence[str]) -> int:
    return command(
        words,
        "Print the memory that training takes, by workload and network.",
        "memory",
        "workload",
        installation.benchmarks(),
        text,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
