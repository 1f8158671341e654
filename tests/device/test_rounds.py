"""Rounds of federated training on a board: the steps, the difference, power cuts, accidents on the line, rejections."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace

import numpy as np
import pytest
from round_board import Library, Twin, accidents, checksum, connected

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.shared_part import shared_part
from autodiff_gen.datasets.samples import from_arrays
from autodiff_gen.device import frames
from autodiff_gen.device.board import Board
from autodiff_gen.device.differences import Mask
from autodiff_gen.device.errors import DeviceError, LinkError
from autodiff_gen.device.rounds import Round, Work, shared_slots
from autodiff_gen.device.store import identify
from autodiff_gen.errors import ModelError, ShapeError

pytestmark = pytest.mark.cc
RECORDS, WIDTH, CLASSES = 23, 12, 4


def network():
    return nn.Sequential(nn.Linear(WIDTH, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, CLASSES))


def build(net, width=WIDTH, optimizer=None):
    return ag.Model.supervised(
        net, input=(5, width), loss=nn.CrossEntropyLoss(), optimizer=optimizer or optim.Adam(lr=0.01)
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return Library(build(network()), tmp_path_factory.mktemp("rounds"))


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    net, optimizer = nn.Linear(WIDTH, CLASSES), optim.SGD(lr=0.1, momentum=0.9)
    return Library(build(net, optimizer=optimizer), tmp_path_factory.mktemp("small"))


@pytest.fixture
def samples(rng):
    x, y = rng.integers(0, 256, (RECORDS + 3, WIDTH)), rng.integers(0, CLASSES, RECORDS + 3)
    return from_arrays(x.astype(np.uint8), y.astype(np.uint8), train=RECORDS, epochs=1)


@pytest.fixture
def weights(library, rng):
    """What a server sends: other weights than the board's."""
    return weights_of(library.program, rng)


def weights_of(program, rng):
    return {
        s.name: np.abs(rng.normal(0, 0.3, s.state.logical.shape)).astype(np.float32) + 0.01
        if s.role == "buffer"
        else rng.normal(0, 0.3, s.state.logical.shape).astype(np.float32)
        for s in shared_slots(program)
    }


WORK = Work(steps=11, lr=0.02, seed=7)


