"""Rounds of networks with 8-bit weights: their steps, and how they are rounded."""

from __future__ import annotations

import numpy as np
import pytest
from round_board import Library, Twin, checksum, connected
from round_task import CLASSES, WIDTH, batches, build

from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.shared_part import shared_part
from autodiff_gen.device.rounds import LocalWork, Round, shared_slots

pytestmark = pytest.mark.cc


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
    work = LocalWork(steps=8, lr=0.5, seed=2)
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
        again.train(LocalWork(steps=4, lr=0.5, seed=number))
        before = board.state_dict()["last"].astype(np.float32)
        again.train(LocalWork(steps=5, lr=1e-6, seed=number, mu=0.5e6))
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
    round_.train(LocalWork(steps=4, lr=0.5, seed=seed))
    before = board.state_dict()
    round_.train(LocalWork(steps=5, lr=1e-6, seed=seed, mu=0.5e6))
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
