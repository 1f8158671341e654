"""Rules of the table: parts of tensors, assignments to parts, and joins."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..imported.program import ValueRef, WeightRef
from .indexing import converted
from .rules import NO_ELEMENTS, Arguments, Converter, Rule, Unsupported, axis, same
from .shapes import expand_as

LAST = 2**62  # an end that is at least this is the end of the axis


def _key(c: Converter, a: Arguments, key: str) -> Any:
    """self[:, :, key]."""
    return c.emit(f"{{}}[{':, ' * axis(c, a['self'], a.get('dim', 0))}{key}]", a["self"])


def _slice(c: Converter, a: Arguments) -> Any:
    start, end, step = a.get("start") or 0, a.get("end"), a.get("step", 1)
    dim = axis(c, a["self"], a.get("dim", 0))
    extent = c.shape(a["self"])[dim]
    if isinstance(start, ValueRef) or isinstance(end, ValueRef):
        return _slice_of_batch(c, a["self"], dim, start, end)
    to_end = end is None or end >= LAST or end == extent
    if to_end and start == 0 and step == 1:
        return a["self"]
    text = f"{start or ''}:{'' if to_end else end}" + (f":{step}" if step != 1 else "")
    return _key(c, a, text)


def _slice_of_batch(c: Converter, x: Any, dim: int, start: Any, end: Any) -> Any:
    """A slice with limits that the batch determines."""
    given = [v for v in (start, end) if isinstance(v, ValueRef)]
    end = None if isinstance(end, int) and end >= LAST else end
    parts = ["{}" if isinstance(v, ValueRef) else str(v or "") for v in (start, end)]
    return c.emit(f"{{}}[{':, ' * dim}{':'.join(parts)}]", x, *given)


def _select(c: Converter, a: Arguments) -> Any:
    if isinstance(a["index"], ValueRef):
        raise Unsupported("has an index that depends on the batch; use a number")
    return _key(c, a, str(a["index"]))


def _slice_scatter(c: Converter, a: Arguments) -> Any:
    """`src` between the parts of the tensor before and after it; with a step a choice for each element."""
    dim, start, end = axis(c, a["self"], a.get("dim", 0)), a.get("start") or 0, a.get("end")
    extent, step = c.shape(a["self"])[dim], a.get("step", 1)
    if any(isinstance(v, ValueRef) for v in (start, end)):
        raise Unsupported("assigns to a slice up to the batch; use torch.where")
    if step != 1 and extent is not None:
        chosen = np.arange(extent)[slice(start, end, step)]
        zeros = c.emit("zeros_like", a["self"])
        placed = c.emit("index_add", zeros, dim, c.constant(chosen.astype(np.int32)), a["src"])
        mask = np.isin(np.arange(extent), chosen).reshape(-1, *(1,) * (len(c.shape(a["self"])) - dim - 1))
        return c.emit("where", c.constant(mask), placed, a["self"])
    to_end = end is None or end >= LAST or end == extent
    parts = [_key(c, a, f":{start}")] if start else []
    parts += [a["src"]] if to_end else [a["src"], _key(c, a, f"{end}:")]
    return parts[0] if len(parts) == 1 else c.emit("cat", tuple(parts), dim)


def _select_scatter(c: Converter, a: Arguments) -> Any:
    dim, index = axis(c, a["self"], a["dim"]), a["index"]
    if isinstance(index, ValueRef):
        raise Unsupported("has an index that depends on the batch; use a number")
    src = c.emit("unsqueeze", a["src"], dim)
    return _slice_scatter(c, {**a, "src": src, "dim": dim, "start": index, "end": index + 1 or LAST})


def _copied(source: str) -> Rule:
    """A tensor or number, expanded to the shape of `self` and converted to its dtype."""

    def rule(c: Converter, a: Arguments) -> Any:
        given = a[source]
        if not isinstance(given, ValueRef | WeightRef):
            given = c.constant(np.asarray(given, np.float32))
        x = expand_as(c, {"self": given, "other": a["self"]})
        return converted(c, x, c.dtype(given), c.dtype(a["self"]))

    return rule


def _diff(c: Converter, a: Arguments) -> Any:
    """The n-th difference along an axis, after prepend and append; for masks, whether neighbours differ."""
    dim = axis(c, a["self"], a.get("dim", -1))
    parts = tuple(t for t in (a.get("prepend"), a["self"], a.get("append")) if t is not None)
    x = parts[0] if len(parts) == 1 else c.emit("cat", parts, dim)
    before, form = ":, " * dim, "ne" if c.dtype(a["self"]) == "bool" else "{} - {}"
    for _ in range(a.get("n", 1)):
        x = c.emit(form, c.emit(f"{{}}[{before}1:]", x), c.emit(f"{{}}[{before}:-1]", x))
    return x


def _meshgrid(c: Converter, a: Arguments) -> Any:
    """Each tensor along another axis; with indexing="xy" the first two are exchanged."""
    tensors = a["tensors"]
    order = list(range(len(tensors)))
    if a.get("indexing") == "xy" and len(order) > 1:
        order[:2] = [1, 0]
    extents = [c.shape(t)[0] if c.shape(t) else 1 for t in tensors]
    sizes = tuple(extents[order.index(k)] for k in range(len(order)))
    if None in sizes:
        raise Unsupported("has a size that depends on the batch; use a number")
    return [
        c.emit(
            "broadcast_to", c.emit("reshape", t, tuple(-1 if k == o else 1 for k in range(len(order)))), sizes
        )
        for t, o in zip(tensors, order, strict=True)
    ]


def _parts(function: str, sizes: str) -> Rule:
    """The parts of a tensor. Parts without elements need no call, nor does a part that is the whole tensor."""

    def rule(c: Converter, a: Arguments) -> Any:
        x, dim, kept = a["self"], a.get("dim", 0), c.names()
        given = (a[sizes],) if sizes else ()
        if sizes == "split_sizes":
            kept = tuple(name for name, size in zip(kept, a[sizes], strict=True) if size != 0)
            given = (tuple(size for size in a[sizes] if size != 0),)
        if len(kept) == 1:
            made = [x if sizes else c.emit("squeeze", x, dim)]
        else:
            made = c.emit_all(function, kept, x, *given, dim)
        found = dict(zip(kept, made, strict=True))
        return [found.get(name, NO_ELEMENTS) for name in c.names()]

    return rule


def _joined(function: str) -> Rule:
    def rule(c: Converter, a: Arguments) -> Any:
        return c.emit(function, tuple(t for t in a["tensors"] if t is not NO_ELEMENTS), a.get("dim", 0))

    return rule


PARTS: dict[str, Rule] = {
    "aten.slice": _slice,
    "aten.select": _select,
    "aten.slice_scatter": _slice_scatter,
    "aten.select_scatter": _select_scatter,
    "aten.copy": _copied("src"),
    "aten.fill": _copied("value"),
    "aten.narrow": same("narrow", "self dim start length"),
    "aten.diff": _diff,
    "aten.meshgrid": _meshgrid,
    "aten.chunk": _parts("chunk", "chunks"),
    "aten.split": _parts("split", "split_size"),
    "aten.split_with_sizes": _parts("split", "split_sizes"),
    "aten.unbind": _parts("unbind", ""),
    "aten.cat": _joined("cat"),
    "aten.stack": _joined("stack"),
    "aten.flip": same("flip", "self dims"),
    "aten.roll": same("roll", "self shifts dims"),
}
