"""Rules of the table: elements by indices."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..imported.rules import Arguments, Rule, Unsupported
from .folding import Constant


def _gather(c: Any, a: Arguments) -> Any:
    """Rows of a weight are an embedding."""
    x, index, axis = a["data"], a["indices"], a["axis"]
    extent = c.shape(x)[axis]
    if isinstance(index, Constant):
        known = index.array
        if extent is None:
            raise Unsupported("selects samples of the batch; use another axis")
        if known.ndim == 0:
            return c.emit(f"{{}}[{':, ' * (axis % len(c.shape(x)))}{int(known)}]", c.operand(x))
        index = Constant(np.where(known < 0, known + extent, known))
    if isinstance(x, Constant) and len(c.shape(x)) == 2 and axis == 0 and x.array.dtype.kind == "f":
        return c.emit("embedding", index, c.weight(x, "weight"))
    x, rank = c.operand(x, "weight"), len(c.shape(index))
    axis %= len(c.shape(x))
    if rank == 1:
        return c.emit("index_select", x, axis, c.operand(index))
    shape = c.shape(x)
    if None in shape and None in c.shape(index):
        raise Unsupported("has an index with the batch; use GatherElements")
    if isinstance(index, Constant):
        flat: Any = c.constant(index.array.reshape(-1))
    else:
        flat = c.emit("reshape", index, (-1,))
    sizes = (*shape[:axis], *c.shape(index), *shape[axis + 1 :])
    return c.emit(
        "reshape", c.emit("index_select", x, axis, flat), tuple(-1 if d is None else d for d in sizes)
    )


def _gather_elements(c: Any, a: Arguments) -> Any:
    index = a["indices"]
    if isinstance(index, Constant):
        extent = c.shape(a["data"])[a["axis"]]
        index = Constant(np.where(index.array < 0, index.array + extent, index.array))
    return c.emit("gather", c.operand(a["data"]), a["axis"], c.operand(index))


def _scatter_elements(c: Any, a: Arguments) -> Any:
    """Elements that are replaced are where the sum of ones is one."""
    reduction = a.get("reduction", "none")
    if reduction not in ("add", "none"):
        raise Unsupported(f"has reduction={reduction!r}; use 'add', or Where")
    x, index, source = (c.operand(a[k]) for k in ("data", "indices", "updates"))
    if reduction == "add":
        return c.emit("scatter_add", x, a["axis"], index, source)
    zero = c.emit("zeros_like", x)
    count = c.emit("scatter_add", zero, a["axis"], index, c.emit("ones_like", source))
    placed = c.emit("scatter_add", zero, a["axis"], index, source)
    return c.emit("where", c.emit("{} > {}", count, 0.0), placed, x)


def _one_hot(c: Any, a: Arguments) -> Any:
    depth, rank = c.number(a["depth"], "depth"), len(c.shape(a["indices"]))
    off, on = c.array(a["values"], "values").reshape(-1).tolist()
    index = c.operand(a["indices"])
    index = index if c.dtype(index) == "s32" else c.emit("to", index, "s32")
    index = c.emit("where", c.emit("{} < {}", index, 0), c.emit("{} + {}", index, int(depth)), index)
    y = c.emit("one_hot", index, int(depth))
    y = c.emit("to", y, "f32") if c.dtype(a["values"]) == "f32" else y
    if (off, on) != (0, 1):
        y = c.emit("{} * {} + {}", y, on - off, off)
    return y if a["axis"] in (-1, rank) else c.emit("movedim", y, -1, a["axis"])


def _trilu(c: Any, a: Arguments) -> Any:
    k = 0 if a["k"] is None else int(c.number(a["k"], "k"))
    return c.emit("triu" if a["upper"] else "tril", a["input"], *([k] if k else []))


INDEXING: dict[str, Rule] = {
    "Gather": _gather,
    "GatherElements": _gather_elements,
    "OneHot": _one_hot,
    "ScatterElements": _scatter_elements,
    "Trilu": _trilu,
}
