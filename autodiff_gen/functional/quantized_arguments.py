"""Arguments of functions of quantised tensors: checks with errors that name the function."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import AutodiffError, ShapeError
from ..ir.node import Value
from ..ir.quantization import HIGH, LOW, Quantization
from ..ir.types import plain
from ..ops.quantized.limits import CLOSED, OPEN, with_convention
from .arguments import shape_error


def array_of(given: Any) -> Any:
    """`given` as an array; an array of None, which callers reject, for lists of different lengths."""
    try:
        return np.asarray(given)
    except ValueError:
        return np.asarray(None)


def one_line(given: Any) -> str:
    return " ".join(repr(given).split())


def is_integer(number: Any) -> bool:
    return isinstance(number, int) and not isinstance(number, bool)


def quantization_of(name: str, scale: Any, zero_point: Any) -> Quantization:
    """The quantisation with one scale. Raises ShapeError for arguments that are no numbers or out of range."""
    scale, zero_point = plain(scale), plain(zero_point)
    if not isinstance(scale, int | float) or isinstance(scale, bool):
        raise ShapeError(f"{name}: scale={one_line(scale)} must be a number")
    if not is_integer(zero_point):
        raise ShapeError(f"{name}: zero_point={one_line(zero_point)} must be an integer")
    return _checked(name, (float(scale),), zero_point, None)


def weight_arrays(name: str, values: Any, scales: Any, axis: int) -> tuple[Any, Quantization]:
    """int8 weights as an array, and their quantisation. Raises ShapeError for another dtype, and for wrong scales."""
    array = array_of(values)
    if array.dtype != np.int8 or array.ndim == 0:
        raise ShapeError(f"{name}: the values must be int8, not {array.dtype}{list(array.shape)}")
    if not is_integer(plain(axis)) or not -array.ndim <= axis < array.ndim:
        raise ShapeError(f"{name}: the values have no axis {axis!r}, only {array.ndim}")
    return array, weight_quantization(name, scales, axis % array.ndim, array.shape[axis])


def weight_quantization(name: str, scales: Any, axis: int, extent: int) -> Quantization:
    """The quantisation with one scale, or one for each of the `extent` elements along the axis."""
    array = array_of(scales)
    if array.dtype.kind not in "fiu" or array.ndim > 1:
        raise ShapeError(
            f"{name}: scales must be a number or one for each element along axis {axis}, not "
            f"{array.dtype}{list(array.shape)}"
        )
    if array.ndim and len(array) != extent:
        raise ShapeError(f"{name}: {len(array)} scales for the {extent} elements along axis {axis}")
    numbers = tuple(float(s) for s in np.atleast_1d(array))
    return _checked(name, numbers, 0, axis if array.ndim else None)


def _checked(name: str, scales: tuple[float, ...], zero_point: int, axis: int | None) -> Quantization:
    try:
        return Quantization(scales, zero_point, axis)
    except ShapeError as error:
        raise ShapeError(f"{name}: {error}") from None


def quantized_operand(name: str, v: Value, axis: int | None = None) -> Quantization:
    """The quantisation of an operand, which may have a scale for each element along `axis`. Raises ShapeError for an
    operand that is not quantised, or has scales along another axis."""
    of = v.type.quantization
    if of is None:
        raise shape_error(
            name,
            [v],
            "needs a quantised tensor, as F.quantize, F.quantized_weight and other quantised functions give it",
        )
    if of.axis not in (None, axis):
        where = "needs one scale for the whole tensor" if axis is None else f"not along axis {axis}"
        raise shape_error(name, [v], f"has scales along axis {of.axis}, {where}")
    return of


def check_limits(name: str, low: Any, high: Any) -> None:
    if not (is_integer(plain(low)) and is_integer(plain(high)) and LOW <= low < high <= HIGH):
        raise ShapeError(
            f"{name}: the limits {one_line(low)} and {one_line(high)} must be integers that ascend between {LOW} and "
            f"{HIGH}"
        )


def check_convention(name: str, clamp_gradient: Any, error: type[AutodiffError] = ShapeError) -> None:
    if not isinstance(clamp_gradient, str) or clamp_gradient not in (OPEN, CLOSED):
        raise error(f"{name}: clamp_gradient={one_line(clamp_gradient)} must be {OPEN!r} or {CLOSED!r}")


def limited_op(name: str, op: str, clamp_gradient: str) -> tuple[str, dict[str, Any]]:
    """The op and the additional attributes for a value of clamp_gradient. Raises ShapeError, which names the
    function."""
    check_convention(name, clamp_gradient)
    return with_convention(op, clamp_gradient)


def result_attributes(name: str, scale: float, zero_point: int, low: int, high: int) -> dict[str, Any]:
    """The attributes of a limited result."""
    check_limits(name, low, high)
    return {"quantization": quantization_of(name, scale, zero_point), "low": low, "high": high}
