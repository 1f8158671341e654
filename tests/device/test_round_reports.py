"""A board's report beside its difference: accuracy, cycles, identity, the wear of its flash."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from round_board import Library, Twin, checksum, connected

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.datasets.samples import SampleSet, from_arrays
from autodiff_gen.device import frames
from autodiff_gen.device.errors import DeviceError, LinkError
from autodiff_gen.device.rounds import LocalWork, Round, shared_slots
from autodiff_gen.device.store import Wear, identify, identity, wear
from autodiff_gen.errors import DataError
from autodiff_gen.fleet.identities import identities
from autodiff_gen.fleet.linked import LinkedBoard, LinkedBoards
from autodiff_gen.fleet.round_request import RoundRequest, RoundSettings

pytestmark = pytest.mark.cc
RECORDS, WIDTH, CLASSES = 23, 12, 4
WORK = LocalWork(steps=11, lr=0.02, seed=7)


def model(net, shape=(5, WIDTH)):
    return ag.Model.supervised(net, shape, nn.CrossEntropyLoss(), optim.Adam(lr=0.01))


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    net = nn.Sequential(nn.Linear(WIDTH, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, CLASSES))
    return Library(model(net), tmp_path_factory.mktemp("reports"))


@pytest.fixture
def task(library, rng):
    """Samples, some to test on, and weights."""
    x, y = rng.integers(0, 256, (RECORDS + 8, WIDTH)), rng.integers(0, CLASSES, RECORDS + 8)
    samples = from_arrays(x.astype(np.uint8), y.astype(np.uint8), train=RECORDS, epochs=1)
    weights = {
        s.name: np.abs(rng.normal(0, 0.3, s.state.logical.shape)).astype(np.float32) + 0.01
        for s in shared_slots(library.program)
    }
    return samples, weights


def right(library, weights, samples, chosen):
    """How many labels the host recognises."""
    x = samples.records[chosen, :WIDTH].astype(np.float32) / np.float32(255)
    board = connected(library, Twin(library, samples))
    board.load_state_dict({**board.state_dict(), **weights})
    scores = np.concatenate([board.predict(x[k : k + 5]) for k in range(0, len(x), 5)])
    return int((scores.argmax(1) == samples.records[chosen, WIDTH]).sum())


def test_samples_of_the_board_cannot_be_read(library, task):
    samples, weights = task
    board = connected(library, Twin(library, samples))
    round_ = Round(board, 1, weights)
    layout = link_layout(library.program)
    for use in (lambda: round_.train(WORK), round_.evaluate):
        use()
        for number, size in ((0, layout.input_bytes), (1, layout.output_bytes)):
            count = min(size, board.link.payload)
            (found,) = board.link.request(frames.READ, struct.pack("<IB", number << 28, count), f"<{count}s")
            assert found == bytes(count)


def test_an_evaluation_of_the_start(library, task):
    """On the samples to test on; without any on those to train on; also after local steps, which are then repeated."""
    samples, weights = task
    all_of_them = SampleSet(samples.records, WIDTH, 1, len(samples.records), 1)
    for own, chosen in ((samples, slice(RECORDS, None)), (all_of_them, slice(None))):
        calm = Round(connected(library, Twin(library, own)), 1, weights)
        calm.train(WORK)
        board = connected(library, Twin(library, own))
        round_ = Round(board, 1, weights)
        expected = right(library, weights, own, chosen)
        for steps in (0, 4):
            round_.train(LocalWork(steps, WORK.lr, WORK.seed))
            found = round_.evaluate()
            assert (found.samples, found.labels) == (len(own.records[chosen]),) * 2
            assert found.right == expected
        round_.train(WORK)
        assert checksum(board.state_dict()) == checksum(calm.board.state_dict())
        np.testing.assert_array_equal(round_.difference(), calm.difference())


def test_labels_of_pixels(tmp_path, rng):
    """Several labels a sample, some of no class; scores [n, classes, pixels]."""
    net = nn.Conv2d(1, 3, 1)
    spec = ag.Model.supervised(net, (2, 1, 2, 3), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    library = Library(spec, tmp_path)
    x = rng.integers(0, 256, (7, 6)).astype(np.uint8)
    y = rng.choice([0, 1, 2, 255], (7, 6)).astype(np.uint8)
    samples = SampleSet(np.concatenate([x, y], 1), 6, 6, 4, 1)
    board = connected(library, Twin(library, samples))
    start = {s.name: rng.normal(0, 1, s.state.logical.shape) for s in shared_slots(library.program)}
    found = Round(board, 1, start).evaluate()
    images = x[4:].reshape(3, 1, 2, 3).astype(np.float32) / np.float32(255)
    scores = np.einsum("ncij,oc->noij", images, start["weight"][:, :, 0, 0])
    guessed = (scores + start["bias"][:, None, None]).argmax(1).reshape(3, 6)
    assert found.labels == (y[4:] != 255).sum() and found.right == (guessed == y[4:]).sum()


def test_a_model_without_classes(tmp_path, rng):
    spec = ag.Model.supervised(nn.Linear(WIDTH, 2), (5, WIDTH), nn.MSELoss(), optim.SGD(lr=0.1))
    library = Library(spec, tmp_path)
    samples = SampleSet(rng.integers(0, 256, (9, WIDTH + 2)).astype(np.uint8), WIDTH, 2, 9, 1)
    board = connected(library, Twin(library, samples))
    start = {s.name: np.zeros(s.state.logical.shape, np.float32) for s in shared_slots(library.program)}
    with pytest.raises(DeviceError, match=r"no classes.*status -50"):
        Round(board, 1, start).evaluate()


def test_cycles_of_local_steps(library, task):
    """The board's counter wraps within them; it takes 100 cycles to read."""
    samples, weights = task
    round_ = Round(connected(library, Twin(library, samples)), 1, weights)
    assert round_.train(LocalWork(4, 0.1)).cycles == 400
    assert round_.train(WORK).cycles == 1100


