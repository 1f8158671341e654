"""Rules of the table: shapes, sizes and padding."""

from __future__ import annotations

import math
from typing import Any

from ..imported.program import Shape, ValueRef
from .rules import Arguments, Converter, Rule, Unsupported, axis, itself, same


def _reshape(name: str) -> Rule:
    def rule(c: Converter, a: Arguments) -> Any:
        if a.get("dtype") is not None:
            raise Unsupported("reads the bytes of floats; use to()")
        leading = c.merged.get(a["self"]) or _merged(c.shape(a["self"]), a[name])
        if not leading:
            return c.emit("reshape", a["self"], minus_one(a[name]))
        apart = len(a[name]) > len(leading) and a["self"] in c.merged
        if apart and all(d is None or d == s for d, s in zip(leading, a[name], strict=False)):
            sizes = tuple(-1 if d is None else d for d in leading) + a[name][len(leading) :]
            c.merged.pop(a["self"])
            return c.emit("reshape", a["self"], sizes)
        if a["self"] in c.merged:
            raise Unsupported("splits an axis in which the batch is not the outermost; use batch_first=True")
        ref = c.emit("reshape", a["self"], tuple(-1 if d is None else d for d in leading) + a[name][1:])
        c.merged[ref] = leading
        return ref

    return rule


def _merged(shape: Shape, sizes: tuple[Any, ...]) -> Shape:
    """[time, n, ...] -> [time * n, features]: the axes that become one, if the batch is not the outermost of them. The
    axes stay apart, which a linear layer does not notice, until a reshape separates them."""
    if None not in shape[1:] or len(sizes) != 2 or not isinstance(sizes[1], int):
        return ()
    axes = shape.index(None) + 1
    if all(d == 1 for d in shape[: axes - 1]):
        return ()
    rest = math.prod(d or 0 for d in shape[axes:])
    return shape[:axes] if rest and sizes[1] % rest == 0 else ()


def minus_one(sizes: tuple[Any, ...]) -> tuple[Any, ...]:
    """-1 for the one size that the batch determines."""
    if -1 in sizes or sum(isinstance(s, ValueRef) for s in sizes) != 1:
        return sizes
    return tuple(-1 if isinstance(s, ValueRef) else s for s in sizes)


def _as_other(c: Converter, a: Arguments) -> Any:
    shape = c.shape(a["other"])
    if shape.count(None) > 1:
        raise Unsupported("has several dynamic sizes; give them as numbers")
    return c.emit("reshape", a["self"], tuple(-1 if d is None else d for d in shape))


def _expand(c: Converter, a: Arguments) -> Any:
    sizes, shape = a["size"], c.shape(a["self"])
    new = len(sizes) - len(shape)
    kept = tuple(
        -1 if k >= new and isinstance(s, ValueRef) and shape[k - new] is None else s
        for k, s in enumerate(sizes)
    )
    whole = all(s == -1 or (k >= new and s == shape[k - new]) for k, s in enumerate(kept))
    return a["self"] if whole and not new else c.emit("expand", a["self"], kept)


def expand_as(c: Converter, a: Arguments) -> Any:
    shape, own = c.shape(a["other"]), c.shape(a["self"])
    sizes = tuple(c.emit(f"{{}}.shape[{k}]", a["other"]) if d is None else d for k, d in enumerate(shape))
    return a["self"] if shape == own else c.emit("expand", a["self"], sizes)


def _broadcast_tensors(c: Converter, a: Arguments) -> Any:
    """Broadcast the tensors to the shape of one of them."""
    shape = c.shape(ValueRef(c.names()[0]))
    whole = next((t for t in a["tensors"] if c.shape(t) == shape), None)
    if whole is None:
        raise Unsupported("has a shape that none of its operands has; use expand")
    return [expand_as(c, {"self": t, "other": whole}) for t in a["tensors"]]


def _repeat(c: Converter, a: Arguments) -> Any:
    """Repetitions; as many as there are samples only along an axis of extent 1."""
    given, x = a["repeats"], a["self"]
    if not any(isinstance(count, ValueRef) for count in given):
        return c.emit("repeat", x, given)
    shape = (1,) * (len(given) - len(c.shape(x))) + c.shape(x)
    if any(isinstance(count, ValueRef) and d != 1 for count, d in zip(given, shape, strict=True)):
        raise Unsupported("repeats an axis as often as there are samples; use an axis of extent 1")
    fixed = tuple(1 if isinstance(count, ValueRef) else count for count in given)
    x = x if set(fixed) == {1} and len(shape) == len(c.shape(x)) else c.emit("repeat", x, fixed)
    return c.emit("expand", x, tuple(count if isinstance(count, ValueRef) else -1 for count in given))


