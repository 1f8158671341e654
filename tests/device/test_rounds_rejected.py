"""Rounds that a board or the host rejects: stale and wrong requests, boards that cannot take part, wrong numbers."""

from __future__ import annotations

import zlib

import numpy as np
import pytest
from round_board import Twin, checksum, connected
from round_task import WIDTH, request

from autodiff_gen.datasets.samples import from_arrays
from autodiff_gen.device import frames
from autodiff_gen.device.differences import ClipAndNoise
from autodiff_gen.device.errors import DeviceError
from autodiff_gen.device.rounds import LocalWork, Round
from autodiff_gen.errors import ModelError, ShapeError

pytestmark = pytest.mark.cc


def test_stale_and_wrong_requests_change_nothing(library, samples, weights):
    board = connected(library, Twin(library, samples))
    assert request(board, frames.LOCAL, "<IIHHffI", 0, 0, 1, 0, 0.1, 0, 0) == -43
    round_ = Round(board, 5, weights)
    round_.train(LocalWork(steps=4, lr=0.1))
    before, sum_of_start = checksum(board.state_dict()), zlib.crc32(round_._data)
    for status, number, layout, numbers in (
        (-32, frames.ACCUMULATE, "<IHHIII", (4, 1, 0, 0, 0, 0)),  # of models with accumulate
        (-32, frames.APPLY, "<IfII", (4, 0.1, 0, 0)),
        (-33, frames.ROUND, "<II", (6, 0)),
        (-33, frames.LOCAL, "<IIHHff", (5, 4, 1, 0, 0.1, 0)),
        (-33, frames.DELTA, "<IIHB", (5, 0, 1, 0)),
        (-34, frames.ROUND, "<III", (0, sum_of_start, 0)),
        (-33, frames.ROUND, "<III", (6, sum_of_start, 2)),
        (-33, frames.ROUND, "<IIIff", (6, sum_of_start, 1, 1, 0)),
        (-34, frames.ROUND, "<III", (6, sum_of_start, 4)),
        (-34, frames.ROUND, "<IIIff", (6, sum_of_start, 2, 0, 0)),
        (-34, frames.ROUND, "<IIIff", (6, sum_of_start, 2, -1, 0)),
        (-34, frames.ROUND, "<IIIff", (6, sum_of_start, 2, 1, -1)),
        (-34, frames.ROUND, "<IIIff", (6, sum_of_start, 2, float("inf"), 0)),
        (-34, frames.ROUND, "<IIIff", (6, sum_of_start, 2, 1, float("nan"))),
        (-34, frames.ROUND, "<IIIff", (6, sum_of_start, 2, 1e30, 1e30)),
        (-34, frames.ROUND, "<IIIff", (6, sum_of_start, 2, 1e-30, 1e-30)),
        (-34, frames.LOCAL, "<IIHHffI", (5, 4, 1, 6, 0.1, 0, 0)),
        (-34, frames.LOCAL, "<IIHHffI", (5, 4, 1, 0, 0.1, -1, 0)),
        (-34, frames.LOCAL, "<IIHHffI", (5, 4, 1, 0, float("nan"), 1, 0)),
        (-34, frames.LOCAL, "<IIHHffI", (5, 4, 1, 0, float("inf"), 0, 0)),
        (-34, frames.DELTA, "<IIHBI", (5, 0, 61, 0, 0)),
        (-34, frames.DELTA, "<IIHBI", (5, 0, 237, 1, 0)),
        (-34, frames.DELTA, "<IIHBI", (5, round_.elements - 3, 4, 0, 0)),
        (-34, frames.DELTA, "<IIHBI", (5, 0xFFFFFFFF, 2, 0, 0)),
        (-34, frames.DELTA, "<IIHBI", (5, 0, 4, 2, 0)),
        (-34, frames.DELTA, "<IIHBIH", (5, 0, 50, 0, 0, 41)),
        (-34, frames.DELTA, "<IIHBIH", (5, 0, 5, 0, 0, 6)),
        (-33, frames.EVALUATE, "<II", (5, 0)),
        (-34, frames.EVALUATE, "<IIH", (5, 3, 1)),
        (-34, frames.EVALUATE, "<IIH", (5, 0xFFFFFFFF, 2)),
        (-43, frames.EVALUATE, "<IIH", (4, 0, 1)),
        (-33, frames.IDENTITY, "<H", (1,)),
        (-33, frames.WEAR, "<I", (1,)),
        (-38, frames.LOCAL, "<IIHHffI", (5, 0, 1, 0, 0.1, 0, 0)),
        (-38, frames.LOCAL, "<IIHHffI", (5, 5, 1, 0, 0.1, 0, 0)),
        (-39, frames.ROUND, "<III", (6, sum_of_start, 0)),
        (-43, frames.ROUND, "<III", (4, sum_of_start, 0)),
        (-43, frames.LOCAL, "<IIHHffI", (4, 4, 1, 0, 0.1, 0, 0)),
        (-43, frames.DELTA, "<IIHBI", (6, 0, 4, 0, 0)),
        (-44, frames.ROUND, "<III", (5, sum_of_start ^ 1, 0)),
        (0, frames.ROUND, "<III", (5, sum_of_start, 0)),
        (0, frames.LOCAL, "<IIHHffI", (5, 4, 0, 0, 0.1, 0, 0)),
    ):
        assert request(board, number, layout, *numbers) == status, (status, number, numbers)
    assert checksum(board.state_dict()) == before and board.counters().trained == 4
    with pytest.raises(
        DeviceError, match=r"round 4 after round 5: the board is in another round.*\(status -43\)"
    ):
        Round(board, 4, weights)
    other = {n: a + np.float32(1) for n, a in weights.items()}
    with pytest.raises(DeviceError, match=r"net: round 5: the round began on this board with other weights"):
        Round(board, 5, other)
    assert checksum(board.state_dict()) == before


