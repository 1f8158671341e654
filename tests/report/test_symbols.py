"""Memories by symbol against the plan and against `size`, in programs that SCons links."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
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
    for parameter, array in program.frozen.items():
        c_name = re.sub(r"\W", "_", parameter)
        assert constants[c_name] == array.nbytes


@pytest.mark.cc
def test_the_report_on_the_host(tree: Path) -> None:
    scons(tree, "board=host", "model=xor", "report")
    host = board.load("host")
    found = memories(host, tree / "build/host/xor/firmware.elf")
    assert [m.usage.region for m in found] == ["code", "data"]
    assert all(sum(s.bytes for s in m.symbols) == m.usage.used for m in found)
