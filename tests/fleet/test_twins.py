"""Host twins: a round equals a board's on the link, bit for bit, and federated averaging equals PyTorch's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federated_problem import MU, ROUNDS, Problem
from federated_torch import averaging, in_pytorch
from round_board import Library, Twin, connected

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.board_link_layout import link_layout
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.device.differences import ClipAndNoise
from autodiff_gen.device.errors import DeviceError
from autodiff_gen.device.rounds import Round, shared_slots
from autodiff_gen.fleet.board_group import BoardResult, Failure
from autodiff_gen.fleet.records import records
from autodiff_gen.fleet.round_request import RoundRequest, RoundSettings
from autodiff_gen.fleet.rounds import run_round
from autodiff_gen.fleet.twins import Twins

pytestmark = pytest.mark.cc
WIDTH, CLASSES, BATCH = 6, 3, 4


def model(net: nn.Module, optimizer: Any) -> ag.Model:
    return ag.Model.supervised(net, (BATCH, WIDTH), nn.CrossEntropyLoss(), optimizer)


def data(samples: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {
        "x": rng.normal(size=(samples, WIDTH)).astype(np.float32),
        "target": rng.integers(0, CLASSES, samples),
    }


def sets_of(spec: ag.Model, program: Any, parts: list[Any], arrays: dict[str, Any]) -> list[bytes]:
    layout = link_layout(program)
    names = {a.name: arrays["target" if a.is_target else "x"] for a in layout.inputs}
    return [records(layout, names, rows) for rows in parts]


@pytest.mark.parametrize("payload", (240, 60))
def test_a_twin_is_a_board(tmp_path: Path, payload: int) -> None:
    """Rounds of Adam, whose state stays on the board, with running statistics: by each encoding, with an evaluation,
    clipped, and with noise."""
    net = nn.Sequential(nn.Linear(WIDTH, 50), nn.BatchNorm1d(50), nn.Tanh(), nn.Linear(50, CLASSES))
    spec = model(net, optim.Adam(lr=0.02))
    library, seed = Library(spec, tmp_path, [f"-DAG_LINK_PAYLOAD={payload}"]), bytes(range(32))
    library.entropy(seed)
    arrays = data(19)
    layout = link_layout(library.program)
    names = {a.name: arrays["target" if a.is_target else "x"] for a in layout.inputs}
    sets = [records(layout, names, np.arange(16), np.arange(16, 19))]
    board = connected(library, Twin(library, sets[0]))
    twins = Twins(library.program, sets, opt="-O0", seeds=lambda k, n: seed, payload=lambda k: payload)
    weights = {s.name: np.full(s.state.logical.shape, 0.1, np.float32) for s in shared_slots(library.program)}
    for number, (encoding, local, mask) in enumerate(
        (
            ("f32", False, None),
            ("s8", False, None),
            ("f32", True, ClipAndNoise(0.1)),
            ("top0.2", False, None),
            ("top0.07:s8", True, ClipAndNoise(0.1, 0.5)),
        ),
        1,
    ):
        settings = RoundSettings(
            0.02, 7, mu=0.1, encoding=encoding, local_buffers=local, mask=mask, evaluate=True
        )
        order = RoundRequest(number, weights, settings)
        own = Round(board, number, weights, local, mask)
        tested = own.evaluate()
        trained = own.train(order.work(0))
        delta = own.difference(encoding, order.seed(0))
        (report,) = twins.round(order, [0])
        assert isinstance(report, BoardResult) and report.samples == 16
        assert (report.local, report.evaluation) == (trained, tested)
        assert tested.samples == tested.labels == 3
        np.testing.assert_array_equal(report.delta, delta)
        assert np.abs(delta).max() > 0.001


def test_a_twin_begins_a_round_again_where_a_board_does(tmp_path: Path) -> None:
    """With the optimizer's state of its start, also after a restart of the board, and after steps that it rejected."""
    net = nn.Sequential(nn.Linear(WIDTH, 8), nn.BatchNorm1d(8), nn.Tanh(), nn.Linear(8, CLASSES))
    spec = model(net, optim.Adam(lr=0.02))
    library = Library(spec, tmp_path)
    (samples,) = sets_of(spec, library.program, [np.arange(16)], data(16))
    target = Twin(library, samples)
    twins = Twins(library.program, [samples], opt="-O0")
    slots = shared_slots(library.program)
    weights = {s.name: np.full(s.state.logical.shape, 0.1, np.float32) for s in slots}
    answers = []
    for number, lr, restarts in (
        (1, 0.02, False),
        (1, 0.02, True),
        (2, 0.02, False),
        (2, 0.02, True),
        (2, 0.02, False),
        (3, 1e38, False),
        (4, 0.02, False),
        (4, 0.02, True),
    ):
        if restarts:
            target.start()
        order = RoundRequest(number, weights, RoundSettings(lr, 5, local_buffers=number > 2))
        own = Round(connected(library, target), number, weights, number > 2)
        (report,) = twins.round(order, [0])
        if lr > 1:
            with pytest.raises(DeviceError) as error:
                own.train(order.work(0))
            assert (
                isinstance(report, Failure)
                and "not finite" in report.reason
                and "not finite" in str(error.value)
            )
            continue
        assert isinstance(report, BoardResult) and report.local.steps == own.train(order.work(0)).steps == 5
        np.testing.assert_array_equal(report.delta, own.difference())
        answers.append(report.delta[-CLASSES:])
    assert np.array_equal(answers[1], answers[0]) and not np.array_equal(answers[2], answers[1])