def batches(library, samples, work, n=5):
    """The samples of each step, in the order of the board."""
    at = [
        library.c.ag_round_sample(k % RECORDS, RECORDS, work.seed, k // RECORDS)
        for k in range(work.steps * n)
    ]
    for k in range(work.steps):
        rows = samples.records[at[k * n : (k + 1) * n]]
        yield rows[:, :-1].astype(np.float32) / np.float32(255), rows[:, -1]


def test_a_round_is_the_same_steps_bit_for_bit(library, samples, weights):
    board = connected(library, Twin(library, samples))
    round_ = Round(board, 3, weights)
    assert (round_.samples, round_.local.steps, board.greeting.round) == (RECORDS, 0, 3)
    done = round_.train(WORK)
    assert (done.steps, done.examples) == (11, 55)
    other = connected(library, Twin(library, samples))
    other.load_state_dict({**other.state_dict(), **weights})
    losses = [other.train_step(*batch, lr=WORK.lr) for batch in batches(library, samples, WORK)]
    after = board.state_dict()
    assert checksum(after) == checksum(other.state_dict())
    assert done.loss == pytest.approx(np.mean(losses), rel=1e-6)
    assert board.counters().steps == 11
    delta = round_.delta()
    assert delta.keys() == weights.keys()
    for name, start in weights.items():
        np.testing.assert_array_equal(delta[name], after[name] - start)
    assert checksum(board.state_dict()) == checksum(after)


def test_bytes_of_a_delta_are_right_on_average(library, samples, weights):
    board = connected(library, Twin(library, samples))
    round_ = Round(board, 1, weights)
    round_.train(WORK)
    exact = np.concatenate([a.ravel() for a in round_.delta().values()])
    before = board.link.traffic.received
    drawn = []
    for seed in range(200):
        drawn.append(np.concatenate([a.ravel() for a in round_.delta("s8", seed).values()]))
    received = (board.link.traffic.received - before) / 200
    per = board.link.payload - 4
    scale = np.concatenate(
        [
            np.full(len(part), np.abs(part).max() / 127)
            for part in np.split(exact, range(per, len(exact), per))
        ]
    )
    drawn = np.array(drawn)
    assert (np.abs(drawn - exact) <= scale * 1.0001).all()
    error = drawn.mean(0) - exact
    assert (np.abs(error) < 5 * scale * 0.5 / np.sqrt(200)).all() and abs((error / scale).mean()) < 0.01
    assert (drawn.std(0) > 0).mean() > 0.9
    again = np.concatenate([a.ravel() for a in round_.delta("s8", 5).values()])
    np.testing.assert_array_equal(again, drawn[5])
    payload = len(exact) + 4 * -(-len(exact) // per)
    assert payload < 0.26 * 4 * len(exact) and received < payload + 20 * -(-len(exact) // per)


@pytest.mark.parametrize("mu", [0.5, 4.0])
def test_the_proximal_term(small, samples, rng, mu):
    """Against NumPy: gradient descent with momentum, and w -= lr mu (w - w0) after each step."""
    start = weights_of(small.program, rng)
    round_ = Round(connected(small, Twin(small, samples)), 1, start)
    work = Work(steps=9, lr=0.1, seed=3, mu=mu)
    round_.train(work)
    w, b = (start[k].astype(np.float64) for k in ("weight", "bias"))
    v, u = np.zeros_like(w), np.zeros_like(b)
    for x, y in batches(small, samples, work):
        scores = x @ w.T + b
        p = np.exp(scores - scores.max(1, keepdims=True))
        d = (p / p.sum(1, keepdims=True) - np.eye(CLASSES)[y]) / len(x)
        v, u = 0.9 * v + d.T @ x, 0.9 * u + d.sum(0)
        w, b = w - work.lr * v, b - work.lr * u
        w -= work.lr * mu * (w - start["weight"])
        b -= work.lr * mu * (b - start["bias"])
    delta = round_.delta()
    np.testing.assert_allclose(delta["weight"], w - start["weight"], atol=2e-6)
    np.testing.assert_allclose(delta["bias"], b - start["bias"], atol=2e-6)


class Integers(nn.Module):
    """A layer that trains in part, and two parameters of 8-bit integers, one of them no multiple of 4 bytes."""

    def __init__(self):
        super().__init__()
        rng = np.random.default_rng(1)
        self.first = nn.Linear(WIDTH, 9)
        nn.update_channels(self.first, 0.5)
        self.scales = nn.QuantizedParameter(rng.integers(-99, 99, 9).astype(np.int8), 0.01)
        self.last = nn.QuantizedParameter(rng.integers(-127, 128, (CLASSES, 9)).astype(np.int8), 0.02)

    def forward(self, x):
        hidden = F.tanh(self.first(x)) * F.dequantize(self.scales)
        return F.linear(hidden, F.dequantize(self.last))


def test_networks_with_8_bit_weights(tmp_path_factory, samples, rng):
    model = build(Integers(), optimizer=optim.SGD(lr=0.1))
    library = Library(model, tmp_path_factory.mktemp("integers"))
    kinds = [r.kind for r in shared_part(library.program)]
    assert set(kinds) == {"f32", "s8"}
    board = connected(library, Twin(library, samples))
    start = board.state_dict()
    for name in ("scales", "last"):
        start[name] = rng.integers(-100, 100, start[name].shape).astype(np.int8)
    round_ = Round(board, 1, start)
    work = Work(steps=8, lr=0.5, seed=2)
    round_.train(work)
    after, delta = board.state_dict(), round_.delta()
    for name, change in delta.items():
        np.testing.assert_array_equal(change, after[name].astype(np.float32) - start[name])
    assert 0 < (delta["first.weight"] == 0).sum() < delta["first.weight"].size / 1.5
    assert np.abs(delta["last"]).max() >= 1 and np.abs(delta["scales"]).max() >= 1
    other = connected(library, Twin(library, samples))
    other.load_state_dict({**other.state_dict(), **start})
    trainer = model.on_host(kernels="ref")
    trainer.load_state_dict(start)
    for batch in batches(library, samples, work):
        other.train_step(*batch, lr=work.lr)
        trainer.train_step(*batch, lr=work.lr)
    assert checksum(after) == checksum(other.state_dict()) == checksum(trainer.state_dict())
    drawn = [np.concatenate([a.ravel() for a in round_.delta("s8", seed).values()]) for seed in range(50)]
    exact = np.concatenate([a.ravel() for a in delta.values()])
    assert np.abs(np.mean(drawn, 0) - exact).max() < np.abs(exact).max() / 127
    # a step without learning, then back to the start by half of the way: rounded, right on average
    ends = []
    for number in range(2, 42):
        again = Round(board, number, start)
        again.train(Work(steps=4, lr=0.5, seed=number))
        before = board.state_dict()["last"].astype(np.float32)
        again.train(Work(steps=5, lr=1e-6, seed=number, mu=0.5e6))
        ends.append((board.state_dict()["last"] - start["last"]) - (before - start["last"]) / 2)
    assert np.abs(ends).max() < 1.5 and abs(np.mean(ends)) < 0.05


def unit(key, counter, index):
    """ag_unitf of runtime/ag_rng.h."""

    def mix(x):
        x = x & 0xFFFFFFFF
        x = (x ^ x >> 16) * 0x21F0AAAD & 0xFFFFFFFF
        x = (x ^ x >> 15) * 0x735A2D97 & 0xFFFFFFFF
        return x ^ x >> 15

    s, t = mix(mix(key + 0x9E3779B9) ^ counter), mix(mix(counter + 0x7F4A7C15) ^ key)
    return (mix(mix(index ^ s) + t) >> 8) / 2.0**24


def test_rounding_has_random_numbers_of_its_own(tmp_path, samples, rng):
    """8-bit weights that are pulled to the start are rounded up where a random number is at least 1/2: one of no stream
    that the order of the samples, or the rounding of the difference, has with the same seed."""
    library = Library(build(Integers(), optimizer=optim.SGD(lr=0.1)), tmp_path)
    board = connected(library, Twin(library, samples))
    start = board.state_dict()
    start["last"] = rng.integers(-100, 100, start["last"].shape).astype(np.int8)
    number, seed, up, elements = 5, 77, [], []
    round_ = Round(board, number, start)
    round_.train(Work(steps=4, lr=0.5, seed=seed))
    before = board.state_dict()
    round_.train(Work(steps=5, lr=1e-6, seed=seed, mu=0.5e6))
    after, first = board.state_dict(), 0
    for slot in shared_slots(library.program):
        size = slot.type.bytes // slot.type.dtype.size
        if before[slot.name].dtype == np.int8:
            moved = before[slot.name].astype(float).ravel() - start[slot.name].ravel()
            odd = np.flatnonzero(moved % 2)
            middle = start[slot.name].ravel() + moved / 2
            up += (after[slot.name].ravel() > middle)[odd].tolist()
            elements += (first + odd).tolist()
        first += size
    assert len(up) >= 15
    for counter in (0, 4, 5):  # epochs, local steps, the round
        others = [unit(seed, counter, k) >= 0.5 for k in elements]
        assert 0.1 < np.mean(np.equal(up, others)) < 0.9, counter
    assert np.all(np.equal(up, [unit(seed ^ 0x786F7270, 5, k) >= 0.5 for k in elements]))


def test_buffers_may_stay_on_the_board(library, samples, weights):
    board = connected(library, Twin(library, samples))
    own = board.state_dict()
    round_ = Round(board, 1, weights, local_buffers=True)
    state = board.state_dict()
    for name, array in weights.items():
        np.testing.assert_array_equal(state[name], own[name] if "running" in name else array)
    round_.train(WORK)
    delta = round_.delta()
    assert delta.keys() == {n for n in weights if "running" not in n}
    assert all(np.abs(a).max() > 0 for a in delta.values())


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


def test_the_order_has_each_sample_once(library):
    for n in (*range(1, 70), 255, 256, 257, 1000, 4096):
        for seed, epoch in ((0, 0), (0, 1), (1, 0), (0xFFFFFFFF, 65535)):
            order = [library.c.ag_round_sample(i, n, seed, epoch) for i in range(n)]
            assert sorted(order) == list(range(n)), n
    order = np.array([library.c.ag_round_sample(i, 256, 1, 0) for i in range(256)])
    assert len({*np.diff(order) % 256}) > 100  # in no fixed steps
    first = np.array(
        [[library.c.ag_round_sample(i, 100, seed, 0) for i in range(100)] for seed in range(400)]
    )
    places = np.stack([(first == k).mean(0) for k in range(100)])  # of sample k at position i
    assert places.max() < 0.05 and abs(np.corrcoef(first.T)[np.triu_indices(100, 1)]).mean() < 0.06


def whole_round(board, number, weights):
    round_ = Round(board, number, weights)
    round_.train(WORK)
    return round_.delta("s8", 9)


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
    """The round is repeated on what the board has then; it ends with the state of a round that nothing interrupted."""
    library, weights = small, weights_of(small.program, rng)
    calm = connected(library, Twin(library, samples))
    Round(calm, 1, weights).train(WORK)
    first = calm.state_dict()
    expected = checksum(whole_round(calm, 2, weights))
    after = {checksum(calm.state_dict())}
    # where the second round's start is not saved, the optimizer's state is that of the first one's start
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
    but for rounds of which the optimizer's state was lost."""
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


def request(board, number, layout, *numbers):
    """The status of a request."""
    return board.link.exchange(number, struct.pack(layout, *numbers))[0]


def test_stale_and_wrong_requests_change_nothing(library, samples, weights):
    board = connected(library, Twin(library, samples))
    assert request(board, frames.LOCAL, "<IIHHffI", 0, 0, 1, 0, 0.1, 0, 0) == -43
    round_ = Round(board, 5, weights)
    round_.train(Work(steps=4, lr=0.1))
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


def test_other_requests_leave_the_round(library, samples, weights):
    """Then it is repeated from its start, or the board is in none."""
    twin = Twin(library, samples)
    board = connected(library, twin)
    started = Round(board, 1, weights)
    expected = checksum(whole_round(connected(library, Twin(library, samples)), 1, weights))
    started.train(Work(steps=2, lr=0.1))
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
    round_.train(Work(steps=3, lr=0.1))
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
            Work(**{"steps": 1, "lr": 0.1, **wrong})

    round_ = Round(board, 1, weights)
    for wrong in ("s16", "top", "top0", "top1.5", "topnan", "top0.1:s16", "0.1", ""):
        with pytest.raises(ShapeError, match="expected f32, s8, or the largest of them"):
            round_.delta(wrong)
    for seed in (-1, 1 << 32):
        with pytest.raises(ShapeError, match="expected a seed of 32 bits"):
            round_.delta("s8", seed)
    for clip, noise in ((0, 0), (-1, 0), (1, -1), (1e39, 0), (1, float("nan")), (1e30, 1e30), (1e-30, 1e-30)):
        with pytest.raises(ShapeError, match="clip > 0 and noise >= 0"):
            Mask(clip, noise)


def test_what_is_shared(rng):
    """Parameters that train and floats of buffers, not the optimizer's state and no counters."""
    program = compile_model(build(network()), "net", ("ref",))
    assert [(r.kind, r.is_buffer, [s.name for s in r.slots]) for r in shared_part(program)] == [
        ("f32", False, ["0.weight", "0.bias", "1.weight", "1.bias"]),
        ("f32", True, ["1.running_mean", "1.running_var"]),
        ("f32", False, ["3.weight", "3.bias"]),
    ]
