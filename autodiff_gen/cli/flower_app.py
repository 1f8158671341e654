"""The two components of an app of Flower that trains boards, for `flwr run`: `server` and `client`.

Both read the options of `autodiff-gen fleet` from the app's config: `model` and `options`. A client adds `options` of
its node's config, and trains its share of the samples, by `partition-id` and `num-partitions` of that config.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from flwr.app import Error, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from ..errors import AutodiffError
from ..fleet.command import Run
from ..fleet.flower.client import CONFIG, FAILED, NUMBER, FlowerClientApp
from ..fleet.flower.server import flower_round
from ..fleet.flower.strategies import OF_MEANS, strategy_of
from ..fleet.members import Members
from ..fleet.progress import Progress
from ..fleet.rounds import Result, Weights
from .fleet import name_kinds
from .main import parsed

CLIENTS = "clients"  # key of the app's config: how many SuperNodes there are

client = ClientApp()  # Flower finds an assignment of one name only
server = ServerApp()


@client.train()  # type: ignore[untyped-decorator]
def train(message: Any, context: Any) -> Any:
    """Connects to the boards, trains them, and ends the connections: Flower starts a process for each message."""
    try:
        node = context.node_config
        first = int(message.content[CONFIG][NUMBER]) == 1
        args = _arguments(context.run_config, str(node.get("options", "")))
        args.share = gateway, _ = int(node.get("partition-id", 0)), int(node.get("num-partitions", 1))
        args.out = args.out or Path(f"build/fleet/gateway-{gateway}")
        run = Run(args)
        plan = replace(run.plan, seed=run.plan.seed + gateway)
        with run.members(fresh=first) as members:
            return FlowerClientApp(members, run.program, plan)(message, context)
    except AutodiffError as error:
        return Message(error=Error(FAILED, str(error)), reply_to=message)


@server.main()  # type: ignore[untyped-decorator]
def serve(grid: Any, context: Any) -> None:
    """Rounds as `autodiff-gen fleet` makes them; the weights of each are in its folder."""
    args = _arguments(context.run_config)
    strategy, args.strategy = args.strategy or "FedAvg", None
    try:
        _Server(args, grid, strategy, int(context.run_config[CLIENTS])).run()
    except AutodiffError as error:
        raise SystemExit(f"error: {error}") from None


class _Server(Run):
    """A run whose boards are at clients of Flower."""

    def __init__(self, args: argparse.Namespace, grid: Any, strategy: str, clients: int) -> None:
        super().__init__(args)
        known = {"client_learning_rate": self.plan.lr, "proximal_mu": self.plan.mu}
        self._grid, self._clients = grid, clients
        self._of_means = strategy.partition(",")[0] in OF_MEANS
        self._strategy = strategy_of(strategy, clients, clients, known)
        self._buffers = [slot.name for slot in self.slots if slot.role == "buffer"]

    def heading(self) -> str:
        return f"{self.program.name}: {self._clients} clients of Flower"

    @contextmanager
    def members(self, fresh: bool) -> Iterator[list[Members]]:
        yield []

    def round(self, members: Sequence[Members], number: int, weights: Weights, progress: Progress) -> Result:
        return flower_round(self._strategy, self._grid, number, weights, self._buffers, self._of_means)


def _arguments(config: Mapping[str, Any], more: str = "") -> argparse.Namespace:
    words = shlex.split(f"{config.get('options', '')} {more}")
    args = parsed(["fleet", str(config["model"]), *words])
    name_kinds(args)
    return args
