"""The program of the host that the commands of the board link talk to."""

from __future__ import annotations

import pytest
from firmware_build import once

from autodiff_gen.device.firmware import build_link
from autodiff_gen.device.session import Session

MODEL = """\
import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Sequential(nn.Linear(20, 16), nn.Tanh(), nn.Linear(16, 4))
model = ag.Model.supervised(
    net, input=(5, 20), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.01), guard="gradients", restore_after=3
)
"""
DATA = """\
import numpy as np
def dataset():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 4, 203).astype(np.uint8)
    x = rng.integers(0, 60, (203, 20)).astype(np.uint8)
    for k in range(203):
        x[k, 5 * y[k] : 5 * y[k] + 5] += 120
    return {"x": x[:163], "label": y[:163], "test_x": x[163:], "test_label": y[163:]}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with model.py, data.py and the link's firmware."""

    def make(folder):
        (folder / "net").mkdir()
        (folder / "net" / "model.py").write_text(MODEL)
        (folder / "net" / "data.py").write_text(DATA)
        session = Session(str(folder / "net" / "model.py"), "host", kernels="ref")
        build_link(session.program, session.profile, folder / "link.elf")

    return once(tmp_path_factory, "train-command", make)


@pytest.fixture
def words(made, tmp_path):
    """(command, *words) -> the whole command line; the board's flash is in tmp_path."""
    elf = tmp_path / "link.elf"
    elf.symlink_to(made / "link.elf")
    board = tmp_path / "board"
    board.write_text(f"#!/bin/sh\ncd '{tmp_path}' && exec '{made / 'link.elf'}'\n")
    board.chmod(0o755)
    model = str(made / "net" / "model.py")

    def line(command, *more):
        return [command, model, "--port", f"exec:{board}", "--board", "host", *map(str, more)]

    return line
