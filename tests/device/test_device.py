"""Host and board over a line: the same losses and weights as without one, exactly once, whatever goes wrong."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from checkout import ROOT
from device_model import digits, firmware_of, goes_back, opened, same_weights, small_model, train
from firmware_build import REF, boards, once
from link_build import link_program

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device import frames, qemu, timeouts
from autodiff_gen.device.board import Board
from autodiff_gen.device.fault_injection import FaultyTransport
from autodiff_gen.device.frames import Decoder, Frame
from autodiff_gen.device.link import Link
from autodiff_gen.device.qemu import Qemu
from autodiff_gen.device.transport import Pipe, open_port
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board as profiles

pytestmark = pytest.mark.cc


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def program(model):
    return compile_model(model, "net", REF)


@pytest.fixture(scope="module")
def firmware(model, tmp_path_factory):
    return firmware_of(model, tmp_path_factory)


@pytest.fixture
def short_waits(monkeypatch):
    """A process of the host replies in far less than a tenth of a second; its lost frames need no longer wait."""
    monkeypatch.setattr(timeouts, "SHORTEST", 0.01)
    monkeypatch.setattr(timeouts, "FIRST", 0.05)


@pytest.fixture
def device(program, firmware, tmp_path):
    made = opened(program, firmware, tmp_path)
    yield made
    made.close()


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
    device = opened(program, firmware, tmp_path)
    train(device, trainer, 12, 0)
    assert device.save() == 1
    saved = trainer.state_dict()
    train(device, trainer, 8, 1)
    device.close()  # the power is gone
    device = opened(program, firmware, tmp_path)
    assert (device.steps, device.greeting.checkpoint) == (3, 1)
    trainer.load_state_dict(saved)
    train(device, trainer, 8, 1)
    same_weights(device, trainer)
    assert device.load() == 3
    trainer.load_state_dict(saved)
    same_weights(device, trainer)
    device.close()


@pytest.mark.parametrize(
    "accidents", [{"share": 0.05}, {"share": 0.2}, {"bytes": 0.0003}, {"bytes": 0.002}], ids=str
)
@pytest.mark.usefixtures("short_waits")
def test_a_bad_line_changes_nothing(program, firmware, model, tmp_path, seed, accidents):
    trainer = model.on_host()
    line = FaultyTransport(Pipe([str(firmware)], tmp_path), seed, **accidents)
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


@pytest.mark.usefixtures("short_waits")
def test_2000_digits_on_a_bad_line_equal_a_clean_one(tmp_path_factory, tmp_path, seed, record_property):
    """The digits network as a program of the host; in QEMU the same is done with fewer digits."""
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
        line = FaultyTransport(Pipe([str(folder / "link.elf")], tmp_path / name), seed, **accidents)
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
    original, changed = device.link.pipeline, []

    def pipeline(requests):
        number, payload = requests[0]
        if number == frames.WRITE and not changed:
            changed.append(payload)
            requests = [(number, payload[:-1] + bytes([payload[-1] ^ 1])), *requests[1:]]
        return original(requests)

    device.link.pipeline = pipeline
    assert device.train_step(images, labels) == trainer.train_step(images, labels)
    assert changed
    same_weights(device, trainer)


def test_requests_are_executed_in_order_and_once(device):
    """The board's rules, frame by frame."""
    link = device.link

    def answer(sequence, number=frames.SET_LR, payload=bytes(4)):
        link.port.write(Frame(number, 0, link._session, sequence, payload).encode())
        decoder, got = Decoder(), []
        while not got and (data := link.port.read(0.3)):
            got = decoder.feed(data)
        return [(f.request, f.status, f.sequence) for f in got]

    at = link._sequence + 1
    done = (frames.SET_LR | frames.REPLY, 0)
    assert answer(at + 1) == [(frames.NAK, 0, at - 1)]  # the one before it is missing
    assert answer(at) == [(*done, at)]
    assert answer(at + 1) == [(*done, at + 1)] == answer(at + 1)
    assert answer(at) == []  # executed before; not the last one
    assert answer(at + 1, payload=b"1234") == [(frames.SET_LR | frames.REPLY, -36, at + 1)]
    link._sequence = at + 1
    counters = device.counters()
    assert (counters.repeated, counters.unexpected) == (2, 2)


def test_inputs_from_a_file_as_in_an_emulator(program, firmware, model, tmp_path):
    trainer = model.on_host()
    device = opened(program, firmware, tmp_path)
    device.folder = tmp_path
    train(device, trainer, 9)
    sent = device.link.traffic.sent
    images, _ = digits(4, 5)
    assert np.array_equal(device.predict(images), trainer.predict(images))
    assert device.link.traffic.sent - sent < 60
    same_weights(device, trainer)
    device.close()


