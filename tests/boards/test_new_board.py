"""`new-board`, and the page that takes a chip to firmware: the new board links, and runs where QEMU has the chip."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from checkout import ROOT
from firmware_build import REF, call, program

from autodiff_gen.cli.main import main
from autodiff_gen.errors import BoardError
from autodiff_gen.kernels import registry
from autodiff_gen.model.project.source_groups import board_part
from autodiff_gen.targets import board, build_commands
from autodiff_gen.targets.new_board import new_board

PAGE = (ROOT / "docs" / "new-board.md").read_text()
FLASH = """\
#include "ag_console.h"
#include "ag_flash.h"

int main(void) {
    ag_flash flash;
    ag_print("flash ");
    ag_print_i32(ag_flash_open(&flash, 64), 0);
    ag_print("\\n");
    return 0;
}
"""


def link(path: Path, folder: Path) -> Path:
    """The firmware of FLASH for a board's file."""
    b = board.load(str(path))
    (folder / "main.c").write_text(FLASH)
    tables = registry.load(REF, features=b.target.features)
    return program(b, tables, [], [folder / "main.c"], folder / "p.elf", cc=None, flags=(), include=())


@pytest.mark.qemu
@pytest.mark.parametrize("like", ["stm32", "mps2_an386"])
def test_a_new_board_runs_like_the_one_that_it_was_copied_from(like: str, tmp_path: Path) -> None:
    toml, machine = new_board("mine", like, tmp_path)
    assert {toml, machine} == {tmp_path / "mine.toml", tmp_path / "mine" / "machine.c"}
    assert toml.read_text().count("CHANGE") > 4 and "CHANGE" in machine.read_text()
    made, old = board.load(str(toml)), board.load(like)
    assert (made.memory, made.qemu, made.upload, made.cost) == (old.memory, old.qemu, old.upload, old.cost)
    assert made.store is None and [p.stem for p in made.files[:2]] == ["mine", "cortex_m4f"]
    elf = link(toml, tmp_path)
    assert call(build_commands.qemu_argv(made, elf), tmp_path, 100) == "flash 0\n"


@pytest.mark.qemu
@pytest.mark.parametrize("core", ["cortex_m0plus", "cortex_m3"])
def test_a_new_board_may_have_another_core(core: str, tmp_path: Path) -> None:
    """A Cortex-M4F executes the code of these cores too."""
    toml, _ = new_board("mine", "stm32", tmp_path)
    toml.write_text(toml.read_text().replace("arch/cortex_m4f", f"arch/{core}"))
    elf = link(toml, tmp_path)
    assert call(build_commands.qemu_argv(board.load(str(toml)), elf), tmp_path, 100) == "flash 0\n"


@pytest.mark.qemu
def test_a_linker_script_of_the_chip_replaces_the_common_one(tmp_path: Path) -> None:
    toml, machine = new_board("mine", "stm32", tmp_path)
    common = build_commands.linker_script(board.load("stm32"))
    text = common.read_text().replace("KEEP(*(.vectors))", "KEEP(*(.vectors))\n        LONG(0x6c696e6b)")
    (machine.parent / "firmware.ld").write_text(text)
    made = board.load(str(toml))
    assert build_commands.linker_script(made) == machine.parent / "firmware.ld" != common
    assert board_part(made).files["common/firmware.ld"] == text
    elf = link(toml, tmp_path)
    assert b"knil" in elf.read_bytes()
    assert call(build_commands.qemu_argv(made, elf), tmp_path, 100) == "flash 0\n"


@pytest.mark.qemu
def test_the_page_leads_to_firmware_that_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = re.search(r"^autodiff-gen (new-board .*)$", PAGE, re.MULTILINE)
    assert words is not None
    assert main([*words[1].split(), "--out", str(tmp_path)]) == 0
    written = re.findall(r"^`(g474[\w./]*)`:\n\n```\w+\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert {name for name, _ in written} == set(
        capsys.readouterr().out.replace(f"{tmp_path}/", "").split()[:2]
    )
    for name, text in written:
        (tmp_path / name).write_text(text)
    made = board.load(str(tmp_path / "g474.toml"))
    assert made.ram_bytes == 131072 - 8192
    assert "machine" in {p.stem for p in build_commands.support_sources(made)}
    assert link(tmp_path / "g474.toml", tmp_path).is_file()


@pytest.mark.parametrize(
    "name, like, message",
    [
        (
            "a-b",
            "stm32",
            "'a-b' cannot be the name of a board: begin with a letter, and use letters, digits and _",
        ),
        (
            "3x",
            "stm32",
            "'3x' cannot be the name of a board: begin with a letter, and use letters, digits and _",
        ),
        ("host", "stm32", "host is a board already; choose another name"),
        ("mine", "pico", "board pico has no start-up code to copy; choose another: mps2_an385"),
        ("mine", "host", "board host has no start-up code"),
        ("taken", "stm32", r"taken\.toml exists; remove it, or choose another name or --out"),
    ],
)
def test_what_cannot_be_copied(name: str, like: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "taken.toml").write_text("mine")
    with pytest.raises(BoardError, match=message):
        new_board(name, like, tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["taken.toml"]


@pytest.mark.parametrize(
    "flash, advice",
    [(524288, r"origin = 0x8040000, if erase units begin there"), (131072, "inherit the file of the core")],
)
def test_an_inherited_store_outside_a_smaller_flash(flash: int, advice: str, tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'schema = 1\nname = "m"\ninherits = "stm32"\n[memory.flash]\nbytes = {flash}\n')
    with pytest.raises(BoardError, match=rf"\[store\], 0x80c0000 to 0x8100000, must be inside .*{advice}"):
        board.load(str(path))