def test_a_repeated_round_has_the_same_noise() -> None:
    """Only if its difference is the same: noise does not cancel out between two differences of a round."""
    spec = model(nn.Linear(WIDTH, CLASSES), optim.SGD(lr=0.1))
    program, arrays = compile_model(spec, "net", ["ref"]), data(8)
    twins = Twins(program, sets_of(spec, program, [np.arange(4), np.arange(4, 8)], arrays), opt="-O0")
    weights = {s.name: np.zeros(s.state.logical.shape, np.float32) for s in program.slots}
    found = []
    for number, steps in ((1, 0), (1, 0), (2, 0), (1, 1)):
        settings = RoundSettings(lr=1e-3, steps=steps, mask=ClipAndNoise(1.0, 1.0))
        reports = twins.round(RoundRequest(number, weights, settings), [0, 1])
        found.append([r.delta for r in reports if isinstance(r, BoardResult)])
    np.testing.assert_array_equal(found[0], found[1])
    noises = [*found[0], *found[2], *found[3]]  # one step moves weights by 1e-3 at most
    assert all(0.3 < x.std() < 2 for x in noises)
    assert all(np.abs(noises[i] - noises[k]).max() > 0.1 for i in range(6) for k in range(i))


@pytest.mark.torch
@pytest.mark.parametrize("mu", (0.0, MU))
def test_federated_averaging_is_that_of_pytorch(mu: float) -> None:
    """Ten rounds of boards with 3 to 11 samples: FedAvg, and with the proximal term."""
    problem = Problem()
    settings, weights = problem.settings(mu), problem.weights
    for number in range(1, ROUNDS + 1):
        result = run_round(problem.members, problem.slots, settings, number, weights)
        assert (result.boards, result.samples, list(result.failures)) == (3, 24, [])
        weights = result.weights
    expected = in_pytorch(problem, averaging(), mu)
    for slot, want in zip(problem.slots, expected, strict=True):
        np.testing.assert_allclose(weights[slot.name], want, rtol=0, atol=1e-5)
    assert np.abs(expected[0] - expected[0].mean()).max() > 0.1


def test_a_board_that_fails_is_left_out_and_named() -> None:
    spec = model(nn.Linear(WIDTH, CLASSES), optim.SGD(lr=0.1))
    program, arrays = compile_model(spec, "net", ["ref"]), data(12)
    arrays["x"][5] = np.nan
    twins = Twins(
        program, sets_of(spec, program, [np.arange(4), np.arange(4, 8), np.arange(8, 12)], arrays), opt="-O0"
    )
    slots = shared_slots(program)
    weights = {s.name: np.zeros(s.state.logical.shape, np.float32) for s in slots}
    heard: list[BoardResult | Failure] = []
    result = run_round([twins], slots, RoundSettings(lr=0.1, steps=2), 1, weights, heard.append)
    assert [f.board for f in result.failures] == [1] and "not finite" in result.failures[0].reason
    assert (result.boards, result.samples, len(heard)) == (2, 8, 3)
