"""Gradients of synchronous training over the link: the steps, accidents on the line, restarts, rejections."""

from __future__ import annotations

import itertools
import struct
import zlib

import numpy as np
import pytest
from device_model import opened
from link_build import link_program
from round_board import Library, Twin, accidents, checksum, connected

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.exchanged_part import exchanged_part
from autodiff_gen.device import frames
from autodiff_gen.device.errors import DeviceError, LinkError
from autodiff_gen.device.frames import Decoder, Frame
from autodiff_gen.device.gradients import GradientRank, after_apply
from autodiff_gen.fleet.ranks import TwinRank
from autodiff_gen.fleet.synchronous import Synchronous
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer

pytestmark = pytest.mark.cc
WIDTH, CLASSES, BATCH, STEPS = 12, 4, 5, 6


def build(**options):
    net = nn.Sequential(
        nn.Linear(WIDTH, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Dropout(0.2), nn.Linear(9, CLASSES)
    )
    return ag.Model.supervised(net, (BATCH, WIDTH), nn.CrossEntropyLoss(), optim.Adam(lr=0.01), **options)


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return Library(build(accumulate="mean"), tmp_path_factory.mktemp("gradients"))


@pytest.fixture
def data(rng):
    x = rng.normal(size=(2 * BATCH * STEPS, WIDTH)).astype(np.float32)
    return {"x": x, "label": rng.integers(0, CLASSES, len(x)).astype(np.uint8)}


def board(library, *line):
    return GradientRank(connected(library, Twin(library, b""), *line), "board", "twin")


def host(library):
    return TwinRank(Trainer(library.program, Compiler(find_compiler(), "-O0")), "twin")


def train(library, ranks, data, steps=STEPS):
    """Steps of 10 samples by two ranks, or by one that makes two batches of them. Returns the losses."""
    group = Synchronous(library.program, ranks, "mean")
    group.load(host(library).state(), 0)
    batches = [np.arange(at, at + BATCH) for at in range(0, len(data["x"]), BATCH)]
    losses = []
    for k in range(steps):
        own = batches[2 * k : 2 * k + 2]
        losses.append(group.step(data, [own] if len(ranks) == 1 else [[rows] for rows in own], 0.01))
    return losses


@pytest.fixture
def expected(library, data):
    """Losses, and the weights of two twins on the host."""
    ranks = [host(library), host(library)]
    return train(library, ranks, data), checksum(ranks[1].state())


def test_boards_make_the_steps_of_twins_on_the_host(library, data, expected):
    boards = [board(library), board(library)]
    losses = train(library, boards, data)
    assert (losses, checksum(boards[0].state())) == expected == (losses, checksum(boards[1].state()))
    assert boards[0].board.counters().trained == boards[0].board.counters().steps == STEPS
    mixed = [board(library), host(library)]
    assert (train(library, mixed, data), checksum(mixed[0].state())) == expected
    sums = [s for s in library.program.slots if s.name.endswith(".grad")]
    assert sums and not any(mixed[0].state()[s.name].any() for s in sums)


def test_one_board_makes_several_batches(library, data):
    one = host(library)
    expected = train(library, [one], data)
    only = board(library)
    assert train(library, [only], data) == expected and checksum(only.state()) == checksum(one.state())


def test_only_what_changes_is_sent(library, data):
    """Sums that the board has already, and statistics that it has, are not sent again."""
    only = board(library)
    train(library, [only], data, steps=2)
    part = {s.name: only.state()[s.name] for run in exchanged_part(library.program) for s in run.slots}
    before = only.board.link.traffic.sent
    only.accumulate(part, [[data["x"][:BATCH], data["label"][:BATCH]]])
    sums = sum(s.type.bytes for s in library.program.slots if s.name.endswith(".grad"))
    assert only.board.link.traffic.sent - before < 4 * BATCH * WIDTH + 200 < 4 * BATCH * WIDTH + sums


def test_sums_that_the_board_has_not_are_sent_again(library, data):
    """As if another program had written them without opening a session."""
    results = []
    for count in (0.0, 1.0):
        only = board(library)
        only.load(host(library).state(), 0)
        only._known["grad.count"] = struct.pack("<f", count)
        part = {s.name: only.state()[s.name] for run in exchanged_part(library.program) for s in run.slots}
        part["grad.count"] = np.float32(count)
        results.append(only.accumulate(part, [[data["x"][:BATCH], data["label"][:BATCH]]]))
    assert results[0][0] == results[1][0]
    assert [result[1]["grad.count"] for result in results] == [BATCH, BATCH + 1]


@pytest.mark.parametrize("seed", range(6))
def test_accidents_on_the_line(library, data, expected, seed):
    """Frames are lost, repeated and replayed: every step is made once."""
    boards = [board(library, *accidents(seed + k, replays=0.2, losses=0.1)) for k in (0, 100)]
    assert (train(library, boards, data), checksum(boards[0].state())) == expected
    for rank in boards:
        counters = rank.board.counters()
        assert counters.trained == counters.steps == STEPS and counters.repeated > 0


@pytest.mark.parametrize("is_executed", [False, True])
@pytest.mark.parametrize("number", [frames.ACCUMULATE, frames.APPLY])
def test_a_lost_session_repeats_no_step(library, data, expected, number, is_executed):
    """Another host opens a session before a request is executed, or instead of its reply."""
    seen = 0

    def intrude(peer):
        nonlocal seen
        if Decoder().feed(peer.heard[-1])[0].request == number:
            seen += 1
            if seen % 2:
                if is_executed:
                    peer.twin.receive(peer.heard[-1])
                hello = Frame(frames.HELLO, 0, 0, seen, bytes((frames.VERSION, 0, 0, 0)))
                peer.twin.receive(hello.encode())

    boards = [board(library, intrude), board(library)]
    assert (train(library, boards, data), checksum(boards[0].state())) == expected
    assert boards[0].board.counters().trained == STEPS and boards[0].board.sessions == STEPS + 1


def test_a_board_that_restarts_has_lost_its_weights(library, data, rng):
    """Also where its number of steps is right, as before the first one."""
    other = {
        n: a if "num" in n or a.dtype.kind != "f" else np.abs(a) for n, a in host(library).state().items()
    }
    for steps, said in (
        (0, "the board was restarted, or another program trains it"),
        (7, "the board is at step 0"),
    ):
        only = board(library)
        only.load(other, steps)
        only.board.link.port.peer.twin.start()
        part = {s.name: other[s.name] for run in exchanged_part(library.program) for s in run.slots}
        with pytest.raises((DeviceError, LinkError), match=said):
            only.accumulate(part, [[data["x"][:BATCH], data["label"][:BATCH]]])


def request(only, number, layout, *numbers):
    return only.board.link.exchange(number, struct.pack(layout, *numbers))[0]


def test_wrong_requests_change_nothing(library, data):
    only = board(library)
    train(library, [only], data, steps=1)
    link, rest = only.board.link, only._rest
    inputs, n = only.board._batch([data["x"][:BATCH], data["label"][:BATCH]], targets=True)
    writes, crc = only.board._inputs(inputs, targets=True)
    link.pipeline(writes)
    before = only.state()
    known = crc_of(only, before)
    for status, number, layout, numbers in (
        (-33, frames.ACCUMULATE, "<IHHII", (1, n, 0, crc, known)),
        (-33, frames.APPLY, "<IfI", (1, 0.1, known)),
        (-34, frames.ACCUMULATE, "<IHHIII", (1, 0, 0, crc, known, rest)),
        (-34, frames.ACCUMULATE, "<IHHIII", (1, BATCH + 1, 0, crc, known, rest)),
        (-38, frames.ACCUMULATE, "<IHHIII", (0, n, 0, crc, known, rest)),
        (-38, frames.APPLY, "<IfII", (2, 0.1, known, rest)),
        (-39, frames.ACCUMULATE, "<IHHIII", (1, n, 0, crc ^ 1, known, rest)),
        (-51, frames.ACCUMULATE, "<IHHIII", (1, n, 0, crc, known ^ 1, rest)),
        (-51, frames.APPLY, "<IfII", (1, 0.1, known ^ 1, rest)),
        (-52, frames.ACCUMULATE, "<IHHIII", (1, n, 0, crc, known, rest ^ 1)),
        (-52, frames.APPLY, "<IfII", (1, 0.1, known, rest ^ 1)),
        (-34, frames.APPLY, "<IfII", (1, float("inf"), known, rest)),
        (-32, 23, "<I", (1,)),
    ):
        assert request(only, number, layout, *numbers) == status, (status, number, numbers)
    assert checksum(only.state()) == checksum(before) and only.board.counters().trained == 1
    link.request(frames.BEGIN)
    link.request(frames.WRITE, struct.pack("<II", frames.STATE << 28, 1))  # the first weight
    assert request(only, frames.APPLY, "<IfII", 1, 0.1, known, rest) == -52
    assert request(only, frames.SAVE, "<") == -40
    only.load(before, 1)
    assert request(only, frames.ACCUMULATE, "<IHHIII", 1, n, 0, crc, known, rest) == 0
    assert request(only, frames.APPLY, "<IfII", 1, 0.1, known, rest) == -51


def crc_of(only, state):
    return zlib.crc32(b"".join(only._stored(state).values()))


def test_what_is_exchanged():
    """Sums, running statistics and counters; not the weights and the optimizer's state."""
    program = compile_model(build(accumulate="mean"), "net", ["ref"])
    names = [s.name for run in exchanged_part(program) for s in run.slots]
    weights = ["0.weight", "0.bias", "1.weight", "1.bias", "4.weight", "4.bias"]
    assert names == [
        *("1.running_mean", "1.running_var", "1.num_batches_tracked", "random.step"),
        *(f"{name}.grad" for name in weights),
        "grad.count",
    ]
    offsets = [(run.offset, run.offset + run.bytes) for run in exchanged_part(program)]
    assert all(end < begin for (_, end), (begin, _) in itertools.pairwise(offsets))
    slots = [s for run in exchanged_part(program) for s in run.slots]
    part = {s.name: np.ones(s.state.logical.shape, s.type.dtype.numpy) for s in slots}
    after = after_apply(program, part)
    assert list(after) == names and not after["grad.count"] and after["random.step"] == 1


class Integers(nn.Module):
    """A layer that trains in part, and a parameter of 8-bit integers that fills no whole word."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(WIDTH, 9)
        nn.update_channels(self.first, 0.5)
        numbers = np.random.default_rng(1).integers(-99, 99, 9)
        self.scales = nn.QuantizedParameter(numbers.astype(np.int8), 0.01)
        self.last = nn.Linear(9, CLASSES)

    def forward(self, x):
        return self.last(F.tanh(self.first(x)) * F.dequantize(self.scales))


def test_8_bit_weights_in_two_regions(tmp_path, data):
    """A board whose states are in two regions of memory, and that makes steps in parts, beside a twin."""
    options = {"accumulate": "mean", "split": True, "clip_grad_norm": 1.0}
    loss, rule = nn.CrossEntropyLoss(), optim.SGD(lr=0.5, momentum=0.9)
    model = ag.Model.supervised(Integers(), (BATCH, WIDTH), loss, rule, **options)
    ram = {"near_by": 1400, "far_off": 6000}
    program = compile_model(model, "net", ["ref"], ram=ram)
    assert len({s.owner for run in exchanged_part(program) for s in run.slots}) == 2
    device = opened(program, link_program("host", model, tmp_path, ram=ram), tmp_path)
    twin = TwinRank(Trainer(compile_model(model, "net", ["ref"]), Compiler(find_compiler(), "-O0")), "twin")
    ranks = [GradientRank(device, "board", "host"), twin]
    group = Synchronous(twin._trainer.program, ranks, "mean")
    start = twin.state()
    group.load(start, 0)
    for k in range(STEPS):
        group.step(data, [[np.arange(10 * k + at, 10 * k + at + BATCH)] for at in (0, BATCH)], 0.5)
    states = [rank.state() for rank in ranks]
    device.close()
    assert checksum(states[0]) == checksum(states[1]) != checksum(start)
    assert not np.array_equal(states[0]["scales"], start["scales"])
