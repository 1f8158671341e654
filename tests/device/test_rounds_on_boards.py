"""Rounds of federated training on emulated boards, which end with the bits of one in this process."""

from __future__ import annotations

import numpy as np
import pytest
from device_model import opened, small_model
from firmware_build import REF
from link_build import link_program
from round_board import Library, Twin, checksum, connected

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.shared_part import shared_part
from autodiff_gen.datasets.samples import from_arrays
from autodiff_gen.device.board import Board
from autodiff_gen.device.differences import ClipAndNoise
from autodiff_gen.device.link import Link
from autodiff_gen.device.qemu import Qemu
from autodiff_gen.device.rounds import LocalWork, Round, shared_slots
from autodiff_gen.device.transport import open_port
from autodiff_gen.targets import board as profiles

pytestmark = pytest.mark.cc
WORK = LocalWork(steps=10, lr=0.02, seed=5, mu=0.5)
SEED = bytes(range(7, 39))  # of noise


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return Library(small_model(), tmp_path_factory.mktemp("twin"))


@pytest.fixture
def task(library, rng):
    """Samples, and the weights of a round."""
    x, y = rng.integers(0, 256, (30, 64)), rng.integers(0, 10, 30)
    samples = from_arrays(x.astype(np.uint8), y.astype(np.uint8), train=25, epochs=1)
    weights = {s.name: rng.normal(0, 0.2, s.state.logical.shape) for s in shared_slots(library.program)}
    return samples, {name: array.astype(np.float32) for name, array in weights.items()}


def whole_round(board, weights):
    """The end of a round: bits of the state, and of the difference as bytes."""
    round_ = Round(board, 1, weights)
    round_.train(WORK)
    delta = round_.delta("s8", 3)
    return checksum(delta), checksum(board.state_dict())


def with_noise(board, weights):
    """The bits of masked differences of the next round."""
    round_ = Round(board, 2, weights, mask=ClipAndNoise(clip=0.1, noise=0.3))
    round_.train(WORK)
    return [checksum(round_.delta(encoding, 3)) for encoding in ("f32", "top0.2:s8")]


def test_states_in_two_regions(library, task, tmp_path):
    samples, weights = task
    ram = {"near_by": 3000, "far_off": 12000}
    program = compile_model(small_model(), "net", REF, ram=ram)
    owners = {s.owner for run in shared_part(program) for s in run.slots}
    assert len(owners) == 2
    (tmp_path / "samples.bin").write_bytes(samples.to_bytes())
    device = opened(program, link_program("host", small_model(), tmp_path, ram=ram), tmp_path)
    delta, state = whole_round(device, weights)
    device.close()
    twin = connected(library, Twin(library, samples))
    assert (delta, state) == whole_round(twin, weights)


@pytest.mark.qemu
@pytest.mark.slow
@pytest.mark.parametrize("name", ["stm32", "mps2_an385"])
def test_a_round_that_a_power_cut_interrupts(name, library, task, tmp_path):
    samples, weights = task
    (tmp_path / "samples.bin").write_bytes(samples.to_bytes())
    (tmp_path / "entropy.bin").write_bytes(SEED)
    library.entropy(SEED)
    elf, twin = link_program(name, small_model(), tmp_path), connected(library, Twin(library, samples))
    expected, noisy = whole_round(twin, weights), with_noise(twin, weights)
    for steps in (7, None):
        machine = Qemu(profiles.load(name), elf)
        try:
            device = Board(library.program, Link(open_port(machine.port, wait=20), patience=60))
            if steps is not None:
                assert (
                    Round(device, 1, weights).train(LocalWork(steps, WORK.lr, WORK.seed, mu=WORK.mu)).steps
                    == 7
                )
            else:
                assert (device.greeting.round, device.steps) == (1, 0)
                assert whole_round(device, weights) == expected
                assert device.counters().trained == WORK.steps
                assert with_noise(device, weights) == noisy
            device.close()
        finally:
            machine.kill()
