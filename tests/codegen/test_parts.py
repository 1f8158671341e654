"""The parts of a split step are C99: no label is before a declaration."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from c_build import INCLUDES, KERNELS

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.targets import board, build_commands

NETWORKS: dict[str, Callable[[], nn.Module]] = {
    "norm": lambda: nn.BatchNorm1d(4),
    "norm and linear": lambda: nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 4)),
    "layer norm": lambda: nn.Sequential(nn.Linear(4, 4), nn.LayerNorm(4)),
}


@pytest.mark.cc
@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("batch", [2, 8])
def test_parts_are_c99(name: str, batch: int, tmp_path: Path) -> None:
    net = NETWORKS[name]()
    model = ag.Model.supervised(net, (batch, 4), nn.MSELoss(), optim.SGD(lr=0.1), split=True)
    for text_of, text in emit(compile_model(model, "m", None, board.load("stm32"))).items():
        (tmp_path / text_of).write_text(text)
    flags = [
        "-std=c99",
        *build_commands.STRICT_FLAGS,
        *INCLUDES,
        f"-I{KERNELS / 'armv7em'}",
    ]
    for cc in ("gcc", "clang"):
        command = [cc, *flags, "-fsyntax-only", str(tmp_path / "m.c")]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
