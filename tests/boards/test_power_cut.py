"""QEMU is killed after an operation of the flash that a seed chooses; what was saved last, or the one before, loads.
A long run: AUTODIFF_POWER_CUTS=200 ./scons test args="-k power_cut -s"
"""

from __future__ import annotations

import os
import subprocess

import numpy as np
import pytest
from checkout import C
from firmware_build import call

from autodiff_gen.targets import board, build_commands

CUTS = int(os.environ.get("AUTODIFF_POWER_CUTS", "12"))
pytestmark = pytest.mark.qemu


@pytest.fixture(scope="module")
def elf(root, tmp_path_factory):
    b = board.load("mps2_an386")
    made = tmp_path_factory.mktemp("cut") / "cut.elf"
    words = [
        build_commands.tool(b, "gcc"),
        *build_commands.compile_flags(b),
        *build_commands.STRICT_FLAGS,
        *(f"-I{d}" for d in build_commands.include_dirs(b)),
        *(str(p) for p in build_commands.support_sources(b)),
        str(C / "power_cut.c"),
        *("-o", str(made)),
        *build_commands.link_flags(b),
    ]
    call(words, made.parent, 100)
    return made


def killed(elf, folder):
    """The firmware's output until the cut, when it is killed."""
    argv = build_commands.qemu_argv(board.load("mps2_an386"), elf)
    said = []
    with subprocess.Popen(
        ["timeout", "60", *argv],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a new process group
    ) as process:
        for line in process.stdout:
            if line == "cut\n":
                break
            said.append(line.split())
        os.killpg(process.pid, 9)
    return said


def test_killed_at_any_operation_nothing_is_lost(elf, tmp_path, rng, record_property):
    last, kept, saves = 0, 0, 0
    for cut in range(CUTS):
        (tmp_path / "cut.bin").write_bytes(np.uint32(rng.integers(0, 150)).tobytes())
        (what, found), *saved = killed(elf, tmp_path)
        assert what == "loaded", f"cut {cut}: {what} {found}"
        assert int(found) in (last, last + 1), f"cut {cut}: saved {last}, loads {found}"
        kept += int(found) == last
        saves += len(saved)
        assert all(word == "saved" for word, _ in saved)
        last = int(saved[-1][1]) if saved else int(found)
    record_property(
        "power cuts", f"{CUTS} cuts, {saves} saves: {kept} load the last one, {CUTS - kept} one more"
    )
    print(
        f"{CUTS} cuts, {saves} saves: {kept} load the last that was reported, {CUTS - kept} the one after it"
    )
