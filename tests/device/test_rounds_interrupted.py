"""Rounds that something interrupts: another host, power cuts, accidents on the line, other requests."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import pytest
from round_board import Twin, accidents, checksum, connected
from round_task import WORK, batches, request, weights_of, whole_round

from autodiff_gen.codegen.shared_part import shared_part
from autodiff_gen.device import frames
from autodiff_gen.device.board import Board
from autodiff_gen.device.errors import DeviceError, LinkError
from autodiff_gen.device.rounds import LocalWork, Round
from autodiff_gen.device.store import identify

pytestmark = pytest.mark.cc


def test_another_host_goes_on_with_a_round(library, samples, weights):
    twin = Twin(library, samples)
    expected = checksum(whole_round(connected(library, Twin(library, samples)), 1, weights))
    Round(connected(library, twin), 1, weights).train(replace(WORK, steps=4))
    board = connected(library, twin)
    round_ = Round(board, 1, weights)
    assert round_.local.steps == board.steps == 4
    with pytest.raises(LinkError, match="the board is at step 4, expected 0 to 3"):
        round_.train(replace(WORK, steps=3))
    done = round_.train(WORK)
    assert (done.steps, done.examples, board.steps) == (11, 55, 11)
    assert checksum(round_.delta("s8", 9)) == expected and board.counters().trained == 11


def test_a_power_cut_after_any_operation_applies_nothing_twice(small, samples, rng):
    """The round is repeated from the board's state; it ends with the state of a round that nothing interrupted."""
    library, weights = small, weights_of(small.program, rng)
    calm = connected(library, Twin(library, samples))
    Round(calm, 1, weights).train(WORK)
    first = calm.state_dict()
    expected = checksum(whole_round(calm, 2, weights))
    after = {checksum(calm.state_dict())}
    # where the second round's start is not saved, the optimizer's state comes from the first round's start
    back = connected(library, Twin(library, samples))
    Round(back, 1, weights)
    early = checksum(whole_round(back, 2, weights))
    after.add(checksum(back.state_dict()))
    twin = Twin(library, samples)
    board = connected(library, twin)
    Round(board, 1, weights)
    twin.cut(0)
    Round(board, 2, weights)
    operations, repeated = twin.operations, 0
    for torn in (0, 77):
        for cut in range(1, operations + 1):
            twin = Twin(library, samples)
            board = connected(library, twin)
            Round(board, 1, weights).train(WORK)
            assert checksum(board.state_dict()) == checksum(first)
            twin.cut(cut, torn + cut if torn else 0)
            try:
                Round(board, 2, weights).train(WORK)
            except DeviceError as error:
                assert error.status <= -64
            twin.cut(0)
            twin.start()
            board = connected(library, twin)
            assert board.greeting.round in (1, 2)
            repeated += board.greeting.round == 1
            assert checksum(whole_round(board, 2, weights)) in (expected, early)
            assert checksum(board.state_dict()) in after
            assert board.counters().trained == WORK.steps
    assert operations > 30 and repeated > operations


@pytest.mark.parametrize("seed", range(6))
def test_accidents_apply_nothing_twice(library, samples, weights, seed):
    """Frames are lost and replayed, and the board restarts, within three rounds; each ends as on an error-free line,
    except for rounds that lost the optimizer's state."""
    calm = connected(library, Twin(library, samples))
    expected = [checksum(whole_round(calm, number, weights)) for number in (1, 2, 3)]
    replays, restarts = (0.3, 0.0) if seed % 2 else (0.1, 0.01)
    accident, lost = accidents(seed, restarts=restarts, replays=replays, losses=0.1)
    board = connected(library, Twin(library, samples), accident, lost)
    found = [checksum(whole_round(board, number, weights)) for number in (1, 2, 3)]
    assert found[0] == expected[0]
    if not restarts:
        assert found == expected and checksum(board.state_dict()) == checksum(calm.state_dict())
        assert board.counters().trained == 3 * WORK.steps and board.counters().repeated > 0
    assert board.greeting.round == 3


def test_other_requests_leave_the_round(library, samples, weights):
    """Then it is repeated from its start, or the board is in none."""
    twin = Twin(library, samples)
    board = connected(library, twin)
    started = Round(board, 1, weights)
    expected = checksum(whole_round(connected(library, Twin(library, samples)), 1, weights))
    started.train(LocalWork(steps=2, lr=0.1))
    x, y = next(batches(library, samples, WORK))
    board.train_step(x, y)
    assert request(board, frames.DELTA, "<IIHBI", 1, 0, 4, 0, 0) == -43
    board = connected(library, twin)
    assert board.greeting.round == 1 and checksum(whole_round(board, 1, weights)) == expected
    board.load()
    assert checksum(whole_round(connected(library, twin), 1, weights)) == expected
    for leave, status, after in (
        (Board.save, -43, 0),
        (Board.init, -43, 0),
        (lambda b: b.load_state_dict(b.state_dict()), -43, 0),
        (lambda b: identify(b, 7), -43, 0),
        (lambda b: identify(b, 7), 0, 1),  # it has this identity already
        (lambda b: (b.init(), b.load()), -43, 1),
    ):
        board = connected(library, twin)
        Round(board, 1, weights)
        leave(board)
        assert request(board, frames.DELTA, "<IIHBI", 1, 0, 4, 0, 0) == status
        found = connected(library, twin).greeting
        assert found.round == after
        assert (board.greeting.round, board.greeting.checkpoint) == (found.round, found.checkpoint)
        Round(board, 1, weights)


def test_a_half_written_state_takes_part_in_no_round(library, samples, weights):
    board = connected(library, Twin(library, samples))
    round_ = Round(board, 1, weights)
    round_.train(LocalWork(steps=3, lr=0.1))
    size, crc = library.program.state_bytes, zlib.crc32(round_._data)
    board.link.request(frames.BEGIN)
    for number, layout, numbers in (
        (frames.LOCAL, "<IIHHffI", (1, 3, 1, 0, 0.1, 0, 0)),
        (frames.DELTA, "<IIHBI", (1, 0, 4, 0, 0)),
    ):
        assert request(board, number, layout, *numbers) == -40
    assert request(board, frames.ROUND, "<III", 1, crc, 0) == 0  # repeated from its start
    assert board.link.exchange(frames.LOCAL, struct.pack("<IIHHffI", 1, 0, 0, 0, 0.1, 0, 0))[0] == 0
    board.link.request(frames.BEGIN)
    board.link.request(frames.WRITE, struct.pack("<II", frames.STATE << 28 | size - 4, 1))  # the optimizer's
    assert request(board, frames.ROUND, "<III", 1, crc, 0) == -40
    board.load()
    assert request(board, frames.ROUND, "<III", 1, crc, 0) == 0


def test_buffers_that_stay_on_the_board_are_not_half_written(library, samples, weights):
    """Another host has begun to push a round in which buffers are shared."""
    board = connected(library, Twin(library, samples))
    offset = next(run.offset for run in shared_part(library.program) if run.is_buffer)
    board.link.request(frames.BEGIN)
    board.link.request(frames.WRITE, struct.pack("<If", frames.STATE << 28 | offset, 1.0))
    with pytest.raises(DeviceError, match="half written"):
        Round(board, 1, weights, local_buffers=True)
    Round(board, 1, weights)
    Round(board, 2, weights, local_buffers=True)
