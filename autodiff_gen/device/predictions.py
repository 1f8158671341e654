"""`predict`: outputs for the samples of a data set, printed or written to a file."""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ..codegen.link_layout import LinkArray, link_layout
from ..errors import DataError
from ..host.trainer import Trainer
from .board import Board
from .dataset import Dataset, load_dataset, rows_per_step
from .errors import OtherArrays
from .session import Session
from .weights import read_weights

Array = NDArray[Any]


def check_suffix(path: Path | None) -> None:
    """DataError for a file that is neither .npy, .npz nor .csv."""
    if path is not None and path.suffix not in (".npy", ".npz", ".csv"):
        raise DataError(f"{path}: predictions go to .npy, .npz or .csv")


def predict(session: Session, target: Board | Trainer, args: argparse.Namespace) -> int:
    """Load weights, predict and write; returns the exit code."""
    data = _data(session, args)
    if args.test and not data.tests:
        raise DataError(f"data {data.source}: has no test set")
    part = data.test if args.test else data.train
    if args.weights is not None:
        state, steps = read_weights(args.weights)
        if isinstance(target, Board):
            target.load_state_dict(state, steps=target.steps if steps is None else steps)
        else:
            target.load_state_dict(state)
    elif isinstance(target, Board):
        target.check_start()
    inputs = {a.name: part[a.name][: args.samples] for a in _inputs(session)}
    outputs = _outputs(session, target, inputs)
    if args.out is None:
        _write_csv(sys.stdout, outputs)
        return 0
    _write(args.out, outputs)
    sizes = ", ".join(f"{n} {list(a.shape)}" for n, a in outputs.items())
    print(f"{args.out}: {sizes}, by {session.place}")
    return 0


def _inputs(session: Session) -> list[LinkArray]:
    """What the outputs depend on, in the model's order."""
    arrays = {a.name: a for a in link_layout(session.program).inputs if not a.is_target}
    return [arrays[v.name] for v in session.model.inputs if v.name in arrays]


def _data(session: Session, args: argparse.Namespace) -> Dataset:
    """The data set, with or without targets."""
    layout = link_layout(session.program)
    targets = [a.name for a in layout.inputs if a.is_target]
    try:
        return load_dataset(args.data, session.path, layout, args.columns)
    except OtherArrays:
        alone = replace(layout, inputs=tuple(_inputs(session)))
        return load_dataset(args.data, session.path, alone, args.columns, unused=targets)


def _outputs(session: Session, target: Board | Trainer, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """All outputs by name. The last batch is filled up with its last sample where the model takes whole batches."""
    layout = link_layout(session.program)
    size = rows_per_step(layout.inputs)
    fixed = not next(e for e in session.program.entries if e.name == "predict").takes_n
    parts: dict[str, list[Array]] = {}
    total = len(next(iter(inputs.values())))
    for first in range(0, total, size):
        rows = np.arange(first, min(first + size, total))
        chosen = np.pad(rows, (0, size - len(rows)), mode="edge") if fixed else rows
        outs = target.predict(*(a[chosen] for a in inputs.values()))
        named = outs if isinstance(outs, dict) else {layout.outputs[0].name: outs}
        for name, array in named.items():
            parts.setdefault(name, []).append(array[: len(rows)])
    return {name: np.concatenate(arrays) for name, arrays in parts.items()}


def _write(path: Path, outputs: Mapping[str, Array]) -> None:
    if path.suffix == ".npy" and len(outputs) != 1:
        raise DataError(
            f"{path}: the model has {len(outputs)} outputs ({', '.join(outputs)}); write .npz or .csv"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".npy":
            np.save(path, next(iter(outputs.values())))
        elif path.suffix == ".npz":
            np.savez(path, **outputs)  # type: ignore[arg-type]
        else:
            with path.open("w", newline="", encoding="utf-8") as file:
                _write_csv(file, outputs)
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror or error}") from None


def _write_csv(file: TextIO, outputs: Mapping[str, Array]) -> None:
    """A row for each sample: `scores.0,scores.1,...`."""
    flat = {name: array.reshape(len(array), -1) for name, array in outputs.items()}
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow([f"{n}.{k}" if a.shape[1] > 1 else n for n, a in flat.items() for k in range(a.shape[1])])
    for rows in zip(*flat.values(), strict=True):
        writer.writerow([f"{x:.9g}" for row in rows for x in row])
