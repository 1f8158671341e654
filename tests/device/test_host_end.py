"""The host's end of the link: silence, another version, wrong ports, and images in few bytes."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_gen.device import frames
from autodiff_gen.device.encoding import as_units, in_runs
from autodiff_gen.device.errors import LinkError
from autodiff_gen.device.frames import Frame
from autodiff_gen.device.link import Link
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

    with pytest.raises(LinkError, match="the board has protocol version 9, the host version 1"):
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
