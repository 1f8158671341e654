"""A fleet in this process whose server is a strategy of Flower."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...codegen.program import Program
from ...errors import DataError
from ..board_group import Members
from ..round_request import RoundSettings
from ..rounds import Heard, RoundResult, Weights
from .grid import LocalGrid
from .secure_server import SecureMean
from .server import FlowerServer
from .strategies import OF_MEANS


class Simulation:
    """Rounds on LocalGrid. `strategy`: its name and options. `per_node`: boards of a client; 0 for all of them where
    the strategy reads only their mean, otherwise 1. `out`: the folder of the strategy's state. `secagg`: options of
    secure aggregation; None: without it. `samples`: of each board, as far as known. Raises DataError."""

    def __init__(
        self,
        strategy: str,
        boards: int,
        per_node: int,
        program: Program,
        settings: RoundSettings,
        out: Path,
        secagg: str | None = None,
        samples: Sequence[int] = (),
    ) -> None:
        name = strategy.partition(",")[0]
        of_means, drawn = name in OF_MEANS, settings.per_round
        if per_node > 1 and not of_means:
            raise DataError(
                f"--strategy {name} compares clients, and --per-node {per_node} makes clients that are the mean of "
                "boards; leave out --per-node, then each board is a client"
            )
        if per_node > 1 and drawn:
            raise DataError("--per-round draws clients, not boards: leave out --per-node, or --per-round")
        size = per_node or (boards if of_means and not drawn and secagg is None else 1)
        starts = range(0, boards, size)
        self._clients = {node: range(k, min(k + size, boards)) for node, k in enumerate(starts, 1)}
        logging.getLogger("flwr").setLevel(logging.WARNING)
        clients = len(self._clients)
        drawn, secure = min(drawn or clients, clients), None
        if secagg is not None:
            of_clients = [
                sum(samples[k] for k in own) for own in self._clients.values() if own[-1] < len(samples)
            ]
            most = max(of_clients) if len(of_clients) == clients else None
            secure = SecureMean.of(secagg, drawn, most)
        self._server = FlowerServer(strategy, clients, drawn, program, settings, out, secure)
        self._program, self._settings = program, settings

    def round(self, members: Sequence[Members], number: int, weights: Weights, heard: Heard) -> RoundResult:
        """Round `number`. `heard` is called for each board."""
        random.seed(self._settings.seed + number)  # Flower draws nodes by Python's own generator
        grid = LocalGrid(members, self._program, self._settings, self._clients)
        grid.heard = heard
        return replace(self._server.round(grid, number, weights), failures=grid.failures)