def test_a_session_that_is_lost_in_the_middle(device, model):
    """Somebody else says HELLO: the work is begun anew, and no step is made twice."""
    trainer = model.on_host()
    images, labels = digits(4)
    original, calls = device.link.pipeline, []

    def pipeline(requests):
        calls.append(requests[-1][0])
        if len(calls) in (2, 5):
            Link.hello(Link(device.link.port))
        answers = original(requests)
        if calls.count(frames.TRAIN) == 3:
            device.link._session ^= 1  # the reply is lost with the session
            return original([(frames.SUM, bytes(4))])
        return answers

    device.link.pipeline = pipeline
    for _ in range(4):
        assert device.train_step(images, labels) == trainer.train_step(images, labels)
    same_weights(device, trainer)
    assert device.counters().trained == 4


def test_a_split_model_over_the_link(tmp_path):
    net = nn.Sequential(nn.Linear(64, 12), nn.Tanh(), nn.Linear(12, 10))
    split = ag.Model.supervised(
        net, input=(4, 64), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1), split=True
    )
    elf = link_program("host", split, tmp_path)
    device = opened(compile_model(split, "net", REF), elf, tmp_path)
    trainer = split.on_host()
    train(device, trainer, 12)
    same_weights(device, trainer)
    device.close()


def test_states_in_two_regions_over_the_link(model, tmp_path):
    """Weights that go there and back and a checkpoint; messages cross from one region to the other."""
    ram = {"near_by": 8000, "far_off": 6000}
    program = compile_model(model, "net", REF, ram=ram)
    assert all(r.state_bytes for r in program.regions)
    elf = link_program("host", model, tmp_path, ram=ram)
    trainer = model.on_host()
    device = opened(program, elf, tmp_path)
    train(device, trainer, 8)
    same_weights(device, trainer)
    train(device, trainer, 4, 2)
    trainer.train_step(*digits(4, 3))
    device.load_state_dict(trainer.state_dict(), steps=4)
    assert device.save() == 1
    device.close()  # the power is gone
    device = opened(program, elf, tmp_path)
    assert (device.steps, device.greeting.checkpoint) == (4, 1)
    same_weights(device, trainer)
    train(device, trainer, 4, 1)
    device.close()


STOPS = """\
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1].split(":")[2].split(",")[0])))
print("qemu: fatal: Lockup", file=sys.stderr, flush=True)
server.accept()
"""


def test_a_link_says_why_the_emulator_stopped(monkeypatch, tmp_path):
    """As QEMU does where the memories of the board differ from its machine's."""
    fake = lambda *_, serial: [sys.executable, "-c", STOPS, serial]
    monkeypatch.setattr(qemu, "qemu_argv", fake)
    (tmp_path / "firmware.elf").touch()
    port = qemu.QemuPort(profiles.load("stm32"), tmp_path / "firmware.elf")
    wanted = (
        "the emulator stopped: qemu: fatal: Lockup; compare the memories .* QEMU's machine netduinoplus2$"
    )
    with pytest.raises(ag.AutodiffError, match=wanted):
        while True:
            port.read(10.0)
    port.close()


KILLED = """\
import os, signal, sys, time
from pathlib import Path
from autodiff_gen.device import qemu
from autodiff_gen.targets import board
pid = Path(sys.argv[1])
qemu.qemu_argv = lambda *_, **__: ["sh", "-c", f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"]
running = qemu.Qemu(board.load("stm32"), Path(__file__), pid.parent)
while not pid.exists():
    time.sleep(0.01)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_the_emulator_ends_with_its_parent(tmp_path):
    pid = tmp_path / "pid"
    (tmp_path / "killed.py").write_text(KILLED)
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, tmp_path / "killed.py", pid], env=env, timeout=60)
    assert done.returncode == -signal.SIGKILL
    limit = time.monotonic() + 60
    with pytest.raises(ProcessLookupError):
        while time.monotonic() < limit:
            os.kill(int(pid.read_text()), 0)
            time.sleep(0.01)


@pytest.mark.qemu
@pytest.mark.parametrize("name", boards())
def test_boards_in_qemu(name, model, program, tmp_path):
    """The same over a socket to QEMU's UART, whose bytes are received by interrupt; and after a power cut."""
    trainer = model.on_host()
    elf = link_program(name, model, tmp_path)
    machine = Qemu(profiles.load(name), elf)
    try:
        line = FaultyTransport(open_port(machine.port, wait=20), 1, share=0.05)
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
