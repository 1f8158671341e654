"""Runs of Flower with boards as its clients, by the Python of .venv-fleet: `flower_runs.py FOLDER` writes weights
there, and found.json with what else it saw. test_flower.py compares them."""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from federated_problem import MU, PARTS, ROUNDS, Problem
from flwr.app import Array, ArrayRecord, ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAdam, FedAvg, FedProx
from small_fleet import INTEGERS

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.cli import flower_app
from autodiff_gen.cli.main import main
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.datasets.samples import from_arrays
from autodiff_gen.device.rounds import shared_slots
from autodiff_gen.errors import DataError, ToolError
from autodiff_gen.fleet.flower import grid as local_grid
from autodiff_gen.fleet.flower.client import FlowerClientApp
from autodiff_gen.fleet.flower.grid import LocalGrid
from autodiff_gen.fleet.flower.kept_state import KeptState
from autodiff_gen.fleet.flower.server import flower_round
from autodiff_gen.fleet.flower.strategies import strategy_of
from autodiff_gen.fleet.folder import held
from autodiff_gen.fleet.order import RoundSettings
from autodiff_gen.fleet.rounds import run_round
from autodiff_gen.fleet.twins import Twins

NONE = RecordDict()
MODEL = """import autodiff_gen as ag
from autodiff_gen import nn, optim
net = nn.Sequential(nn.Linear(5, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3))
model = ag.Model.supervised(net, (4, 5), nn.CrossEntropyLoss(), optim.SGD(lr=0.3))
"""
APP = {"model": "m.py", "options": "--rounds 2", "clients": 2}
ADAPTIVE = (
    "DifferentialPrivacyServerSideAdaptiveClipping,noise_multiplier=0.1,initial_clipping_norm=0.01,strategy="
)
COMMANDS = {
    "unknown": ["--strategy", "FedAdm"],
    "option": ["--strategy", "FedAdam,et=1"],
    "missing": ["--strategy", "DifferentialPrivacyServerSideFixedClipping"],
    "value": ["--strategy", "FedAdam,eta=much"],
    "compares": ["--strategy", "Krum", "--per-node", "3"],
    "draws": ["--strategy", "FedAvg", "--per-node", "3", "--per-round", "2"],
    "trees": ["--strategy", "FedXgbBagging"],
    "clipping": [
        "--strategy",
        "DifferentialPrivacyClientSideFixedClipping,strategy=FedAvg,noise_multiplier=0.1,clipping_norm=1",
        "--local-buffers",
    ],
    "statistics": ["--strategy", f"{ADAPTIVE}FedAdam"],
    "krum": ["--strategy", "Krum,num_malicious_nodes=1", "--rounds", "1", "--out", "krum"],
    "average": ["--strategy", "FedAvg", "--rounds", "1", "--out", "average"],
    "integers": ["--strategy", "FedAdam,eta=0.5", "--rounds", "2", "--out", "integers"],
    "integers of the median": ["--strategy", "FedMedian", "--rounds", "2", "--out", "median"],
    "evaluates": ["--strategy", "FedAvg", "--rounds", "1", "--evaluate", "0.2", "--out", "evaluated"],
    "whole": ["--strategy", "FedAdam,eta=0.03", "--rounds", "4", "--out", "whole"],
    "part": ["--strategy", "FedAdam,eta=0.03", "--rounds", "3", "--out", "parts"],
    "stop": ["rm", "parts/round-00003.npz"],  # between the strategy's state and the weights of a round
    "rest": ["--strategy", "FedAdam,eta=0.03", "--rounds", "4", "--out", "parts"],
    "damage": ["rm", "-w", "parts/strategy-00004.npz"],
    "damaged": ["--strategy", "FedAdam,eta=0.03", "--rounds", "5", "--out", "parts"],
    "another state": ["rm", "parts/strategy-00004.npz"],
    "no state": ["--strategy", "FedAdam,eta=0.03", "--rounds", "5", "--out", "parts"],
    "no state to miss": ["--strategy", "FedAvg", "--rounds", "2", "--out", "average"],
}


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


