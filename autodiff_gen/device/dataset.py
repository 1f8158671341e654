"""Data for a board: arrays by the names of the model's inputs and targets, from a file."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.link_layout import LinkArray, LinkLayout
from ..datasets import samples
from ..errors import AutodiffError, DataError, ShapeError
from ..host.arguments import Batch, checked
from ..ir.types import Type, bound

Array = NDArray[Any]


@dataclass(frozen=True)
class Dataset:
    """`train` and `test`: name -> array, whose first axis counts samples; `test` may be empty. `source` says whence."""

    train: Mapping[str, Array]
    test: Mapping[str, Array]
    source: str

    def __len__(self) -> int:
        return len(next(iter(self.train.values())))

    @property
    def tests(self) -> int:
        return len(next(iter(self.test.values()))) if self.test else 0


def load_dataset(given: str | None, model: Path, layout: LinkLayout) -> Dataset:
    """The data for a model file, checked against what the model takes. DataError, ShapeError.

    given: a `.npz` with one array for each input and target (and `test_NAME` to test on), a `samples.bin`, or a Python
    file with a function `dataset()` that returns such a dict; None: `data.py` beside the model. uint8 arrays for float
    inputs are divided by 255, as torchvision's ToTensor does.
    """
    path = Path(given).expanduser() if given is not None else model.parent / "data.py"
    if not path.is_file():
        hint = "" if given is not None else "; give --data FILE.npz, samples.bin or data.py with dataset()"
        raise DataError(f"data {path}: no such file{hint}")
    arrays = _READERS.get(path.suffix, _unknown)(path, layout)
    parts: dict[str, dict[str, Array]] = {"train": {}, "test": {}}
    for name, value in arrays.items():
        parts["test" if name.startswith("test_") else "train"][name.removeprefix("test_")] = np.asarray(value)
    train = _checked(parts["train"], layout.inputs, path, "")
    test = _checked(parts["test"], layout.inputs, path, "test_") if parts["test"] else {}
    return Dataset(train, test, str(path))


def _npz(path: Path, layout: LinkLayout) -> dict[str, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, KeyError) as error:
        raise DataError(f"data {path}: not a .npz file of arrays: {error}") from None


def _bin(path: Path, layout: LinkLayout) -> dict[str, Array]:
    """Records of bytes: one input, one target of a byte."""
    if len(layout.inputs) != 2:
        raise DataError(
            f"data {path}: samples.bin has one input and one label; this model takes {len(layout.inputs)}"
        )
    made = samples.read(path)
    x, label = layout.inputs
    tail = bound(x.type.shape, x.batch)[1:]
    if made.input_bytes != int(np.prod(tail)):
        raise DataError(
            f"data {path}: records of {made.input_bytes} input bytes, the model's {x.name} is {x.type!r}"
        )
    images = made.records[:, : made.input_bytes].reshape(-1, *tail)
    labels = made.records[:, made.input_bytes]
    k = made.train
    arrays = {x.name: images[:k], label.name: labels[:k]}
    if made.test:
        arrays |= {f"test_{x.name}": images[k:], f"test_{label.name}": labels[k:]}
    return arrays


def _python(path: Path, layout: LinkLayout) -> dict[str, Array]:
    try:
        function = runpy.run_path(str(path)).get("dataset")
        found = function() if function is not None else None
    except AutodiffError:
        raise
    except Exception as error:
        line = next(
            (
                f.lineno
                for f in reversed(traceback.extract_tb(error.__traceback__))
                if f.filename == str(path)
            ),
            0,
        )
        raise DataError(f"{path}:{line}: {type(error).__name__}: {error}") from None
    if not isinstance(found, Mapping):
        raise DataError(f"data {path}: needs a function dataset() that returns a dict of arrays by name")
    return dict(found)


def _unknown(path: Path, layout: LinkLayout) -> dict[str, Array]:
    raise DataError(f"data {path}: give a .npz, a samples.bin, or a .py with dataset()")


_READERS = {".npz": _npz, ".bin": _bin, ".py": _python}


def _checked(
    arrays: dict[str, Array], asked: tuple[LinkArray, ...], path: Path, prefix: str
) -> dict[str, Array]:
    """Every array as the model takes it: floats for float inputs, labels in range, the same number of samples."""
    names = [a.name for a in asked]
    missing = [prefix + n for n in names if n not in arrays]
    unexpected = [prefix + n for n in arrays if n not in names]
    if missing or unexpected:
        what = [f"missing {', '.join(missing)}"] if missing else []
        what += [f"unexpected {', '.join(unexpected)}"] if unexpected else []
        raise DataError(f"data {path}: {'; '.join(what)}; the model takes {', '.join(names)}")
    found: dict[str, Array] = {}
    count = None
    rows_per_step(asked)
    for a in asked:
        array = arrays[a.name]
        if array.dtype == np.uint8 and a.type.dtype.name == "f32":
            array = array.astype(np.float32) / np.float32(255)
        tail = bound(a.type.shape, a.batch)[1:]
        if array.ndim < 1 or array.shape[1:] != tail:
            raise DataError(
                f"data {path}: {prefix}{a.name} has shape {list(array.shape)}, the model takes "
                f"[samples{''.join(f', {d}' for d in tail)}]"
            )
        count = len(array) if count is None else count
        if len(array) != count or count == 0:
            raise DataError(
                f"data {path}: {prefix}{a.name} has {len(array)} samples, {prefix}{names[0]} {count}"
            )
        found[a.name] = _as_model_takes(a, array, path, prefix)
    return found


def rows_per_step(asked: tuple[LinkArray, ...]) -> int:
    """Samples of a whole batch, along the first axis of every array. DataError where the arrays do not agree."""
    rows = {bound(a.type.shape, a.batch)[0] if a.type.shape else 0 for a in asked}
    if len(rows) != 1 or 0 in rows:
        shown = ", ".join(f"{a.name}: {a.type!r}" for a in asked)
        raise DataError(
            f"a data set cannot be cut into steps: the first axes of {shown} do not count the same samples"
        )
    return rows.pop()


def _as_model_takes(a: LinkArray, array: Array, path: Path, prefix: str) -> Array:
    """The whole array in the model's dtype; DataError for a dtype or a label that does not fit."""
    arg = replace(a.arg, type=Type(a.type.dtype, array.shape), name=f"{prefix}{a.name}")
    try:
        with np.errstate(over="ignore"):  # what is too large for float32 is named below
            whole: Array = checked(arg, array, Batch(len(array)))
    except ShapeError as error:
        raise DataError(f"data {path}: {error}") from None
    if whole.dtype.kind == "f" and not np.isfinite(whole).all():
        at = tuple(int(i) for i in np.argwhere(~np.isfinite(whole))[0])
        raise DataError(
            f"data {path}: {arg.name}[{', '.join(map(str, at))}] is {array[at]}, no finite float32"
        )
    return whole
