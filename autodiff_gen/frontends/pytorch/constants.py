"""Rules of the table: tensors that depend on nothing but sizes."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..imported.program import ValueRef, WeightRef
from .rules import Arguments, Converter, Rule, Unsupported

DTYPES = {"float32": np.float32, "int64": np.int32, "int32": np.int32, "bool": np.bool_}


def _filled(number: float | None = None, like: bool = False) -> Rule:
    """A tensor filled with a number: a constant, or a broadcast number if the batch determines the size."""

    def rule(c: Converter, a: Arguments) -> Any:
        value = a["fill_value"] if number is None else number
        dtype = a.get("dtype")
        if like:
            dtype = dtype or c.dtype(a["self"])
            known = c.shape(a["self"])
            shape = tuple(
                c.emit(f"{{}}.shape[{k}]", a["self"]) if d is None else d for k, d in enumerate(known)
            )
        else:
            shape = a.get("size", ())
            dtype = dtype or (c.dtype(a["self"]) if "self" in a else None)  # of x.new_zeros(...)
        kind = _dtype(dtype, "float32" if isinstance(value, float) or number is not None else "int64")
        if any(isinstance(d, ValueRef) for d in shape):
            ref: ValueRef | WeightRef
            if kind is np.float32:
                ref = c.emit("broadcast_to", float(value), shape)
            else:
                ref = c.emit("full", shape, value, dtype="bool" if kind is np.bool_ else "s32")
        else:
            ref = c.constant(np.full(shape, value, kind))
        if value == 0:
            c.zeros.add(ref.name)
        return ref

    return rule


def _empty(like: bool = False) -> Rule:
    """Uninitialised memory, which another operator fills, as with random numbers: ones."""

    def rule(c: Converter, a: Arguments) -> Any:
        ref = _filled(1.0, like)(c, a)
        c.empty.add(ref)
        return ref

    return rule


def _window(alpha: float, beta: float) -> Rule:
    """alpha - beta cos(2 pi k / n), the window of a spectrum's frames; a symmetric window has n - 1 in place of n."""

    def rule(c: Converter, a: Arguments) -> Any:
        n = a["window_length"]
        period = max(1, n if a.get("periodic", True) else n - 1)
        first, second = a.get("alpha", alpha), a.get("beta", beta)
        window = first - second * np.cos(2.0 * np.pi * np.arange(n) / period)
        return c.constant((window if n > 1 else np.ones(n)).astype(np.float32))

    return rule


def _dtype(name: str | None, default: str) -> Any:
    name = name or default
    if name not in DTYPES:
        raise Unsupported(f"has dtype={name}; use float32")
    return DTYPES[name]


def _arange(c: Converter, a: Arguments) -> Any:
    start, end, step = a.get("start", 0), a["end"], a.get("step", 1)
    if isinstance(end, ValueRef) and (start, step) == (0, 1):
        return c.emit("arange", end)
    if any(isinstance(v, ValueRef) for v in (start, end, step)):
        raise Unsupported("has a size that depends on the batch; use a number")
    whole = all(isinstance(v, int) for v in (start, end, step))
    return c.constant(
        np.arange(start, end, step).astype(_dtype(a.get("dtype"), "int64" if whole else "float32"))
    )


def _linspace(c: Converter, a: Arguments) -> Any:
    return c.constant(np.linspace(a["start"], a["end"], a["steps"]).astype(_dtype(a.get("dtype"), "float32")))


def _eye(c: Converter, a: Arguments) -> Any:
    sizes = [a[name] for name in ("n", "m") if name in a]
    if any(isinstance(d, ValueRef) for d in sizes):
        kind = _dtype(a.get("dtype"), "float32")
        options = {} if kind is np.float32 else {"dtype": "bool" if kind is np.bool_ else "s32"}
        return c.emit("eye", *sizes, **options)
    return c.constant(np.eye(a["n"], a.get("m", a["n"]), dtype=_dtype(a.get("dtype"), "float32")))


def _triangle(indices: Any) -> Rule:
    """The rows and columns of a triangle of a matrix."""

    def rule(c: Converter, a: Arguments) -> Any:
        found = indices(a["row"], a.get("offset", 0), a["col"])
        return c.constant(np.stack(found).astype(np.int32))

    return rule


def _scalar(c: Converter, a: Arguments) -> Any:
    number = a["s"]
    return c.constant(np.asarray(number, _dtype(a.get("dtype"), "float32")))


CONSTANTS: dict[str, Rule] = {
    "aten.hann_window": _window(0.5, 0.5),
    "aten.hamming_window": _window(0.54, 0.46),
    "aten.zeros": _filled(0),
    "aten.ones": _filled(1),
    "aten.full": _filled(),
    "aten.empty": _empty(),
    "aten.empty_permuted": _empty(),
    "aten.new_empty": _empty(),
    "aten.empty_like": _empty(like=True),
    "aten.new_zeros": _filled(0),
    "aten.new_ones": _filled(1),
    "aten.new_full": _filled(),
    "aten.zeros_like": _filled(0, like=True),
    "aten.ones_like": _filled(1, like=True),
    "aten.full_like": _filled(like=True),
    "aten.arange": _arange,
    "aten.eye": _eye,
    "aten.linspace": _linspace,
    "aten.scalar_tensor": _scalar,
    "aten.tril_indices": _triangle(np.tril_indices),
    "aten.triu_indices": _triangle(np.triu_indices),
}
