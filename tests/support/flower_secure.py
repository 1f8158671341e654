"""Rounds of Flower by secure aggregation: the weights that the server sees, and the mean that it learns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from federated_problem import PARTS, Problem
from flwr.app import ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.common import bytes_to_ndarray
from flwr.common.secure_aggregation.secaggplus_constants import RECORD_KEY_CONFIGS, Key, Stage
from flwr.serverapp.strategy import FedAvg

from autodiff_gen.fleet.board_group import BoardResult, Failure
from autodiff_gen.fleet.flower import grid as local_grid
from autodiff_gen.fleet.flower.client import ARRAYS, serialized
from autodiff_gen.fleet.flower.grid import LocalGrid
from autodiff_gen.fleet.flower.secure_client import secured
from autodiff_gen.fleet.flower.secure_server import SecureMean
from autodiff_gen.fleet.flower.server import flower_round
from autodiff_gen.fleet.round_request import RoundRequest
from autodiff_gen.fleet.rounds import run_round

STEP = 16 / 4194304  # of SecAgg+'s integers: from -clipping_range to clipping_range in 2^22 steps
MOST = max(map(len, PARTS))


class Seen(LocalGrid):
    """A grid that keeps the weights that the server sees: the arrays of replies, and their masked vectors."""

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
        replies = list(super().send_and_receive(messages, timeout=timeout))
        for reply in replies:
            content = reply.content if reply.has_content() else RecordDict()
            self.arrays += sum(len(record) for record in content.array_records.values())
            for record in content.config_records.values():
                if vectors := [bytes_to_ndarray(data).ravel() for data in record.get("masked_params", [])]:
                    self.masked.append(np.concatenate(vectors))
        return replies


class Silent(Seen):
    """The second client does not reply."""

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
        replies = super().send_and_receive(messages, timeout=timeout)
        return [reply for reply in replies if reply.metadata.src_node_id != 2]


def secure_round(problem: Problem, made: type[Seen] = Seen) -> tuple[Seen, Any]:
    """The grid and the result of a round by FedAvg, each board a client."""
    grid = made(problem.members, problem.program, problem.settings(), {k + 1: [k] for k in range(len(PARTS))})
    grid.arrays, grid.masked = 0, []
    nodes = {"fraction_evaluate": 0.0, "min_available_nodes": 1, "min_train_nodes": 1}
    secure = SecureMean.of("", len(PARTS), MOST)
    return grid, flower_round(FedAvg(**nodes), grid, 1, problem.weights, secure=secure)


class Counting:
    """The twins of a problem as two kinds of boards that count instructions."""

    first = 0

    def __init__(self, problem: Problem) -> None:
        self._twins = problem.twins

    def __len__(self) -> int:
        return len(self._twins)

    def round(self, order: RoundRequest, boards: Sequence[int]) -> Iterator[BoardResult | Failure]:
        for answer in self._twins.round(order, boards):
            assert isinstance(answer, BoardResult)
            local = replace(answer.local, instructions=answer.local.steps * (100 + answer.board))
            yield replace(answer, local=local, kind="one" if answer.board < 2 else "other")


def counts(problem: Problem) -> list[list[str]]:
    """The line of a round: by averaging, by Flower, and by secure aggregation."""
    problem.members, nodes = [Counting(problem)], {"fraction_evaluate": 0.0, "min_available_nodes": 1}
    clients = {k + 1: [k] for k in range(len(PARTS))}
    grid = LocalGrid(problem.members, problem.program, problem.settings(), clients)
    found = [
        run_round(problem.members, problem.slots, problem.settings(), 1, problem.weights),
        flower_round(FedAvg(**nodes, min_train_nodes=1), grid, 1, problem.weights),
        secure_round(problem)[1],
    ]
    problem.members = [problem.twins]
    return [result.counts.of_a_step() for result in found]


def not_finite(problem: Problem) -> list[str]:
    """What fails in a round in which the weights of one client become NaN."""
    replies = local_grid.replies

    def broken(*args: Any) -> list[Any]:
        found = replies(*args)
        arrays = {name: array.numpy() for name, array in found[1].content[ARRAYS].items()}
        arrays[max(arrays)][-1] = np.nan
        found[1].content[ARRAYS] = ArrayRecord({name: serialized(array) for name, array in arrays.items()})
        return found

    local_grid.replies = broken
    try:
        return list(secure_round(problem)[1].failures)
    finally:
        local_grid.replies = replies


def setup(sample_number: int, threshold: int) -> str:
    """Why a client rejects these settings of a server, or an empty text."""
    numbers = {Key.SAMPLE_NUMBER: sample_number, Key.SHARE_NUMBER: 3, Key.THRESHOLD: threshold}
    ranges = {Key.CLIPPING_RANGE: 8.0, Key.TARGET_RANGE: 1 << 22, Key.MOD_RANGE: 1 << 32, Key.MAX_WEIGHT: 9.0}
    config = ConfigRecord({Key.STAGE: Stage.SETUP, **numbers, **ranges})
    message = Message(RecordDict({RECORD_KEY_CONFIGS: config}), 1, MessageType.TRAIN)
    reply = secured(message, Context(1, 1, {}, RecordDict(), {}), lambda message, context: None)
    return str(reply.error.reason) if reply.has_error() else ""


def largest_difference(one: dict[str, Any], other: dict[str, Any]) -> float:
    return float(max(np.abs(one[name] - other[name]).max() for name in one))


def secure_rounds(problem: Problem) -> dict[str, Any]:
    """What test_flower.py compares."""
    wanted = run_round(problem.members, problem.slots, problem.settings(), 1, problem.weights)
    (first, result), (second, _) = secure_round(problem), secure_round(problem)
    good, values = problem.twins._sets[1], np.frombuffer(problem.twins._sets[1], np.uint8).copy()
    values[-len(values) // 2 :] = 255  # samples that are no numbers: a client fails after the keys are shared
    problem.twins._sets[1] = values.tobytes()
    _, of_two = secure_round(problem)
    _, silent = secure_round(problem, Silent)
    rest = run_round(problem.members, problem.slots, problem.settings(), 1, problem.weights)
    problem.twins._sets[1] = good
    return {
        "arrays": first.arrays,
        "masked": [
            [float(x.mean()), float(x.std()), float((x != y).mean())]
            for x, y in zip(first.masked, second.masked, strict=True)
        ],
        "step": STEP * len(PARTS) * MOST / sum(map(len, PARTS)),
        "difference": largest_difference(wanted.weights, result.weights),
        "changed": largest_difference(wanted.weights, problem.weights),
        "loss": [result.loss, wanted.loss],
        "step of two": STEP * 2 * MOST / (sum(map(len, PARTS)) - len(PARTS[1])),
        "difference of two": largest_difference(rest.weights, of_two.weights),
        "failed": list(of_two.failures),
        "silent": list(silent.failures),
        "difference of silent": largest_difference(rest.weights, silent.weights),
        "not finite": not_finite(problem),
        "counts": counts(problem),
        "setups": [setup(3, 2), setup(2, 2), setup(3, 1)],
    }
