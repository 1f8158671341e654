"""The examples under PlatformIO: every one is built, tested and run on every emulated board, offline."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest
from firmware_build import once
from pio_project import QEMU, ROOT, copy_parts, environment, examples, succeed

from autodiff_gen import board, platformio

pytestmark = [pytest.mark.pio, pytest.mark.qemu]
PROFILES = {"qemu_m4": "mps2_an386", "qemu_m7": "mps2_an500", "qemu_m55": "mps3_an547", "qemu_stm32": "stm32"}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the checkout in a path with spaces."""
    return once(tmp_path_factory, "pio tree", copy_parts)


@pytest.fixture(scope="module", params=examples())
def built(request, tree, tmp_path_factory):
    """An example's folder after `pio run`, and what that printed."""
    folder = tree / "examples" / request.param

    def make(out):
        (out / "said").write_text(succeed(folder, out / "core", "run"))

    return folder, (once(tmp_path_factory, f"pio {request.param}", make) / "said").read_text()


def test_pio_run_builds_every_emulated_board(built):
    folder, said = built
    assert re.findall(r"^(qemu_\w+) +SUCCESS", said, re.MULTILINE) == list(QEMU)
    for env in QEMU:
        assert (folder / ".pio/build" / env / "firmware.elf").is_file()


@pytest.mark.parametrize("env", QEMU)
def test_scons_generates_the_same_bytes(built, env, tmp_path):
    folder, _ = built
    name = folder.name
    words = ["-m", "SCons", "-Q", f"board={PROFILES[env]}", f"model={folder / 'model.py'}"]
    tree = folder.parents[1]
    out = f"build/{PROFILES[env]}/{name}"
    files = [f"{name}.c", f"{name}.h", f"{name}_params.c"]
    done = subprocess.run(
        [sys.executable, "-P", *words, *(f"{out}/{file}" for file in files)],
        cwd=tree, env=environment(tmp_path), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    for file in files:
        ours = (folder / ".pio/build" / env / "autodiff" / file).read_bytes()
        assert ours == (tree / out / file).read_bytes()
        assert len(ours) > 500


@pytest.mark.parametrize("name", platformio.emulated())
def test_board_files_are_the_profiles(name):
    """After an intended change: autodiff_gen.platformio.manifest_text writes them."""
    text = (ROOT / "platformio" / "boards" / f"{name}.json").read_text()
    assert text == platformio.manifest_text(board.load(name))


def test_there_are_no_other_board_files():
    assert {p.stem for p in (ROOT / "platformio" / "boards").iterdir()} == set(platformio.emulated())
