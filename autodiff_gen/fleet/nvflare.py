"""Boards as a device of NVFlare Edge: https://nvflare.readthedocs.io. The device requests a job from a server, then
tasks, by JSON over HTTP; it trains the model of a task and reports the difference.

    POST /job                        {job_name, capabilities}             -> {status, job_id, retry_wait}
    POST /task?job_id=               {cookie}                -> {status, task_id, task_name, task_data, cookie}
    POST /result?job_id=&task_id=&task_name=    {status, task_name, result, cookie}    -> {status, message}

The model is a DXO of kind WEIGHTS: arrays by name as lists of numbers. A result is a DXO of kind WEIGHT_DIFF: sums of
differences and a count. The server adds up sums and counts, and divides. The count of a board is its number of samples.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.program import Program, Slot
from ..device.rounds import by_name, shared_slots
from ..errors import DataError, counted, shortened
from .average import WeightedMean
from .board_group import Failure, Members
from .round_request import RoundSettings
from .rounds import Heard, Weights, answers

WAIT = 2.0  # seconds until the next request, unless the server says
OK, RETRY, DONE = "OK", "RETRY", "DONE"
NOTHING = (RETRY, "NO_TASK")  # now
ENDED = (DONE, "NO_JOB")
LARGEST = 1 << 28  # bytes of a reply


@dataclass(frozen=True)
class Task:
    """A task that the boards did. `mean`: of all boards that answered. `rejection`: the status in the reply of a server
    that did not take the report."""

    number: int
    mean: WeightedMean
    failures: Sequence[Failure]
    seconds: float
    rejection: str = ""

    def __str__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        loss = f"   loss {self.mean.loss:.4f}" if self.mean.boards else ""
        line = f"model {self.number:<4} {counted(self.mean.boards, 'board')}{failed}{loss}   {self.seconds:.2f} s"
        if self.rejection:
            line += f"   not taken: the server answers {shortened(self.rejection)}"
        return "\n    ".join([line, *map(str, self.failures)])


class EtaDevice:
    """All boards of the members as the device `name`, for the job `job` of the server at `url`. `timeout`: seconds
    to wait for a reply of the server, and for the job."""

    def __init__(
        self,
        url: str,
        job: str,
        name: str,
        members: Sequence[Members],
        program: Program,
        settings: RoundSettings,
        timeout: float = 60.0,
    ) -> None:
        self._url, self._job, self._name, self._timeout = url.rstrip("/"), job, name, timeout
        self._members, self._program, self._settings = members, program, settings
        self._job_id = ""

    def tasks(self, heard: Heard = lambda answer: None) -> Iterator[Task]:
        """Do the tasks of the job until it ends. Raises DataError."""
        self._join()
        cookie: Any = None
        while True:
            reply = self._post("task", {"job_id": self._job_id}, {"cookie": cookie} if cookie else {})
            status = _status(reply)
            if status in ENDED:
                return
            if status in NOTHING:
                _wait(reply)
                continue
            self._check("task", reply)
            cookie = reply.get("cookie") or cookie
            yield self._do(reply, cookie, heard)

    def _join(self) -> None:
        """Wait for the job."""
        end = time.monotonic() + self._timeout
        while True:
            body = {"job_name": self._job, "capabilities": {"methods": [self._program.name]}}
            reply = self._post("job", {}, body)
            if _status(reply) == OK:
                self._job_id = str(reply.get("job_id", ""))
                return
            if _status(reply) == DONE or time.monotonic() > end:
                raise DataError(
                    f"{self._url}: the server has no job {self._job!r} ({_status(reply)}); submit it, or name another "
                    "by --job"
                )
            if _status(reply) not in (*NOTHING, "NO_JOB"):
                self._check("job", reply)
            _wait(reply)

    def _do(self, task: Mapping[str, Any], cookie: Any, heard: Heard) -> Task:
        begin = time.monotonic()
        number = _version(cookie, task)
        mean, failures = WeightedMean(), list[Failure]()
        boards = range(sum(map(len, self._members)))
        weights = _weights(task)
        slots = shared_slots(self._program, self._settings.local_buffers)
        for answer in answers(self._members, slots, self._settings, number, weights, boards, heard):
            if isinstance(answer, Failure):
                failures.append(answer)
            else:
                mean.add(answer)
        place = {
            "job_id": self._job_id,
            "task_id": str(task.get("task_id")),
            "task_name": str(task.get("task_name")),
        }
        report = {"task_name": place["task_name"], "cookie": cookie, **_result(mean, slots)}
        status = self._report(place, report)
        rejection = "" if not mean.boards or status == OK else status
        return Task(number, mean, failures, time.monotonic() - begin, rejection)

    def _report(self, place: Mapping[str, str], report: Mapping[str, Any]) -> str:
        """Send the report until the server takes it, or for `timeout` seconds; returns the status in its last reply."""
        end = time.monotonic() + self._timeout
        while True:
            reply = self._post("result", place, report)
            status = _status(reply)
            if report["status"] != OK:  # servers reply to such a report by an error
                return status
            if status not in (*ENDED, *NOTHING):
                self._check("result", reply)
            if status != RETRY or time.monotonic() > end:
                return status
            _wait(reply)

    def _check(self, what: str, reply: Mapping[str, Any]) -> None:
        if _status(reply) != OK:
            text = shortened(" ".join(str(reply.get("message") or "").split()))
            status = shortened(_status(reply))
            raise DataError(f"{self._url}/{what}: the server answers {status}{text and f': {text}'}")

    def _post(self, what: str, place: Mapping[str, str], body: Mapping[str, Any]) -> dict[str, Any]:
        url = f"{self._url}/{what}" + (f"?{urllib.parse.urlencode(place, errors='replace')}" if place else "")
        info = {"app_name": "autodiff_gen", "app_version": "1", "platform": "mcu"}
        headers = {
            "Content-Type": "application/json",
            "X-Flare-Device-ID": self._name,
            "X-Flare-Device-Info": urllib.parse.urlencode(info),
        }
        request = urllib.request.Request(url, json.dumps(body).encode(), headers)
        code = 0  # of HTTP, where it is an error
        try:
            try:
                answer = urllib.request.urlopen(request, timeout=self._timeout)
            except urllib.error.HTTPError as error:
                answer, code = error, error.code
            with answer:
                text = answer.read(LARGEST)
        except (OSError, ValueError) as error:
            reason = getattr(error, "reason", error)
            raise DataError(f"{self._url}: no server answers there: {reason}") from None
        except http.client.HTTPException as error:
            what = type(error).__name__
            raise DataError(f"{self._url}: what answers there does not speak HTTP: {what}") from None
        reply = _json(text)
        if reply is None and code:
            raise DataError(f"{url}: HTTP {code}: is a routing proxy of NVFlare there?")
        if reply is None:
            raise DataError(f"{url}: the reply is no JSON object: is a routing proxy of NVFlare there?")
        return {**reply, "status": reply.get("status") or f"HTTP {code}"} if code else reply


def _result(mean: WeightedMean, slots: Sequence[Slot]) -> dict[str, Any]:
    """The report of a task."""
    if not mean.boards:
        return {"status": "ERROR", "result": {}}
    total = by_name(slots, mean.delta * np.float32(mean.samples))
    data = {"dict": {name: array.tolist() for name, array in total.items()}, "count": mean.samples}
    return {"status": OK, "result": {"kind": "WEIGHT_DIFF", "data": data, "meta": {}}}


def _json(text: bytes) -> dict[str, Any] | None:
    """The object of a reply; None for another text."""
    try:
        reply = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) else None


def _status(reply: Mapping[str, Any]) -> str:
    return str(reply.get("status")).upper()


def _wait(reply: Mapping[str, Any]) -> None:
    """Wait as long as the server says, at most a minute."""
    seconds = reply.get("retry_wait")
    time.sleep(float(min(seconds, 60.0)) if isinstance(seconds, (int, float)) and seconds > 0 else WAIT)


def _version(cookie: Any, task: Mapping[str, Any]) -> int:
    """The version of the model: the number of the round on the boards. Raises DataError."""
    model = task.get("task_data")
    for found in (cookie, model.get("meta") if isinstance(model, dict) else None):
        version = found.get("model_version") if isinstance(found, dict) else None
        if type(version) is int and 0 < version < 1 << 32:
            return version
    raise DataError(
        "the server's task has no model_version in its cookie: is its executor an EdgeModelExecutor?"
    )


def _weights(task: Mapping[str, Any]) -> Weights:
    """The weights of a task. Raises DataError."""
    model = task.get("task_data")
    kind = model.get("kind") if isinstance(model, dict) else None
    data = model.get("data") if isinstance(model, dict) else None
    if kind != "WEIGHTS" or not isinstance(data, dict):
        raise DataError(
            f"the server's task has a model of kind {shortened(repr(kind))}: expected WEIGHTS, arrays by name as an "
            "EdgeModelExecutor sends them"
        )
    try:
        return {name: np.array(value, np.float32) for name, value in data.items()}
    except (ValueError, TypeError, OverflowError):
        raise DataError("the server's task has weights that are no arrays of numbers") from None