def test_an_identity_is_given_once_and_kept(library, task):
    """In the flash, also through power cuts and rounds, and beside checkpoints of other models."""
    samples, weights = task
    twin = Twin(library, samples)
    board = connected(library, twin)
    assert identity(board) == 0 and Round(board, 1, weights).identity == 0
    for cut in (1, 40):
        twin.cut(cut)
        with pytest.raises(DeviceError):
            identify(board, 0xC0FFEE)
        assert identity(board) == 0
        twin.cut(0)
        twin.start()
        board = connected(library, twin)
        assert identity(board) == 0
    assert identify(board, 0xC0FFEE) == identity(board) == identify(board, 0xC0FFEE) == 0xC0FFEE
    with pytest.raises(DeviceError, match=r"another identity already.*status -49"):
        identify(board, 0xC0FFEF)
    for number in range(2, 9):  # the first record is erased
        round_ = Round(board, number, weights)
        assert round_.identity == 0xC0FFEE
        if number % 3 == 0:
            board.save()
        twin.start()
        board = connected(library, twin)
        assert identity(board) == 0xC0FFEE
    assert wear(connected_in_round(library, twin, weights)).erasures > 2
    assert identity(connected(library, Twin(library, samples))) == 0


def connected_in_round(library, twin, weights):
    board = connected(library, twin)
    Round(board, 9, weights)
    return board


def test_two_boards_with_one_identity(library, task):
    samples, _ = task
    boards = [connected(library, Twin(library, samples)) for _ in range(3)]
    identify(boards[1], 7)
    assert identities(boards, ["a", "b", "c"])[1] == 7
    found = [identity(b) for b in boards]
    assert len({*found}) == 3 and 0 not in found and identities(boards, ["a", "b", "c"]) == found
    boards.append(connected(library, Twin(library, samples)))
    identify(boards[3], found[0])
    with pytest.raises(DataError, match=r"^a and d have the same identity, .*: erase the flash of one"):
        identities(boards, ["a", "b", "c", "d"])
    without_flash = connected(library, Twin(library, samples, slots=0))
    assert identities([boards[0], without_flash], ["a", "b"]) == [found[0], 0]


def test_boards_that_join_later_have_another_identity(library, task):
    """The reply to ROUND says which it has."""
    samples, weights = task
    boards = [connected(library, Twin(library, samples)) for _ in range(3)]
    for board, own in zip(boards, (7, 0, 7), strict=True):
        identify(board, own)
    linked = LinkedBoards(
        [LinkedBoard(name, "a", lambda b=b: b) for name, b in zip("abc", boards, strict=True)]
    )
    order = RoundRequest(1, weights, RoundSettings(lr=WORK.lr, steps=WORK.steps))
    assert [answer.board for k in (0, 1, 0) for answer in linked.round(order, [k])] == [0, 1, 0]
    with pytest.raises(
        DataError, match=r"^a and c have the same identity, 00000007, .*: erase the flash of one"
    ):
        list(linked.round(order, [2]))


def test_a_board_that_cannot_begin_anew_is_left(library, task, monkeypatch):
    """No port stays open."""
    board, closed = connected(library, Twin(library, task[0])), []

    def reset():
        raise LinkError("silent")

    monkeypatch.setattr(board, "init", reset)
    monkeypatch.setattr(board, "close", lambda: closed.append(board))
    line = LinkedBoard("a", "a", lambda: board, fresh=True)
    for times in (1, 2):
        with pytest.raises(LinkError, match="silent"):
            line.connected()
        assert len(closed) == times


def test_the_wear_of_a_round(library, task):
    samples, weights = task
    twin = Twin(library, samples)
    board = connected(library, twin)
    with pytest.raises(DeviceError, match="status -43"):
        wear(board)
    erased = []
    for number in range(1, 13):
        Round(board, number, weights)
        found = wear(board)
        erased.append(found.erasures)
    bytes_ = library.program.state_bytes
    assert (found.slots, found.slot_bytes) == (2, 2 * (bytes_ + 128))
    assert bytes_ < found.programmed < bytes_ + 150
    changes = np.flatnonzero(np.diff([0, *erased]))
    assert {*np.diff(changes)} == {found.rounds} and erased[-1] == len(changes)
    assert str(Wear(2, 4096, 5, 352)) == (
        "a round programs 352 bytes of a board's flash, and every 11 rounds erases one of 2 sectors of 4,096 bytes"
    )
    assert "and every round erases" in str(Wear(2, 4096, 5, 4000))


@pytest.mark.parametrize(
    "divisor, zero", [(64.0, 128), (255.0, 0), (1.0, 0), (32.0, -7), (0.1, 3), (255.0, 1)]
)
def test_numbers_that_bytes_stand_for(library, task, divisor, zero):
    samples, weights = task
    own = SampleSet(samples.records, WIDTH, 1, RECORDS, 1, divisor, zero)
    board = connected(library, Twin(library, own))
    round_ = Round(board, 1, weights)
    round_.train(WORK)
    other = connected(library, Twin(library, own))
    other.load_state_dict({**other.state_dict(), **weights})
    at = [library.c.ag_round_sample(k % RECORDS, RECORDS, 7, k // RECORDS) for k in range(55)]
    for k in range(11):
        rows = samples.records[at[5 * k : 5 * k + 5]]
        x = (rows[:, :-1].astype(np.float32) - np.float32(zero)) / np.float32(divisor)
        other.train_step(x, rows[:, -1], lr=WORK.lr)
    assert checksum(board.state_dict()) == checksum(other.state_dict())
