"""The check of inputs, on boards with an FPU, with one of double precision, with Helium, without one, and with NEON."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkout import C
from firmware_build import program, run

from autodiff_gen.kernels import registry
from autodiff_gen.targets import board


@pytest.mark.qemu
@pytest.mark.parametrize("level", ["-O0", "-O3"])
@pytest.mark.parametrize("name", ["mps2_an386", "mps2_an500", "mps3_an547", "mps2_an385", "virt_a7"])
def test_what_is_not_finite_is_found_at_each_place(name: str, level: str, tmp_path: Path) -> None:
    b = board.load(name)
    tables = registry.load(("ref",), features=b.target.features)
    elf = tmp_path / "finite_numbers.elf"
    program(b, tables, [], [C / "finite_numbers.c"], elf, cc=None, flags=(level,), include=())
    run(name, elf, tmp_path)
