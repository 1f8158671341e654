"""Host and board over a line: the same losses and weights as without one, exactly once, whatever goes wrong."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from firmware_build import REF, boards, once
from link_build import link_program

import autodiff_gen as ag
from autodiff_gen import board as profiles
from autodiff_gen import nn, optim
from autodiff_gen.compiler import compile_model
from autodiff_gen.device import frames
from autodiff_gen.device.board import Board
from autodiff_gen.device.encoding import as_units, in_runs
from autodiff_gen.device.errors import DeviceError, LinkError, WentBack
from autodiff_gen.device.frames import Frame
from autodiff_gen.device.link import Link
from autodiff_gen.device.noise import Noise
from autodiff_gen.device.qemu import Qemu
from autodiff_gen.device.transport import Pipe, open_port
from autodiff_gen.errors import ModelError, ShapeError
from autodiff_gen.loader import load_model


def small_model():
    """Images of 8x8 in batches of up to 4, Adam: more state than parameters, and an uneven last batch."""
    net = nn.Sequential(nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 10))
    return ag.Model.supervised(
        net, input=(4, 64), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(lr=0.01), restore_after=2
    )


def digits(count, seed=0):
    """Images f32[count, 64] whose pixels are bytes over 255, most of them 0, and labels u8[count]."""
    rng = np.random.default_rng(seed)
    pixels = rng.integers(0, 256, (count, 64)) * (rng.random((count, 64)) < 0.3)
    return pixels.astype(np.float32) / np.float32(255), rng.integers(0, 10, count).astype(np.uint8)


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def program(model):
    return compile_model(model, "net", REF)


@pytest.fixture(scope="module")
def firmware(model, tmp_path_factory):
    """The link's firmware as a program of this computer, under the sanitizers."""
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    folder = once(tmp_path_factory, "link-host", lambda f: link_program("host", model, f, flags=flags))
    return folder / "link.elf"


@pytest.fixture
def device(program, firmware, tmp_path):
    made = Board(program, Link(Pipe([str(firmware)], tmp_path)))
    yield made
    made.close()


def train(device, trainer, count=40, seed=0, batch=4):
    """Train both on the same batches; every loss must be the same number."""
    images, labels = digits(count, seed)
    for i in range(0, count, batch):
        ours = device.train_step(images[i : i + batch], labels[i : i + batch])
        assert ours == trainer.train_step(images[i : i + batch], labels[i : i + batch]), i


def same_weights(device, trainer):
    there, here = device.state_dict(), trainer.state_dict()
    assert list(there) == list(here)
    for name, array in here.items():
        assert np.array_equal(there[name], array) and there[name].shape == array.shape, name


pytestmark = pytest.mark.cc


def test_training_is_that_of_the_host(device, model):
    trainer = model.on_host()
    assert device.greeting.name == "net" and device.greeting.has_flash and device.steps == 0
    train(device, trainer, 40)
    train(device, trainer, 9, 1, 3)  # fewer rows than the batch
    assert device.steps == 13
    same_weights(device, trainer)
    images, _ = digits(4, 5)
    assert np.array_equal(device.predict(images), trainer.predict(images))
    assert np.array_equal(device.predict(images[:1]), trainer.predict(images[:1]))
    counters = device.counters()
    assert (counters.steps, counters.trained, counters.predicted, counters.damaged) == (13, 13, 2, 0)


def test_learning_rate_and_repeated_steps(device, model):
    trainer = model.on_host()
    images, labels = digits(4)
    for lr in (0.1, 0.02):
        assert device.train_step(images, labels, lr=lr) == trainer.train_step(images, labels, lr=lr)
    device.set_lr(0.5)
    assert device.train_step(images, labels) == trainer.train_step(images, labels, lr=0.5)
    wanted = [trainer.train_step(images, labels, lr=0.5) for _ in range(7)]
    assert device.train_step(images, labels, repeat=7) == wanted[-1]
    assert device.steps == 10
    same_weights(device, trainer)


def test_weights_go_there_and_back(device, model):
    trainer = model.on_host()
    train(device, trainer, 8)
    images, labels = digits(4, 3)
    trainer.train_step(images, labels)
    device.load_state_dict(trainer.state_dict(), steps=3)
    same_weights(device, trainer)
    assert device.steps == 3
    train(device, trainer, 8, 2)
    device.init()
    assert device.steps == 0
    same_weights(device, model.on_host())


