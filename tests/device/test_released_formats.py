"""What earlier releases wrote is read: checkpoints, flash images, and the board link's frames (docs/versions.md)."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest
import released
from checkout import ROOT
from firmware_build import once

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device.board import Board
from autodiff_gen.device.frames import Decoder, Frame
from autodiff_gen.device.link import Link
from autodiff_gen.device.transport import Pipe

# Releases whose formats this version reads.
RELEASES = sorted((ROOT / "tests" / "compatibility").iterdir())
pytestmark = [pytest.mark.cc, pytest.mark.parametrize("release", RELEASES, ids=lambda folder: folder.name)]


@pytest.fixture(scope="module")
def firmware(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "released", released.build) / "link.elf"


def same(states: dict[str, np.ndarray], release: Path) -> None:
    with np.load(release / "state.npz") as wanted:
        assert states.keys() == {*wanted}
        for name, array in states.items():
            np.testing.assert_array_equal(array, wanted[name])


def test_a_checkpoint_is_read(release: Path) -> None:
    trainer = released.released_model().on_host()
    trainer.load(release / "checkpoint.bin")
    same(trainer.state_dict(), release)


def test_a_flash_image_is_read(release: Path, firmware: Path, tmp_path: Path) -> None:
    (tmp_path / "flash.bin").write_bytes(gzip.decompress((release / "flash.bin.gz").read_bytes()))
    program = compile_model(released.released_model(), "net", ["ref"])
    board = Board(program, Link(Pipe([str(firmware)], tmp_path)))
    try:
        assert board.load() == released.STEPS
        same(board.state_dict(), release)
    finally:
        board.close()


def test_a_board_answers_a_recorded_session(release: Path, firmware: Path, tmp_path: Path) -> None:
    """The host of the release and a board of this version: each reply is the same bytes."""
    lines = (release / "session.txt").read_text().splitlines()
    sent, received = ([bytes.fromhex(line[2:]) for line in lines if line[0] == way] for way in "><")
    port = Pipe([str(firmware)], tmp_path)
    try:
        answers = released.replies(port, [frame for data in sent for frame in Decoder().feed(data)])
    finally:
        port.close()
    wanted: list[Frame] = [frame for data in received for frame in Decoder().feed(data)]
    assert len(wanted) > 10 and answers == wanted
