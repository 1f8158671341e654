"""The two components of an app of Flower that trains boards, for `flwr run`: `server` and `client`.

Both read the options of `autodiff-gen fleet` from the app's config: `model` and `options`. A client adds `options` of
its node's config, and trains its share of the samples, by `partition-id` and `num-partitions` of that config.
"""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from flwr.app import Error, Message
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp

from ..errors import AutodiffError, DataError, counted, quoted, shortened
from ..fleet.flower.client import CONFIG, FAILED, NUMBER, FlowerClientApp
from ..fleet.flower.secure_client import is_secure, secured
from ..fleet.flower.secure_server import SecureMean
from ..fleet.flower.server import FlowerServer
from ..fleet.folder import held
from ..fleet.gateway import Gateway
from ..fleet.rounds_command import run_rounds
from ..fleet.twin_states import stored
from .fleet import name_kinds
from .main import parsed

APP = "the app's config, [tool.flwr.app.config] of its pyproject.toml,"
CLIENTS = "clients"  # key of the app's config: how many SuperNodes there are
PART, PARTS = "partition-id", "num-partitions"  # keys of a node's config

client = ClientApp()  # Flower finds an assignment of one name only
server = ServerApp()


@client.train()  # type: ignore[untyped-decorator]
def train(message: Any, context: Any) -> Any:
    """Connects to the boards, trains them, and ends the connections: Flower starts a process for each message."""
    if is_secure(message):
        return secured(message, context, partial(_train, by_secagg=True))
    return _train(message, context)


def _train(message: Any, context: Any, by_secagg: bool = False) -> Any:
    try:
        node = context.node_config
        first = _number(message.content[CONFIG], NUMBER, "the server's config", 1) == 1
        args = _arguments(context.run_config, str(node.get("options", "")))
        if args.secagg is not None and not by_secagg:
            raise DataError("the client has --secagg, and the server requests weights without it")
        args.strategy = args.server = args.secagg = None  # of the app's server
        gateways = _number(node, PARTS, "the node's config", 1, default=1)
        gateway = _number(node, PART, "the node's config", 0, gateways - 1, default=0)
        args.share = gateway, gateways
        args.out = (
            args.out or Path("build/fleet")
        ) / f"gateway-{gateway}"  # all nodes have the same options of the app
        boards = Gateway(args)
        settings = replace(boards.settings, seed=boards.settings.seed + gateway)
        with held(boards.out), boards.members(fresh=first) as members:
            return FlowerClientApp(stored(members, boards.out), boards.program, settings)(message, context)
    except AutodiffError as error:
        return Message(error=Error(FAILED, str(error)), reply_to=message)


@server.main()  # type: ignore[untyped-decorator]
def serve(grid: Any, context: Any) -> None:
    """Rounds as `autodiff-gen fleet` makes them; the weights of each are in its folder."""
    try:
        args = _arguments(context.run_config)
        clients = _number(context.run_config, CLIENTS, APP, 1)
        strategy = "FedAvg" if args.strategy is None else args.strategy
        secure = None if args.secagg is None else SecureMean.of(args.secagg, clients)
        args.strategy = args.server = args.secagg = None
        # The boards of these options are at the clients.
        args.boards, args.emulated, args.port, args.profile, args.conditions = 0, {}, {}, None, {}
        gateway = Gateway(args)
        flower = FlowerServer(
            strategy, clients, clients, gateway.program, gateway.settings, gateway.out, secure
        )
        heading = f"{gateway.program.name}: {counted(clients, 'client')} of Flower"
        run_rounds(gateway, lambda _, number, weights, heard: flower.round(grid, number, weights), heading)
    except AutodiffError as error:
        raise SystemExit(f"error: {error}") from None


def _arguments(config: Mapping[str, Any], more: str = "") -> argparse.Namespace:
    if "model" not in config:
        raise DataError(f"{APP} has no model: the path of a model file, the same on all hosts")
    options = f"{config.get('options', '')} {more}"
    try:
        words = shlex.split(options)
    except ValueError:
        raise DataError(
            "the options of an app or a node have a quotation without an end, or a backslash at the end: "
            f"{shortened(options)}"
        ) from None
    args = parsed(["fleet", str(config["model"]), *words])
    name_kinds(args)
    return args


def _number(
    config: Mapping[str, Any],
    key: str,
    where: str,
    least: int,
    most: int | None = None,
    default: int | None = None,
) -> int:
    """An integer of a config of Flower. Raises DataError."""
    value = config.get(key, default)
    if value is None:
        raise DataError(f"{where} has no {key}: add an integer of at least {least}")
    number = int(value) if isinstance(value, int | str) and re.fullmatch(r"[0-9]{1,9}", str(value)) else -1
    if number < least or (most is not None and number > most):
        range_ = f"at least {least}" if most is None else f"{least} to {most}"
        raise DataError(f"{where} has {key}={quoted(value)}: expected an integer of {range_}")
    return number
