"""Statements about the stack in generated C and on the page about threads, against the compiled C."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from stack_use import StackUse

from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.source import source_of
from autodiff_gen.codegen.stack import CALLBACK, KERNEL, stack_bounds, stack_of
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board, build_commands

MODELS = ["xor", "mnist", "gesture", "attention", "autoencoder", "keywords"]


@pytest.mark.cc
@pytest.mark.parametrize(
    ("name", "flag"), [("mps2_an386", "-O3"), ("mps2_an386", "-Os"), ("mps3_an547", "-O3")]
)
def test_no_function_takes_more_stack_than_stated_or_has_variables_of_its_own(
    name: str, flag: str, tmp_path: Path
) -> None:
    place = board.load(name)
    for model in MODELS:
        file = load_file(model)
        program = compile_file(file.made, model, None, place, 1 << 30)
        for path, text in emit(program).items():
            (tmp_path / path).write_text(text)
        include = [*program.backends.include_dirs(), *build_commands.include_dirs(place)]
        compiler = [build_commands.tool(place, "gcc"), *build_commands.compile_flags(place), "-g0"]
        for source in (f"{model}.c", f"{model}_params.c"):
            words = [*compiler, flag, "-ffp-contract=fast", *(f"-I{d}" for d in include), "-c", source]
            subprocess.run(words, cwd=tmp_path, check=True)
        objects = [tmp_path / f"{model}.o", tmp_path / f"{model}_params.o"]
        use = StackUse(build_commands.tool(place, "objdump"), objects)
        bounds = stack_bounds(source_of(program, {}, False), program)
        assert f"train_step {bounds['train_step']:,}" in stack_of(program)
        for entry in program.entries:
            own = use.frames[use.exported[entry.c_name]] + KERNEL * bool(entry.plan.kernels)
            assert max(own, use.deepest(entry.c_name)[0]) <= bounds[entry.name], (model, entry.name)
        assert max(use.deepest(f"{model}_{what}")[0] for what in ("init", "save", "load")) <= CALLBACK
        symbols = [build_commands.tool(place, "nm"), *map(str, objects)]
        listed = subprocess.run(symbols, capture_output=True, text=True, check=True).stdout
        assert not [
            line for line in listed.splitlines() if line.split()[-2:-1] and line.split()[-2] in "bBdDC"
        ]


def test_nothing_is_stated_of_kernels_that_are_not_measured() -> None:
    file = load_file("mnist")
    program = compile_file(file.made, "mnist", ["neon", "ref"], board.load("virt_a53"))
    assert stack_of(program) == ""
