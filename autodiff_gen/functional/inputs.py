"""Inputs, parameters and buffers of a model, and checks of their names and of outputs."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from .. import init
from ..errors import ModelError
from ..ir.build import make_input, make_state
from ..ir.graph import State
from ..ir.identifiers import KEYWORDS, is_identifier, is_reserved
from ..ir.node import Value
from ..ir.types import Dim, Shape, Size, Type, dtype, f32, f64


def Input(name: str, shape: int | Sequence[int], dtype: Any = "f32", batch_axis: int | None = None) -> Value:
    """An input of a generated function: the name, shape and dtype ("f32", "s8", "u8", "s32", "u32" or "bool") of its C
    argument.

    With `batch_axis=0`, the first axis may have any extent n up to the given one at run time. Raises ModelError for a
    name that is no C identifier, for "f64", and for an invalid shape or batch axis; ShapeError for an unknown dtype.
    """
    if not is_identifier(name):
        raise ModelError(f"input {name!r}: {why_not(name)}")
    kind = _dtype(dtype)
    if kind is f64:
        raise ModelError(f"input {name!r}: dtype={dtype!r}: generated C holds no double; take 'f32'")
    extents = _extents(f"input {name!r}", shape)
    sizes: list[Size] = list(extents)
    if batch_axis is not None:
        if not -len(sizes) <= batch_axis < len(sizes):
            raise ModelError(
                f"input {name!r}: batch_axis={batch_axis} is out of range for shape {list(extents)}"
            )
        if extents[batch_axis] > 1:
            sizes[batch_axis] = Dim(1, extents[batch_axis])
            check_batch_first(f"input {name!r}", tuple(sizes))
    return make_input(name, Type(kind, tuple(sizes)))


_dtype = dtype


def Param(name: str, values: Any, requires_grad: bool = True) -> Value:
    """A parameter, f32, as a graph value. `values`: an initialiser of `ag.init`, an array or a number; an initialiser
    without a seed gets one derived from the name. Raises ModelError for an invalid name and for values that are not
    finite."""
    check_parameter_name(name)
    first = init.initialiser(name, values, zlib.crc32(name.encode()))
    return make_state(State(name, Type(f32, first.shape), first, requires_grad))


def Buffer(name: str, values: Any, dtype: str = "f32") -> Value:
    """State without gradient that a training step may update (F.with_updates), as a graph value: running statistics,
    counters. A buffer that is never updated, such as a mask, is a constant in flash. `values` as for Param; dtype:
    "f32", "s32" or "bool"."""
    check_parameter_name(name)
    return make_buffer(name, values, dtype)


def make_buffer(name: str, values: Any, dtype: str) -> Value:
    kind = _dtype(dtype)
    if kind.name not in ("f32", "s32", "bool"):
        raise ModelError(f"buffer {name!r}: dtype={dtype!r}; known: 'f32', 's32', 'bool'")
    first = init.initialiser(name, values, zlib.crc32(name.encode()))
    return make_state(State(name, Type(kind, first.shape), first, False, "buffer"))


def why_not(name: str) -> str:
    """Why a name is no identifier, for messages."""
    if isinstance(name, str) and name in KEYWORDS:
        return f"this is a keyword or a macro of C or C++; call it {name + '_'!r}"
    if isinstance(name, str) and is_reserved(name):
        reserved = "names that begin with __, or with _ and a capital, and macros such as INT32_MAX"
        return f"C reserves {reserved}; call it {'x' + name!r}"
    return "a name is a string of letters, digits and _, which does not begin with a digit"


def check_parameter_name(name: str) -> None:
    """Raise ModelError unless the name consists of letters, digits and _ in segments separated by dots, as in a
    state_dict: `fc1.weight`, `0.weight`."""
    if name in KEYWORDS:
        raise ModelError(f"parameter {name!r}: {why_not(name)}")
    if not isinstance(name, str) or not re.fullmatch(r"\w+(\.\w+)*", name, re.ASCII):
        raise ModelError(
            f"parameter {name!r}: a name is made of letters, digits and _, in segments separated by dots"
        )


def _extents(what: str, shape: int | Sequence[int]) -> tuple[int, ...]:
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    for d in extents:
        if isinstance(d, bool) or not isinstance(d, int) or d < 1:
            raise ModelError(f"{what}: shape {list(extents)} must be made of integers of at least 1")
    return extents


def check_batch_first(what: str, shape: Shape) -> None:
    """Raise ModelError if a batch axis is not the first axis (but for extents of 1), or if there are several: an
    argument of the generated code is contiguous for any n."""
    if sum(isinstance(d, Dim) for d in shape) > 1:
        raise ModelError(
            f"{what}: only one axis may follow the batch, shape {list(shape)}; an Input without batch_axis has a fixed "
            "batch"
        )
    if any(isinstance(d, Dim) for d in shape) and not isinstance(next(d for d in shape if d != 1), Dim):
        raise ModelError(
            f"{what}: the batch axis must come first, shape {list(shape)}; use F.permute inside the graph"
        )


def check_outputs(what: str, outputs: Mapping[str, Value], inputs: Sequence[Value]) -> None:
    """Raise ModelError unless outputs have valid names and are graph values. A batch axis must come first, and an input
    must have it too."""
    varying = any(isinstance(d, Dim) for v in inputs for d in v.shape)
    for name, v in outputs.items():
        if not isinstance(v, Value):
            raise ModelError(f"{what}output {name!r} is {type(v).__name__}, not a graph value")
        if not is_identifier(name):
            raise ModelError(f"{what}output {name!r}: {why_not(name)}")
        check_batch_first(f"{what}output {name!r}", v.shape)
        if not varying and any(isinstance(d, Dim) for d in v.shape):
            raise ModelError(
                f"{what}output {name!r} is {v.type}, but no input has a batch axis to read n from"
            )


def largest_batch(inputs: Sequence[Value]) -> int:
    """The largest batch; 1 if no input has a batch axis. Raises ModelError if the inputs differ."""
    caps = {d.cap: v.name for v in inputs for d in v.shape if isinstance(d, Dim)}
    if len(caps) > 1:
        sizes = " and ".join(f"{name!r} has {cap}" for cap, name in caps.items())
        raise ModelError(f"the inputs have different batch sizes: {sizes}")
    return next(iter(caps), 1)
