"""NumPy arrays as arguments of generated C: dtypes, ranges, shapes and the batch are checked before the call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..codegen.program import Arg
from ..errors import ShapeError
from ..functional.index_limits import index_source
from ..ir.types import Dim, bound
from .wrong_indices import reject_wrong_indices


@dataclass
class Batch:
    """The number of rows n of one call: the first array with a batch axis gives it, and the others must match. `cap`,
    `least`: the limits of n; `giver`: the name of that array."""

    cap: int
    least: int = 1
    given: int | None = None
    giver: str = ""

    @property
    def rows(self) -> int:
        return self.cap if self.given is None else self.given


def checked(arg: Arg, value: Any, batch: Batch) -> Any:
    """`value` as a C-contiguous array of the argument's dtype.

    Raises ShapeError, which names the argument, the expected shape, dtype or range, and the given one.
    """
    array = np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    _check_shape(arg, array.shape, batch)
    dtype = arg.type.dtype
    if dtype.kind == "f":
        if array.dtype.kind not in "fiub":
            raise ShapeError(f"{arg.name}: expected numbers ({arg.type}), got an array of {array.dtype}")
    elif array.dtype.kind not in "iub":
        what = "class labels" if arg.classes is not None else "values"
        raise ShapeError(f"{arg.name}: expected integer {what} ({arg.type}), got an array of {array.dtype}")
    else:
        _check_range(arg, array)
    array = np.ascontiguousarray(array, dtype=dtype.numpy).reshape(array.shape)
    if arg.value is not None:
        reject_wrong_indices(arg.checks, {arg.value: array})
    return array


def out_array(arg: Arg, batch: Batch) -> Any:
    """Memory for an output. Floats are NaN at first, which shows elements that C does not write."""
    shape = bound(arg.type.shape, batch.rows)
    return np.full(shape, np.nan if arg.type.dtype.kind == "f" else 0, dtype=arg.type.dtype.numpy)


def _check_shape(arg: Arg, shape: tuple[int, ...], batch: Batch) -> None:
    rule = arg.type.shape
    for axis, extent in enumerate(rule):
        if not isinstance(extent, Dim) or axis >= len(shape) or len(shape) != len(rule):
            continue
        if batch.given is None and shape[axis] % extent.coef == 0:
            rows = shape[axis] // extent.coef
            if not batch.least <= rows <= batch.cap:
                takes = f"{batch.least} to {batch.cap}"
                raise ShapeError(
                    f"{arg.name}: {rows} rows given ({list(shape)}), but the model takes {takes}: {arg.type}"
                )
            batch.given, batch.giver = rows, arg.name
    expected = bound(rule, batch.given)
    if shape != expected:
        extents = ", ".join(map(repr, rule)) if batch.given is None else ", ".join(map(str, expected))
        why = (
            f" (n = {batch.given} by {batch.giver})"
            if batch.giver not in ("", arg.name) and expected != rule
            else ""
        )
        raise ShapeError(f"{arg.name}: expected shape [{extents}]{why}, got {list(shape)}")


def _check_range(arg: Arg, array: Any) -> None:
    info = np.iinfo(arg.type.dtype.numpy) if arg.type.dtype.kind != "b" else None
    low, high = (0, 1) if info is None else (int(info.min), int(info.max))
    wrong = np.argwhere((array < low) | (array > high))
    if len(wrong):
        index = tuple(int(i) for i in wrong[0])
        own = [check for check in arg.checks if index_source(check.value) is arg.value]
        low, high = max([low, *(k.low for k in own)]), min([high, *(k.high for k in own)])
        element = f"{arg.name}[{', '.join(map(str, index))}]" if index else arg.name
        raise ShapeError(f"{element} is {array[index]}, outside {low} to {high}")