def test_checkpoints_survive(program, firmware, model, tmp_path):
    """Resumed, it equals training that never stopped: bit for bit, the moments and the step count too."""
    trainer = model.on_host()
    device = Board(program, Link(Pipe([str(firmware)], tmp_path)))
    train(device, trainer, 12, 0)
    assert device.save() == 1
    saved = trainer.state_dict()
    train(device, trainer, 8, 1)
    device.close()  # the power is gone
    device = Board(program, Link(Pipe([str(firmware)], tmp_path)))
    assert (device.steps, device.greeting.checkpoint) == (3, 1)
    trainer.load_state_dict(saved)
    train(device, trainer, 8, 1)
    same_weights(device, trainer)
    assert device.load() == 3
    trainer.load_state_dict(saved)
    same_weights(device, trainer)
    device.close()


@pytest.mark.parametrize(
    "accidents", [{"share": 0.01}, {"share": 0.2}, {"bytes": 0.001}, {"bytes": 0.004}], ids=str
)
def test_a_bad_line_changes_nothing(program, firmware, model, tmp_path, seed, accidents):
    trainer = model.on_host()
    line = Noise(Pipe([str(firmware)], tmp_path), seed, **accidents)
    device = Board(program, Link(line))
    train(device, trainer, 80)
    same_weights(device, trainer)
    device.load_state_dict(trainer.state_dict(), steps=5)
    train(device, trainer, 40, 1)
    same_weights(device, trainer)
    images, _ = digits(4, 9)
    assert np.array_equal(device.predict(images), trainer.predict(images))
    assert device.save() >= 1
    line.share = line.bytes = 0.0
    assert line.accidents > 5
    assert device.counters().trained == 30
    device.close()


@pytest.mark.slow
def test_2000_digits_on_a_bad_line_equal_a_clean_one(tmp_path_factory, tmp_path, seed, record_property):
    """The digits network as a program of this computer; in QEMU the same is done with fewer digits."""
    model, _, _ = load_model("mnist")
    folder = once(tmp_path_factory, "link-mnist", lambda f: link_program("host", model, f))
    program = compile_model(model, "net", REF)
    rng = np.random.default_rng(seed)
    images = (rng.integers(0, 256, (2000, 784)) * (rng.random((2000, 784)) < 0.1)).astype(
        np.float32
    ) / np.float32(255)
    labels = rng.integers(0, 10, 2000).astype(np.uint8)
    trainer = model.on_host()
    wanted = [trainer.train_step(images[i : i + 1], labels[i : i + 1]) for i in range(2000)]
    for name, accidents in (("frames", {"share": 0.01}), ("bytes", {"bytes": 0.001})):
        (tmp_path / name).mkdir()
        line = Noise(Pipe([str(folder / "link.elf")], tmp_path / name), seed, **accidents)
        device = Board(program, Link(line))
        assert [device.train_step(images[i : i + 1], labels[i : i + 1]) for i in range(2000)] == wanted
        same_weights(device, trainer)
        record_property(name, f"{line.accidents} accidents, {device.link.traffic}")
        assert line.accidents > 100
        device.close()


def test_nothing_is_trained_on_data_that_changed_on_the_way(device, model):
    """A frame that passes its own checksum and is wrong all the same is noticed by the checksum of the data."""
    trainer = model.on_host()
    images, labels = digits(4)
    original, changed = device.link.request, []

    def request(number, payload=b""):
        if number == frames.WRITE and not changed:
            changed.append(payload)
            payload = payload[:-1] + bytes([payload[-1] ^ 1])
        return original(number, payload)

    device.link.request = request
    assert device.train_step(images, labels) == trainer.train_step(images, labels)
    assert changed
    same_weights(device, trainer)


def test_a_session_that_is_lost_in_the_middle(device, model):
    """Somebody else says HELLO: the work is begun anew, and no step is made twice."""
    trainer = model.on_host()
    images, labels = digits(4)
    original, calls = device.link.ask, []

    def ask(number, payload=b""):
        calls.append(number)
        answer = original(number, payload)
        if len(calls) in (2, 9):
            Link.hello(Link(device.link.port))
        if number == frames.TRAIN and calls.count(frames.TRAIN) == 1:
            device.link._session ^= 1  # the reply is lost with the session
        return answer

    device.link.ask = ask
    for _ in range(4):
        assert device.train_step(images, labels) == trainer.train_step(images, labels)
    same_weights(device, trainer)
    assert device.counters().trained == 4


def test_half_written_weights_are_not_used(device, model):
    device.link.request(frames.BEGIN)
    images, labels = digits(4)
    for work in (lambda: device.train_step(images, labels), lambda: device.predict(images), device.save):
        with pytest.raises(DeviceError, match="half written"):
            work()
    with pytest.raises(DeviceError, match="checksum"):
        device.link.request(frames.END, struct.pack("<II", 1, 0))
    device.init()
    same_weights(device, model.on_host())


