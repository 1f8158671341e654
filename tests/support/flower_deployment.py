"""The app of `flwr run`, without its transport: the server, and nodes whose client is another process in each round."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

from flwr.app import Context, RecordDict

from autodiff_gen.cli import flower_app
from autodiff_gen.fleet.flower.grid import LocalGrid
from autodiff_gen.fleet.flower.secure_client import is_secure
from autodiff_gen.fleet.folder import held

NONE = RecordDict()
APP = {"model": "m.py", "options": "--rounds 2", "clients": 2}


class Nodes(LocalGrid):
    """Nodes that run the client of the app, as SuperNodes do: another process in each round, and where a message comes
    twice. `app`: its config; "nodes" is how many nodes there are, and "of nodes" the options of each."""

    def __init__(self, app: dict[str, Any]) -> None:
        super().__init__([], None, None, {})
        self._ids = list(range(1, app.get("nodes", 2) + 1))
        parts = {
            "num-partitions": len(self._ids),
            "options": app.get("of nodes", "--boards 3 --data data.npz"),
        }
        nodes = {n: {"partition-id": n - 1, **parts} for n in self._ids}
        self._contexts = {n: Context(1, n, config, RecordDict(), app) for n, config in nodes.items()}

    def get_node_ids(self) -> list[int]:
        return self._ids

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
        replies = []
        for message in messages:
            context = self._contexts[message.metadata.dst_node_id]
            if not is_secure(message):
                flower_app.client(message, context)
            replies.append(flower_app.client(message, context))
        return replies


DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "trained": {"options": "--rounds 2 --strategy FedAdam,eta=0.03 --out app"},
    "part": {"options": "--rounds 1 --strategy FedAdam,eta=0.03 --out apps"},
    "rest": {"options": "--rounds 2 --strategy FedAdam,eta=0.03 --out apps"},
    "moments": {"model": "moments.py", "options": "--rounds 3 --out kept", "clients": 1, "nodes": 1},
    "secure": {"options": "--rounds 2 --secagg max_weight=20 --out secure", "clients": 3, "nodes": 3},
    "not secure": {"clients": 3, "nodes": 3, "of nodes": "--boards 3 --data data.npz --secagg"},
    "few": {"options": "--secagg"},
    "compares": {"options": "--strategy Krum --out krums"},
    "busy": {"options": "--rounds 1 --out busy"},
    "no model": {"model": None},
    "no clients": {"clients": None},
    "clients": {"clients": "two"},
    "words": {"options": "--out 'app"},
    "option": {"options": "--round"},
}


def deployment() -> dict[str, str]:
    """The app of `flwr run`, without its transport: the output of the server."""
    found = {}
    for name, changes in DEPLOYMENTS.items():
        app = {key: value for key, value in {**APP, **changes}.items() if value is not None}
        with contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                with held(Path("busy/gateway-1")):
                    flower_app.server(Nodes(app), Context(1, 0, {}, NONE, app))
            except SystemExit as end:
                print(end)
        found[name] = out.getvalue()
    return found
