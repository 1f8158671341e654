"""Files that a release wrote, which later versions read: a checkpoint, a flash image, and a session of the board link.

    .venv/bin/python tests/support/released.py tests/compatibility/VERSION

writes the files of this version, when a release changes a format.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from pathlib import Path

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).resolve().parents[2])]

import numpy as np

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device.board import Board
from autodiff_gen.device.firmware import build_link
from autodiff_gen.device.frames import Decoder, Frame
from autodiff_gen.device.link import Link
from autodiff_gen.device.transport import Pipe
from autodiff_gen.targets import board as boards

IMAGES = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
LABELS = np.array([0, 1], np.uint8)
STEPS = 3


def released_model() -> ag.Model:
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    return ag.Model.supervised(net, (2, 4), nn.CrossEntropyLoss(), optim.Adam(lr=0.01))


def build(folder: Path) -> Path:
    """The link's firmware of the model as a program of the host."""
    host = boards.load("host")
    build_link(compile_model(released_model(), "net", ["ref"], host), host, folder / "link.elf")
    return folder / "link.elf"


class Recorded:
    """A port that keeps the frames of both directions."""

    def __init__(self, port: Pipe) -> None:
        self.port, self.frames = port, ([], [])
        self._decoders = Decoder(), Decoder()

    def write(self, data: bytes) -> None:
        self.frames[0].extend(self._decoders[0].feed(data))
        self.port.write(data)

    def read(self, timeout: float) -> bytes:
        data = self.port.read(timeout)
        self.frames[1].extend(self._decoders[1].feed(data))
        return data

    def close(self) -> None:
        self.port.close()


def session(board: Board) -> None:
    """A host's requests to a board: it trains, predicts, reads the weights, saves, and sends weights."""
    board.init(seed=1)
    for _ in range(STEPS):
        board.train_step(IMAGES, LABELS)
    board.predict(IMAGES)
    states = board.state_dict()
    board.save()
    board.load_state_dict(states)


def replies(port: Pipe, requests: list[Frame]) -> list[Frame]:
    """The board's reply to each request of a recorded session."""
    decoder, found = Decoder(), []
    for request in requests:
        port.write(request.encode())
        while not (answers := decoder.feed(port.read(10.0))):
            pass
        found += answers
    return found


def write(folder: Path) -> None:
    """Write the files of this version."""
    folder.mkdir(parents=True, exist_ok=True)
    model = released_model()
    trainer = model.on_host()
    trainer.init(seed=1)
    for _ in range(STEPS):
        trainer.train_step(IMAGES, LABELS)
    trainer.save(folder / "checkpoint.bin")
    np.savez(folder / "state.npz", **trainer.state_dict())
    with tempfile.TemporaryDirectory() as place:
        port = Recorded(Pipe([str(build(Path(place)))], Path(place)))
        board = Board(trainer.program, Link(port))
        session(board)
        board.close()
        flash = Path(place, "flash.bin").read_bytes()
        (folder / "flash.bin.gz").write_bytes(gzip.compress(flash, mtime=0))
    lines = [f"> {f.encode().hex()}" for f in port.frames[0]] + [
        f"< {f.encode().hex()}" for f in port.frames[1]
    ]
    (folder / "session.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
