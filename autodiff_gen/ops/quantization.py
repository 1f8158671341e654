"""From float to 8-bit integers and back, and elementwise ops of quantised tensors. The attribute `quantization` is that
of the result; results are equal to the last bit in NumPy and on every core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.node import Op, Sample, register
from ..ir.op_kinds import ADD, ATOM, MUL, SELECT, Elementwise, Pick
from ..ir.quantization import HIGH, LOW, Quantization, limited, requantized
from ..ir.types import Type, broadcast, f32, s8
from .support import check_float

HEADER = "ag_quantization.h"
_ANY = Quantization((0.05,), 3)


def is_s8(*types: Type) -> None:
    for t in types:
        if t.dtype is not s8:
            raise ShapeError(f"needs s8, not {t.dtype}; F.quantize makes it")


def _quantize_type(x: Type, *, inverse: float, zero: int, quantization: Quantization) -> Type:
    check_float(x)
    return Type(s8, x.shape, quantization)


def _quantize(x: Any, *, inverse: float, zero: int, quantization: Quantization) -> Any:
    q = np.rint(x.astype(np.float32) * np.float32(inverse)) + np.float32(zero)
    return np.where(q > LOW, np.minimum(q, HIGH), LOW).astype(np.int8)


quantize = register(
    Op(
        "quantize",  # x * inverse + zero, rounded to the nearest s8
        infer=_quantize_type,
        ref=_quantize,
        vjp=None,
        lower=Elementwise("ag_quantized({0}, {inverse}, {zero})", ATOM, header=HEADER),
        samples=tuple(
            Sample(shape, {"inverse": 20.0, "zero": 3, "quantization": _ANY}, domain=(-9.0, 9.0))
            for shape in (((2, 3),), ((1,),), ((),))
        ),
        torch="torch.nan_to_num(torch.round(a * inverse) + zero, nan=-128.0).clamp(-128, 127).to(torch.int8)",
    )
)


def _dequantize_type(q: Type, *, scale: float, zero: int) -> Type:
    is_s8(q)
    return Type(f32, q.shape)


def _dequantize(q: Any, *, scale: float, zero: int) -> Any:
    return (q.astype(np.int32) - zero).astype(np.float32) * np.float32(scale)


dequantize = register(
    Op(
        "dequantize",  # (q - zero) * scale
        infer=_dequantize_type,
        ref=_dequantize,
        vjp=None,
        lower=Elementwise("(float)({0} - {zero}) * {scale}", MUL, ADD, cheap=True),
        samples=tuple(
            Sample(shape, {"scale": 0.05, "zero": -3}, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)})
            for shape in (((2, 3),), ((),))
        ),
        torch="(a.to(torch.int32) - zero).to(torch.float32) * scale",
    )
)


def _clamp_type(q: Type, *, low: int, high: int) -> Type:
    is_s8(q)
    return q


clamp_s8 = register(
    Op(
        "clamp_s8",  # q between low and high
        infer=_clamp_type,
        ref=lambda q, *, low, high: np.clip(q, low, high),
        vjp=None,
        lower=Elementwise("ag_limited({0}, {low}, {high})", ATOM, cheap=True, header=HEADER),
        torch="a.clamp(low, high)",
        samples=(
            Sample(((2, 3),), {"low": -20, "high": 45}, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)}),
        ),
    )
)


def _lookup_type(table: Type, index: Type, *, quantization: Quantization) -> Type:
    is_s8(table)
    if table.shape != (HIGH - LOW + 1,) or index.dtype.name != "s32":
        raise ShapeError(f"needs a table of {HIGH - LOW + 1} elements and an index in s32")
    return Type(s8, index.shape, quantization)


lookup_s8 = register(
    Op(
        "lookup_s8",  # table[index]: any function of one quantised tensor, for each of its integers
        infer=_lookup_type,
        ref=lambda table, index, *, quantization: table[index],
        vjp=None,
        lower=Pick(lambda table, index, attrs: ((None,), tuple(range(len(index))))),
        samples=tuple(
            Sample(
                ((HIGH - LOW + 1,), shape),
                {"quantization": _ANY},
                dtypes={0: "s8", 1: "s32"},
                integers={0: (LOW, HIGH + 1), 1: (0, HIGH - LOW + 1)},
            )
            for shape in ((2, 3), (5,))
        ),
        torch="a[b.long()]",
    )
)


def _two_type(a: Type, b: Type, *, quantization: Quantization, **attrs: Any) -> Type:
    is_s8(a, b)
    return Type(s8, broadcast(a.shape, b.shape), quantization)


def _add(a: Any, b: Any, *, left: int, quantization: Quantization, **n: Any) -> Any:
    first = requantized((a.astype(np.int32) - n["a_zero"]) << left, n["a_multiplier"], n["a_shift"])
    second = requantized((b.astype(np.int32) - n["b_zero"]) << left, n["b_multiplier"], n["b_shift"])
    total = requantized(first + second, n["multiplier"], n["shift"])
    return limited(total, n["zero"], n["low"], n["high"])


def _mul(a: Any, b: Any, *, quantization: Quantization, **n: Any) -> Any:
    product = (a.astype(np.int32) - n["a_zero"]) * (b.astype(np.int32) - n["b_zero"])
    return limited(requantized(product, n["multiplier"], n["shift"]), n["zero"], n["low"], n["high"])


_RESULT = {
    "multiplier": 2**30 + 12345,
    "shift": -1,
    "zero": -4,
    "low": -100,
    "high": 90,
    "quantization": _ANY,
}
_ZEROS = {"a_zero": -5, "b_zero": 7}
_TERMS = {"a_multiplier": 2**30 + 999, "a_shift": 0, "b_multiplier": -(2**30) - 999, "b_shift": 0}


def _two(name: str, ref: Callable[..., Any], c: str, attrs: Mapping[str, Any]) -> Op:
    shapes = (((2, 3), (2, 3)), ((2, 3), (3,)), ((), (4,)))
    samples = tuple(
        Sample(
            s,
            dict(attrs),
            dtypes=dict.fromkeys((0, 1), "s8"),
            integers=dict.fromkeys((0, 1), (LOW, HIGH + 1)),
        )
        for s in shapes
    )
    return Op(name, _two_type, ref, None, Elementwise(c, ATOM, SELECT, header=HEADER), samples)


_LIMITED = "{multiplier}, {shift}, {zero}, {low}, {high})"

add_s8 = register(
    _two(
        "add_s8",  # a + b, each brought to a common scale with `left` more bits first; a - b if b_multiplier < 0
        _add,
        "ag_quantized_sum({0}, {a_zero}, {a_multiplier}, {a_shift}, {1}, {b_zero}, {b_multiplier}, {b_shift}, "
        f"{{left}}, {_LIMITED}",
        {**_ZEROS, **_TERMS, "left": 20, **_RESULT, "shift": -18},
    )
)

mul_s8 = register(
    _two(
        "mul_s8",
        _mul,
        f"ag_quantized_product({{0}}, {{a_zero}}, {{1}}, {{b_zero}}, {_LIMITED}",
        {**_ZEROS, **_RESULT, "shift": -6},
    )
)
