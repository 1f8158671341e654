"""A compiler differential: random graphs and all examples have the same bits whichever compiler makes the program, at
each level of optimisation, on the host and in the emulator.

Memory begins with a poison pattern, and each call is made with two patterns: an output that is not written differs.
`./scons test args="--graphs 2000 -k compilers"` compares more graphs than each run of the tests does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from compiled_examples import EXAMPLES
from compiler_differential import (
    BUILDS,
    Build,
    Calls,
    calls_of_case,
    calls_of_file,
    calls_of_model,
    said,
    write,
)
from generated_c import program_of
from random_functions import random_function
from random_images import random_images
from random_models import random_model

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file

pytestmark = [pytest.mark.cc, pytest.mark.qemu, pytest.mark.slow]
BLOCK = 25  # graphs of one program


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "block" in metafunc.fixturenames:
        metafunc.parametrize("block", range(metafunc.config.getoption("--graphs") // BLOCK))


def images(seed: int) -> Program:
    """A network over images; of three in four only `predict`, which takes less of the compilers' time."""
    program = compile_model(random_images(seed, 2 + seed % 6), f"i{seed}", ("ref",))
    return program if seed % 4 == 0 else replace(program, entries=program.entries[1:])


def graphs(first: int, count: int) -> Iterator[Calls]:
    """Two networks over images, a function and a model in turn, less the few whose numbers are not finite."""
    for seed in range(first, first + count):
        if seed % 4 < 2:
            yield calls_of_model(images(seed), seed)
            continue
        kind, make = ("f", random_function) if seed % 4 == 2 else ("m", random_model)
        case = make(seed, 3 + seed % 12)
        if case.is_tame():
            yield calls_of_case(case, program_of(case, f"{kind}{seed}"))


def check(made: list[Calls], folder: Path, builds: Sequence[Build] = BUILDS) -> None:
    write(made, folder)
    first, *others = builds
    expected = said(folder, first)
    half = len(expected) // 2
    assert half >= len(made) and expected[:half] == expected[half:], "an output is not written"
    for build in others:
        found = said(folder, build)
        different = [f"{a} / {b}" for a, b in zip(expected, found, strict=True) if a != b]
        assert not different, f"{build}: program, entry, n, status, checksum: {different}"


def some_of(config: pytest.Config, first: int, step: int) -> Sequence[Build]:
    """The build without optimisation with all others, or where few graphs are compared with every `step`-th one."""
    return BUILDS if config.getoption("--graphs") > 50 else (BUILDS[0], *BUILDS[1 + first % step :: step])


def test_compilers_agree_on_random_graphs(block: int, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    made = list(graphs(block * BLOCK, BLOCK))
    assert len(made) > 0.8 * BLOCK
    check(made, tmp_path, some_of(pytestconfig, block, 2))


@pytest.mark.parametrize("name", EXAMPLES)
def test_compilers_agree_on_examples(name: str, tmp_path: Path, pytestconfig: pytest.Config) -> None:
    file = load_file(name)
    builds = some_of(pytestconfig, EXAMPLES.index(name), len(BUILDS) - 1)
    check([calls_of_file(file, compile_file(file.made, name, ("ref",)))], tmp_path, builds)
