"""Rules of the table: shapes, parts and joins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..imported.program import ValueRef, WeightRef
from ..imported.rules import Arguments, Rule, Unsupported
from .folding import ConstantTensor, array_of, dtype_of, is_batch
from .graph import dtype_named

# Ends of at least this are the end of the axis: exporters write 2**31 - 1 or 2**63 - 1, tf2onnx also this number.
FAR = 1_000_000_000


def _reshape(c: Any, a: Arguments) -> Any:
    x, sizes = a["data"], list(c.numbers(a["shape"], "the shape"))
    own = c.sizes(x)
    if not a.get("allowzero"):
        sizes = [own[k] if s == 0 else s for k, s in enumerate(sizes)]
    return c.emit("reshape", x, _sizes(c, x, sizes))


def _sizes(c: Any, x: Any, sizes: list[int]) -> tuple[Any, ...]:
    """Sizes for reshape. The batch becomes -1 if only extents of 1 precede it; otherwise it is read from an input. A
    given -1 is computed if the tensor or the sizes have the batch."""
    own = list(map(int, c.sizes(x)))
    if -1 in sizes and any(is_batch(s) for s in (*own, *sizes)):
        rest = math.prod(int(s) for s in sizes if s != -1)
        sizes = [math.prod(own) // rest if s == -1 else s for s in sizes]
    if sum(is_batch(s) for s in sizes) > 1:
        raise Unsupported("has the batch on several axes; use numbers for the others")
    first = next((k for k, s in enumerate(sizes) if s != 1), 0)
    return tuple(-1 if k <= first and is_batch(s) else c.extent(s) for k, s in enumerate(sizes))


def _flatten(c: Any, a: Arguments) -> Any:
    x = a["input"]
    rank = len(c.shape(x))
    axis = a["axis"] + rank if a["axis"] < 0 else a["axis"]
    if axis == 1 and rank > 1:
        return c.emit("flatten", x, start_dim=1)
    sizes = c.sizes(x)
    before, after = (int(np.prod(part, dtype=np.int64)) for part in (sizes[:axis], sizes[axis:]))
    return c.emit("reshape", x, _sizes(c, x, [before, after]))


def _transpose(c: Any, a: Arguments) -> Any:
    rank = len(c.shape(a["data"]))
    x, order = a["data"], tuple(a.get("perm") or reversed(range(rank)))
    before = c.maker(x)
    if before is not None and before.function == "permute":  # one transpose, or none, of two in a row
        x, order = before.args[0], tuple(before.args[1][k] for k in order)
    return x if order == tuple(range(rank)) else c.emit("permute", x, order)


def _squeeze(c: Any, a: Arguments) -> Any:
    axes = () if a["axes"] is None else (c.numbers(a["axes"], "axes"),)
    return c.emit("squeeze", a["data"], *axes)


def _unsqueeze(c: Any, a: Arguments) -> Any:
    axes = c.numbers(a["axes"], "axes")
    rank, x = len(c.shape(a["data"])) + len(axes), a["data"]
    for axis in sorted(axis % rank for axis in axes):
        x = c.emit("unsqueeze", x, axis)
    return x


def _concat(c: Any, a: Arguments) -> Any:
    filled = [x for x in a["inputs"] if not (isinstance(x, ConstantTensor) and x.array.size == 0)]
    given, axis = tuple(c.operand(x) for x in filled), a["axis"]
    return given[0] if len(given) == 1 else c.emit("cat", given, axis)


def _split(c: Any, a: Arguments) -> Any:
    axis, count = a["axis"], len(c.names())
    if a["split"] is not None:
        sizes = c.numbers(a["split"], "split")
    else:
        extent = c.sizes(a["input"])[axis]
        part = -(-extent // count)
        sizes = tuple(min(part, extent - k * part) for k in range(count))
    return _parts(c, a["input"], axis, sizes, c.names())


def _parts(c: Any, x: Any, axis: int, sizes: Sequence[int], names: Sequence[str]) -> list[Any]:
    """The parts of x of these sizes. Parts without elements need no call, nor does a part that is all of x."""
    if any(is_batch(s) for s in sizes):
        raise Unsupported("splits the batch; give it a number by onnx.tools.update_model_dims")
    kept = tuple(name for name, size in zip(names, sizes, strict=True) if size)
    parts = tuple(s for s in sizes if s)
    made = iter([x] if len(kept) == 1 else c.emit_all("split", kept, x, parts, axis))
    empty = ConstantTensor(np.zeros(0, np.float32))
    return [next(made) if size else empty for size in sizes]


@dataclass(frozen=True)
class Parts:
    """A sequence of tensors."""

    items: tuple[Any, ...]


def _split_to_sequence(c: Any, a: Arguments) -> Parts:
    """Parts of one size, or of the sizes in a vector. Without sizes the parts have size 1, and with keepdims=0 lack the
    axis."""
    x, given = c.operand(a["input"]), a["split"]
    axis = a["axis"] % len(c.shape(x))
    sizes = (1,) if given is None else c.numbers(given, "split")
    if given is None or given.array.ndim == 0:
        extent = c.shape(x)[axis] or c.sizes(x)[axis]
        most = extent if is_batch(extent) else sizes[0]
        sizes = tuple(min(most, extent - k) for k in range(0, extent, most))
    parts = _parts(c, x, axis, sizes, [f"{c.names()[0]}.{k}" for k in range(len(sizes))])
    if given is None and not a["keepdims"]:
        parts = [c.emit("squeeze", part, axis) for part in parts]
    return Parts(tuple(parts))


def _sequence_at(c: Any, a: Arguments) -> Any:
    return a["input_sequence"].items[c.number(a["position"], "position")]


def _slice(c: Any, a: Arguments) -> Any:
    x, rank = a["data"], len(c.shape(a["data"]))
    starts, ends = c.numbers(a["starts"], "starts"), c.numbers(a["ends"], "ends")
    axes = tuple(range(len(starts))) if a["axes"] is None else c.numbers(a["axes"], "axes")
    steps = (1,) * len(starts) if a["steps"] is None else c.numbers(a["steps"], "steps")
    keys = [":"] * rank
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        extent = c.sizes(x)[axis]
        if is_batch(extent) and (start or step != 1 or (end < FAR and end != extent)):
            raise Unsupported("cuts the batch; give it a number by onnx.tools.update_model_dims")
        if (start, step) == (0, 1) and (end >= min(extent, FAR) or is_batch(extent)):
            continue
        first = "" if step < 0 and start >= extent - 1 else str(start)
        last = "" if (step > 0 and end >= extent) or (step < 0 and end < -extent) else str(end)
        keys[axis % rank] = f"{'' if first == '0' and step > 0 else first}:{last}" + (
            f":{step}" if step != 1 else ""
        )
    while keys and keys[-1] == ":":
        keys.pop()
    return c.emit(f"{{}}[{', '.join(keys)}]", x) if keys else x


def _expand(c: Any, a: Arguments) -> Any:
    x, sizes = c.operand(a["input"]), list(c.numbers(a["shape"], "the shape"))
    if not isinstance(x, ValueRef | WeightRef):  # a number
        x = x if c.dtype(a["input"]) == "f32" else c.constant(a["input"].array)
        return c.emit("broadcast_to", x, tuple(map(c.extent, sizes)))
    own: list[Any] = c.sizes(x) if isinstance(x, ValueRef) else list(c.shape(x))
    own = [1] * (len(sizes) - len(own)) + own
    sizes = [1] * (len(own) - len(sizes)) + sizes
    wanted = [o if s == 1 else s for o, s in zip(own, sizes, strict=True)]
    if wanted == own and len(wanted) == len(c.shape(x)):
        return x
    new = len(wanted) - len(c.shape(x))
    return c.emit(
        "expand", x, tuple(-1 if k >= new and w == own[k] else c.extent(w) for k, w in enumerate(wanted))
    )


def _filled(c: Any, a: Arguments) -> Any:
    """ConstantOfShape with a size that the batch determines."""
    shape = tuple(c.extent(s) for s in c.numbers(a["input"], "the shape"))
    if a.get("value") is None:
        return c.emit("broadcast_to", 0.0, shape)
    array = array_of(a["value"], "ConstantOfShape")
    value, kind = array.reshape(-1)[0].item(), dtype_of(array)
    if kind == "f32":
        return c.emit("broadcast_to", float(value), shape)
    return c.emit("full", shape, value, dtype=kind)


def _eye_like(c: Any, a: Arguments) -> Any:
    shape = c.shape(a["input"])
    if None in shape:
        raise Unsupported("has an axis that follows the batch; use numbers")
    kinds = {"f32": np.float32, "bool": np.bool_}
    kind = dtype_named(a["dtype"]) if a.get("dtype") else c.dtype(a["input"])
    rows, columns = shape
    return ConstantTensor(np.eye(rows, columns, a["k"]).astype(kinds.get(kind, np.int64)))


def _pad(c: Any, a: Arguments) -> Any:
    rank, pads = len(c.shape(a["data"])), c.numbers(a["pads"], "pads")
    given = tuple(range(rank)) if a.get("axes") is None else c.numbers(a["axes"], "axes")
    both = {axis % rank: (pads[k], pads[k + len(given)]) for k, axis in enumerate(given)}
    flat = [p for axis in reversed(range(rank)) for p in both.get(axis, (0, 0))]
    while flat and flat[-2:] == [0, 0]:
        flat = flat[:-2]
    if isinstance(a.get("constant_value"), ValueRef):
        return _pad_with(c, a, flat)
    value = 0.0 if a.get("constant_value") is None else float(c.number(a["constant_value"], "the value"))
    mode = {"edge": "replicate", "wrap": "circular"}.get(a["mode"], a["mode"])
    options = {} if mode == "constant" else {"mode": mode}
    if not flat:
        return a["data"]
    return c.emit("pad", a["data"], tuple(flat), **({"value": value} if value else {}), **options)


def _pad_with(c: Any, a: Arguments, flat: list[int]) -> Any:
    """Pad with a computed number: a mask selects it outside of the elements."""
    if not flat or a["mode"] != "constant":
        return a["data"] if not flat else c.emit("pad", a["data"], tuple(flat), mode=a["mode"])
    shape = [1 if d is None else d for d in c.shape(a["data"])]
    sides = [(0, 0)] * (len(shape) - len(flat) // 2) + [*zip(flat[-2::-2], flat[::-2], strict=True)]
    y = c.emit("pad", a["data"], tuple(flat))
    if any(p < 0 for p in flat):
        raise Unsupported("has a value that is computed and cuts; make it a constant")
    inside = c.constant(np.pad(np.ones(shape, bool), sides))
    return c.emit("where", inside, y, a["constant_value"])


def _tile(c: Any, a: Arguments) -> Any:
    """Repetitions; as many as there are samples only along an axis of extent 1."""
    x, times = c.operand(a["input"]), c.numbers(a["repeats"], "repeats")
    of_batch = [bool(is_batch(k)) for k in times]
    if not any(of_batch):
        return c.emit("tile", x, times)
    if any(b and d != 1 for b, d in zip(of_batch, c.shape(x), strict=True)):
        raise Unsupported("repeats an axis as often as there are samples; use an axis of extent 1")
    fixed = tuple(1 if b else k for b, k in zip(of_batch, times, strict=True))
    x = x if set(fixed) == {1} else c.emit("tile", x, fixed)
    return c.emit("expand", x, tuple(c.extent(k) if b else -1 for b, k in zip(of_batch, times, strict=True)))


def _depth_to_space(c: Any, a: Arguments) -> Any:
    n, channels, h, w = c.shape(a["input"])
    size = a["blocksize"]
    if a["mode"] == "CRD":
        return c.emit("pixel_shuffle", a["input"], size)
    first = -1 if n is None else n
    x = c.emit("reshape", a["input"], (first, size, size, channels // size**2, h, w))
    x = c.emit("permute", x, (0, 3, 4, 1, 5, 2))
    return c.emit("reshape", x, (first, channels // size**2, h * size, w * size))


def _space_to_depth(c: Any, a: Arguments) -> Any:
    n, channels, h, w = c.shape(a["input"])
    size, first = a["blocksize"], -1 if n is None else n
    if a.get("mode", "DCR") == "CRD":
        return c.emit("pixel_unshuffle", a["input"], size)
    x = c.emit("reshape", a["input"], (first, channels, h // size, size, w // size, size))
    x = c.emit("permute", x, (0, 3, 5, 1, 2, 4))
    return c.emit("reshape", x, (first, channels * size**2, h // size, w // size))


SHAPES: dict[str, Rule] = {
    "Concat": _concat,
    "ConstantOfShape": _filled,
    "DepthToSpace": _depth_to_space,
    "Expand": _expand,
    "EyeLike": _eye_like,
    "Flatten": _flatten,
    "Pad": _pad,
    "Reshape": _reshape,
    "SequenceAt": _sequence_at,
    "Slice": _slice,
    "SpaceToDepth": _space_to_depth,
    "Split": _split,
    "SplitToSequence": _split_to_sequence,
    "Squeeze": _squeeze,
    "Tile": _tile,
    "Transpose": _transpose,
    "Unsqueeze": _unsqueeze,
}