WRONG = [
    ("another step", frames.TRAIN, struct.pack("<IHHfI", 7, 1, 1, 0.1, 0), -38),
    ("rows outside the batch", frames.TRAIN, struct.pack("<IHHfI", 0, 5, 1, 0.1, 0), -34),
    ("no rows", frames.PREDICT, struct.pack("<HHI", 0, 0, 0), -34),
    ("a wrong checksum", frames.PREDICT, struct.pack("<HHI", 1, 0, 1), -39),
    ("a request that is none", 99, b"", -32),
    ("a short request", frames.TRAIN, b"123", -33),
    ("reading behind the end", frames.READ, struct.pack("<IB", frames.OUTPUT << 28 | 160, 1), -34),
    ("another object", frames.READ, struct.pack("<IB", 9 << 28, 1), -34),
    ("writing outputs", frames.WRITE, struct.pack("<I", frames.OUTPUT << 28) + b"x", -34),
    ("writing weights without BEGIN", frames.WRITE, struct.pack("<I", frames.STATE << 28) + b"x", -40),
    ("floats beyond the array", frames.WRITE, struct.pack("<I", 1 << 24 | 4 * 255) + b"xy", -34),
    ("floats among labels", frames.WRITE, struct.pack("<I", 1 << 24 | 4 * 256) + b"x", -34),
    ("half a run", frames.WRITE, struct.pack("<I", 2 << 24) + b"\1\5ab", -33),
    ("an encoding that is none", frames.WRITE, struct.pack("<I", 7 << 24) + b"ab", -34),
    ("a learning rate that is no number", frames.SET_LR, struct.pack("<f", float("nan")), -34),
    ("END without BEGIN", frames.END, struct.pack("<II", 0, 0), -40),
    ("no checkpoint", frames.LOAD, b"", -64),
]


def test_wrong_requests_have_their_statuses(device, model):
    for what, number, payload, status in WRONG:
        assert device.link.ask(number, payload)[0] == status, what
    same_weights(device, model.on_host())
    assert device.counters().trained == 0


def test_labels_out_of_range_are_refused_on_both_ends(device, model):
    images, labels = digits(4)
    labels[2] = 10
    with pytest.raises(ShapeError, match=r"label\[2\] is 10"):
        device.train_step(images, labels)
    crc = 0
    for offset, data in ((0, images.tobytes()), (4 * 256, labels.tobytes())):
        device._write(frames.INPUT, offset, data)
        crc = zlib.crc32(data, crc)
    status, answer = device.link.ask(frames.TRAIN, struct.pack("<IHHfI", 0, 4, 1, 0.1, crc))
    assert (status, len(answer)) == (-3, 8)
    assert device.counters().refused == 1
    same_weights(device, model.on_host())


def test_a_refused_step_is_counted_and_changes_nothing(device, model):
    trainer = model.on_host()
    images, labels = digits(4)
    for bad in (np.nan, np.inf):
        broken = images.copy()
        broken[3, 7] = bad
        with pytest.raises(DeviceError, match=r"the step was refused: an input, .* not finite \(status -6\)"):
            device.train_step(broken, labels)
    counters = device.counters()
    assert (counters.refused, counters.trained, device.steps) == (2, 0, 0)
    train(device, trainer, 8)
    same_weights(device, trainer)


def goes_back(device, steps):
    """Weights that are not finite: two steps are refused, and the board has its checkpoint behind `steps` again."""
    images, labels = digits(4, 7)
    name = "2.bias"
    device.load_state_dict({name: np.full(10, np.nan)}, steps=device.steps, strict=False)
    with pytest.raises(DeviceError, match="the loss is not finite") as first:
        device.train_step(images, labels)
    assert not isinstance(first.value, WentBack)
    with pytest.raises(WentBack, match=f"went back to step {steps}: the loss is not finite") as second:
        device.train_step(images, labels)
    assert second.value.steps == device.steps == steps
    counters = device.counters()
    assert (counters.steps, counters.refused, counters.restored) == (steps, 2, 1)


def test_after_refused_steps_the_board_goes_back_to_its_checkpoint(device, model):
    trainer = model.on_host()
    train(device, trainer, 12)
    device.save()
    saved = trainer.state_dict()
    train(device, trainer, 8, 1)
    goes_back(device, 3)
    trainer.load_state_dict(saved)
    train(device, trainer, 8, 1)
    same_weights(device, trainer)


