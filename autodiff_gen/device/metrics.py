"""How good predictions are: accuracy, confusion matrix and F1 of classes, errors of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..report.text_table import table

Array = NDArray[Any]
MATRIX = 32  # the most classes of a matrix that is printed


def numbered(classes: Sequence[str]) -> str:
    """`0 run, 1 skip`."""
    return ", ".join(f"{k} {word}" for k, word in enumerate(classes))


def confusion_matrix(labels: Array, predicted: Array, classes: int) -> Array:
    """s64[classes, classes]: how often the row is the label and the column the prediction. Labels outside the classes,
    which a loss ignores, are left out."""
    rows, columns = labels.astype(np.int64).reshape(-1), predicted.astype(np.int64).reshape(-1)
    counts = (rows >= 0) & (rows < classes)
    pairs = rows[counts] * classes + columns[counts]
    return np.bincount(pairs, minlength=classes * classes).reshape(classes, classes)


def accuracy(matrix: Array) -> float:
    """The share of predictions that are the label; NaN without any."""
    total = matrix.sum()
    return float(np.trace(matrix) / total) if total else np.nan


def f1_scores(matrix: Array) -> Array:
    """F1 of each class, 2 TP / (2 TP + FP + FN), the harmonic mean of precision and recall; NaN for a class that is
    never the label."""
    right, labels, predicted = np.diag(matrix), matrix.sum(axis=1), matrix.sum(axis=0)
    return np.where(labels > 0, 2 * right / np.maximum(labels + predicted, 1), np.nan)


def counts_report(predicted: Array) -> str:
    """`highest score: run in 5 of 6, skip in 1`, the most frequent first."""
    names, counts = np.unique(predicted, return_counts=True)
    order = np.argsort(-counts, kind="stable")
    parts = [f"{names[k]} in {counts[k]:,}" for k in order]
    parts[0] += f" of {predicted.size:,}"
    return f"highest score: {', '.join(parts)}"


def classes_report(matrix: Array, names: Sequence[str]) -> str:
    """Accuracy, confusion matrix and F1 as text."""
    total, scores = int(matrix.sum()), ["-" if np.isnan(f) else f"{f:.3f}" for f in f1_scores(matrix)]
    lines = [f"accuracy {100 * accuracy(matrix):.2f} %, {int(np.trace(matrix)):,} of {total:,}"]
    if len(names) <= MATRIX:
        lines.append("confusion matrix: a row for each label, a column for each prediction; F1 of each class")
        head = ("", *names, "F1")
        rows = [(n, *map(str, counts), f) for n, counts, f in zip(names, matrix, scores, strict=True)]
    else:
        head = ("class", "samples", "right", "F1")
        counts = zip(matrix.sum(axis=1), np.diag(matrix), strict=True)
        rows = [(n, *map(str, c), f) for n, c, f in zip(names, counts, scores, strict=True)]
    lines.append(table(head, rows, right=range(1, len(head))))
    return "\n".join(lines)


def errors_report(name: str, target: Array, output: Array) -> str:
    """Mean absolute and root mean square error of an output."""
    off = output.astype(np.float64) - target.astype(np.float64)
    mean, root = np.abs(off).mean(), np.sqrt((off**2).mean())
    return f"{name}: mean absolute error {mean:.6g}, root mean square error {root:.6g}"
