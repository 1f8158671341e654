"""A fleet in this process whose server is a strategy of Flower."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...codegen.program import Program
from ...device.rounds import shared_slots
from ...errors import DataError
from ..members import Members
from ..rounds import Heard, Plan, Result, Weights
from .grid import LocalGrid
from .kept_state import load_state, save_state
from .server import flower_round
from .strategies import OF_MEANS, strategy_of


class Simulation:
    """`strategy`: its name and options. `per_node`: boards of a client; 0 for all of them where the strategy reads only
    their mean, otherwise 1. `state`: a file of what the strategy keeps between rounds. Raises DataError."""

    def __init__(
        self, strategy: str, boards: int, per_node: int, program: Program, plan: Plan, state: Path
    ) -> None:
        name = strategy.partition(",")[0]
        of_means, drawn = name in OF_MEANS, plan.per_round
        if per_node > 1 and not of_means:
            raise DataError(
                f"--strategy {name} compares clients, and --per-node {per_node} makes clients that are the mean of "
                "boards; leave out --per-node, then each board is a client"
            )
        if per_node > 1 and drawn:
            raise DataError("--per-round draws clients, not boards: leave out --per-node, or --per-round")
        size = per_node or (boards if of_means and not drawn else 1)
        starts = range(0, boards, size)
        self._clients = {node: range(k, min(k + size, boards)) for node, k in enumerate(starts, 1)}
        logging.getLogger("flwr").setLevel(logging.WARNING)
        known = {"client_learning_rate": plan.lr, "proximal_mu": plan.mu}
        clients = len(self._clients)
        self._strategy = strategy_of(strategy, clients, min(drawn or clients, clients), known)
        self._program, self._plan, self._state = program, plan, state
        slots = shared_slots(program, plan.local_buffers)
        self._buffers = [slot.name for slot in slots if slot.role == "buffer"]
        self._last = 0  # the round whose state the strategy has

    def round(self, members: Sequence[Members], number: int, weights: Weights, heard: Heard) -> Result:
        """Round `number`. `heard` is called for each board."""
        if self._last != number - 1:
            load_state(self._state, self._strategy, number - 1)
        random.seed(self._plan.seed + number)  # Flower draws nodes by Python's own generator
        grid = LocalGrid(members, self._program, self._plan, self._clients)
        grid.heard = heard
        result = flower_round(self._strategy, grid, number, weights, self._buffers)
        save_state(self._state, self._strategy, number)
        self._last = number
        return replace(result, failures=grid.failures)
