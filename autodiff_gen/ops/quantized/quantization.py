"""Conversion of floats to integers and back, and elementwise ops of quantised tensors. The attribute `quantization` is
the quantisation of the result; results are equal to the last bit in NumPy and on every core."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, constant
from ...ir.node import OptionalValues, Sample, Value, Values, Wanted, define
from ...ir.op_kinds import ADD, ATOM, MUL, SELECT, Attrs, Elementwise
from ...ir.quantization import HIGH, LOW, Quantization, requantized
from ...ir.types import DType, Type, bool_, broadcast, s8, s32, u32
from ..support import by_operand, check_float, sum_to
from .limits import HEADER, Gradients, is_s8, through_limits

_ANY = Quantization((0.05,), 3)


def _rounded_type(x: Type, inverse: Type, quantization: Quantization, to: DType) -> Type:
    check_float(x)
    if inverse.dtype is not x.dtype or broadcast(x.shape, inverse.shape) != x.shape:
        raise ShapeError("the inverse scales must be floats that broadcast to the tensor")
    return Type(to, x.shape, quantization)


def _quantize_type(x: Type, inverse: Type, *, zero: int, quantization: Quantization) -> Type:
    return _rounded_type(x, inverse, quantization, s8)


def _rounded(x: Any, inverse: Any, zero: int) -> Any:
    return np.rint(x.astype(np.float32) * inverse.astype(np.float32)) + np.float32(zero)


def _quantize(x: Any, inverse: Any, *, zero: int, quantization: Quantization) -> Any:
    q = _rounded(x, inverse, zero)
    return np.where(q > LOW, np.minimum(q, HIGH), LOW).astype(np.int8)


def _quantize_gradient(dy: Value, x: Value, inverse: Value, y: Value, attrs: Attrs) -> Value:
    """dy where the nearest integer is in -128 to 127, limits included: the largest weight of a channel becomes 127."""
    q, zero = apply("mul", x, inverse), attrs["zero"]
    passes = apply("logical_and", apply("gt", q, LOW - 0.5 - zero), apply("lt", q, HIGH + 0.5 - zero))
    return apply("where", passes, dy, 0.0)


_SCALES = (((2, 3), ()), ((2, 3), (3,)), ((2, 3), (2, 1)), ((), ()))

quantize = define(
    "quantize",  # a * b + zero, rounded to the nearest s8; b is the inverse of the scale, or the inverses of scales
    infer=_quantize_type,
    ref=_quantize,
    vjp=by_operand(_quantize_gradient, None),
    lower=Elementwise("ag_quantized({0}, {1}, {zero})", ATOM, header=HEADER),
    samples=tuple(
        Sample(shapes, {"zero": 3, "quantization": _ANY}, domain=(-9.0, 9.0)) for shapes in _SCALES
    ),
    torch="torch.nan_to_num(torch.round(a * b) + zero, nan=-128.0).clamp(-128, 127).to(torch.int8)",
)


def _quantize_s32_type(
    x: Type, scale: Type, *, inverse: float, low: float, high: float, quantization: Quantization
) -> Type:
    return _rounded_type(x, scale, quantization, s32)


def _quantize_s32(
    x: Any, scale: Any, *, inverse: float, low: float, high: float, quantization: Quantization
) -> Any:
    with np.errstate(over="ignore"):
        q = _rounded(x.astype(np.float32) / scale.astype(np.float32), np.float32(inverse), 0)
    return np.where(q > low, np.minimum(q, np.float32(high)), np.float32(low)).astype(np.int32)


quantize_s32 = define(
    # a / b * inverse, rounded to the nearest integer and limited to low to high, which are floats; low for NaN. b has
    # the scales of the weights, a table that gradients read too; `inverse` is 1 / the scale of x.
    "quantize_s32",
    infer=_quantize_s32_type,
    ref=_quantize_s32,
    vjp=lambda dys, inputs, outs, attrs, wanted: [dys[0], None],
    lower=Elementwise(
        "ag_quantized_s32({0} / {1}, {inverse}, {low}, {high})", ATOM, (MUL, ATOM), header=HEADER
    ),
    samples=tuple(
        Sample(
            shapes,
            {"inverse": inverse, "low": -8.0, "high": 12.0, "quantization": _ANY},
            domain=(0.5, 9.0),
        )
        for shapes, inverse in zip(_SCALES, (1.75, -0.75, 0.75, -1.0), strict=True)
    ),
    torch="torch.nan_to_num(torch.round(a / b * inverse), nan=low).clamp(low, high).to(torch.int32)",
)


def _dequantize_type(q: Type, scale: Type, *, zero: int) -> Type:
    is_s8(q)
    if scale.dtype.kind != "f" or broadcast(q.shape, scale.shape) != q.shape:
        raise ShapeError("the scales must be floats that broadcast to the tensor")
    return Type(scale.dtype, q.shape)


def _dequantize(q: Any, scale: Any, *, zero: int) -> Any:
    return (q.astype(np.int32) - zero).astype(scale.dtype) * scale


dequantize = define(
    "dequantize",  # (a - zero) * b; b is the scale, or the scales along an axis
    infer=_dequantize_type,
    ref=_dequantize,
    vjp=lambda dys, inputs, outs, attrs, wanted: [dys[0], None],
    lower=Elementwise("(float)({0} - {zero}) * {1}", MUL, (ADD, MUL), cheap=True),
    samples=tuple(
        Sample(shapes, {"zero": -3}, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)}) for shapes in _SCALES
    ),
    torch="(a.to(torch.int32) - zero).to(b.dtype) * b",
)


def _step_type(q: Type, change: Type, random: Type) -> Type:
    is_s8(q)
    if (change.dtype.kind, random.dtype) != ("f", u32) or not change.shape == random.shape == q.shape:
        raise ShapeError("the change must be a float and the random bits u32, both of the same shape")
    return q


def _step(q: Any, change: Any, random: Any) -> Any:
    change = change.astype(np.float32)
    with np.errstate(invalid="ignore"):
        whole = np.floor(change)
        up = change - whole > (random >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
        total = q.astype(np.float32) + whole + up
    return np.clip(np.where(np.isnan(total), q, total), LOW, HIGH).astype(np.int8)


step_s8 = define(
    "step_s8",  # q + change, rounded down or up by random bits, limited to -128 to 127; q where the change is NaN
    infer=_step_type,
    ref=_step,
    vjp=None,
    lower=Elementwise("ag_quantized_step({0}, {1}, {2})", ATOM, header=HEADER),
    samples=tuple(
        Sample(
            (shape, shape, shape),
            domain=(-40.0, 40.0),
            dtypes={0: "s8", 2: "u32"},
            integers={0: (LOW, HIGH + 1), 2: (0, 2**32)},
        )
        for shape in ((2, 30), ())
    ),
)


def _clamp_type(q: Type, **attrs: Any) -> Type:
    is_s8(q)
    return q


clamp_s8 = define(
    "clamp_s8",  # q between low and high
    infer=_clamp_type,
    ref=lambda q, **attrs: np.clip(q, attrs["low"], attrs["high"]),
    vjp=through_limits(lambda g, inputs, attrs, wanted: [g], mask="clamp_within_s8"),
    lower=Elementwise("ag_limited({0}, {low}, {high})", ATOM, cheap=True, header=HEADER),
    torch="a.clamp(low, high)",
    samples=(Sample(((2, 3),), {"low": -20, "high": 45}, dtypes={0: "s8"}, integers={0: (LOW, HIGH + 1)}),),
)


def _binary_type(a: Type, b: Type, *, quantization: Quantization, **attrs: Any) -> Type:
    is_s8(a, b)
    return Type(s8, broadcast(a.shape, b.shape), quantization)


def _binary_mask_type(a: Type, b: Type, **attrs: Any) -> Type:
    return Type(bool_, _binary_type(a, b, **attrs).shape)


def _unlimited_sum(a: Any, b: Any, *, left: int, **n: Any) -> Any:
    first = requantized((a.astype(np.int32) - n["a_zero"]) << left, n["a_multiplier"], n["a_shift"])
    second = requantized((b.astype(np.int32) - n["b_zero"]) << left, n["b_multiplier"], n["b_shift"])
    return requantized(first + second, n["multiplier"], n["shift"]).astype(np.int64) + n["zero"]


def _unlimited_product(a: Any, b: Any, **n: Any) -> Any:
    product = (a.astype(np.int32) - n["a_zero"]) * (b.astype(np.int32) - n["b_zero"])
    return requantized(product, n["multiplier"], n["shift"]).astype(np.int64) + n["zero"]


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


def _add_gradients(g: Value, inputs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    rows = zip((g, apply("neg", g) if attrs["b_multiplier"] < 0 else g), inputs, wanted, strict=True)
    return [sum_to(dy, v.type.shape) if want else None for dy, v, want in rows]


def _mul_gradients(g: Value, inputs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    found: list[Value | None] = []
    for v, other, want in zip(inputs, reversed(inputs), wanted, strict=True):
        of = other.type.quantization
        assert of is not None
        real = apply("dequantize", other, constant(of.scale), zero=of.zero_point) if want else None
        found.append(sum_to(apply("mul", g, real), v.type.shape) if want else None)
    return found


def _define_binary(
    name: str, unlimited: Callable[..., Any], gradients: Gradients, c: str, attrs: Mapping[str, Any]
) -> None:
    """Define `name`_s8, and `name`_within_s8, which tells for each element whether it is within the limits before it is
    limited. c: the name of a function of ag_quantization.h, without its prefix, and its first arguments; the last
    arguments, in _SCALED, belong to the result."""
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
    mask = f"{name}_within_s8"
    limited = Elementwise(f"ag_quantized_{c}, {_SCALED}, {{low}}, {{high}})", ATOM, SELECT, header=HEADER)
    within = Elementwise(
        f"ag_is_within(ag_unlimited_{c}, {_SCALED}), {{low}}, {{high}})", ATOM, SELECT, header=HEADER
    )
    define(
        f"{name}_s8",
        _binary_type,
        lambda a, b, **n: np.clip(unlimited(a, b, **n), n["low"], n["high"]).astype(np.int8),
        through_limits(gradients, mask=mask),
        limited,
        samples,
    )
    define(
        mask,
        _binary_mask_type,
        lambda a, b, **n: np.clip(v := unlimited(a, b, **n), n["low"], n["high"]) == v,
        None,
        within,
        samples,
    )


_SCALED = "{multiplier}, {shift}, {zero}"

# a + b (a - b if b_multiplier < 0): both are shifted left by `left` bits, then brought to a common scale
_define_binary(
    "add",
    _unlimited_sum,
    _add_gradients,
    "sum({0}, {a_zero}, {a_multiplier}, {a_shift}, {1}, {b_zero}, {b_multiplier}, {b_shift}, {left}",
    {**_ZEROS, **_TERMS, "left": 20, **_RESULT, "shift": -18},
)

_define_binary(
    "mul",
    _unlimited_product,
    _mul_gradients,
    "product({0}, {a_zero}, {1}, {b_zero}",
    {**_ZEROS, **_RESULT, "shift": -6},
)
