"""Random graphs and models through the generated C, against the interpreter in float32; every n from 1 to the batch.

Every call begins with an arena of NaN, and buffers are filled with NaN when their life ends; every array is
between fences.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from generated_c import Running, expected, library_of, program_of
from random_functions import Case, close, random_function
from random_models import random_model

from autodiff_gen.codegen import source as source_trees
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import CFLAGS
from autodiff_gen.ir.types import bound
from autodiff_gen.kernels import registry
from autodiff_gen.lowering.loops import outlined_function, outlining
from autodiff_gen.lowering.loops.outlined_form import Section
from autodiff_gen.targets import board, installation
from autodiff_gen.targets.build_commands import STRICT_FLAGS

pytestmark = pytest.mark.cc

BLOCK = 15
SEED = int(os.environ["AUTODIFF_SEED"])  # conftest.py gives it a default
Make = Callable[[int, int], Case]


def cases(make: Make, block: int, count: int = BLOCK) -> list[Case]:
    """`count` graphs of 3 to 30 nodes, less the few in which float32 itself goes astray."""
    first = 10_000 * SEED + block * count
    made = [make(seed, 3 + seed % 28) for seed in range(first, first + count)]
    tame = [c for c in made if c.is_tame()]
    assert len(tame) >= 0.8 * count
    return tame


def named(case: Case) -> str:
    return f"{'m' if case.init else 'f'}{case.seed}"


def check(case: Case, running: Running) -> None:
    (entry,) = running.program.entries
    for n in case.batches:
        outputs, states = expected(case.graph, case.values(n))
        for state, array in case.init.items():
            running.array(state.name)[...] = array
        got = running.call(entry, case.at(n), n)
        where = f"seed {case.seed}, n = {n}"
        for name, array in outputs.items():
            assert close(got[name], array), (
                f"{where}, output {name}: {got[name]} instead of {array}\n{case.graph}"
            )
        for state, array in case.init.items():
            new = states.get(state.name, array)
            found = running.array(state.name)
            assert close(found, new), f"{where}, state {state.name}: {found} instead of {new}\n{case.graph}"


COSTS = {
    "the host": registry.host_cost,
    "a core without vectors": lambda: replace(
        board.load("stm32").cost, code=0.5
    ),  # tiles of rows, more loops
    "blocks of floats": lambda: replace(registry.host_cost(), block_moves=True),
    "vectors": lambda: replace(registry.host_cost(), vector_loop=4),  # loops are laid out for them
}


def use_costs(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    load, cost = registry.load, COSTS[target]()
    monkeypatch.setattr(registry, "load", lambda names: load(names, cost=cost))


@pytest.mark.parametrize("target", [t for t in COSTS if t != "the host"])
def test_costs_change_the_c_of_some_graph(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(case: Case) -> bool:
        plain = emit(program_of(case, named(case)))
        with monkeypatch.context() as patch:
            use_costs(target, patch)
            return emit(program_of(case, named(case))) != plain

    assert any(changed(case) for block in range(5) for case in cases(random_model, block))


@pytest.mark.parametrize("block", range(5))
@pytest.mark.parametrize("make", [random_function, random_model])
def test_c_agrees_with_the_interpreter(make: Make, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the costs of several targets."""
    made = cases(make, block)
    use_costs(list(COSTS)[block % len(COSTS)], monkeypatch)
    programs = [program_of(c, named(c)) for c in made]
    library = library_of(programs, "-O0", poison=True)
    for case, program in zip(made, programs, strict=True):
        check(case, Running(library, program))


@pytest.mark.parametrize("batch", [1, 5])
def test_other_batch_sizes(batch: int) -> None:
    made = cases(lambda seed, size: random_model(seed, size, batch), 50, 10)
    programs = [program_of(c, named(c)) for c in made]
    library = library_of(programs, "-O0", poison=True)
    for case, program in zip(made, programs, strict=True):
        check(case, Running(library, program))


def test_poison_reaches_what_is_read_too_late() -> None:
    """The poison is no placebo: with lifetimes cut by one step, results become NaN."""
    wrong = 0
    made = cases(random_model, 0, 6)
    programs = [program_of(c, named(c)) for c in made]
    for program in programs:
        for b in program.entries[0].plan.placed:
            b.end = max(b.start, b.end - 1)
    library = library_of(programs, "-O0", poison=True)
    for case, program in zip(made, programs, strict=True):
        try:
            check(case, Running(library, program))
        except AssertionError:
            wrong += 1
    assert wrong


def files_of(made: list[Case], folder: Path) -> list[Path]:
    out = []
    for case in made:
        for name, text in emit(program_of(case, named(case))).items():
            (folder / name).write_text(text)
            out += [folder / name] if name.endswith(".c") else []
    return out


def includes() -> list[str]:
    return [f"-I{p}" for p in (*registry.load(["ref"]).include_dirs(), installation.runtime())]


@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_strict_warnings(cc: str, tmp_path: Path) -> None:
    sources = files_of([*cases(random_function, 7), *cases(random_model, 7)], tmp_path)
    command = [
        cc,
        "-std=c99",
        *STRICT_FLAGS,
        "-fsyntax-only",
        f"-I{tmp_path}",
        *includes(),
        *map(str, sources),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]


