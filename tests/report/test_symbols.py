"""Memories by symbol against the plan and against `size`, in programs that SCons links."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from c_build import compile_c
from firmware_build import copy_of_the_project, once, scons
from report_models import MODELS, compiled

from autodiff_gen.report.page import parts, trainer
from autodiff_gen.report.symbols import CONSTANT, memories
from autodiff_gen.targets import board, size


@pytest.fixture(scope="module")
def tree(tmp_path_factory: Any) -> Path:
    return Path(once(tmp_path_factory, "tree", copy_of_the_project))


@pytest.mark.qemu
@pytest.mark.parametrize("name", ["mnist", "keywords"])
def test_the_report_of_a_firmware(tree: Path, name: str) -> None:
    b = board.load(MODELS[name])
    told = scons(tree, f"board={b.id}", f"model={name}", "report")
    out = tree / "build" / b.id / name
    program, report = compiled(name)
    text = (out / "report.html").read_text()
    assert f"build/{b.id}/{name}/report.html" in told and f"{report.struct_bytes:,}" in text
    found = memories(b, out / "firmware.elf")
    assert [m.usage for m in found] == [u for u in size.usage(b, out / "firmware.elf") if u.used]
    for m in found:
        assert sum(s.bytes for s in m.symbols) == m.usage.used == sum(p.bytes for p in parts(m, report))
        assert f"{m.usage.used:,}" in text
    structs = [s for m in found if (s := trainer(m, report)) is not None]
    assert [(s.name, s.bytes) for s in structs] == [("trainer", program.struct_bytes)]
    constants = {s.name: s.bytes for m in found for s in m.symbols if s.kind == CONSTANT}
    frozen = {re.sub(r"\W", "_", name): array for name, array in program.frozen.items()}
    # The C compiler may put the values of a short array, as a bias, into the instructions that read them.
    assert {name for name, array in frozen.items() if array.ndim > 1} <= constants.keys()
    assert all(constants[name] == array.nbytes for name, array in frozen.items() if name in constants)


@pytest.mark.qemu
def test_the_report_of_a_library_has_what_bench_has_counted(tree: Path) -> None:
    words, folder = ("board=mps2_an386", "model=w4"), tree / "build/mps2_an386/w4"
    scons(tree, *words, "report")
    assert not re.search(r"\d instructions", (folder / "report.html").read_text())
    scons(tree, *words, "bench")
    record = json.loads((folder / "bench.json").read_text())
    assert "is left out" not in scons(tree, *words, "report")
    text = (folder / "report.html").read_text()
    assert f"{record['instructions_per_step']:,.0f}" in text and re.search(r"\d instructions", text)
    assert "Memory of the program" not in text


@pytest.mark.cc
@pytest.mark.parametrize("flags", [(), ("-s",)], ids=["symbols", "stripped"])
def test_a_program_of_the_host(flags: tuple[str, ...], tmp_path: Path) -> None:
    source, host = tmp_path / "main.c", board.load("host")
    source.write_text(
        "int table[100] = {1};\nconst char text[50] = {1};\nint main(void) { return table[(int)text[0]]; }\n"
    )
    found = memories(host, compile_c("gcc", [source], tmp_path / "program", flags))
    assert [m.usage for m in found] == size.usage(host, tmp_path / "program")
    assert all(sum(s.bytes for s in m.symbols) == m.usage.used for m in found)
    named = {(m.usage.region, s.name, s.kind, s.bytes) for m in found for s in m.symbols}
    both = {("data", "table", "variable", 400), ("code", "text", "constant", 50)}
    assert named & both == (set() if flags else both)
