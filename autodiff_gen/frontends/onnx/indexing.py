"""Rules of the table: elements by indices."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..imported.rules import Arguments, Rule, Unsupported
from .folding import ConstantTensor


def _from_start(c: Any, index: Any, extents: Any) -> Any:
    """An index with negative numbers, which count from the end, replaced. extents: the extent of the indexed axis; for
    a constant index also a sequence, one for each element of its last axis."""
    if isinstance(index, ConstantTensor):
        outside = (
            []
            if extents is None
            else index.array[(index.array < -np.array(extents)) | (index.array >= extents)]
        )
        if len(outside):
            raise Unsupported(f"has the index {outside[0]}, outside an axis of extent {extents}; correct it")
        return ConstantTensor(np.where(index.array < 0, index.array + extents, index.array))
    if extents is None:
        return index
    index = index if c.dtype(index) == "s32" else c.emit("to", index, "s32")
    return c.emit("where", c.emit("{} < 0", index), c.emit("{} + {}", index, int(extents)), index)


def _gather(c: Any, a: Arguments) -> Any:
    """Elements along an axis; rows of a parameter become an embedding."""
    x, index, axis = a["data"], a["indices"], a["axis"]
    extent = c.shape(x)[axis]
    if isinstance(index, ConstantTensor):
        known = index.array
        if extent is None:
            raise Unsupported(
                "selects samples of the batch; give it a number by onnx.tools.update_model_dims"
            )
        if known.ndim == 0:
            return c.emit(f"{{}}[{':, ' * (axis % len(c.shape(x)))}{int(known)}]", c.operand(x))
    index = _from_start(c, index, extent)
    if len(c.shape(x)) == 2 and axis == 0 and c.is_parameter(x):
        return c.emit("embedding", index, c.weight(x, "weight"))
    x, rank = c.operand(x, "weight"), len(c.shape(index))
    axis %= len(c.shape(x))
    if rank == 1:
        return c.emit("index_select", x, axis, c.operand(index))
    shape = c.shape(x)
    if None in shape and None in c.shape(index):
        raise Unsupported("has an index with the batch; use GatherElements")
    if isinstance(index, ConstantTensor):
        flat: Any = c.constant(index.array.reshape(-1))
    else:
        flat = c.emit("reshape", index, (-1,))
    sizes = (*shape[:axis], *c.shape(index), *shape[axis + 1 :])
    return c.emit(
        "reshape", c.emit("index_select", x, axis, flat), tuple(-1 if d is None else d for d in sizes)
    )


def _gather_elements(c: Any, a: Arguments) -> Any:
    index = _from_start(c, a["indices"], c.shape(a["data"])[a["axis"]])
    return c.emit("gather", c.operand(a["data"]), a["axis"], c.operand(index))


# Reductions of ONNX -> ours.
REDUCTIONS = {"add": "sum", "mul": "prod", "max": "amax", "min": "amin"}


def _scattered(c: Any, x: Any, axis: int, index: Any, source: Any, reduction: str) -> Any:
    if reduction == "none":
        return c.emit("scatter", x, axis, index, source)
    if reduction == "add":
        return c.emit("scatter_add", x, axis, index, source)
    return c.emit("scatter_reduce", x, axis, index, source, REDUCTIONS[reduction])


def _scatter_elements(c: Any, a: Arguments) -> Any:
    x, source = c.operand(a["data"]), c.operand(a["updates"])
    index = c.operand(_from_start(c, a["indices"], c.shape(a["data"])[a["axis"]]))
    return _scattered(c, x, a["axis"], index, source, a.get("reduction", "none"))


def _places(c: Any, index: Any, extents: Any, shape: tuple[int, ...]) -> Any:
    """For each tuple of indices, in the given shape, the place in one axis that merges the axes of these extents. A
    table maps each index of an axis to its place, so that an index outside of its axis is rejected and not taken for
    another element."""
    known = isinstance(index, ConstantTensor)
    row = c.emit(
        "reshape", c.operand(_from_start(c, index, extents) if known else index), (*shape, len(extents))
    )
    steps = [math.prod(extents[k + 1 :]) for k in range(len(extents))]
    parts = []
    for k, (extent, step) in enumerate(zip(extents, steps, strict=True)):
        column = c.emit(f"{{}}[..., {k}]", row)
        if known:
            parts.append(c.emit(f"{{}} * {step}", column))
            continue
        column = column if c.dtype(column) == "s32" else c.emit("to", column, "s32")
        table = c.constant(np.arange(extent) * step)
        found = c.emit("take_along_dim", table, c.emit("reshape", column, (-1,)), 0)
        parts.append(c.emit("reshape", found, shape) if len(shape) > 1 else found)
    place = parts[0]
    for part in parts[1:]:
        place = c.emit("{} + {}", place, part)
    return place


def _gather_nd(c: Any, a: Arguments) -> Any:
    """Rows of the data at tuples of indices, for each element of the first batch_dims axes."""
    shape, places, b = c.shape(a["data"]), c.shape(a["indices"]), a["batch_dims"]
    end = b + places[-1]
    first, last = shape[b:end], shape[end:]
    if None in shape[b:] or (b and None in places[b:]):
        raise Unsupported("has the batch in an operand; use GatherElements")
    lead = tuple(-1 if d is None else d for d in places[:b])
    count = -1 if None in places[b:-1] else math.prod(places[b:-1])
    place = _places(c, a["indices"], first, (*lead, count))
    x = c.emit("reshape", c.operand(a["data"]), (*lead, math.prod(first), math.prod(last)))
    found = c.emit("take_along_dim", x, c.emit("{}[..., None]", place), b)
    return c.emit("reshape", found, tuple(-1 if d is None else d for d in (*places[:-1], *last)))


def _scatter_nd(c: Any, a: Arguments) -> Any:
    """Write rows of the data at tuples of indices of its first axes, which are merged into one."""
    shape, places = c.shape(a["data"]), c.shape(a["indices"])
    if None in shape or None in places:
        raise Unsupported("has the batch in an operand; use ScatterElements")
    first, last = shape[: places[-1]], shape[places[-1] :]
    rows, count, width = math.prod(first), math.prod(places[:-1]), math.prod(last)
    x, source = c.operand(a["data"]), c.operand(a["updates"])
    place = _places(c, a["indices"], first, (count,))
    place = c.emit("expand", c.emit("reshape", place, (count, 1)), (count, width))
    flat, given = c.emit("reshape", x, (rows, width)), c.emit("reshape", source, (count, width))
    return c.emit("reshape", _scattered(c, flat, 0, place, given, a.get("reduction", "none")), shape)


def _reverse_sequence(c: Any, a: Arguments) -> Any:
    """The first elements of each sequence in reverse order, as many as its length."""
    x, time, rank = a["input"], a["time_axis"], len(c.shape(a["input"]))
    extent = c.shape(x)[time]
    a.get("batch_axis")  # of the first two axes, the one that is not time_axis
    if extent is None:
        raise Unsupported("reverses the batch; give it a number by onnx.tools.update_model_dims")
    if c.uniform(a["sequence_lens"]) == extent:
        return c.emit("flip", x, time)
    length = c.emit("unsqueeze", c.operand(a["sequence_lens"]), time)
    step = c.constant(np.arange(extent).reshape((-1, 1) if time == 0 else (1, -1)))
    inside = c.emit("{} < {}", step, length)
    place = c.emit("where", inside, c.emit("{} - 1 - {}", length, step), step)
    if rank > 2:
        place = c.emit(f"{{}}[..., {', '.join(['None'] * (rank - 2))}]", place)
    return c.emit("take_along_dim", x, place, time)


def _one_hot(c: Any, a: Arguments) -> Any:
    depth, rank = c.number(a["depth"], "depth"), len(c.shape(a["indices"]))
    values, kind = a["values"], c.dtype(a["values"])
    index = _from_start(c, c.operand(a["indices"]), int(depth))
    hit = c.emit(
        "eq", c.emit("unsqueeze", index, -1), c.constant(np.arange(int(depth)))
    )  # An index outside hits no class.
    if isinstance(values, ConstantTensor):
        off, on = values.array.reshape(-1).tolist()
    else:
        off, on = (c.emit(f"{{}}[{k}]", values) for k in range(2))
    y = hit if (off, on) == (0, 1) else c.emit("where", hit, on, off)
    y = y if c.dtype(y) == kind else c.emit("to", y, kind)
    return y if a["axis"] in (-1, rank) else c.emit("movedim", y, -1, a["axis"])


def _compress(c: Any, a: Arguments) -> Any:
    """The slices where a constant mask is true."""
    if not isinstance(a["condition"], ConstantTensor):
        raise Unsupported(
            "has a condition that is computed, so that the result's size depends on it; use Where"
        )
    x, axis, known = c.operand(a["input"]), a.get("axis"), a["condition"].array
    if axis is None:
        x, axis = c.emit("reshape", x, (-1,)), 0
    if c.shape(x)[axis] is None:
        raise Unsupported("selects samples of the batch; give it a number by onnx.tools.update_model_dims")
    return c.emit("index_select", x, axis, c.constant(np.flatnonzero(known)))


def _trilu(c: Any, a: Arguments) -> Any:
    k = 0 if a["k"] is None else int(c.number(a["k"], "k"))
    return c.emit("triu" if a["upper"] else "tril", a["input"], *([k] if k else []))


INDEXING: dict[str, Rule] = {
    "Compress": _compress,
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "GatherND": _gather_nd,
    "OneHot": _one_hot,
    "ReverseSequence": _reverse_sequence,
    "ScatterElements": _scatter_elements,
    "ScatterND": _scatter_nd,
    "Trilu": _trilu,
}
