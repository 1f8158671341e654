"""A round of 1,000 boards: the time of the gateway and Flower in addition to the training, and the memory."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from flwr.serverapp.strategy import FedAvg

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.datasets.samples import from_arrays
from autodiff_gen.device.rounds import shared_slots
from autodiff_gen.fleet.board_group import BoardResult
from autodiff_gen.fleet.flower.grid import LocalGrid
from autodiff_gen.fleet.flower.server import flower_round
from autodiff_gen.fleet.round_request import RoundRequest, RoundSettings
from autodiff_gen.fleet.rounds import run_round
from autodiff_gen.fleet.twins import Twins


@contextlib.contextmanager
def timed(found: dict[str, Any], name: str) -> Iterator[None]:
    begin = time.monotonic(), time.process_time()
    yield
    found[name] = [time.monotonic() - begin[0], time.process_time() - begin[1]]


def most_memory() -> int:
    """The most memory of this process, in KiB. ru_maxrss would count the process that started it, too."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0])


def thousand_boards() -> dict[str, Any]:
    """A round of 1,000 boards with 25,408 numbers and 10 local steps: seconds, and seconds of processors, of the
    training itself, with the command's own averaging, and with Flower, by one client and by a client for each board.
    The second round counts."""
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
    twins, settings = Twins(program, sets), RoundSettings(lr=0.01, steps=10)
    weights = {
        s.name: rng.normal(size=s.state.logical.shape).astype(np.float32) / 28 for s in shared_slots(program)
    }

    found: dict[str, Any] = {}
    for number in (1, 2):
        with timed(found, "training"):
            answers = twins.round(RoundRequest(number, weights, settings), range(boards))
            assert all(isinstance(answer, BoardResult) for answer in answers)
        with timed(found, "averaging"):
            run_round([twins], shared_slots(program), settings, number, weights)
    for name, size in (("one client", boards), ("1,000 clients", 1)):
        groups = dict(enumerate((range(k, k + size) for k in range(0, boards, size)), 1))
        grid = LocalGrid([twins], program, settings, groups)
        strategy = FedAvg(fraction_evaluate=0.0, min_train_nodes=1, min_available_nodes=1)
        flower_round(strategy, grid, 1, weights)
        with timed(found, name):
            assert flower_round(strategy, grid, 2, weights).boards == boards
    found["megabytes"] = most_memory() / 1024
    return found
