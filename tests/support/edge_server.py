"""A small server of NVFlare Edge for tests: the requests, checks and replies of its routing proxy, executor and model
manager (nvflare/edge of NVFlare 2.8), without relays. A model is the mean of `updates` reports."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np


class EdgeServer:
    """The job `job` with `models` versions of the model. `odd`: replies that replace those to a request, in turn."""

    def __init__(self, job: str, weights: dict[str, Any], models: int, updates: int = 1) -> None:
        self.job, self.models, self.updates = job, models, updates
        self.weights = {name: np.array(w, np.float64) for name, w in weights.items()}
        self.version, self.requests, self.errors = 1, list[str](), list[str]()
        self.odd: dict[str, list[tuple[int, Any]]] = {}
        self._sum: dict[str, Any] = {}
        self._count = self._reports = 0
        self._lock = threading.Lock()

    def answer(self, what: str, device: str, query: dict[str, str], body: dict[str, Any]) -> tuple[int, Any]:
        self.requests.append(what)
        if self.odd.get(what):
            return self.odd[what].pop(0)
        if not device:
            return 400, {"status": "INVALID_REQUEST", "message": "Device ID missing", "details": None}
        needed = {
            "job": ["capabilities", "job_name"],
            "task": ["job_id"],
            "result": ["job_id", "task_id", "task_name", "status", "result"],
        }[what]
        if missing := [key for key in needed if key not in {**query, **body}]:
            return 400, {"status": "INVALID_REQUEST", "message": f"missing {missing[0]}", "details": None}
        with self._lock:
            return 200, {"job": self.on_job, "task": self.on_task, "result": self.on_result}[what](
                query, body
            )

    def on_job(self, query: dict[str, str], body: dict[str, Any]) -> Any:
        if body["job_name"] != self.job:
            return {"status": "NO_JOB", "retry_wait": 0.01}
        return {"status": "OK", "job_id": "j1", "job_name": self.job, "job_data": {}}

    def on_task(self, query: dict[str, str], body: dict[str, Any]) -> Any:
        if self.version > self.models:
            return {"status": "DONE"}
        if body.get("cookie", {}).get("device_selection_id") == self.version:
            return {"status": "RETRY", "job_id": "j1", "retry_wait": 0.01, "message": "Device not selected"}
        data = {name: w.tolist() for name, w in self.weights.items()}
        return {
            "status": "OK",
            "job_id": "j1",
            "task_id": f"t{self.version}",
            "task_name": "train",
            "task_data": {"kind": "WEIGHTS", "data": data, "meta": {"model_version": self.version}},
            "cookie": {"model_version": self.version, "device_selection_id": self.version},
        }

    def on_result(self, query: dict[str, str], body: dict[str, Any]) -> Any:
        if not body["result"] or body["status"] != "OK":
            self.errors.append(body["status"])
            self.version += 1
            return {"status": "ERROR", "message": "missing result or bad status"}
        result = body["result"]
        if result["kind"] != "WEIGHT_DIFF" or (body.get("cookie") or {}).get("model_version") != self.version:
            return {"status": "ERROR", "message": "Error accepting contribution"}
        for name, value in result["data"]["dict"].items():
            self._sum[name] = self._sum.get(name, 0) + np.array(value)
        self._count += result["data"].get("count", 1)
        self._reports += 1
        if self._reports == self.updates:
            for name, total in self._sum.items():
                self.weights[name] = self.weights[name] + total / self._count
            self._sum, self._count, self._reports = {}, 0, 0
            self.version += 1
        return {"status": "OK", "task_id": query["task_id"], "task_name": query["task_name"]}


@contextmanager
def served(server: EdgeServer) -> Iterator[str]:
    """Its address."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            place = urlsplit(self.path)
            query = {key: values[0] for key, values in parse_qs(place.query).items()}
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            what = place.path.strip("/")
            status, reply = server.answer(what, self.headers.get("X-Flare-Device-ID", ""), query, body)
            text = reply if isinstance(reply, bytes) else json.dumps(reply).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{http.server_port}"
        finally:
            http.shutdown()
            thread.join()
