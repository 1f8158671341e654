"""The program of the host that the commands of the board link talk to, and boards that take part in rounds."""

from __future__ import annotations

import numpy as np
import pytest
from firmware_build import once
from round_board import Library
from round_task import CLASSES, RECORDS, WIDTH, build, network, weights_of

from autodiff_gen import nn, optim
from autodiff_gen.datasets.samples import from_arrays
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


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return Library(build(network()), tmp_path_factory.mktemp("rounds"))


@pytest.fixture(scope="session")
def small(tmp_path_factory):
    net, optimizer = nn.Linear(WIDTH, CLASSES), optim.SGD(lr=0.1, momentum=0.9)
    return Library(build(net, optimizer=optimizer), tmp_path_factory.mktemp("small"))


@pytest.fixture
def samples(rng):
    """Some of them are to test on."""
    x, y = rng.integers(0, 256, (RECORDS + 3, WIDTH)), rng.integers(0, CLASSES, RECORDS + 3)
    return from_arrays(x.astype(np.uint8), y.astype(np.uint8), train=RECORDS, epochs=1)


@pytest.fixture
def weights(library, rng):
    """A server's weights, which differ from the board's."""
    return weights_of(library.program, rng)
