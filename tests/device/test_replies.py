"""A peer that says anything: the host ends with one line, and with no exception of Python's."""

from __future__ import annotations

import random
import struct
import zlib

import numpy as np
import pytest
from device_model import digits, small_model
from firmware_build import REF

from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.shared_part import shared_part
from autodiff_gen.device import frames
from autodiff_gen.device.board import Board
from autodiff_gen.device.errors import DeviceError, LinkError, WentBack
from autodiff_gen.device.frames import Decoder, Frame
from autodiff_gen.device.link import Link
from autodiff_gen.device.rounds import LocalWork, Round
from autodiff_gen.device.snapshot import Snapshot
from autodiff_gen.device.store import identity, wear
from autodiff_gen.errors import AutodiffError, ShapeError

GREETING = struct.Struct("<BBH7I16sIII")


@pytest.fixture(scope="module")
def program():
    return compile_model(small_model(), "net", REF)


class Peer:
    """A board that answers every request as a good one would, of steps that compute nothing; `change` has the last word
    on each reply. Time passes only while the host waits."""

    baud = folder = None

    def __init__(self, program, change=lambda request, reply: reply):
        self.program, self.change = program, change
        self.layout = link_layout(program)
        self.steps, self.local, self.time, self.sent = 0, 0, 0.0, b""
        self.elements = sum(r.count for r in shared_part(program))
        self._decoder = Decoder()

    def now(self):
        return self.time

    def greeting(self, **changes):
        p = self.program
        known = {
            "version": frames.VERSION, "payload": 240, "flags": 1, "graph": p.graph_id, "batch": p.batch,
            "state": p.state_bytes, "inputs": self.layout.input_bytes, "outputs": self.layout.output_bytes,
            "steps": self.steps, "checkpoint": 1, "name": b"net", "window": 1024, "program": p.program_id, "round": 0,
        }  # fmt: skip
        return GREETING.pack(*(known | changes).values())

    def payload(self, f):
        if f.request == frames.READ:
            return bytes(f.payload[4])
        if f.request == frames.TRAIN:
            self.steps += struct.unpack_from("<H", f.payload, 6)[0]
            return struct.pack("<fI", 0.5, self.steps)
        if f.request == frames.PREDICT:
            rows = struct.unpack_from("<H", f.payload)[0] * self.layout.output_row
            return struct.pack("<I", zlib.crc32(bytes(rows))) + bytes(min(rows, 236))
        if f.request == frames.SUM:
            return struct.pack("<I", zlib.crc32(bytes(self.program.state_bytes)))
        if f.request == frames.ROUND:
            self.local = 0
            return struct.pack("<6I", 4, 0, self.elements, 1, self.steps, 7)
        if f.request == frames.LOCAL:
            made = struct.unpack_from("<H", f.payload, 8)[0]
            self.steps, self.local = self.steps + made, self.local + made
            return struct.pack("<2IfQ", self.local, 4 * self.local, 0.5, 9)
        if f.request == frames.DELTA:
            count, encoding = struct.unpack_from("<HB", f.payload, 8)
            top = struct.unpack_from("<H", f.payload, 15)[0] if len(f.payload) == 17 else 0
            values = top or count
            return struct.pack(f"<{top}H", *range(top)) + bytes(4 + values if encoding else 4 * values)
        if f.request == frames.EVALUATE:
            return struct.pack("<3I", 4, 4, 1)
        if f.request == frames.WEAR:
            return struct.pack("<4I", 2, 4096, 3, 300)
        if f.request == frames.IDENTITY:
            return struct.pack("<I", 7)
        if f.request == frames.INIT:
            self.steps = 0
        if f.request == frames.END:
            self.steps = struct.unpack_from("<I", f.payload, 4)[0]
        return {frames.HELLO: self.greeting(), frames.SAVE: bytes(4), frames.LOAD: bytes(8)}.get(
            f.request, b""
        )

    def write(self, data):
        for f in self._decoder.feed(data):
            reply = Frame(f.request | frames.REPLY, 0, f.session or 7, f.sequence, self.payload(f))
            changed = self.change(f.request, reply)
            self.sent += changed if isinstance(changed, bytes) else changed.encode()

    def read(self, timeout):
        sent, self.sent = self.sent, b""
        self.time += 0.0 if sent else max(timeout, 0.001)
        return sent

    def close(self):
        pass


def opened(program, change=lambda request, reply: reply):
    peer = Peer(program, change)
    return peer, Board(program, Link(peer, patience=5.0, now=peer.now))


def use(board):
    """All that commands do with a board."""
    images, labels = digits(4)
    board.train_step(images, labels, repeat=3)
    board.predict(images)
    state = board.state_dict()
    board.load_state_dict(state, steps=9)
    board.save()
    board.load()
    round_ = Round(board, 1, state)
    round_.evaluate()
    round_.train(LocalWork(steps=9, lr=0.1))
    round_.delta("s8")
    round_.delta("top0.1")
    wear(board)
    identity(board)
    board.counters()
    Snapshot(board).load(board)
    board.init()
    board.train_step(images[:1], labels[:1])


def replaced(number, **changes):
    """A change of the replies to one request."""

    def change(request, reply):
        if request != number:
            return reply
        known = {"request": reply.request, "status": reply.status, "session": reply.session}
        return Frame(**{**known, "sequence": reply.sequence, "payload": reply.payload, **changes})

    return change


def test_the_peer_is_a_board(program):
    peer, board = opened(program)
    use(board)
    assert peer.steps == board.steps == 1


UNUSED = (frames.FETCH, frames.SET_LR, frames.ACCUMULATE, frames.APPLY)
LENGTHS = [(n, size) for n in frames.NAMES if n not in UNUSED for size in (0, 1, 7, 240)]


