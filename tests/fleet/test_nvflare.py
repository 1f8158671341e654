"""Boards as devices of NVFlare Edge."""

from __future__ import annotations

import contextlib
import socket
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edge_server import EdgeServer, served
from federated_problem import Problem
from small_fleet import fleet, write_data, write_model

from autodiff_gen.cli.main import main
from autodiff_gen.device.rounds import shared_slots
from autodiff_gen.device.session import Session
from autodiff_gen.errors import AutodiffError
from autodiff_gen.fleet import nvflare
from autodiff_gen.fleet.average import WeightedMean
from autodiff_gen.fleet.folder import held
from autodiff_gen.fleet.nvflare import EtaDevice
from autodiff_gen.fleet.rounds import answers, moved, run_round

pytestmark = pytest.mark.cc
MODELS = 3


@pytest.fixture(scope="module")
def problem() -> Problem:
    return Problem()


def device(
    problem: Problem, url: str, name: str = "gateway", job: str = "digits", **options: Any
) -> EtaDevice:
    return EtaDevice(url, job, name, problem.members, problem.program, problem.settings(), **options)


@pytest.mark.parametrize("integers", (False, True))
def test_a_device_trains_as_rounds_of_federated_averaging(integers: bool) -> None:
    """The server waits at first, between two models, and with a result. Its weights are floats, the boards' may be
    integers."""
    problem, other = Problem(integers), Problem(integers)
    server = EdgeServer("digits", problem.weights, MODELS)
    server.odd["job"] = [(200, {"status": "RETRY", "retry_wait": 0.01})]
    server.odd["task"] = [(200, {"status": "RETRY", "message": "Model not ready", "retry_wait": 0.01})]
    server.odd["result"] = [(200, {"status": "RETRY", "retry_wait": 0.01})] * 2
    with served(server) as url:
        tasks = list(device(problem, url).tasks())
    assert [(t.number, t.mean.boards, t.mean.samples, len(t.failures)) for t in tasks] == [
        (k, 3, 24, 0) for k in range(1, MODELS + 1)
    ]
    weights = problem.weights
    for number in range(1, MODELS + 1):
        mean = WeightedMean()
        for answer in answers(other.members, other.slots, other.settings(), number, weights, range(3)):
            mean.add(answer)
        weights = moved(problem.slots, weights, mean)
    for name, want in weights.items():
        np.testing.assert_allclose(server.weights[name], want, rtol=0, atol=1e-5 if integers else 1e-6)
        assert not np.array_equal(want, problem.weights[name])
    assert server.requests.count("result") == MODELS + 2 and server.errors == []


@pytest.mark.parametrize("status", ("DONE", "RETRY"))
def test_a_result_that_is_not_taken(problem: Problem, status: str) -> None:
    server = EdgeServer("digits", problem.weights, 1)
    server.odd["task"] = [(200, server.on_task({}, {})), (200, {"status": "DONE"})]
    server.odd["result"] = [(200, {"status": status, "retry_wait": 0.01})] * 50
    with served(server) as url:
        (task,) = device(problem, url, timeout=0.05 if status == "RETRY" else 60.0).tasks()
    assert task.rejection == status and str(task).endswith(f"   not taken: the server answers {status}")


def test_twins_continue_with_what_they_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Adam's moments, in a command that ended and one that did not."""
    monkeypatch.chdir(tmp_path)
    write_model()
    Path("m.py").write_text(Path("m.py").read_text().replace("SGD(lr=0.3)", "Adam(lr=0.02)"))
    write_data()
    trainer, servers = Session("m.py", "host").trainer(), []
    weights = {s.name: trainer.state_dict()[s.name] for s in shared_slots(trainer.program)}
    for stops in (False, True):
        servers.append(server := EdgeServer("m", weights, MODELS))
        if stops:
            server.odd["task"] = [(200, server.on_task({}, {})), (200, {"status": "DONE"})]
        with served(server) as url:
            for _ in range(1 + stops):
                assert fleet("--boards", "2", "--server", url, "--out", f"o{stops}") == 0
    assert servers[0].version == servers[1].version == MODELS + 1
    assert all(np.array_equal(servers[0].weights[name], servers[1].weights[name]) for name in weights)
    with served(EdgeServer("m", weights, 1)) as url:
        assert fleet("--boards", "2", "--server", url, "--out", "oTrue", "--fresh") == 0
    assert [f.name for f in Path("oTrue").glob("twins-*")] == ["twins-00001.npz"]


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
    want = run_round(problem.members, problem.slots, problem.settings(), 1, problem.weights).weights
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
    "a version that is no number": (
        "task",
        task(cookie={"model_version": True}),
        200,
        "no model_version in its",
    ),
    "a large version": ("task", task(cookie={"model_version": 1 << 32}), 200, "no model_version in its"),
    "a list as a model": ("task", task(cookie={}, task_data=[1]), 200, "no model_version in its"),
    "a text as a model": ("task", task(task_data="a"), 200, "a model of kind None"),
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


@pytest.mark.parametrize(
    "said", (b"SSH-2.0-OpenSSH_9.6\r\n", b"HTTP/1.1 404 No\r\nTransfer-Encoding: chunked\r\n\r\n9\r\na")
)
def test_a_server_of_something_else(problem: Problem, said: bytes) -> None:
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as server:

        def answer() -> None:
            with server.accept()[0] as line:
                line.recv(65536)
                line.sendall(said)
                line.shutdown(socket.SHUT_WR)
                while line.recv(65536):  # a line that is closed before is reset
                    pass

        thread = threading.Thread(target=answer)
        thread.start()
        with pytest.raises(AutodiffError, match=r"what answers there does not speak HTTP: \w+$"):
            list(device(problem, f"http://127.0.0.1:{server.getsockname()[1]}").tasks())
        thread.join()


def test_a_server_asks_for_a_wait_that_has_no_end(monkeypatch: pytest.MonkeyPatch) -> None:
    waits = list[float]()
    monkeypatch.setattr(nvflare.time, "sleep", waits.append)
    for seconds in (10**400, float("inf"), float("nan"), -1, 0.5, "1"):
        nvflare._wait({"retry_wait": seconds})
    assert waits == [60.0, 60.0, nvflare.WAIT, nvflare.WAIT, 0.5, nvflare.WAIT]


def test_a_job_that_does_not_come(problem: Problem) -> None:
    with (
        served(EdgeServer("digits", {}, 1)) as url,
        pytest.raises(AutodiffError, match="has no job 'letters'"),
    ):
        list(device(problem, url, job="letters", timeout=0.05).tasks())


def test_two_devices_do_not_share_boards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = [
        "fleet",
        "mnist",
        "--boards",
        "2",
        "--samples",
        "4",
        "--server",
        "http://127.0.0.1:9",
        "--out",
        "a",
    ]
    with held(Path("a")):
        assert main(words) == 1
    err = capsys.readouterr().err
    assert err.startswith("error: a is in use by process ") and err.count("\n") == 1


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
    assert "--strategy has no effect with NVFlare: its server averages" in capsys.readouterr().err
    assert main([*words[:-1], "ftp://a"]) == 2
    assert "expected flower or http://HOST:PORT, got 'ftp://a'" in capsys.readouterr().err
