"""`predict`: outputs for the samples of a data set, printed or written to a file; with `--test` how good they are."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkArray, LinkLayout, label_and_scores, link_layout
from ..errors import DataError
from ..host.trainer import Trainer
from ..owned_files import write_file
from ..reading.npz import npz_of
from .board import Board
from .dataset import Dataset, load_dataset
from .errors import OtherArrays
from .evaluation import outputs_of
from .metrics import classes_report, confusion_matrix, counts_report, errors_report, numbered
from .recording_windows import RecordingWindows
from .session import Session
from .weights import weights_for

Array = NDArray[Any]


def check_suffix(path: Path | None) -> None:
    """Raises DataError for a file that is neither .npy, .npz nor .csv."""
    if path is not None and path.suffix not in (".npy", ".npz", ".csv"):
        raise DataError(f"{path}: predictions go to .npy, .npz or .csv")


def predict(session: Session, target: Board | Trainer, args: argparse.Namespace) -> int:
    """Load weights, predict and write; returns the exit code."""
    data = _data(session, args)
    if args.test and not data.tests:
        raise DataError(
            f"data {data.source}: has no test set: put its rows in test.csv, or call its arrays test_..., "
            "beside the training data"
        )
    part = data.test if args.test else data.train
    if args.weights is not None:
        state, steps, _ = weights_for(session.program, args.weights)
        if isinstance(target, Board):
            target.load_state_dict(state, steps=target.steps if steps is None else steps)
        else:
            target.load_state_dict(state)
    elif isinstance(target, Board):
        target.check_start()
    inputs = {a.name: part[a.name][: args.samples] for a in _inputs(session)}
    outputs = outputs_of(session.program, target, inputs)
    targets = {n: a[: args.samples] for n, a in part.items() if n not in inputs}
    written, head, report = _evaluated(session, data, outputs, targets, args)
    said = sys.stderr if args.out is None else sys.stdout
    if args.out is None:
        _write_csv(sys.stdout, written, head)
        sys.stdout.flush()
    else:
        _write(args.out, outputs, written, head, args.force)
        sizes = ", ".join(f"{n} {list(a.shape)}" for n, a in outputs.items())
        print(f"{args.out}: {sizes}, by {session.place}")
    for line in filter(None, (data.note, *report)):
        print(line, file=said)
    return 0


def _evaluated(
    session: Session,
    data: Dataset,
    outputs: Mapping[str, Array],
    targets: Mapping[str, Array],
    args: argparse.Namespace,
) -> tuple[dict[str, Array], Sequence[str], list[str]]:
    """The columns of the file, the names of the columns with the scores of the classes, and the report of --test. Each
    sample's class of highest score is a column with --test or where all classes have names; its label is a column with
    --test."""
    test = args.test
    layout = link_layout(session.program)
    found = label_and_scores(layout)
    if found is None:
        pairs = [
            (f"{out} against {name}", t, o)
            for name, t in targets.items()
            for out, o in outputs.items()
            if o.shape == t.shape
        ]
        is_paired = test and len(targets) == len(outputs) == len(pairs) == 1
        return dict(outputs), (), [errors_report(*pair) for pair in pairs] if is_paired else []
    label, scores = found[0].name, found[1].name
    count, known = outputs[scores].shape[1], data.classes
    if len(known) > count:
        raise DataError(f"--classes: {len(known)} names, the model has {count} classes")
    is_partial = 0 < len(known) < count and not args.classes  # which classes the words are is not known
    if not test and is_partial:
        known = ()
    names = np.array([*known, *map(str, range(len(known), count))])
    predicted = outputs[scores].argmax(axis=1)
    columns = {**outputs, f"{scores}.class": names[predicted]} if test or known else dict(outputs)
    if not test or label not in targets:
        return columns, known, [counts_report(names[predicted])] if data.note else []
    report = []
    if is_partial:
        report = [f"note: the classes count as {numbered(known)}, of {count}; --classes gives another order"]
    truth = targets[label].astype(np.int64)
    is_class = (truth >= 0) & (truth < count)  # others are ignored by the loss
    columns[label] = np.where(is_class, names[np.where(is_class, truth, 0)], truth.astype(str))
    matrix = confusion_matrix(truth, predicted, count)
    return columns, known, [*report, classes_report(matrix, names.tolist())]


def _inputs(session: Session) -> list[LinkArray]:
    """The inputs that the outputs depend on, in the model's order."""
    arrays = {a.name: a for a in link_layout(session.program).inputs if not a.is_target}
    return [arrays[v.name] for v in session.model.inputs if v.name in arrays]


def _data(session: Session, args: argparse.Namespace) -> Dataset:
    """The data set, with or without targets."""
    layout = link_layout(session.program)
    targets = [a.name for a in layout.inputs if a.is_target]

    def load(layout: LinkLayout, unused: Sequence[str]) -> Dataset:
        windows = RecordingWindows(args.window, args.stride)
        return load_dataset(args.data, session.path, layout, args.columns, unused, windows, args.classes)

    try:
        return load(layout, ())
    except OtherArrays:
        return load(replace(layout, inputs=tuple(_inputs(session))), targets)


def _write(
    path: Path,
    outputs: Mapping[str, Array],
    columns: Mapping[str, Array],
    classes: Sequence[str],
    force: bool,
) -> None:
    if path.suffix == ".npy" and len(outputs) != 1:
        raise DataError(
            f"{path}: the model has {len(outputs)} outputs ({', '.join(outputs)}); write .npz or .csv"
        )
    file = io.BytesIO()
    if path.suffix == ".npy":
        np.save(file, next(iter(outputs.values())))
    elif path.suffix == ".npz":
        file.write(npz_of(columns))
    else:
        text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
        _write_csv(text, columns, classes)
        text.detach()
    write_file(path, file.getvalue(), force)


def _write_csv(file: TextIO, columns: Mapping[str, Array], classes: Sequence[str]) -> None:
    """A row for each sample: `scores.0,scores.1,...`, or with names `scores.run,scores.skip,scores.class,label`."""
    flat = {name: array.reshape(len(array), -1) for name, array in columns.items()}
    writer = csv.writer(file, lineterminator="\n")
    head = []
    for name, array in flat.items():
        parts = [*classes, *map(str, range(len(classes), array.shape[1]))]
        is_scores = columns[name].ndim == 2 and array.dtype.kind == "f"
        parts = parts if is_scores else list(map(str, range(array.shape[1])))
        head += [f"{name}.{part}" for part in parts] if array.shape[1] > 1 else [name]
    writer.writerow(head)
    for rows in zip(*flat.values(), strict=True):
        writer.writerow([x if isinstance(x, str) else f"{x:.9g}" for row in rows for x in row])
