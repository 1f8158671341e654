"""Outputs of a board or of the host for all samples of a data set, and how good they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.board_link_layout import label_and_scores, link_layout, rows_per_step
from ..codegen.program import Program
from ..host.trainer import Trainer
from .board import Board
from .dataset import Dataset
from .inputs import position
from .metrics import accuracy as share_right
from .metrics import confusion_matrix

Array = NDArray[Any]


def outputs_of(program: Program, target: Board | Trainer, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """All outputs by name, of inputs in the model's order. The last batch is filled up with its last sample where the
    model takes whole batches."""
    layout = link_layout(program)
    size = rows_per_step(layout.inputs)
    fixed = not next(e for e in program.entries if e.name == "predict").takes_n
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


def accuracy(target: Board | Trainer, data: Dataset) -> float | None:
    """Share of the test samples, or of their pixels and the like, whose label has the highest score; None for a model
    without classes."""
    program = target.program
    layout = link_layout(program)
    found = label_and_scores(layout)
    if found is None:
        return None
    label, scores = found
    inputs = sorted((a for a in layout.inputs if not a.is_target), key=lambda a: position(program, a.name))
    predicted = outputs_of(program, target, {a.name: data.test[a.name] for a in inputs})
    guessed = predicted[scores.name]
    matrix = confusion_matrix(data.test[label.name], guessed.argmax(axis=1), guessed.shape[1])
    return share_right(matrix) if matrix.any() else None
