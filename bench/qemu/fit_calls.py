"""Print the section [cost.calls] of a board's file: the cost of each part of a kernel's call, by least squares.

    .venv/bin/python bench/qemu/fit_calls.py BOARD MODEL...

Each model has been counted by `./scons board=BOARD model=MODEL bench`.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from autodiff_gen.ir.types import planned
from autodiff_gen.kernels.call_parts import Parts, call_parts
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file
from autodiff_gen.targets import board as boards

Samples = dict[str, list[tuple[Parts, float]]]


def add_samples(samples: Samples, board: boards.BoardSpec, model: str) -> None:
    """The steps of a model that are one call of a kernel, and their instructions."""
    file = load_file(model)
    program = compile_file(file.made, file.name, None, board)
    record = json.loads(Path(f"build/{board.id}/{file.name}/bench.json").read_text())
    counted = {(r["entry"], r["step"]): r["instructions"] for r in record["graph_steps"]}
    for entry in program.entries:
        for step in entry.plan.steps:
            if len(step.calls) != 1 or step.nest is not None:
                continue
            ((call, kernel),) = step.calls.values()
            sizes = dict(zip(call.sizes, planned(tuple(call.sizes.values())), strict=True))
            parts = call_parts(
                kernel.symbol.removeprefix("ag_"),
                {**call.facts(), **sizes, "panel": float(bool(step.memory))},
            )
            if parts and not call.over:
                samples[kernel.symbol].append((parts, counted[entry.name, str(step.number)]))


def fitted(rows: list[tuple[Parts, float]]) -> dict[str, float]:
    """Costs with the least relative error, none negative, and for no more parts than half of the different calls."""
    names, instructions = list(rows[0][0]), np.array([count for _, count in rows])
    table = np.array([[parts[name] for name in names] for parts, _ in rows], float)
    most = max(1, len({tuple(row) for row in table.tolist()}) // 2)
    used = [k for k in range(len(names)) if table[:, k].any()]
    while True:
        scaled: Any = table[:, used] / instructions[:, None]
        costs = np.linalg.lstsq(scaled, np.ones(len(rows)), rcond=None)[0]
        if (costs >= 0).all() and len(used) <= most:
            break
        used.pop(int((costs if (costs < 0).any() else costs * table[:, used].mean(0)).argmin()))
    costs *= instructions.sum() / (table[:, used] @ costs).sum()
    return {names[k]: float(cost) for k, cost in zip(used, costs, strict=True) if cost > 1e-4}


def main(place: str, *models: str) -> None:
    samples: Samples = defaultdict(list)
    for model in models:
        add_samples(samples, boards.load(place), model)
    print("[cost.calls]")
    for symbol, rows in sorted(samples.items()):
        costs = ", ".join(f"{k} = {v:.3g}" if v < 100 else f"{k} = {v:.0f}" for k, v in fitted(rows).items())
        print(f"{symbol} = {{ {costs} }}")


if __name__ == "__main__":
    main(*sys.argv[1:])
