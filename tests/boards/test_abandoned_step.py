"""A step in parts that is abandoned on emulated boards: `predict` works at once, and the next step is a whole one."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from firmware_build import generate, link, run

import autodiff_gen as ag
from autodiff_gen import nn, optim

pytestmark = [pytest.mark.cc, pytest.mark.qemu]
NETWORKS = {
    "perceptron": lambda: nn.Sequential(nn.Linear(6, 20), nn.Tanh(), nn.Linear(20, 4)),
    "batch norm": lambda: nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.ReLU(), nn.Linear(5, 4)),
}


def checksum(trainer: ag.Trainer, folder: Path) -> str:
    trainer.save(folder / "checkpoint")
    return f"{zlib.crc32((folder / 'checkpoint').read_bytes()):08x}"


@pytest.mark.parametrize(
    ("name", "place"), [("perceptron", "stm32"), ("batch norm", "mps2_an385"), ("batch norm", "virt_a53")]
)
def test_an_abandoned_step_leaves_nothing(name: str, place: str, tmp_path: Path) -> None:
    optimizer = optim.SGD(lr=0.1, momentum=0.9)
    split, whole = (
        ag.Model.supervised(NETWORKS[name](), (3, 6), nn.CrossEntropyLoss(), optimizer, split=s)
        for s in (True, False)
    )
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((3, 6), dtype=np.float32), np.array([1, 3, 0], np.uint8)
    generate(split, tmp_path)
    (tmp_path / "batches.bin").write_bytes(x.tobytes() + y.tobytes() + b"\0")
    (tmp_path / "workload.h").write_text(
        "#define RECORDS 1u\n#define X_FLOATS 18u\n#define TARGETS 4u\n#define SCORES 12u\ntypedef uint8_t target;\n"
    )
    said = [
        line.split() for line in run(place, link(place, tmp_path, "abandoned_step"), tmp_path).splitlines()
    ]
    trainer = whole.on_host()
    before = [
        ["scores", f"{zlib.crc32(trainer.predict(x).tobytes()):08x}"],
        ["state", checksum(trainer, tmp_path)],
    ]
    losses = [["loss", struct.pack(">f", trainer.train_step(x, y)).hex()] for _ in range(2)]
    times, rest = divmod(len(said) - 3, 2)
    assert times > 1 and rest == 0
    assert said == [*before * times, *losses, ["trained", checksum(trainer, tmp_path)]]
