"""Fleets with accidents: no round is applied twice, none is lost without a report, and each run ends. A long run:

./scons test args="-k 'accidents or killed' --fleets 200"
"""

from __future__ import annotations

import os
import random
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from round_board import Library
from small_fleet import fleet, write_data, write_model
from unreliable_fleet import ACCIDENTS, UnreliableBoard

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.datasets.samples import from_arrays
from autodiff_gen.device import session
from autodiff_gen.device.rounds import shared_slots
from autodiff_gen.errors import DataError
from autodiff_gen.fleet.board_group import BoardResult, Failure
from autodiff_gen.fleet.linked import LinkedBoards
from autodiff_gen.fleet.round_request import RoundRequest, RoundSettings
from autodiff_gen.fleet.rounds import run_round
from autodiff_gen.fleet.twins import Twins

pytestmark = pytest.mark.cc
BOARDS, ROUNDS, SAMPLES, WIDTH, CLASSES = 4, 3, 9, 12, 4


def network() -> ag.Model:
    """Without a state of the optimizer: a round depends on its weights only."""
    net = nn.Sequential(nn.Linear(WIDTH, 9), nn.Tanh(), nn.Linear(9, CLASSES))
    return ag.Model.supervised(net, (5, WIDTH), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))


def test_accidents_apply_no_round_twice_and_lose_none(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each difference has the bits of a board without accidents, and each board without one is reported."""
    library, rng = Library(network(), tmp_path), np.random.default_rng(3)
    pixels = rng.integers(0, 256, (BOARDS, SAMPLES, WIDTH)).astype(np.uint8)
    labels = rng.integers(0, CLASSES, (BOARDS, SAMPLES)).astype(np.uint8)
    sets = [
        from_arrays(x, y, train=SAMPLES, epochs=1).to_bytes() for x, y in zip(pixels, labels, strict=True)
    ]
    twins, slots = Twins(library.program, sets, jobs=1, opt="-O0"), shared_slots(library.program)
    first = {s.name: rng.normal(0, 0.3, s.state.logical.shape).astype(np.float32) for s in slots}
    settings, happened, outcomes = RoundSettings(lr=0.1, steps=19), Counter[str](), Counter[str]()

    def one_round(linked: LinkedBoards, number: int, weights: dict[str, Any]) -> dict[str, Any] | None:
        heard: list[BoardResult | Failure] = []
        try:
            result = run_round([linked], slots, settings, number, weights, heard.append)
        except DataError as error:
            assert "no board answered" in str(error) and all(isinstance(a, Failure) for a in heard)
            result = None
        assert sorted(a.board for a in heard) == list(range(BOARDS))
        whole = [a for a in heard if isinstance(a, BoardResult)]
        outcomes.update("answered" if isinstance(a, BoardResult) else "failed" for a in heard)
        expected = {a.board: a for a in twins.round(RoundRequest(number, weights, settings), range(BOARDS))}
        for report in whole:
            twin = expected[report.board]
            assert isinstance(twin, BoardResult) and (report.samples, report.local) == (
                twin.samples,
                twin.local,
            )
            np.testing.assert_array_equal(report.delta, twin.delta)
        if result is None:
            return None
        mean = np.mean([r.delta for r in whole], axis=0, dtype=np.float64)
        moved = np.concatenate([(result.weights[s.name] - weights[s.name]).ravel() for s in slots])
        np.testing.assert_allclose(moved, mean, atol=1e-6)
        return result.weights

    for run in range(request.config.getoption("--fleets")):
        boards = [UnreliableBoard(library, own, run * BOARDS + k) for k, own in enumerate(sets)]
        linked = LinkedBoards([board.line(f"line {k}") for k, board in enumerate(boards)])
        assert linked.connect() == []
        weights: dict[str, Any] | None = dict(first)
        for number in range(1, ROUNDS + 1):
            weights = one_round(linked, number, weights) if weights is not None else None
        linked.end()
        happened.update(kind for board in boards for kind in board.happened)
    assert set(happened) == set(ACCIDENTS) and min(outcomes.values()) > 5, (happened, outcomes)


@pytest.mark.qemu
@pytest.mark.slow
def test_emulators_that_are_killed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    request: pytest.FixtureRequest,
) -> None:
    """By SIGKILL, at any moment, in one run for 20 --fleets: the weights equal a run in which nothing happened,
    unless a board was reported as failed."""
    monkeypatch.chdir(tmp_path)
    write_model()
    write_data()
    words = ["--emulated", "stm32=2,mps2_an385=1", "--rounds", "4", "--epochs", "40", "--timeout", "60"]
    assert fleet(*words, "--out", "whole") == 0
    kills = Kills()

    class Port(session.QemuPort):
        def write(self, data: bytes) -> None:
            super().write(data)
            kills.written(self.machine.process.pid)

    monkeypatch.setattr(session, "QemuPort", Port)
    for seed in range(max(1, request.config.getoption("--fleets") // 20)):
        kills.begin(seed)
        capsys.readouterr()
        assert fleet(*words, "--out", "killed", "--fresh") == 0
        out = capsys.readouterr().out
        assert kills.made > 1 and out.count("\nround ") == 4 and "the weights of round 4" in out
        assert out.count("    board ") >= out.count(" failed ")
        if " failed " not in out:
            with np.load("whole/round-00004.npz") as one, np.load("killed/round-00004.npz") as other:
                assert all(np.array_equal(one[n], other[n]) for n in one), seed


class Kills:
    """Ends emulators by SIGKILL after random writes to them; all boards write at the same time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.begin(0)

    def begin(self, seed: int, most: int = 4, writes: int = 400) -> None:
        self.made, self._writes = 0, 0
        self._moments = set(random.Random(seed).sample(range(1, writes), most))

    def written(self, group: int) -> None:
        with self._lock:
            self._writes += 1
            if self._writes in self._moments:
                with suppress(ProcessLookupError):
                    os.killpg(group, signal.SIGKILL)
                    self.made += 1
