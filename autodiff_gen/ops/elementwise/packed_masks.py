"""Masks with one bit per element (runtime/ag_bits.h), for the pass pack_masks and the limits of quantised tensors.

The bits of all axes after a batch axis that may vary are packed together, in the order of memory. The first element is
the lowest bit, and the bits after the last element are 0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, with_shape
from ...ir.names import with_role
from ...ir.node import Sample, Value, define
from ...ir.op_kinds import ATOM, MUL, Elementwise
from ...ir.types import Dim, DType, Shape, Type, bool_, broadcast, planned_size, s32, u8

HEADER = "ag_bits.h"
BITS = 8  # in a byte
SHIFT = 65  # the precedence of >>, below the precedence of +


def _indexed(x: Type, index: Type, of: DType, to: DType) -> Type:
    if x.dtype is not of or index.dtype is not s32:
        raise ShapeError(f"needs {of} and an index in s32")
    return Type(to, broadcast(x.shape, index.shape))


def _index_only(index: Type) -> Type:
    if index.dtype is not s32:
        raise ShapeError(f"needs an index in s32, not {index.dtype}")
    return index


def _samples(x: str, most: int) -> tuple[Sample, ...]:
    return tuple(
        Sample(shapes, dtypes={0: x, 1: "s32"}, integers={0: (0, most), 1: (0, 99)})
        for shapes in (((3, 8), (8,)), ((5,), (5,)))
    )


bit = define(
    "bit",  # the bit of element b in its byte, 0 where the mask is false
    infer=lambda mask, index: _indexed(mask, index, bool_, s32),
    ref=lambda mask, index: mask.astype(np.int32) << (index & 7),
    vjp=None,
    lower=Elementwise("ag_bit({0}, {1})", ATOM, cheap=True, header=HEADER),
    samples=_samples("bool", 2),
    torch="a.to(torch.int32) << (b & 7)",
)

byte_of_bit = define(
    "byte_of_bit",  # the index of the byte that holds the bit of element a
    infer=_index_only,
    ref=lambda index: index >> 3,
    vjp=None,
    lower=Elementwise("{0} >> 3", SHIFT, MUL, cheap=True),
    samples=(Sample(((2, 8),), dtypes={0: "s32"}, high=99), Sample(((),), dtypes={0: "s32"}, high=99)),
    torch="a >> 3",
)


def _has_bit(byte: Any, index: Any) -> Any:
    return (byte.astype(np.int32) >> (index & 7)) & 1 != 0


has_bit = define(
    "has_bit",  # whether element b of a mask is true; a is the byte of its bit
    infer=lambda byte, index: _indexed(byte, index, u8, bool_),
    ref=_has_bit,
    vjp=None,
    lower=Elementwise("ag_has_bit({0}, {1})", ATOM, cheap=True, header=HEADER),
    samples=_samples("u8", 256),
    torch="(a.to(torch.int32) >> (b & 7)) & 1 != 0",
)


def first_packed_axis(shape: Shape) -> int:
    """The first axis whose bits are packed: the axis after the batch axis, or 0 without a batch axis."""
    return 1 + max((i for i, d in enumerate(shape) if isinstance(d, Dim)), default=-1)


def packed(mask: Callable[..., Value], operands: Sequence[Value], shape: Shape) -> Value:
    """A mask of this shape as bits in u8 [..., bytes]. mask: an elementwise function that computes the mask from the
    operands, or from reshaped operands."""
    k = first_packed_axis(shape)
    size = planned_size(shape[k:])
    wide = (*shape[:k], -(-size // BITS), BITS)
    if size % BITS == 0 and all(v.type.shape in (shape, ()) for v in operands):
        bits = mask(*[with_shape(v, wide if v.type.shape else ()) for v in operands])
    else:
        flat = with_shape(mask(*operands), (*shape[:k], size))
        filled = (*shape[:k], wide[-2] * BITS)
        windows = {"starts": ((0,) * len(filled),), "steps": ((1,) * len(filled),)}
        bits = with_shape(apply("assemble", flat, shape=filled, **windows, fill=0), wide)
    byte = apply(
        "sum_s32", apply("bit", bits, apply("iota", size=BITS)), axes=(len(wide) - 1,), keepdim=False
    )
    return with_role(apply("to_u8", byte), "mask")


def unpacked(bytes: Value, shape: Shape) -> Value:
    """The mask of this shape from its bits: the last axis of `bytes` holds the bits of the mask's axes from its
    position on."""
    k = bytes.ndim - 1
    index = apply("iota", size=shape[k:])
    return apply("has_bit", apply("index_select", bytes, apply("byte_of_bit", index), dim=k), index)
