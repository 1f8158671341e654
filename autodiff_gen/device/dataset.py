"""Data for a board: arrays by the names of the model's inputs and targets, from a file."""

from __future__ import annotations

import math
import os
import runpy
import traceback
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.board_link_layout import LinkArray, LinkLayout, rows_per_step
from ..datasets import samples
from ..errors import AutodiffError, DataError, ShapeError, listed, quoted, shortened
from ..host.arguments import Batch, checked
from ..ir.types import Type, bound
from ..reading.npz import NUMBERS, WORDS, read_npy, read_npz
from .csv_data import Columns, CsvOptions, read_recordings, read_table
from .errors import OtherArrays
from .recording_windows import RecordingWindows

Array = NDArray[Any]


@dataclass(frozen=True)
class Dataset:
    """`train` and `test`: name -> array with the samples along axis 0; `test` may be empty. `source`: the file.
    `classes`: the names of the labels 0, 1, ..., where the file has words. `note`: how recordings were cut."""

    train: Mapping[str, Array]
    test: Mapping[str, Array]
    source: str
    classes: tuple[str, ...] = ()
    note: str = ""

    def __len__(self) -> int:
        return len(next(iter(self.train.values())))

    @property
    def tests(self) -> int:
        return len(next(iter(self.test.values()))) if self.test else 0

    def is_sorted(self, layout: LinkLayout) -> bool:
        """Whether the training samples are one class after the other, each with several."""
        targets = [a for a in layout.inputs if a.is_target and a.arg.classes is not None]
        labels = [self.train[a.name].reshape(len(self), -1) for a in targets]
        changes = [int((x[1:] != x[:-1]).any(axis=1).sum()) for x in labels]
        classes = [len(np.unique(x, axis=0)) for x in labels]
        return any(0 < n == count - 1 < len(self) / 2 for n, count in zip(changes, classes, strict=True))


def load_dataset(
    given: str | None,
    model: Path,
    layout: LinkLayout,
    columns: Columns | None = None,
    unused: Collection[str] = (),
    windows: RecordingWindows | None = None,
    classes: tuple[str, ...] = (),
) -> Dataset:
    """The data for a model file, checked against the model's inputs. Raises DataError, ShapeError.

    `given`: a file or folder of a form in docs/data.md; None: `data.py` in the model's folder. `columns`: the columns
    of a CSV file, by array. `unused`: arrays that the file may have, and that are ignored. `windows`: how recordings in
    CSV files are cut. `classes`: the words of labels 0, 1, ...; without them words are numbered in alphabetical order.
    uint8 arrays for float inputs are divided by 255, like torchvision's ToTensor.
    """
    path = Path(os.path.expanduser(given)) if given is not None else model.parent / "data.py"
    if not path.exists():
        hint = "" if given is not None else f"; give --data, {FORMS}"
        raise DataError(f"data {path}: no such file{hint}")
    reader = _folder if path.is_dir() else _READERS.get(path.suffix, _unknown)
    windows = windows or RecordingWindows()
    arrays = reader(path, layout, CsvOptions(columns or {}, windows))
    if windows.is_given and not windows.length:
        raise DataError(
            f"data {path}: --window and --stride cut recordings in CSV files, and these data are whole samples"
        )
    classes = _number_classes(arrays, layout, path, classes)
    parts: dict[str, dict[str, Array]] = {"train": {}, "test": {}}
    for name, value in arrays.items():
        if name.removeprefix("test_") in unused:
            continue
        parts["test" if name.startswith("test_") else "train"][name.removeprefix("test_")] = np.asarray(value)
    train = _checked(parts["train"], layout.inputs, path, "")
    test = _checked(parts["test"], layout.inputs, path, "test_") if parts["test"] else {}
    return Dataset(train, test, str(path), classes, windows.note())


def _number_classes(
    arrays: dict[str, Array], layout: LinkLayout, path: Path, classes: tuple[str, ...]
) -> tuple[str, ...]:
    """Replace words in arrays of integers by their index in `classes`, or in alphabetical order; returns the words.
    Raises DataError for a word that is not in `classes`, and for more words than the model has classes."""
    found = classes
    for a in layout.inputs:
        own = [n for n in (a.name, f"test_{a.name}") if n in arrays and arrays[n].dtype.kind == "U"]
        if own and a.type.dtype.name != "f32":
            words = np.unique(np.concatenate([arrays[n].astype(str).reshape(-1) for n in own]))
            if other := [w for w in words.tolist() if classes and w not in classes]:
                raise DataError(
                    f"data {path}: {a.name}: {quoted(other[0])} is none of --classes {listed(classes, between=',')}"
                )
            words = np.array(classes) if classes else words
            if a.arg.classes is not None and len(words) > a.arg.classes:
                raise DataError(
                    f"data {path}: {a.name} has {len(words)} words, {listed(words)}; the model takes "
                    f"{a.arg.classes} classes"
                )
            order = np.argsort(words)
            arrays.update(
                {n: order[np.searchsorted(words, arrays[n].astype(str), sorter=order)] for n in own}
            )
            found = tuple(words.tolist())
    return found


