"""Counter-based random numbers: a function of (key, counter, index), so that they are recomputed instead of stored."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...ir.counter_rng import rand_u32 as random_bits
from ...ir.node import Sample, define
from ...ir.op_kinds import ATOM, SELECT, UNARY, Elementwise
from ...ir.types import Type, u32


def _rand_u32_type(counter: Type, index: Type, *, key: int | None) -> Type:
    if counter != Type(u32, ()):
        raise ShapeError(f"the counter must be a scalar u32[], not {counter}")
    if index.dtype.name != "s32":
        raise ShapeError(f"the index must be s32, not {index.dtype}")
    return Type(u32, index.shape)


def _rand_u32(counter: Any, index: Any, *, key: int | None) -> Any:
    assert key is not None, "the key is assigned when the mode is resolved"
    return random_bits(key, counter, index)


rand_u32 = define(
    # 32 random bits for each index; `key` is the stream, None until resolve_mode numbers the streams of a model.
    "rand_u32",
    infer=_rand_u32_type,
    ref=_rand_u32,
    vjp=None,
    lower=Elementwise(
        "ag_rand_u32({key}u, {0}, (uint32_t){1})", ATOM, (SELECT, UNARY), cheap=True, header="ag_rng.h"
    ),
    samples=(
        Sample(((), (2, 3)), {"key": 5}, dtypes={0: "u32", 1: "s32"}, high=1000),
        Sample(((), ()), {"key": 2**32 - 1}, dtypes={0: "u32", 1: "s32"}, high=1000),
    ),
)
