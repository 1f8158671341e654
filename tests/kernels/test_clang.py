"""Clang, of which Arm's own compiler is made, compiles the kernels of Cortex-M as GCC does."""

import subprocess
from pathlib import Path

import pytest
from c_build import KERNELS, RUNTIME, STRICT

from autodiff_gen.kernels import registry
from autodiff_gen.targets import board
from autodiff_gen.targets.build_commands import tool


@pytest.mark.cc
@pytest.mark.parametrize("name", ["mps2_an386", "mps3_an547"])
def test_clang_compiles_the_kernels_of_cortex_m(name, tmp_path):
    place = board.load(name)
    tables = registry.load(place.kernels.backends, features=place.target.features, root=KERNELS)
    searched = subprocess.run(
        [tool(place, "gcc"), "-E", "-v", "-xc", "/dev/null"], capture_output=True, text=True, check=True
    ).stderr.split()
    (headers,) = {Path(word).resolve() for word in searched if word.endswith("arm-none-eabi/include")}
    command = [
        "clang",
        "--target=arm-none-eabi",
        "-std=c99",
        *place.target.cflags,
        f"-isystem{headers}",
        *STRICT,
    ]
    command += ["-Wno-overlength-strings", "-O2", "-c", "-o", tmp_path / "kernel.o"]
    command += [f"-I{d}" for d in (*tables.include_dirs(), RUNTIME)]
    for source in tables.sources():
        subprocess.run([*command, *source.cflags, source.path], check=True)