def _size(c: Converter, a: Arguments) -> Any:
    dim = axis(c, a["self"], a["dim"])
    known = c.shape(a["self"])[dim]
    if known is not None:
        return known
    ref = c.emit(f"{{}}.shape[{dim}]", a["self"])
    c.sizes.add(ref.name)
    return ref


def _of_sizes(sign: str) -> Rule:
    """Python's operator on sizes. A sum with a number is a float, since no tensor may have the size n + 1."""

    def rule(c: Converter, a: Arguments) -> Any:
        given = [float(x) if sign in "+-" and isinstance(x, int) else x for x in a.values()]
        ref = c.emit(f"{{}} {sign} {{}}", *given)
        c.sizes.add(ref.name)
        return ref

    return rule


def _first(c: Converter, a: Arguments) -> Any:
    return next(iter(a.values()))


def _flatten(c: Converter, a: Arguments) -> Any:
    return same("flatten", "self start_dim end_dim")(c, a)


def _squeeze(c: Converter, a: Arguments) -> Any:
    return c.emit("squeeze", a["self"], *([a["dim"]] if a.get("dim") is not None else []))


def _transposed(c: Converter, a: Arguments) -> Any:
    rank = len(c.shape(a["self"]))
    return a["self"] if rank < 2 else c.emit("permute", a["self"], tuple(reversed(range(rank))))


def _matrix_transposed(c: Converter, a: Arguments) -> Any:
    return c.emit("transpose", a["self"], -2, -1)


def _movedim(c: Converter, a: Arguments) -> Any:
    rank = len(c.shape(a["self"]))
    pairs = [(v if isinstance(v, tuple) else (v,)) for v in (a["source"], a["destination"])]
    source, target = ([d % rank for d in p] for p in pairs)
    order = [d for d in range(rank) if d not in source]
    for t, s in sorted(zip(target, source, strict=True)):
        order.insert(t, s)
    return c.emit("permute", a["self"], tuple(order))


def _padded(mode: str) -> Rule:
    def rule(c: Converter, a: Arguments) -> Any:
        pad = a.get("padding", a.get("pad"))
        options = {"mode": a.get("mode", mode)} if a.get("mode", mode) != "constant" else {}
        if a.get("value") not in (None, 0):
            options["value"] = a["value"]
        return c.emit("pad", a["self"], pad, **options)

    return rule


SHAPES: dict[str, Rule] = {
    "aten.view": _reshape("size"),
    "aten._unsafe_view": _reshape("size"),
    "aten.reshape": _reshape("shape"),
    "aten.view_as": _as_other,
    "aten.reshape_as": _as_other,
    "aten.flatten": _flatten,
    "aten.unflatten": same("unflatten", "self dim sizes"),
    "aten.squeeze": _squeeze,
    "aten.unsqueeze": same("unsqueeze", "self dim"),
    "aten.permute": same("permute", "self dims"),
    "aten.transpose": same("transpose", "self dim0 dim1"),
    "aten.swapaxes": same("transpose", "self axis0 axis1"),
    "aten.t": _transposed,
    "aten.numpy_T": _transposed,
    "aten.mT": _matrix_transposed,
    "aten.matrix_H": _matrix_transposed,  # of real numbers
    "aten.movedim": _movedim,
    "aten.expand": _expand,
    "aten.broadcast_to": _expand,
    "aten.expand_as": expand_as,
    "aten.broadcast_tensors": _broadcast_tensors,
    "aten.repeat": _repeat,
    "aten.tile": same("tile", "self dims"),
    "aten.repeat_interleave": same("repeat_interleave", "self repeats dim"),
    "aten.sym_size": _size,
    "_operator.mul": _of_sizes("*"),
    "_operator.floordiv": _of_sizes("//"),
    "_operator.add": _of_sizes("+"),
    "_operator.sub": _of_sizes("-"),
    "_operator.truediv": _of_sizes("/"),
    "_operator.pow": _of_sizes("**"),
    "torch.sym_float": _first,
    "aten.pad": _padded("constant"),
    "aten.constant_pad_nd": _padded("constant"),
    "aten.reflection_pad1d": _padded("reflect"),
    "aten.reflection_pad2d": _padded("reflect"),
    "aten.replication_pad1d": _padded("replicate"),
    "aten.replication_pad2d": _padded("replicate"),
    "aten.pixel_shuffle": same("pixel_shuffle", "self upscale_factor"),
    "aten.channel_shuffle": same("channel_shuffle", "self groups"),
    "aten.pixel_unshuffle": same("pixel_unshuffle", "self downscale_factor"),
    "aten._conj": itself,
}