def test_without_a_checkpoint_it_stays_where_it_is(device):
    images, labels = digits(4)
    device.load_state_dict({"2.bias": np.full(10, np.nan)}, steps=0, strict=False)
    for _ in range(5):
        with pytest.raises(DeviceError, match="the loss is not finite"):
            device.train_step(images, labels)
    assert (device.counters().refused, device.counters().restored, device.steps) == (5, 0, 0)


def test_bad_inputs_do_not_send_it_back(device, model):
    images, labels = digits(4)
    device.train_step(images, labels)
    device.save()
    device.train_step(images, labels)
    before = device.state_dict()
    for _ in range(4):
        with pytest.raises(DeviceError, match="status -6"):
            device.train_step(np.full_like(images, np.inf), labels)
    assert device.counters().restored == 0 and device.steps == 2
    assert all(np.array_equal(a, before[n]) for n, a in device.state_dict().items())


def test_a_split_model_over_the_link(tmp_path):
    net = nn.Sequential(nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 10))
    split = ag.Model.supervised(
        net, input=(4, 64), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1), split=True
    )
    elf = link_program("host", split, tmp_path)
    device = Board(compile_model(split, "net", REF), Link(Pipe([str(elf)], tmp_path)))
    trainer = split.on_host()
    train(device, trainer, 12)
    same_weights(device, trainer)
    device.close()


def test_wrong_arrays(device):
    images, labels = digits(4)
    with pytest.raises(ShapeError, match=r"x: expected shape"):
        device.train_step(images[:, :60], labels)
    with pytest.raises(ShapeError, match=r"expected 2 arrays \(x: f32\[n,64\], label: u8\[n\]\), got 1"):
        device.train_step(images)
    with pytest.raises(ShapeError, match="integer class labels"):
        device.train_step(images, labels.astype(np.float32))
    state = device.state_dict()
    with pytest.raises(ModelError, match=r"missing 0\.weight"):
        device.load_state_dict({k: v for k, v in state.items() if k != "0.weight"})
    with pytest.raises(ShapeError, match=r"0\.bias has shape \[12\], got \[3\]"):
        device.load_state_dict({**state, "0.bias": np.zeros(3)})


def test_another_firmware_is_named(firmware, tmp_path):
    other = compile_model(load_model("mnist")[0], "mnist", REF)
    ours = compile_model(small_model(), "net", REF).graph_id
    with pytest.raises(LinkError) as caught:
        Board(other, Link(Pipe([str(firmware)], tmp_path)))
    assert f"'net' with graph id {ours:08x}, this one is 'mnist' with {other.graph_id:08x}" in str(
        caught.value
    )


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
        with pytest.raises(LinkError, match=r"the board is silent: no answer in 0\.2 s"):
            Link(Answers(lambda _: noise), patience=0.2).hello()  # noqa: B023


def test_another_version_is_named():
    def answer(request):
        return Frame(frames.HELLO | frames.REPLY, -37, 0, request.sequence, bytes([9])).encode()

    with pytest.raises(LinkError, match="the board speaks version 9 of the protocol, this host version 1"):
        Link(Answers(answer)).hello()


@pytest.mark.parametrize(
    "port, said",
    [
        ("socket://127.0.0.1:1", "cannot connect: Connection refused"),
        ("socket://nonsense", "write socket://host:number"),
        ("/dev/no-such-tty", "cannot be opened: No such file or directory"),
        (__file__, "cannot be opened: it is no serial port"),
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


@pytest.mark.qemu
@pytest.mark.parametrize("name", boards())
def test_boards_in_qemu(name, model, program, tmp_path):
    """The same over a socket to QEMU's UART, whose bytes are received by interrupt; and after a power cut."""
    trainer = model.on_host()
    elf = link_program(name, model, tmp_path)
    machine = Qemu(profiles.load(name), elf)
    try:
        line = Noise(open_port(machine.port, wait=20), 1, share=0.05)
        device = Board(program, Link(line, patience=60))
        train(device, trainer, 16)
        device.save()
        saved = trainer.state_dict()
        train(device, trainer, 8, 1)
        same_weights(device, trainer)
        assert device.counters().overruns == 0
        device.close()
        machine.kill()
        machine = Qemu(profiles.load(name), elf)
        device = Board(program, Link(open_port(machine.port, wait=20), patience=60))
        assert device.steps == 4
        trainer.load_state_dict(saved)
        train(device, trainer, 8, 1)
        same_weights(device, trainer)
        if name == "mps2_an386":
            goes_back(device, 4)
            trainer.load_state_dict(saved)
            same_weights(device, trainer)
        device.close()
    finally:
        machine.kill()