def commands() -> dict[str, list[Any]]:
    """The command with each of COMMANDS: its exit code, and what it printed."""
    rng = np.random.default_rng(1)
    label = rng.integers(0, 3, 60)
    x = (rng.normal(size=(60, 5)) * 0.2 + np.eye(3, 5)[label]).astype(np.float32)
    np.savez("data.npz", x=x, label=label, test_x=x, test_label=label)
    Path("m.py").write_text(MODEL)
    Path("integers.py").write_text(INTEGERS)
    found = {}
    for name, words in COMMANDS.items():
        if words[0] == "rm":
            file = Path(words[-1])
            file.write_bytes(file.read_bytes()[:-100]) if "-w" in words else file.unlink()
            continue
        model = "integers.py" if name.startswith("integers") else "m.py"
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(["fleet", model, "--data", "data.npz", "--boards", "6", *words])
        found[name] = [code, out.getvalue(), err.getvalue()]
    return found


class Nodes(LocalGrid):
    """Two nodes that run the client of the app, as SuperNodes do. `app`: its config."""

    def __init__(self, app: dict[str, Any]) -> None:
        super().__init__([], None, None, {})
        self._app = app

    def get_node_ids(self) -> list[int]:
        return [1, 2]

    def send_and_receive(self, messages: Any, *, timeout: float | None = None) -> list[Any]:
        own = "--boards 3 --data data.npz"
        nodes = {n: {"partition-id": n - 1, "num-partitions": 2, "options": own} for n in (1, 2)}
        contexts = {n: Context(1, n, config, NONE, self._app) for n, config in nodes.items()}
        return [flower_app.client(m, contexts[m.metadata.dst_node_id]) for m in messages]


DEPLOYMENTS: dict[str, dict[str, Any]] = {
    "trained": {"options": "--rounds 2 --strategy FedAdam,eta=0.03 --out app"},
    "part": {"options": "--rounds 1 --strategy FedAdam,eta=0.03 --out apps"},
    "rest": {"options": "--rounds 2 --strategy FedAdam,eta=0.03 --out apps"},
    "compares": {"options": "--strategy Krum --out krums"},
    "busy": {"options": "--rounds 1 --out busy"},
    "no model": {"model": None},
    "no clients": {"clients": None},
    "clients": {"clients": "two"},
    "words": {"options": "--out 'app"},
    "option": {"options": "--round"},
}


def deployment() -> dict[str, str]:
    """The app of `flwr run`, without its transport: what the server prints."""
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


@contextlib.contextmanager
def timed(found: dict[str, Any], name: str) -> Iterator[None]:
    begin = time.monotonic(), time.process_time()
    yield
    found[name] = [time.monotonic() - begin[0], time.process_time() - begin[1]]


def thousand_boards() -> dict[str, Any]:
    """A round of 1,000 boards with 25,408 numbers and 10 local steps: seconds, and seconds of processors, of the
    training itself, and with Flower, by one client and by a client for each board. The second round counts."""
    net = nn.Sequential(
        nn.Linear(784, 32, bias=False), nn.Sigmoid(), nn.Linear(32, 10, bias=False), nn.LogSoftmax(dim=1)
    )
    model = ag.Model.supervised(net, (1, 784), nn.NLLLoss(), optim.SGD(lr=0.01))
    program, rng, boards = compile_model(model, "w1", None), np.random.default_rng(0), 1000
    images, labels = rng.integers(0, 256, (boards, 20, 784)), rng.integers(0, 10, (boards, 20))
    sets = [
        from_arrays(x.astype(np.uint8), y.astype(np.uint8), train=20, epochs=1).to_bytes()
        for x, y in zip(images, labels, strict=True)
    ]
    del images
    members, settings = [Twins(program, sets)], RoundSettings(lr=0.01, steps=10)
    weights = {
        s.name: rng.normal(size=s.state.logical.shape).astype(np.float32) / 28 for s in shared_slots(program)
    }

    found: dict[str, Any] = {}
    for _ in range(2):
        with timed(found, "training"):
            run_round(members, shared_slots(program), settings, 1, weights)
    for name, size in (("one client", boards), ("1,000 clients", 1)):
        groups = dict(enumerate((range(k, k + size) for k in range(0, boards, size)), 1))
        grid = LocalGrid(members, program, settings, groups)
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=1)
        flower_round(strategy, grid, 1, weights)
        with timed(found, name):
            assert flower_round(strategy, grid, 2, weights).boards == boards
    found["megabytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


if __name__ == "__main__":
    folder, problem = Path(sys.argv[1]), Problem()
    os.chdir(folder)
    strategies(folder, problem)
    found = {
        "replies": replies(problem),
        "bad board": bad_board(problem),
        "commands": commands(),
        "deployment": deployment(),
        "state": kept_state(folder / "state", problem),
        "another version": another_version(),
        "1,000 boards": thousand_boards(),
    }
    (folder / "found.json").write_text(json.dumps(found))
