"""A proposed benchmark of training on microcontrollers: bytes, flash, instructions and losses of its networks, beside
what other programs publish.

    .venv/bin/python bench/training.py                                the tables
    .venv/bin/python bench/training.py har w3b1                       the rows of some networks
    .venv/bin/python bench/training.py --docs docs/benchmarks.md      into the section `training` of the document

Instructions come from `autodiff-gen bench NETWORK --core m4f`, in QEMU; losses from the generated C on the
host. bench/training.toml has the networks and the other programs. MNIST is read from $AUTODIFF_DATA, or downloaded.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import memory
import numpy as np
import training_data
from document_section import command

from autodiff_gen.bench.markdown import markdown_table
from autodiff_gen.bench.report import number
from autodiff_gen.bench.stage_trials import TrialNetwork, Trials, settings
from autodiff_gen.host.trainer import host_trainer
from autodiff_gen.ir.types import planned
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import installation

HERE = Path(__file__).parent
CORE = "m4f"  # of bench/stages.toml
RESULTS = Path("build/stages")  # the results of `autodiff-gen bench`
SECTOR, SLOT_HEADER, RECORD = 4096, 16, 64  # bytes: a usual sector; headers of a slot, a record and its body
STEPS, POINTS = 2000, 10  # of training; groups of steps whose mean losses are shown


def benchmark() -> dict[str, Any]:
    """The networks and the other programs."""
    return tomllib.loads((HERE / "training.toml").read_text(encoding="utf-8"))


def sectors(state_bytes: int) -> int:
    """The sectors of flash that a checkpoint of a state takes: so many are erased before it is written."""
    return -(-(SLOT_HEADER + RECORD + state_bytes) // SECTOR)


def costs(networks: Mapping[str, Any]) -> str:
    """A row for each network: the cost of a training step."""
    core = next(core for core in settings()[1] if core.name == CORE)
    rows = []
    for name, row in networks.items():
        r = memory.report(installation.benchmarks()[name])
        (trial,) = Trials(TrialNetwork(name), core, RESULTS).each([])
        cost = trial.cost
        rows.append(
            (
                *(installation.title(name), training_data.kind(row["data"])),
                *(f"{n:,}" for n in (r.struct_bytes, cost.text or 0)),
                number(round(cost.train or 0)),
                str(sectors(r.state_bytes)),
            )
        )
    head = ("network", "data", "RAM", "flash", "instructions", "erases")
    return markdown_table(head, rows, tuple(range(2, len(head))))


def losses(name: str, data: str, lr: float | None = None) -> list[float]:
    """The mean losses of equal parts of the training of a network."""
    file = load_file(name)
    batch, *shape = planned(file.made.inputs[0].type.shape)
    classes = file.made.outputs["scores"].type.shape[-1]
    x, y = training_data.SOURCES[data](tuple(shape), int(classes), STEPS)
    trainer = host_trainer(file.made, kernels=["host", "ref"])
    found = []
    for step in range(STEPS):
        rows = np.arange(step * batch, (step + 1) * batch) % len(y)
        found.append(trainer.train_step(x[rows], y[rows], **({} if lr is None else {"lr": lr})))
    return [float(mean) for mean in np.reshape(found, (POINTS, -1)).mean(1)]


def curves(networks: Mapping[str, Any]) -> str:
    """A row for each network: its losses."""
    each = STEPS // POINTS
    head = ("network", *(f"to {each * (k + 1):,}" for k in range(POINTS)))
    rows = [
        (installation.title(name), *(f"{loss:.3f}" for loss in losses(name, **row)))
        for name, row in networks.items()
    ]
    return markdown_table(head, rows, tuple(range(1, len(head))))


def programs(networks: Mapping[str, Any]) -> str:
    """A row for each program and network that are published."""
    rows = [
        (
            f"[{p['name']}]({p['source']})",
            *(installation.title(p["network"]), p["on"], p["memory"], p["step"], p["result"]),
        )
        for p in benchmark()["program"]
        if p["network"] in networks or p["network"] not in installation.benchmarks()
    ]
    head = ("program", "network", "on", "RAM, bytes", "a training step", "also")
    return markdown_table(head, rows, ())


def text(names: Sequence[str]) -> str:
    """The tables of some networks, of all if none is named."""
    networks = {name: row for name, row in benchmark()["networks"].items() if not names or name in names}
    return "\n\n".join([costs(networks), programs(networks), curves(networks)])


def main(words: Sequence[str]) -> int:
    return command(
        words,
        "Measure the proposed benchmark of training.",
        "training",
        "network",
        benchmark()["networks"],
        text,
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
