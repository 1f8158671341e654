"""Boards as devices of NVFlare Edge."""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Any

import numpy as np
import pytest
from edge_server import EdgeServer, served
from federated_problem import Problem

from autodiff_gen.cli.main import main
from autodiff_gen.errors import AutodiffError
from autodiff_gen.fleet.nvflare import EtaDevice
from autodiff_gen.fleet.rounds import run_round

pytestmark = pytest.mark.cc
MODELS = 3


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem()


def device(
    problem: Problem, url: str, name: str = "gateway", job: str = "digits", **options: Any
) -> EtaDevice:
    return EtaDevice(url, job, name, problem.members, problem.program, problem.plan(), **options)


def test_a_device_trains_as_rounds_of_federated_averaging(problem: Problem) -> None:
    """The server waits at first, and between two models."""
    server = EdgeServer("digits", problem.weights, MODELS)
    server.odd["job"] = [(200, {"status": "RETRY", "retry_wait": 0.01})]
    server.odd["task"] = [(200, {"status": "RETRY", "message": "Model not ready", "retry_wait": 0.01})]
    with served(server) as url:
        tasks = list(device(problem, url).tasks())
    assert [(t.number, t.mean.boards, t.mean.samples, len(t.failures)) for t in tasks] == [
        (k, 3, 24, 0) for k in range(1, MODELS + 1)
    ]
    weights = problem.weights
    for number in range(1, MODELS + 1):
        weights = run_round(problem.members, problem.slots, problem.plan(), number, weights).weights
    for name, want in weights.items():
        np.testing.assert_allclose(server.weights[name], want, rtol=0, atol=1e-6)
    assert server.requests.count("result") == MODELS and server.errors == []


def test_two_devices_share_a_model(problem: Problem) -> None:
    """Each report counts as many as it has samples, so two devices with the same boards change nothing."""
    server = EdgeServer("digits", problem.weights, 1, updates=2)
    with served(server) as url:
        threads = [
            threading.Thread(target=lambda name=name: list(device(problem, url, name).tasks()))
            for name in ("a", "b")
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    want = run_round(problem.members, problem.slots, problem.plan(), 1, problem.weights).weights
    for name, array in want.items():
        np.testing.assert_allclose(server.weights[name], array, rtol=0, atol=1e-6)


def test_a_model_that_no_board_can_train_is_reported(problem: Problem) -> None:
    broken = {name: np.full_like(w, 3e38) for name, w in problem.weights.items()}
    server = EdgeServer("digits", broken, 1)
    with served(server) as url:
        (task,) = device(problem, url).tasks()
    assert (task.mean.boards, len(task.failures), server.errors) == (0, 3, ["ERROR"])
    assert "board 2: " in str(task) and str(task).startswith("model 1    0 boards, 3 failed")


def task(**changes: Any) -> dict[str, Any]:
    whole = {
        "status": "OK",
        "task_id": "t",
        "task_name": "train",
        "task_data": {"kind": "WEIGHTS", "data": {}, "meta": {}},
        "cookie": {"model_version": 1},
    }
    return {**whole, **changes}


WRONG: dict[str, tuple[str, Any, int, str]] = {
    "no proxy": ("job", b"<html>", 200, "is a routing proxy of NVFlare there?"),
    "no page": ("job", b"<html>", 404, "HTTP 404: is a routing proxy of NVFlare there?"),
    "a list": ("job", [], 200, "the reply is no JSON object"),
    "rejected": (
        "job",
        {"status": "INVALID_REQUEST", "message": "bad\nname"},
        400,
        "answers INVALID_REQUEST: bad name",
    ),
    "an error": ("task", {"status": "ERROR", "message": "no"}, 200, "/task: the server answers ERROR: no"),
    "no version": ("task", task(cookie={}), 200, "no model_version in its cookie"),
    "ExecuTorch": (
        "task",
        task(task_data={"kind": "APP_DEFINED", "data": "AAA"}),
        200,
        "a model of kind 'APP_DEFINED'",
    ),
    "another model": ("task", task(), 200, "the weights of a round miss 0.weight"),
    "no numbers": (
        "task",
        task(task_data={"kind": "WEIGHTS", "data": {"a": [[1], [1, 2]]}}),
        200,
        "no arrays of numbers",
    ),
    "no task data": ("task", task(task_data=None), 200, "a model of kind None"),
    "not accepted": (
        "result",
        {"status": "ERROR", "message": "missing cookie"},
        200,
        "/result: the server answers ERROR",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_replies_are_one_line(case: str, problem: Problem) -> None:
    what, reply, status, message = WRONG[case]
    server = EdgeServer("digits", problem.weights, 1)
    server.odd[what] = [(status, reply)]
    with served(server) as url, pytest.raises(AutodiffError) as caught:
        list(device(problem, url).tasks())
    assert message in str(caught.value) and "\n" not in str(caught.value)


def test_a_job_that_does_not_come(problem: Problem) -> None:
    with (
        served(EdgeServer("digits", {}, 1)) as url,
        pytest.raises(AutodiffError, match="has no job 'letters'"),
    ):
        list(device(problem, url, job="letters", timeout=0.05).tasks())


def test_a_server_that_is_absent(capsys: pytest.CaptureFixture[str]) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    words = ["fleet", "mnist", "--boards", "2", "--samples", "4", "--server", f"http://127.0.0.1:{port}"]
    assert main(words) == 1
    err = capsys.readouterr().err
    assert (
        err.startswith(f"error: http://127.0.0.1:{port}: no server answers there: ") and err.count("\n") == 1
    )
    assert main([*words, "--strategy", "FedAvg"]) == 1
    assert "--strategy is one of Flower's" in capsys.readouterr().err
    assert main([*words[:-1], "ftp://a"]) == 2
    assert "expected flower or http://HOST:PORT, got 'ftp://a'" in capsys.readouterr().err
