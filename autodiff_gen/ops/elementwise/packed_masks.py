"""Masks of a bit for each element (runtime/ag_bits.h); the pass pack_masks creates these ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.node import Sample, define
from ...ir.op_kinds import ATOM, MUL, Elementwise
from ...ir.types import DType, Type, bool_, broadcast, s32, u8

HEADER = "ag_bits.h"
BITS = 8  # in a byte
SHIFT = 65  # the precedence of >>, below that of +


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
    "byte_of_bit",  # the index of the byte that has the bit of element a
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
