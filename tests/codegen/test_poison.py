"""C that fills memory without a value with NaN: the numbers of ordinary C, and other ones for a wrong plan."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from autodiff_gen.bench.program import data
from autodiff_gen.cli.main import main
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.errors import AutodiffError
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import _Compiled
from autodiff_gen.lowering.plan import EntryPlan, PlacedBuffer
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import LoadedFile, load_file
from autodiff_gen.targets import installation

STEPS = 3
EXAMPLES = sorted(path.parent.name for path in installation.examples().glob("*/model.py"))
MORE = ("w4", "w6", "gru")  # more scans, masks of bits


@cache
def loaded(name: str) -> tuple[LoadedFile, Program]:
    file = load_file(name)
    return file, compile_file(file.made, "model", ("ref",))


def results(file: LoadedFile, program: Program, poison: bool) -> Iterator[bytes]:
    """The outputs of every entry and then the states after each step, until a call fails."""
    compiled = _Compiled(program, Compiler(find_compiler()), poison)
    if program.is_model:
        compiled.call("model_init", 0)
    for given in data(program, file, STEPS):
        for entry in program.entries:
            order = {v: i for i, v in enumerate(entry.plan.graph.inputs)}
            args = [a for a in entry.args if a.value is not None and f"{a.name}: {a.type!r}" in given]
            args.sort(key=lambda a: order[a.value])  # type: ignore[index]
            try:
                outs = compiled.run(entry, [given[f"{a.name}: {a.type!r}"] for a in args])
            except AutodiffError as error:
                yield str(error).encode()
                return
            yield b"".join(np.asarray(out).tobytes() for out in outs)
            yield bytes(compiled.memory)[: program.state_bytes]


@pytest.mark.cc
@pytest.mark.parametrize("name", [*EXAMPLES, *MORE])
def test_the_numbers_are_those_of_ordinary_c(name: str) -> None:
    file, program = loaded(name)
    plain, poisoned = (list(results(file, program, poison)) for poison in (False, True))
    assert len(plain) == 2 * len(program.entries) * len(data(program, file, STEPS))
    assert plain == poisoned


# A wrong plan


def ends_early(plan: EntryPlan, k: int) -> PlacedBuffer | None:
    """Buffer k, as if the step that reads it last did not."""
    b = plan.placed[k]
    return replace(b, end=b.end - 1) if b.end > b.start else None


def shares_memory(plan: EntryPlan, k: int) -> PlacedBuffer | None:
    """Buffer k at the offset of one that is alive when it is written first, and dies before it."""
    b = plan.placed[k]
    others = (o for o in plan.placed if o.pool == b.pool and o.start < b.start <= o.end < b.end)
    return next((replace(b, offset=o.offset) for o in others if o.offset != b.offset), None)


@pytest.mark.cc
@pytest.mark.parametrize("wrong", [ends_early, shares_memory])
@pytest.mark.parametrize("name, most", [("mnist", 4), ("gesture", 2)])
def test_a_wrong_plan_gives_other_numbers(
    name: str, most: int, wrong: Callable[[EntryPlan, int], PlacedBuffer | None]
) -> None:
    file, program = loaded(name)
    right = list(results(file, program, False))
    step, *rest = program.entries
    found, unseen = 0, 0
    for k in range(len(step.plan.placed)):
        changed = wrong(step.plan, k)
        if changed is None or found == most:
            continue
        placed: list[Any] = [*step.plan.placed]
        placed[k] = changed
        broken = replace(program, entries=(replace(step, plan=replace(step.plan, placed=placed)), *rest))
        assert list(results(file, broken, True)) != right, placed[k]
        unseen += list(results(file, broken, False)) == right
        found += 1
    assert found
    assert wrong is shares_memory or unseen == found  # that the plan is wrong shows in no other way


def test_it_is_an_option_of_build_and_changes_nothing_else(tmp_path: Any) -> None:
    _, program = loaded("gesture")
    assert "poison" not in emit(program)["model.c"]
    words = ["--poison", "--board", "host", "--name", "model", "--kernels", "ref", "--out", str(tmp_path)]
    assert main(["build", "gesture", *words]) == 0
    text = (tmp_path / "model.c").read_text()
    lines = [line for line in text.splitlines() if "poison" not in line]
    assert len(lines) < len(text.splitlines())
    plain = emit(compile_file(load_file("gesture").made, "model", ("ref",)))
    assert [line for line in lines if line] == [line for line in plain["model.c"].splitlines() if line]
    assert (tmp_path / "model.h").read_text() == plain["model.h"]
