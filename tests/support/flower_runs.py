"""Runs of Flower with boards as its clients, by the Python of .venv-fleet: `flower_runs.py FOLDER` writes weights
there, and found.json with what else it saw. test_flower.py compares them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from federated_problem import MU, PARTS, ROUNDS, Problem
from flower_commands import ADAPTIVE, commands
from flower_deployment import NONE, deployment
from flower_secure import secure_rounds
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAdam, FedAvg, FedProx
from thousand_boards import thousand_boards

from autodiff_gen.errors import DataError, ToolError
from autodiff_gen.fleet.flower import grid as local_grid
from autodiff_gen.fleet.flower.client import FlowerClientApp
from autodiff_gen.fleet.flower.grid import LocalGrid
from autodiff_gen.fleet.flower.kept_state import KeptState
from autodiff_gen.fleet.flower.server import flower_round
from autodiff_gen.fleet.flower.strategies import strategy_of


def record(weights: dict[str, Any]) -> Any:
    return ArrayRecord({name: Array(array) for name, array in weights.items()})


def clients(problem: Problem, groups: Sequence[Sequence[int]]) -> LocalGrid:
    """A client for each group of boards."""
    return LocalGrid(problem.members, problem.program, problem.settings(), dict(enumerate(groups, 1)))


def by_flower(problem: Problem, strategy: Any, grid: LocalGrid) -> Any:
    """The rounds as Flower's own loop makes them, in a ServerApp."""
    server, found = ServerApp(), {}

    @server.main()
    def run(grid: Any, context: Any) -> None:
        result = strategy.start(grid=grid, initial_arrays=record(problem.weights), num_rounds=ROUNDS)
        found.update({name: array.numpy() for name, array in result.arrays.items()})

    server(grid, Context(run_id=1, node_id=1, node_config={}, state=NONE, run_config={}))
    return found


def strategies(folder: Path, problem: Problem) -> None:
    each, nodes = [[k] for k in range(len(PARTS))], {"fraction_evaluate": 0.0, "min_available_nodes": 1}
    nodes["min_train_nodes"] = 1
    runs = {
        "fedavg": by_flower(problem, FedAvg(**nodes), clients(problem, each)),
        "fedprox": by_flower(problem, FedProx(**nodes, proximal_mu=MU), clients(problem, each)),
        "fedadam": by_flower(problem, FedAdam(**nodes, eta=0.03), clients(problem, [[0, 1], [2]])),
    }
    for name, strategy in (("fedavg", FedAvg(**nodes)), ("fedadam", FedAdam(**nodes, eta=0.03))):
        grid, weights = clients(problem, [range(len(PARTS))]), problem.weights
        for number in range(1, ROUNDS + 1):
            weights = flower_round(strategy, grid, number, weights).weights
        runs[f"{name} of one client"] = weights
    for name, weights in runs.items():
        np.savez(folder / f"{name}.npz", **weights)


def reply(problem: Problem, config: dict[str, Any], weights: dict[str, Any] | None = None) -> Any:
    """The reply of a client with all boards."""
    app = FlowerClientApp(problem.members, problem.program, problem.settings())
    clients(problem, [])  # gives messages an identity
    content = RecordDict(
        {"arrays": record(weights or problem.weights), "config": ConfigRecord({"server-round": 1, **config})}
    )
    return app(Message(content, 1, MessageType.TRAIN), Context(1, 1, {}, NONE, {}))


def replies(problem: Problem) -> dict[str, Any]:
    """What clients answer to messages that they cannot follow, and where boards fail."""
    broken = {name: np.full_like(w, np.nan) for name, w in problem.weights.items()}
    found = {
        "clipping": reply(problem, {"clipping_norm": 1.0}).error.reason,
        "type": reply(problem, {"steps": "many"}).error.reason,
        "encoding": reply(problem, {"delta": "s4"}).error.reason,
        "range": reply(problem, {"proximal-mu": -1.0}).error.reason,
        "seed": reply(problem, {"seed": -1}).error.reason,
        "round": reply(problem, {"server-round": -1}).error.reason,
        "none": reply(problem, {}, broken).error.reason,
        "no weight": reply(problem, {}, {"a": broken["0.weight"]}).error.reason,
        "passes": reply(problem, {"epochs": 2}).content["metrics"]["num-examples"],
    }
    return found


def bad_board(problem: Problem) -> dict[str, Any]:
    """One board of three has a sample that is no number."""
    sets = problem.twins._sets
    good, values = sets[1], np.frombuffer(sets[1], np.uint8).copy()
    values[-len(values) // 2 :] = 255
    problem.twins._sets[1] = values.tobytes()
    content = reply(problem, {}).content
    problem.twins._sets[1] = good
    return {"samples": content["metrics"]["num-examples"], **content["boards"]}


def kept_state(folder: Path, problem: Problem) -> dict[str, Any]:
    """A strategy in a strategy after two rounds, what another of its kind has after it was loaded, and errors."""
    made = [strategy_of(f"{ADAPTIVE}FedAdam", 3, 3, {}) for _ in range(3)]
    grid, weights = clients(problem, [[k] for k in range(len(PARTS))]), problem.weights
    states = [KeptState(folder, strategy) for strategy in made]
    for number in (1, 2):
        weights = flower_round(made[0], grid, number, weights, of_means=False).weights
        states[0].save(number, weights)
    loaded = [states[1].load(2, weights), states[2].load(2, problem.weights)]
    moments = [[s.strategy.m_t, s.strategy.v_t] for s in made[:2]]
    equal = [
        one.keys() == two.keys() and all(np.array_equal(one[n], two[n]) for n in one)
        for one, two in zip(*moments, strict=True)
    ]
    with np.load(states[0].file(2)) as file:
        arrays = {key: file[key] for key in file.files}
    wrong = {}
    for name, more in {
        "a method": {"aggregate_train=": np.float32(1)},
        "a text": {"strategy.weighted_by_key=": np.float32(1)},
        "another owner": {"clipping_norm.real=": np.float32(1)},
        "words": {"x": np.array(["a", None])},
    }.items():
        np.savez(states[0].file(2), **{**arrays, **more})
        try:
            wrong[name] = str(KeptState(folder, strategy_of(f"{ADAPTIVE}FedAdam", 3, 3, {})).load(2, weights))
        except DataError as error:
            wrong[name] = str(error)
    norms = [s.clipping_norm for s in made]
    return {
        "loaded": loaded,
        "norms": norms,
        "equal": equal,
        "wrong": wrong,
        "files": sorted(p.name for p in folder.glob("strategy-*")),
    }


def another_version() -> str:
    version, local_grid.flwr.__version__ = local_grid.flwr.__version__, "1.43.0"
    try:
        LocalGrid([], None, None, {})
    except ToolError as error:
        return str(error)
    finally:
        local_grid.flwr.__version__ = version
    return ""


if __name__ == "__main__":
    folder, problem = Path(sys.argv[1]), Problem()
    os.chdir(folder)
    strategies(folder, problem)
    found = {
        "replies": replies(problem),
        "bad board": bad_board(problem),
        "commands": commands(),
        "deployment": deployment(),
        "secure": secure_rounds(problem),
        "state": kept_state(folder / "state", problem),
        "another version": another_version(),
        "1,000 boards": thousand_boards(),
    }
    (folder / "found.json").write_text(json.dumps(found))