@pytest.mark.parametrize(
    "why, given, said",
    [
        ("no flash", {"slots": 0}, "net: round 1: this board has no flash for checkpoints"),
        (
            "a small flash",
            {"slot_bytes": 512},
            "net: round 1: a checkpoint is larger than a slot of the flash",
        ),
        ("no samples", {"samples": b"no set"}, "net: round 1: the board has no samples to train on"),
        ("other records", {"width": WIDTH + 1}, "records that are not as long as the model's inputs"),
        ("no training records", {"train": 0}, "net: round 1: the board has no samples to train on"),
    ],
)
def test_boards_that_cannot_take_part(library, weights, rng, why, given, said):
    x = rng.integers(0, 256, (9, given.pop("width", WIDTH))).astype(np.uint8)
    own = from_arrays(x, np.zeros(9, np.uint8), train=given.pop("train", 9), epochs=1)
    board = connected(library, Twin(library, given.pop("samples", own), **given))
    with pytest.raises(DeviceError) as caught:
        Round(board, 1, weights)
    assert said in str(caught.value) and "\n" not in str(caught.value), why


def test_numbers_that_no_round_has(library, samples, weights):
    board = connected(library, Twin(library, samples))
    for number in (0, -1, 1 << 32):
        with pytest.raises(ShapeError, match=r"outside 1 to 2\^32 - 1"):
            Round(board, number, weights)
    with pytest.raises(ModelError, match=r"the weights of a round miss 0\.weight"):
        Round(board, 1, {n: a for n, a in weights.items() if n != "0.weight"})
    for wrong in (
        {"steps": -1},
        {"n": 1 << 16},
        {"seed": -1},
        {"lr": float("nan")},
        {"lr": 1e300},
        {"mu": -0.5},
    ):
        with pytest.raises(ShapeError):
            LocalWork(**{"steps": 1, "lr": 0.1, **wrong})

    round_ = Round(board, 1, weights)
    for wrong in ("s16", "top", "top0", "top1.5", "topnan", "top0.1:s16", "0.1", ""):
        with pytest.raises(ShapeError, match="expected f32, s8, or the largest of them"):
            round_.delta(wrong)
    for seed in (-1, 1 << 32):
        with pytest.raises(ShapeError, match="expected a seed of 32 bits"):
            round_.delta("s8", seed)
    for clip, noise in ((0, 0), (-1, 0), (1, -1), (1e39, 0), (1, float("nan")), (1e30, 1e30), (1e-30, 1e-30)):
        with pytest.raises(ShapeError, match="clip > 0 and noise >= 0"):
            ClipAndNoise(clip, noise)
