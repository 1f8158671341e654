"""The host's end of the link: silence, another version, wrong ports, and images in few bytes."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulated_line import Peer, SimulatedLine

from autodiff_gen.device import frames
from autodiff_gen.device.encoding import as_integers, as_units, in_runs, shortest
from autodiff_gen.device.errors import LinkError
from autodiff_gen.device.frames import Frame
from autodiff_gen.device.link import Link, write_request
from autodiff_gen.device.transport import open_port


class Answers:
    """A board that says the same to everything."""

    def __init__(self, answer):
        self.answer, self.sent = answer, b""

    def write(self, data):
        request = frames.decode(data.strip(b"\0"))
        self.sent = self.answer(request)

    def read(self, timeout):
        sent, self.sent = self.sent, b""
        return sent

    def close(self):
        pass


def test_a_silent_board_and_one_that_babbles():
    for noise in (b"", b"boot: hello\r\n" * 5, b"\0\0\xff\0"):
        with pytest.raises(LinkError, match=r"the board is silent: no reply in 0\.2 s"):
            Link(Answers(lambda _: noise), patience=0.2).hello()  # noqa: B023


def test_another_version_is_named():
    def answer(request):
        return Frame(frames.HELLO | frames.REPLY, -37, 0, request.sequence, bytes([9])).encode()

    with pytest.raises(LinkError, match="the board has protocol version 9, the host version 3"):
        Link(Answers(answer)).hello()


@pytest.mark.parametrize(
    "port, said",
    [
        ("socket://127.0.0.1:1", "cannot connect: Connection refused"),
        ("socket://nonsense", "write socket://host:number"),
        ("/dev/no-such-tty", "cannot be opened: No such file or directory"),
        (__file__, "cannot be opened: it is not a serial port"),
        ("exec:/no/such/program", "cannot be run: No such file or directory"),
    ],
)
def test_a_wrong_port_is_one_line(port, said):
    with pytest.raises(LinkError) as caught:
        open_port(port)
    assert said in str(caught.value) and "\n" not in str(caught.value)


def writes(count, size=236):
    return [
        write_request(frames.INPUT, frames.RAW, k * size, bytes([k % 255 + 1]) * size) for k in range(count)
    ]


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 12), st.sampled_from([0, 300, 1024]))
def test_every_request_is_executed_once_and_in_order(losses, count, window):
    """Whatever frames are lost: also in the middle of a window, also replies."""
    pattern = iter(losses)
    line = SimulatedLine(Peer(window), lost=lambda: next(pattern, False))
    link = Link(line, patience=1000, now=line.now)
    link.hello()
    train = (frames.TRAIN, bytes(16))
    assert link.run([*writes(count), train]) == (0, b"")
    assert line.peer.executed == [*writes(count), train]
    assert link.read(3, 0, 500) == bytes([240]) * 480 + bytes([20]) * 20


@pytest.mark.parametrize(
    "baud, latency, share", [(115200, 0.001, 0.9), (921600, 0.001, 0.85), (921600, 0.002, 0.8)]
)
def test_the_line_is_used(baud, latency, share):
    """Share of the line's bytes that are data, in simulated time, for batches of 8 windows of 64 x 3 floats. The host
    reads only when bytes have arrived."""
    line = SimulatedLine(Peer(1024), baud, latency)
    link, idle, read = Link(line, now=line.now), [], line.read
    line.read = lambda wait: (data := read(wait), idle.append(not data))[0]
    link.hello()
    begin, batches = line.now(), 20
    for _ in range(batches):
        link.run([*writes(26), (frames.TRAIN, bytes(16))])
    data = batches * 26 * 236
    assert data / ((line.now() - begin) * baud / 10) >= share
    assert link.traffic.resent == 0 and not any(idle)


def test_no_more_is_in_flight_than_the_board_buffers():
    """Bytes that are sent before anything is read."""
    for window, payload in ((0, 240), (600, 240), (1024, 60)):
        line = SimulatedLine(Peer(window, payload))
        link, sent, most = Link(line, now=line.now), [], []
        link.hello()
        write, read = line.write, line.read
        line.write = lambda data: (sent.append(len(data)), write(data))  # noqa: B023
        line.read = lambda wait: (most.append(sum(sent)), sent.clear(), read(wait))[2]  # noqa: B023
        link.run([*writes(20, payload - 4)])
        assert max(most) <= max(window, payload + 14)


def test_images_take_few_bytes(rng):
    for share in (0.0, 0.1, 0.5, 1.0):
        image = (rng.integers(0, 256, 784) * (rng.random(784) < share)).astype(np.uint8)
        floats = image.astype(np.float32) / np.float32(255)
        assert as_units(floats) == image.tobytes()
        back, pieces = bytearray(784), 0
        for encoding, at, data in in_runs(image.tobytes(), 44):
            assert len(data) <= 44
            pieces += 1
            if encoding == frames.UNIT:
                back[at : at + len(data)] = data
                continue
            while data:
                zeros, count = data[:2]
                back[at + zeros : at + zeros + count] = data[2 : 2 + count]
                at, data = at + zeros + count, data[2 + count :]
        assert bytes(back) == image.tobytes()
        assert pieces <= 18
    assert as_units(np.float32([0.5])) is None
    assert as_units(np.float32([float("nan")])) is None
    assert as_units(np.float32([-0.0])) is None


def restored(pieces, count):
    """The floats that the board stores."""
    back = np.zeros(count, np.float32)
    for encoding, at, data in pieces:
        if encoding == frames.RAW:
            part = np.frombuffer(data, np.float32)
        else:
            (scale,) = struct.unpack_from("<f", data)
            kind = np.int8 if encoding == frames.S8 else np.int16
            part = np.frombuffer(data[4:], kind).astype(np.float32) * np.float32(scale)
        back[at // 4 : at // 4 + len(part)] = part
    return back


@pytest.mark.parametrize(
    "floats, scale, encoding",
    [
        (np.arange(-128, 128) / 64, None, frames.S8),
        (np.arange(-300, 300), None, frames.S16),
        (np.array([3e-39, -1.0, 4e30]), None, frames.RAW),
        (np.arange(-127, 128) * np.float32(0.0123), 0.0123, frames.S8),
        (np.arange(-127, 128) * np.float32(0.0123), None, frames.RAW),
        (np.array([0.5, -0.0]), None, frames.RAW),
        (np.array([np.nan, 1.0, np.inf]), None, frames.RAW),
    ],
)
def test_floats_are_sent_as_integers_where_that_is_exact(floats, scale, encoding):
    floats = floats.astype(np.float32)
    pieces = list(shortest(floats, 236, scale))
    assert {kind for kind, _, _ in pieces} == {encoding} and max(len(d) for _, _, d in pieces) <= 236
    assert np.array_equal(restored(pieces, len(floats)).view(np.uint32), floats.view(np.uint32))
    if encoding == frames.RAW:
        assert as_integers(floats, scale) is None