def test_every_length_of_every_reply(program):
    """Only the right one is read."""
    for number, size in LENGTHS:
        good = {frames.BEGIN: 0, frames.END: 0, frames.INIT: 0, frames.WRITE: 0, frames.READ: 240}
        if good.get(number) == size:
            continue
        if number == frames.WRITE:
            continue  # nothing is read of its reply
        with pytest.raises(LinkError) as caught:
            use(
                opened(program, replaced(number, payload=bytes([frames.VERSION, 240, *bytes(238)][:size])))[1]
            )
        name = frames.NAMES[number]
        wanted = f"the board's reply to {name} has {size} bytes, expected "
        assert str(caught.value).startswith(wanted) or (number, size) == (frames.HELLO, 0), (name, size)


def test_fields_of_the_greeting(program):
    peer = Peer(program)
    rows = [
        (
            {"payload": 0},
            "the board says that a frame has 0 bytes of data: build and upload its firmware again",
        ),
        ({"payload": 61}, "the board says that a frame has 61 bytes of data"),
        ({"payload": 255}, "the board says that a frame has 255 bytes of data"),
        (
            {"version": 2},
            "the board has protocol version 2, the host version 3: build and upload the firmware again",
        ),
        ({"graph": 1}, "the board runs another model: 'net' with graph id 00000001, this one is 'net'"),
        ({"program": 1}, "the board runs another program: 'net', whose parameters are the same"),
        ({"batch": 5}, "the board's firmware has other sizes"),
        ({"state": 0xFFFFFFFF}, "the board's firmware has other sizes"),
        ({"name": b"\n\xff\x1b[2J", "graph": 1}, r"the board runs another model: '\n"),
    ]
    for changes, said in rows:
        with pytest.raises(LinkError) as caught:
            opened(program, replaced(frames.HELLO, payload=peer.greeting(**changes)))
        assert str(caught.value).startswith(said) and "\n" not in str(caught.value), changes
    _, board = opened(program, replaced(frames.HELLO, payload=peer.greeting(window=0xFFFFFFFF, flags=0xFFFF)))
    assert board.start.endswith("unknown status (status -255)")
    use(board)


def test_counters_that_training_cannot_have_reached(program):
    """A number of steps is compared with those that were requested, also after another session."""
    images, labels = digits(4)
    for steps in (0, 2, 4, 0xFFFFFFFF):
        _, board = opened(program, replaced(frames.TRAIN, payload=struct.pack("<fI", 0.5, steps)))
        with pytest.raises(
            LinkError, match=f"the board is at step {steps:,}, expected 3: does another program"
        ):
            board.train_step(images, labels, repeat=3)
    for steps in (5, 0xFFFFFFFF):  # HELLO after the reply was lost
        said, peer = [], Peer(program)

        def lost(request, reply, steps=steps, said=said, peer=peer):
            if request == frames.TRAIN and not said:
                said.append(request)
                return Frame(reply.request, -35, reply.session, reply.sequence)
            if request == frames.HELLO and said:
                return Frame(reply.request, 0, 7, reply.sequence, peer.greeting(steps=steps))
            return reply

        _, board = opened(program, lost)
        with pytest.raises(LinkError, match=f"the board is at step {steps:,}, expected 0 to 3: does another"):
            board.train_step(images, labels, repeat=3)
    _, board = opened(program, replaced(frames.TRAIN, status=-7, payload=struct.pack("<fI", 0.5, 0)))
    with pytest.raises(DeviceError, match="the loss is not finite") as caught:
        board.train_step(images, labels)
    assert not isinstance(caught.value, WentBack)


def test_arguments_that_no_field_holds(program):
    _, board = opened(program)
    images, labels = digits(4)
    for work in (
        lambda: board.train_step(images, labels, repeat=1 << 16),
        lambda: board.train_step(images, labels, repeat=0),
        lambda: board.init(-1),
        lambda: board.load_state_dict(board.state_dict(), steps=1 << 32),
    ):
        with pytest.raises(ShapeError):
            work()
    board.set_lr(1e300)
    board.train_step(images, labels, lr=1e300)
    board.load_state_dict(board.state_dict(), steps=0xFFFFFFFF)
    with pytest.raises(ShapeError, match="after 4,294,967,295 steps"):
        board.train_step(images, labels)


def mutation(rng):
    """A change of a few replies: bytes of the payload, its length, status, session, sequence; another reply; noise."""

    def change(request, reply):
        if rng.random() > 0.15:
            return reply
        payload = bytearray(reply.payload)
        kind = rng.randrange(8)
        if kind < 3 and payload:
            for _ in range(rng.randrange(1, 4)):
                payload[rng.randrange(len(payload))] = rng.choice(
                    (0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256))
                )
        elif kind == 3:
            payload = bytearray(rng.randbytes(rng.randrange(0, 241)))
        elif kind == 4:
            return Frame(reply.request, rng.randrange(-128, 128), 7, reply.sequence, bytes(payload))
        elif kind == 5:
            return Frame(rng.randrange(256), 0, 7, rng.randrange(1 << 32), bytes(payload))
        elif kind == 6:
            return rng.randbytes(rng.randrange(300))
        else:
            del payload[rng.randrange(len(payload) + 1) :]
        return Frame(reply.request, reply.status, reply.session, reply.sequence, bytes(payload))

    return change


def test_random_replies_end_in_one_line(program, seed):
    """Thousands of replies; some are changed or random."""
    rng = random.Random(seed)
    ended = 0
    for _ in range(300):
        try:
            with np.errstate(invalid="ignore"):
                use(opened(program, mutation(rng))[1])
        except AutodiffError as error:
            ended += 1
            assert "\n" not in str(error) and str(error), error
    assert ended > 100
