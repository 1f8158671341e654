"""Clang, on which Arm's compiler is based, compiles kernels and support code as GCC does."""

import subprocess
from pathlib import Path

import pytest
from c_build import KERNELS

from autodiff_gen.kernels import registry
from autodiff_gen.targets import board, build_commands

TARGETS = {"arm-none-eabi-gcc": "arm-none-eabi", "aarch64-linux-gnu-gcc": "aarch64-none-elf"}
GCC_ONLY = "-fno-stack-clash-protection"


@pytest.mark.cc
@pytest.mark.parametrize(
    ("name", "stage"),
    [
        ("mps2_an386", "-c"),  # with an assembler, for the text in these kernels
        ("mps3_an547", "-c"),
        ("virt_a7", "-fsyntax-only"),
        ("virt_a53", "-fsyntax-only"),
    ],
)
def test_clang_compiles_kernels_and_support(name, stage, tmp_path):
    place = board.load(name)
    gcc = build_commands.tool(place, "gcc")
    tables = registry.load(place.kernels.backends, features=place.target.features, root=KERNELS)
    searched = subprocess.run(
        [gcc, "-E", "-v", "-xc", "/dev/null"], capture_output=True, text=True, check=True
    ).stderr.split()
    (headers,) = {
        Path(word).resolve()
        for word in searched
        if word.endswith(("eabi/include", "../aarch64-linux-gnu/include"))
    }
    command = [
        *("clang", f"--target={TARGETS[gcc]}", f"-isystem{headers}"),
        *(flag for flag in build_commands.compile_flags(place) if flag != GCC_ONLY),
        *build_commands.STRICT_FLAGS,
        *("-g0", "-O1", stage, "-o", tmp_path / "object.o"),
        *(f"-I{d}" for d in (*tables.include_dirs(), *build_commands.include_dirs(place))),
    ]
    sources = [(source.path, source.cflags) for source in tables.sources() if source.backend != "ref"]
    for path, flags in [*sources, *((path, ()) for path in build_commands.support_sources(place))]:
        subprocess.run([*command, *flags, path], check=True)
