"""A small model and the firmware of its link, for tests of a board and its host: what both train must be the same."""

from __future__ import annotations

import numpy as np
import pytest
from firmware_build import once
from link_build import link_program

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.device.board import Board
from autodiff_gen.device.errors import DeviceError, WentBack
from autodiff_gen.device.link import Link
from autodiff_gen.device.transport import Pipe


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


def firmware_of(model, tmp_path_factory):
    """The link's firmware as a program of the host, under the sanitizers."""
    flags = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    folder = once(tmp_path_factory, "link-host", lambda f: link_program("host", model, f, flags=flags))
    return folder / "link.elf"


def opened(program, firmware, folder):
    """The board that this firmware is, with its flash in `folder`."""
    return Board(program, Link(Pipe([str(firmware)], folder)))


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


def goes_back(device, steps):
    """Weights that are not finite: two steps are rejected, and the board has its checkpoint after `steps` again."""
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
    assert (counters.steps, counters.rejected, counters.restored) == (steps, 2, 1)
