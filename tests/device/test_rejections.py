"""Requests that a board rejects over its link, its replies, and when it goes back to its checkpoint."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest
from device_model import digits, firmware_of, goes_back, opened, same_weights, small_model, train
from firmware_build import REF

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device import frames
from autodiff_gen.device.encoding import raw_pieces
from autodiff_gen.device.errors import DeviceError, LinkError
from autodiff_gen.device.link import write_request
from autodiff_gen.errors import ModelError, ShapeError
from autodiff_gen.model.loader import load_model

pytestmark = pytest.mark.cc


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture
def device(model, tmp_path_factory, tmp_path):
    made = opened(compile_model(model, "net", REF), firmware_of(model, tmp_path_factory), tmp_path)
    yield made
    made.close()


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
    ("reading past the end", frames.READ, struct.pack("<IB", frames.OUTPUT << 28 | 160, 1), -34),
    ("another object", frames.READ, struct.pack("<IB", 9 << 28, 1), -34),
    ("writing outputs", frames.WRITE, struct.pack("<I", frames.OUTPUT << 28) + b"x", -34),
    ("writing weights without BEGIN", frames.WRITE, struct.pack("<I", frames.STATE << 28) + b"x", -40),
    ("floats beyond the array", frames.WRITE, struct.pack("<I", 1 << 24 | 4 * 255) + b"xy", -34),
    ("floats among labels", frames.WRITE, struct.pack("<I", 1 << 24 | 4 * 256) + b"x", -34),
    ("half a run", frames.WRITE, struct.pack("<I", 2 << 24) + b"\1\5ab", -33),
    ("integers without their scale", frames.WRITE, struct.pack("<I", 3 << 24) + b"abc", -33),
    ("half a 16-bit integer", frames.WRITE, struct.pack("<If", 4 << 24, 1.0) + b"abc", -33),
    ("integers beyond the array", frames.WRITE, struct.pack("<If", 3 << 24 | 4 * 255, 1.0) + b"ab", -34),
    ("an encoding that is none", frames.WRITE, struct.pack("<I", 7 << 24) + b"ab", -34),
    ("a learning rate that is no number", frames.SET_LR, struct.pack("<f", float("nan")), -34),
    ("BEGIN with a payload", frames.BEGIN, b"x", -33),
    ("SAVE with a payload", frames.SAVE, b"x", -33),
    ("END without BEGIN", frames.END, struct.pack("<II", 0, 0), -40),
    ("no checkpoint", frames.LOAD, bytes(4), -64),
    ("a checkpoint without saying which", frames.LOAD, b"", -33),
    ("a checkpoint of a kind that is none", frames.LOAD, struct.pack("<I", 2), -34),
    ("no file of inputs", frames.FETCH, struct.pack("<I", 8), -42),
    ("more than the inputs", frames.FETCH, struct.pack("<I", 4 * 256 + 8), -34),
]


def test_wrong_requests_have_their_statuses(device, model):
    for what, number, payload, status in WRONG:
        assert device.link.exchange(number, payload)[0] == status, what
    same_weights(device, model.on_host())
    assert device.counters().trained == 0


def test_labels_out_of_range_are_rejected_on_both_ends(device, model):
    images, labels = digits(4)
    labels[2] = 10
    with pytest.raises(ShapeError, match=r"label\[2\] is 10"):
        device.train_step(images, labels)
    crc = 0
    for offset, data in ((0, images.tobytes()), (4 * 256, labels.tobytes())):
        pieces = raw_pieces(data, device.link.payload - 4)
        device.link.run([write_request(frames.INPUT, kind, offset + at, part) for kind, at, part in pieces])
        crc = zlib.crc32(data, crc)
    status, answer = device.link.exchange(frames.TRAIN, struct.pack("<IHHfI", 0, 4, 1, 0.1, crc))
    assert (status, len(answer)) == (-3, 8)
    assert device.counters().rejected == 1
    same_weights(device, model.on_host())


def test_a_rejected_step_is_counted_and_changes_nothing(device, model):
    trainer = model.on_host()
    images, labels = digits(4)
    for bad in (np.nan, np.inf):
        broken = images.copy()
        broken[3, 7] = bad
        with pytest.raises(
            DeviceError, match=r"the step was rejected: an input, .* not finite \(status -6\)"
        ):
            device.train_step(broken, labels)
    counters = device.counters()
    assert (counters.rejected, counters.trained, device.steps) == (2, 0, 0)
    train(device, trainer, 8)
    same_weights(device, trainer)


def test_after_rejected_steps_the_board_goes_back_to_its_checkpoint(device, model):
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
    assert (device.counters().rejected, device.counters().restored, device.steps) == (5, 0, 0)


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


def test_another_firmware_is_named(model, tmp_path_factory, tmp_path):
    other = compile_model(load_model("mnist")[0], "mnist", REF)
    ours = compile_model(model, "net", REF).graph_id
    with pytest.raises(LinkError) as caught:
        opened(other, firmware_of(model, tmp_path_factory), tmp_path)
    assert f"'net' with graph id {ours:08x}, this one is 'mnist' with {other.graph_id:08x}" in str(
        caught.value
    )