def _folder(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    """`NAME.npy` for each array; or train.csv and test.csv; or recordings in folders of classes, which may be in
    folders train and test."""
    if arrays := sorted(path.glob("*.npy")):
        return {file.stem: _npy(file) for file in arrays}
    train, test = path / "train", path / "test"
    if (tables := train.with_suffix(".csv")).is_file():
        parts = {"": read_table(tables, layout, options)}
        if (tables := test.with_suffix(".csv")).is_file():
            parts["test_"] = read_table(tables, layout, options)
    elif any(path.glob("*/*.csv")) or any(path.glob("train/*/*.csv")):
        parts = {"": read_recordings(train if train.is_dir() else path, layout, options)}
        if train.is_dir() and test.is_dir():
            parts["test_"] = read_recordings(test, layout, options)
    else:
        raise DataError(
            f"data {path}: neither .npy files, train.csv, nor CLASS/*.csv in this folder; docs/data.md reads images"
        )
    return {prefix + name: array for prefix, part in parts.items() for name, array in part.items()}


def _npy(path: Path) -> Array:
    return read_npy(path, DataError, NUMBERS + WORDS, "data ")


def rounded_to_integers(data: Dataset, layout: LinkLayout, kind: str) -> tuple[Dataset, dict[str, float]]:
    """Float inputs rounded to integers times a scale, and the scales by name. `kind`: s8 or s16. The largest magnitude
    in the training samples sets the scale; larger test samples are clipped."""
    limit = {"s8": 127, "s16": 32767}[kind]
    train, test, scales = dict(data.train), dict(data.test), {}
    for a in layout.inputs:
        if a.is_target or a.type.dtype.name != "f32":
            continue
        scale = np.float32(np.abs(train[a.name]).max() / limit)
        if scale == 0.0:
            continue
        scales[a.name] = float(scale)
        for part in (train, test):
            if a.name in part:
                k = np.clip(np.rint(part[a.name] / scale), -limit, limit).astype(np.int16)
                part[a.name] = k.astype(np.float32) * scale
    return replace(data, train=train, test=test), scales


def _npz(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    return read_npz(path, DataError, NUMBERS + WORDS, "data ")


def _bin(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    """Records of bytes: one input, then a one-byte label."""
    if len(layout.inputs) != 2:
        raise DataError(
            f"data {path}: samples.bin has one input and one label; this model takes {len(layout.inputs)}"
        )
    file = samples.read(path)
    x, label = layout.inputs
    tail = bound(x.type.shape, x.batch)[1:]
    if file.input_bytes != math.prod(tail) or file.label_bytes != 1:
        raise DataError(
            f"data {path}: records of {file.input_bytes} input bytes and {file.label_bytes} of a label, the model's "
            f"{x.name} is {x.type!r}, and a label is one byte"
        )
    images: Array = file.records[:, : file.input_bytes].reshape(-1, *tail)
    if x.type.dtype.kind == "f":
        images = (images.astype(np.float32) - np.float32(file.zero)) / np.float32(file.divisor)
    labels = file.records[:, file.input_bytes]
    k = file.train
    arrays = {x.name: images[:k], label.name: labels[:k]}
    if file.test:
        arrays |= {f"test_{x.name}": images[k:], f"test_{label.name}": labels[k:]}
    return arrays


def _python(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    try:
        function = runpy.run_path(str(path)).get("dataset")
        arrays = function() if function is not None else None
        if isinstance(arrays, Mapping):
            return {str(name): np.asarray(array) for name, array in arrays.items()}
    except (AutodiffError, KeyboardInterrupt):
        raise
    except BaseException as error:
        line = next(
            (
                f.lineno
                for f in reversed(traceback.extract_tb(error.__traceback__))
                if f.filename == str(path)
            ),
            getattr(error, "lineno", 0),  # of a SyntaxError
        )
        where = f"{path}:{line}" if line else str(path)
        raise DataError(f"{where}: the file raises {type(error).__name__}: {error}") from None
    raise DataError(f"data {path}: needs a function dataset() that returns a dict of arrays by name")


def _unknown(path: Path, layout: LinkLayout, options: CsvOptions) -> dict[str, Array]:
    raise DataError(f"data {path}: give {FORMS}")


FORMS = (
    "a .npz, a .csv, a folder of .npy or .csv files, a samples.bin, or a .py with dataset() (docs/data.md)"
)
_READERS = {".npz": _npz, ".csv": read_table, ".bin": _bin, ".py": _python}


def _checked(
    arrays: dict[str, Array], inputs: tuple[LinkArray, ...], path: Path, prefix: str
) -> dict[str, Array]:
    """Every array converted to the model's dtype; labels are in range, and all have the same number of samples."""
    names = [a.name for a in inputs]
    missing = [prefix + n for n in names if n not in arrays]
    unexpected = [prefix + n for n in arrays if n not in names]
    if missing or unexpected:
        what = [f"missing {listed(missing)}"] if missing else []
        what += [f"unexpected {listed(unexpected)}"] if unexpected else []
        takes = listed(f"{prefix}{a.name}: {a.type!r}" for a in inputs)
        raise OtherArrays(f"data {path}: {'; '.join(what)}; the model takes {takes}")
    converted: dict[str, Array] = {}
    count = None
    rows_per_step(inputs)
    for a in inputs:
        array = arrays[a.name]
        if array.dtype == np.uint8 and a.type.dtype.name == "f32":
            array = array.astype(np.float32) / np.float32(255)
        tail = bound(a.type.shape, a.batch)[1:]
        if array.ndim < 1 or array.shape[1:] != tail:
            raise DataError(
                f"data {path}: {prefix}{a.name} has shape {shortened(str(list(array.shape)))}, the model takes "
                f"[samples{''.join(f', {d}' for d in tail)}]"
                f"{_reshaped(array, tail, a.type)}"
            )
        count = len(array) if count is None else count
        if count == 0:
            raise DataError(f"data {path}: {prefix}{a.name} has no samples")
        if len(array) != count:
            raise DataError(
                f"data {path}: {prefix}{a.name} has {len(array)} samples, {prefix}{names[0]} {count}"
            )
        converted[a.name] = _convert(a, array, path, prefix)
    return converted


def _reshaped(array: Array, tail: tuple[int, ...], type: Type) -> str:
    """How samples of another shape become samples of the model, where that is known."""
    own = array.shape[1:]
    if type.dtype.kind != "f" and own[:-1] == tail:
        return "; one-hot rows become indices of classes by argmax(-1)"
    if len(tail) > 1 and own == (*tail[1:], tail[0]):
        return "; np.moveaxis(array, -1, 1) brings the channels first"
    if array.ndim and len(own) != len(tail) and math.prod(own) == math.prod(tail):
        return f"; it takes the array's reshape({', '.join(map(str, (-1, *tail)))})"
    return ""


def check_batch(sizes: range, batch: int, adds_up: bool = False) -> None:
    """Raises DataError for a batch of --batch that is not one of `sizes`. With `adds_up`
    several calls may add up to it."""
    is_fixed = len(sizes) == 1
    if batch in sizes or (adds_up and batch > sizes[-1] and not (is_fixed and batch % sizes[0])):
        return
    takes = f"{sizes[0]}" if is_fixed else f"{sizes[0]} to {sizes[-1]}"
    if adds_up:
        takes = f"multiples of {sizes[0]}" if is_fixed else f"{sizes[0]} at least"
    raise DataError(f"--batch {batch}: the model takes {takes} samples a step")


def _convert(a: LinkArray, array: Array, path: Path, prefix: str) -> Array:
    """The whole array in the model's dtype. Raises DataError for an unsuitable dtype, label or non-finite number."""
    arg = replace(a.arg, type=Type(a.type.dtype, array.shape), name=f"{prefix}{a.name}")
    try:
        with np.errstate(over="ignore"):  # float32 overflow is reported below
            whole: Array = checked(arg, array, Batch(len(array)))
    except ShapeError as error:
        raise DataError(f"data {path}: {error}") from None
    if whole.dtype.kind == "f" and not np.isfinite(whole).all():
        index = tuple(int(i) for i in np.argwhere(~np.isfinite(whole))[0])
        raise DataError(
            f"data {path}: {arg.name}[{', '.join(map(str, index))}] is {array[index]}, no finite float32"
        )
    return whole