@pytest.mark.parametrize("make", [random_function, random_model])
def test_every_number_may_be_a_parameter(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All loops as functions that are passed each of their numbers have the same bits, and no warning."""
    use_costs("a core without vectors", monkeypatch)
    made = cases(make, 11)
    programs = [program_of(c, named(c)) for c in made]
    with monkeypatch.context() as patch:
        patch.setattr(source_trees, "_with_outlined_loops", lambda codes, *_: (codes, []))
        in_place = library_of(programs, "-O1")
    monkeypatch.setattr(outlining, "_is_worth_a_call", lambda *_: True)
    monkeypatch.setattr(outlining, "_saved", lambda *_: 1)
    monkeypatch.setattr(outlined_function, "differing", every_number)
    texts = [emit(program)[f"{program.name}.c"] for program in programs]
    assert sum(text.count("oops of step") for text in texts) > len(texts)
    sources = map(str, files_of(made, tmp_path))
    command = [
        "gcc",
        "-std=c99",
        *STRICT_FLAGS,
        "-Wsign-conversion",
        "-fsyntax-only",
        f"-I{tmp_path}",
        *includes(),
    ]
    done = subprocess.run([*command, *sources], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:4000]
    as_functions = library_of(programs, "-O1")
    for case, program in zip(made, programs, strict=True):
        for n in case.batches:
            assert results(case, program, in_place, n) == results(case, program, as_functions, n)


def every_number(group: Sequence[Section]) -> dict[tuple[str, tuple[str, ...]], list[int]]:
    """The positions of all numbers that C does not need as they are, each a separate parameter."""
    first, *_ = group
    return {(x.c_type, (str(k),)): [k] for k, x in enumerate(first.numbers) if x.role}


def results(case: Case, program: Program, library: ctypes.CDLL, n: int) -> list[bytes]:
    """The bits of the outputs and new states."""
    running = Running(library, program)
    for state, array in case.init.items():
        running.array(state.name)[...] = array
    outputs = running.call(program.entries[0], case.at(n), n)
    return [x.tobytes() for x in (*outputs.values(), *(running.array(state.name) for state in case.init))]


def test_sanitizers(tmp_path: Path) -> None:
    """One program that calls every graph with arrays of the exact size from the heap, under ASan and UBSan."""
    made = [*cases(random_function, 9, 8), *cases(random_model, 9, 8)]
    calls, headers = [], []
    for case in made:
        program = program_of(case, named(case))
        headers.append(f'#include "{program.name}.h"')
        calls += [line for n in case.batches for line in sanitized_call(case, program, n)]
    main = tmp_path / "main.c"
    main.write_text(
        "\n".join(
            [
                "#include <stdlib.h>",
                "#include <string.h>",
                *headers,
                MAIN,
                "int main(void) {",
                *calls,
                "return 0;",
                "}",
            ]
        )
    )
    sources = [*files_of(made, tmp_path), main, *(s.path for s in registry.load(["ref"]).sources())]
    command = [
        "gcc",
        *CFLAGS,
        "-O0",
        "-g",
        "-fsanitize=address,undefined",
        "-fno-sanitize-recover=all",
        f"-I{tmp_path}",
        *includes(),
    ]
    done = subprocess.run(
        [*command, *map(str, sources), "-lm", "-o", str(tmp_path / "all")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[:4000]
    ran = subprocess.run([str(tmp_path / "all")], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (ran.stdout + ran.stderr)[:4000]


MAIN = """
static void *filled(size_t bytes, const void *data) {
    void *p = malloc(bytes);
    if (p == NULL) {
        abort();
    }
    memcpy(p, data, bytes);
    return p;
}
"""


def sanitized_call(case: Case, program: Program, n: int) -> list[str]:
    """C that calls the case's entry with n samples and frees everything."""
    (entry,) = program.entries
    feeds = case.at(n)
    lines, args, held = ["{"], ["t"], ["t"]
    lines.append(f"{program.struct} *t = malloc(sizeof *t); if (t == NULL) {{ abort(); }}")
    if program.slots:
        lines.append(f"if ({program.name}_init(t, 0) != 0) {{ abort(); }}")
    for k, arg in enumerate(entry.parameters):
        if arg is None:
            args.append(str(n))
            continue
        shape = bound(arg.type.shape, n)
        if arg.by_value:
            assert arg.value is not None
            args.append(repr(feeds[arg.value].item()))
            continue
        c = arg.type.dtype.c
        count = int(np.prod(shape))
        if arg.role == "output":
            lines.append(f"{c} *a{k} = malloc({count} * sizeof *a{k});")
        else:
            data = np.ascontiguousarray(feeds[arg.value]).reshape(-1).tolist()  # type: ignore[index]
            lines.append(f"static const {c} d{k}[] = {{{', '.join(map(repr, data))}}};")
            lines.append(f"{c} *a{k} = filled(sizeof d{k}, d{k});")
        args.append(f"a{k}")
        held.append(f"a{k}")
    lines.append(f"if ({entry.c_name}({', '.join(args)}) != 0) {{ abort(); }}")
    return [*lines, *(f"free({h});" for h in held), "}"]
