"""`./scons board=B model=M pio`: the project builds and runs where nothing of this tree is."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys

import pytest
from firmware_build import once
from pio_project import copy_parts, environment, succeed

from autodiff_gen.model.project import export as exporter
from autodiff_gen.targets import board

pytestmark = [pytest.mark.pio, pytest.mark.qemu]


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    return once(tmp_path_factory, "pio tree", copy_parts)


def scons(tree, *words):
    return subprocess.run(
        [sys.executable, "-P", "-m", "SCons", "-Q", *words],
        cwd=tree, env=environment(tree / "core"), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def export(tree, folder, board, model):
    """The project, moved to where the tree is not."""
    done = scons(tree, f"board={board}", f"model={model}", "pio")
    assert done.returncode == 0, done.stderr
    return shutil.move(tree / "build" / board / model / "pio", folder)


def test_a_project_runs_outside_the_tree(tree, tmp_path):
    folder = export(tree, tmp_path / "carried away", "stm32", "xor")
    for path in filter(lambda p: p.is_file(), folder.rglob("*")):
        assert str(tree) not in path.read_text(), path
    assert {"README.md", "export.json", "lib", "platform", "platformio.ini", "src"} == {
        p.name for p in folder.iterdir()
    }
    said = succeed(folder, tmp_path / "core", "run", "-t", "run")
    assert "\nxor on stm32: " in said and "\n4 of 4 right\n" in said
    assert (folder / ".pio/build/qemu_stm32/firmware.elf").is_file()


def test_a_project_has_the_kernels_that_it_calls(tmp_path):
    exporter.export("mnist", board.load("stm32"), tmp_path, kernels=["ref"])
    names = {p.name for p in (tmp_path / "lib" / "ag_ref").iterdir()}
    headers = {"ag_kernels.h", "ag_math.h", "ag_quantization.h", "ag_shapes.h", "gradients.h", "windows.h"}
    assert names == {*headers, "gemv.c", "ger.c", "library.json"}
    source = (tmp_path / "lib" / "mnist" / "mnist.c").read_text()
    assert set(re.findall(r"ag_(\w+)_f32_ref\(", source)) == {"gemv", "gemv_t", "ger"}


def test_a_project_has_what_its_kernels_share(tree, tmp_path):
    folder = export(tree, tmp_path / "lenet", "mps2_an386", "lenet")
    made = folder / "lib" / "ag_armv7em"
    assert {"conv2d_pool.c", "gemm.c", "microkernel.c", "vec.h"} <= {p.name for p in made.iterdir()}
    assert {"conv2d_pool_dw.c", "window_products.h", "microkernel.h"} <= {
        p.name for p in (made / "tiles").iterdir()
    }
    succeed(folder, tmp_path / "core", "run")
    assert (folder / ".pio/build/qemu_mps2_an386/firmware.elf").is_file()


def test_a_project_for_a_real_board(tree, tmp_path):
    folder = export(tree, tmp_path / "pico", "pico", "xor")
    said = succeed(folder, tmp_path / "core", "project", "config", "--json-output")
    sections = {name: dict(options) for name, options in json.loads(said)}
    assert sections["platformio"]["default_envs"] == ["pico"]
    assert sections["env:pico"]["platform"] == "raspberrypi" and sections["env:pico"]["framework"] == [
        "arduino"
    ]
    assert not (folder / "platform").exists() and (folder / "lib/ag_arduino/sketch.cpp").is_file()
    assert "nobody has run it yet" in (folder / "README.md").read_text()


def test_scons_alone_does_not_build_for_such_a_board(tree):
    done = scons(tree, "board=pico", "model=xor")
    assert done.returncode != 0
    assert (
        "board pico: its start-up code is Arduino's, so PlatformIO builds its programs; autodiff-gen export MODEL"
        in done.stdout + done.stderr
    )


def test_a_board_that_platformio_does_not_know(tree):
    done = scons(tree, "board=host", "model=xor", "pio")
    assert done.returncode != 0
    assert re.search(
        r"^error: board host: .* has neither \[qemu\] nor \[platformio\]", done.stderr, re.MULTILINE
    )
