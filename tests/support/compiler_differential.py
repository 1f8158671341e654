"""Programs that call many graphs on the same data, so that compilers can be compared: every one prints a line for each
call, with a checksum of all that the call has written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import firmware_build
import numpy as np
from checkout import C
from generated_c import joined_files
from random_functions import Case

from autodiff_gen.bench.program import data
from autodiff_gen.codegen.constants import table
from autodiff_gen.codegen.program import Arg, Entry, Program
from autodiff_gen.ir.types import bound, planned_size
from autodiff_gen.kernels import registry
from autodiff_gen.lowering.c import c_syntax
from autodiff_gen.model.loader import LoadedFile
from autodiff_gen.targets import board

# Where a program runs, its compiler (None: the board's gcc) and flags; the first is what others are compared with.
Build = tuple[str, str | None, str]
BOARD = str(Path(__file__).with_name("large_flash.toml"))
BUILDS: tuple[Build, ...] = (
    ("host", "gcc", "-O0"),
    *(("host", "gcc", level) for level in ("-O1", "-O2", "-O3")),
    ("host", "clang", "-O2"),
    *((BOARD, None, level) for level in ("-O2", "-O3", "-Os")),
)


@dataclass(frozen=True)
class Calls:
    """A program with arrays for its inputs: `given(entry, arg)` for the largest batch."""

    program: Program
    given: Mapping[tuple[str, str], Any]


def calls_of_case(case: Case, program: Program) -> Calls:
    return Calls(program, {_key(e, a): case.feeds[a.value] for e, a in _inputs(program)})  # type: ignore[index]


def calls_of_file(file: LoadedFile, program: Program) -> Calls:
    """With the data of an example."""
    (first, *_) = data(program, file, 1)
    return Calls(program, {_key(e, a): first[f"{a.name}: {a.type!r}"] for e, a in _inputs(program)})


def calls_of_model(program: Program, seed: int) -> Calls:
    """With random numbers."""
    generator = np.random.default_rng(seed)
    numbers = {}
    for e, a in _inputs(program):
        shape = bound(a.type.shape, program.batch)
        numbers[_key(e, a)] = generator.uniform(-1.5, 1.5, shape).astype("float32")
    return Calls(program, numbers)


def _inputs(program: Program) -> Iterator[tuple[Entry, Arg]]:
    return ((e, a) for e in program.entries for a in e.args if a.role != "output" and not e.is_lr(a))


def _key(entry: Entry, arg: Arg) -> tuple[str, str]:
    return entry.name, arg.name


def write(made: Sequence[Calls], folder: Path) -> None:
    """The C of all programs as one file, and the main program that calls them."""
    for name, text in joined_files([calls.program for calls in made]).items():
        (folder / name).write_text(text)
    (folder / "main.c").write_text(main(made))


def said(folder: Path, build: Build) -> list[str]:
    """The output of the program as `build` makes it."""
    place, cc, level = build
    b = board.load(place)
    tables = registry.load(["ref"], features=b.target.features)
    text = (folder / "together.c").read_text()
    called = {k.source for backend in tables.backends for k in backend.kernels if f"{k.symbol}(" in text}
    kernels = [s.path for s in tables.sources() if s.path in called]
    own = [folder / "together.c", folder / "main.c"]
    elf = folder / f"{b.id}{cc or ''}{level}.elf"
    firmware_build.program(b, tables, kernels, own, elf, cc=cc, flags=(level, "-w"), include=(folder, C))
    return firmware_build.run(place, elf, folder, 300).splitlines()


def main(made: Sequence[Calls]) -> str:
    words = max(c.program.struct_bytes for c in made) // 4 + 64
    results = max(
        sum(_words(a) for a in e.args if a.role == "output") for c in made for e in c.program.entries
    )
    tables = [(c, k, x) for c in made for k, x in enumerate(c.given.values())]
    return "\n".join(
        [
            *(f'#include "{c.program.name}.h"' for c in made),
            '#include "differential.h"',
            f"static uint64_t memory[{words // 2 + 8}];",
            f"static uint32_t results[{max(results, 1)}];",
            *(line for c, k, x in tables for line in _table(c, k, x)),
            *(line for c in made for line in _run(c)),
            "int main(void) {",
            "for (int32_t k = 0; k < 2; k++) {",
            *(f"run_{c.program.name}(patterns[k]);" for c in made),
            "}",
            "return 0;",
            "}",
            "",
        ]
    )


def _table(calls: Calls, k: int, array: Any) -> list[str]:
    arg = [a for _, a in _inputs(calls.program)][k]
    made = table(f"{calls.program.name}_x{k}", np.ascontiguousarray(array), arg.type.dtype)
    return [f"static const {made.c_type} {made.name}[{made.count}] = {{", *made.lines, "};"]


def _run(calls: Calls) -> list[str]:
    program = calls.program
    lines = [f"static void run_{program.name}(uint32_t pattern) {{"]
    lines += [
        f"{program.struct} *t = ({program.struct} *)(void *)memory;",
        "poison(memory, sizeof memory, pattern);",
    ]
    if program.is_model:
        lines += [f"sum = (uint32_t){program.name}_init(t, 0);", f'print_sum("{program.name} init", 0);']
    for entry in program.entries:
        for n in (program.batch, 1) if entry.takes_n and program.batch > entry.least_n else (program.batch,):
            lines += _call(calls, entry, max(n, entry.least_n))
    return [*lines, "}"]


def _call(calls: Calls, entry: Entry, n: int) -> list[str]:
    """One call; of a rejected one only the status and the state are compared."""
    program, keys = calls.program, list(calls.given)
    words, sums, at = ["t"], [], 0
    for arg in entry.parameters:
        if arg is None:
            words.append(str(n))
        elif arg.role == "output":
            words.append(f"({arg.type.dtype.c} *)(void *)&results[{at}]")
            sums.append(
                f"add(&results[{at}], {planned_size(bound(arg.type.shape, n)) * arg.type.dtype.size}u);"
            )
            at += _words(arg)
        elif entry.is_lr(arg):
            words.append(c_syntax.float_literal(program.default_lr or 0.0))
        else:
            words.append(f"{'*' if arg.by_value else ''}{program.name}_x{keys.index(_key(entry, arg))}")
    states = [f"add(&t->{slot.c_name}, sizeof t->{slot.c_name});" for slot in program.slots]
    return [
        "{",
        "poison(results, sizeof results, pattern);",
        f"const int status = {entry.c_name}({', '.join(words)});",
        *("sum = 0;", "if (status == 0) {", *sums, "}", *states),
        f'print_sum("{program.name} {entry.name} {n}", (uint32_t)status);',
        "}",
    ]


def _words(arg: Arg) -> int:
    return (planned_size(arg.type.shape) * arg.type.dtype.size + 3) // 4
