"""Rules of the table: indices and masks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..imported.program import CONSTANT, ValueRef, WeightRef
from .rules import Arguments, Converter, Rule, Unsupported, axis, same


def _index(c: Converter, a: Arguments) -> Any:
    """self[:, index], with integers in tensors for one or several axes."""
    chosen = _indices(c, a)
    dims = list(chosen)
    x, rank = a["self"], len(c.shape(a["self"]))
    first = dims[0]
    if dims != list(range(first, first + len(dims))):  # PyTorch's result has the indexed axes first
        x = c.emit("permute", x, (*dims, *(k for k in range(rank) if k not in dims)))
        first = 0
    if isinstance(x, WeightRef) and c.weights[x.name].role == CONSTANT:  # an array, which values cannot index
        x = c.emit("reshape", x, c.shape(x))
    key = ":, " * first + ", ".join("{}" for _ in dims)
    return c.emit(f"{{}}[{key}]", x, *chosen.values())


def _indices(c: Converter, a: Arguments) -> dict[int, Any]:
    """The index tensors by the axes that they index."""
    chosen = {k: i for k, i in enumerate(a["indices"]) if i is not None}
    if any("bool" in c.dtype(i) for i in chosen.values()):
        raise Unsupported("has a mask, so that the size of the result depends on data; use torch.where")
    return chosen


def _windows(c: Converter, a: Arguments) -> Any:
    """x.unfold(dimension, size, step): windows along an axis, their elements along a new last one."""
    dim, size, step = axis(c, a["self"], a["dimension"]), a["size"], a["step"]
    extent = c.shape(a["self"])[dim]
    if extent is None:
        raise Unsupported("has windows of samples; use another axis than the batch")
    count = (extent - size) // step + 1
    if size == step:
        x = a["self"] if count * size == extent else c.emit("narrow", a["self"], dim, 0, count * size)
        parts = c.emit("unflatten", x, dim, (count, size))
    else:
        starts = np.arange(0, count * step, step, dtype=np.int32)
        index = c.constant(starts[:, None] + np.arange(size, dtype=np.int32))
        parts = c.emit(f"{{}}[{':, ' * dim}{{}}]", a["self"], index)
    rank = len(c.shape(a["self"])) + 1
    if dim == rank - 2:
        return parts
    return c.emit("permute", parts, (*(k for k in range(rank) if k != dim + 1), dim + 1))


def _topk(c: Converter, a: Arguments) -> Any:
    options = {} if a.get("largest", True) else {"largest": False}
    return c.emit_all("topk", c.names(), a["self"], a["k"], a.get("dim", -1), **options)


def _sort(c: Converter, a: Arguments) -> Any:
    options = {"descending": True} if a.get("descending") else {}
    return c.emit_all("sort", c.names(), a["self"], a.get("dim", -1), **options)


def _kth(c: Converter, a: Arguments) -> Any:
    """The k-th smallest element along an axis and its index; for a median the element in the middle, or the lower of
    the two there."""
    x, dim = a["self"], axis(c, a["self"], a.get("dim", -1))
    if "dim" not in a and "k" not in a:  # of all elements
        x, dim = c.emit("flatten", x), 0
    extent = (
        (c.shape(a["self"]) or (1,))[dim] if x is a["self"] else math.prod(d or 0 for d in c.shape(a["self"]))
    )
    if not extent:
        raise Unsupported("reduces the batch; use another axis")
    k = a.get("k", (extent + 1) // 2)
    ordered = tuple(f"{c.names()[0]}.{part}" for part in ("ordered", "order"))
    key = f"{{}}[{':, ' * dim}{k - 1}:{k}]" if a.get("keepdim") else f"{{}}[{':, ' * dim}{k - 1}]"
    found = c.emit_all("topk", ordered, x, k, dim, largest=False)
    return [c.emit_all(key, (name,), y)[0] for name, y in zip(c.names(), found, strict=False)]


def _diagonal_scatter(c: Converter, a: Arguments) -> Any:
    """A matrix with the elements of `src` on a diagonal."""
    shape, offset = c.shape(a["self"]), a.get("offset", 0)
    if len(shape) != 2 or None in shape or (a.get("dim1", 0), a.get("dim2", 1)) != (0, 1):
        raise Unsupported("changes a diagonal of more than a matrix; use torch.where with torch.eye")
    rows, columns = (d or 0 for d in shape)
    first = np.arange(len(np.diagonal(np.zeros((rows, columns)), offset)), dtype=np.int32)
    places = tuple(c.constant(first + max(0, by)) for by in (-offset, offset))
    return c.emit("index_put", a["self"], places, a["src"])


def _one_hot(c: Converter, a: Arguments) -> Any:
    if a.get("num_classes", -1) == -1:
        raise Unsupported("has no num_classes, so that the size of the result depends on data; give it")
    return c.emit("one_hot", a["self"], a["num_classes"])


def _scatter(c: Converter, a: Arguments) -> Any:
    """Write elements of a tensor, or a number, at indices."""
    if a.get("reduce") is not None:
        raise Unsupported(f"has reduce={a['reduce']!r}; use scatter_reduce")
    return c.emit("scatter", a["self"], a["dim"], a["index"], a.get("src", a.get("value")))


def _to(c: Converter, a: Arguments) -> Any:
    """Conversions between dtypes; devices and memory formats have no effect."""
    wanted = a.get("dtype")
    if isinstance(a.get("other"), ValueRef | WeightRef):
        wanted = c.dtype(a["other"])
    return a["self"] if wanted is None else converted(c, a["self"], c.dtype(a["self"]), wanted)


def converted(c: Converter, x: Any, now: str, wanted: str) -> Any:
    """x converted from one dtype to another; both are PyTorch's names."""
    ours = {"float32": "f32", "int64": "s32", "int32": "s32", "bool": "bool", "uint8": "u8", "int8": "s8"}
    if wanted not in {now, *ours}:
        raise Unsupported(f"converts to {wanted}; use float32")
    if wanted == now or ours[wanted] == ours.get(now):
        return x
    result = c.emit("to", x, ours[wanted])
    c.dtypes[result.name] = wanted
    return result


INDEXING: dict[str, Rule] = {
    "aten.unfold": _windows,
    "aten.index": _index,
    "aten.index_put": same("index_put", "self indices values accumulate"),
    "aten.topk": _topk,
    "aten.sort": _sort,
    "aten.kthvalue": _kth,
    "aten.median": _kth,
    "aten.argsort": same("argsort", "self dim descending"),
    "aten.take_along_dim": same("take_along_dim", "self indices dim"),
    "aten.index_select": same("index_select", "self dim index"),
    "aten.gather": same("gather", "self dim index"),
    "aten.scatter_add": same("scatter_add", "self dim index src"),
    "aten.scatter": _scatter,
    "aten.scatter_reduce": same("scatter_reduce", "self dim index src reduce include_self"),
    "aten.diagonal": same("diagonal", "self offset dim1 dim2"),
    "aten.diagonal_scatter": _diagonal_scatter,
    "aten.index_add": same("index_add", "self dim index source alpha"),
    "aten.one_hot": _one_hot,
    "aten.tril": same("tril", "self diagonal"),
    "aten.triu": same("triu", "self diagonal"),
    "aten.to": _to,
    "aten._to_copy": _to,
    "aten.type_as": _to,
}
