"""Reductions over axes; the generated C reduces in ascending index order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply, broadcast_to, with_shape
from ...ir.node import Op, Sample, Value, define
from ...ir.op_forms import FirstResultOnly
from ...ir.op_kinds import Attrs, Reduce
from ...ir.types import Shape, Type, normalise_axes, s32
from ..support import by_operand, check_float

SAMPLES = (
    Sample(((3, 4),), {"axes": (1,), "keepdim": False}),
    Sample(((3, 4),), {"axes": (0,), "keepdim": True}),
    Sample(((2, 3, 4),), {"axes": (0, 2), "keepdim": False}),
    Sample(((2, 3, 4),), {"axes": (0, 1, 2), "keepdim": False}),
    Sample(((1, 1),), {"axes": (1,), "keepdim": False}),
)
ONE_AXIS = (
    Sample(((3, 4),), {"axes": (1,), "keepdim": False}),
    Sample(((3, 4),), {"axes": (0,), "keepdim": True}),
    Sample(((2, 3, 4),), {"axes": (1,), "keepdim": False}),
    Sample(((1, 1),), {"axes": (1,), "keepdim": False}),
)


def reduced(x: Shape, axes: Sequence[int], keepdim: bool) -> Shape:
    if keepdim:
        return tuple(1 if i in axes else d for i, d in enumerate(x))
    return tuple(d for i, d in enumerate(x) if i not in axes)


def _reduce_type(x: Type, *, axes: tuple[int, ...], keepdim: bool) -> Type:
    check_float(x)
    axes = normalise_axes(axes, len(x.shape))
    return Type(x.dtype, reduced(x.shape, axes, keepdim))


def expanded(v: Value, x: Value, attrs: Attrs) -> Value:
    """A reduction's result, or the gradient of the result, broadcast to the shape of x."""
    axes = normalise_axes(attrs["axes"], len(x.type.shape))
    keepdim = reduced(x.type.shape, axes, True)
    return broadcast_to(with_shape(v, keepdim), x.type.shape)


sum_ = define(
    "sum",
    infer=_reduce_type,
    ref=lambda x, *, axes, keepdim: np.sum(x, axis=tuple(axes), keepdims=keepdim, dtype=x.dtype),
    vjp=by_operand(lambda dy, x, y, attrs: expanded(dy, x, attrs)),
    lower=Reduce(("0.0f",), "{acc0} += {x};", identifier="+"),
    samples=SAMPLES,
    torch="torch.sum(a, dim=axes, keepdim=keepdim)",
)


def _sum_s32_type(x: Type, *, axes: tuple[int, ...], keepdim: bool) -> Type:
    if x.dtype is not s32:
        raise ShapeError(f"needs s32, not {x.dtype}")
    return Type(s32, reduced(x.shape, normalise_axes(axes, len(x.shape)), keepdim))


sum_s32 = define(
    "sum_s32",
    infer=_sum_s32_type,
    ref=sum_.ref,
    vjp=None,
    lower=Reduce(("0",), "{acc0} += {x};", identifier="+"),
    samples=tuple(Sample(s.inputs, s.attrs, dtypes={0: "s32"}, integers={0: (-999, 999)}) for s in SAMPLES),
    torch="torch.sum(a, dim=axes, keepdim=keepdim, dtype=torch.int32)",
)


def _one_axis(x: Type, *, axes: tuple[int, ...], keepdim: bool) -> Type:
    if len(axes) != 1:
        raise ShapeError(f"needs one axis, not {axes}")
    return _reduce_type(x, axes=axes, keepdim=keepdim)


def _prod_gradient(dy: Value, x: Value, y: Value, attrs: Attrs) -> Value:
    """dy times the product of the other elements, without a division: correct for elements that are 0, and for
    derivatives of any order. The cost is quadratic in the extent of the axis; no memory is needed."""
    (axis,) = normalise_axes(attrs["axes"], len(x.type.shape))
    before, extent, after = x.type.shape[:axis], x.type.shape[axis], x.type.shape[axis + 1 :]
    if extent == 1:
        return expanded(dy, x, attrs)
    ones = (1,) * len(after)
    row = apply("reshape", apply("iota", size=extent), shape=(extent, 1, *ones))
    column = apply("reshape", apply("iota", size=extent), shape=(extent, *ones))
    elements = apply("reshape", x, shape=(*before, 1, extent, *after))
    others = apply("where", apply("eq", row, column), 1.0, elements)
    return expanded(dy, x, attrs) * apply("prod", others, axes=(axis + 1,), keepdim=False)


prod = define(
    "prod",
    infer=_one_axis,
    ref=lambda x, *, axes, keepdim: np.prod(x, axis=axes[0], keepdims=keepdim, dtype=x.dtype),
    vjp=by_operand(_prod_gradient),
    lower=Reduce(("1.0f",), "{acc0} *= {x};", identifier="*"),
    samples=ONE_AXIS,
    torch="torch.prod(a, dim=axes[0], keepdim=keepdim)",
)


def _extreme_gradient(dy: Value, x: Value, y: Value, attrs: Attrs, least: int = 1) -> Value:
    """The elements that equal y, the largest or smallest element, share its gradient evenly. least: the least number of
    such elements, 0 or 1."""
    chosen = apply("eq", x, expanded(y, x, attrs))
    ties = apply("sum", apply("to_f32", chosen), **attrs)
    if not least:
        ties = apply("maximum", ties, 1.0)
    return apply("where", chosen, expanded(dy / ties, x, attrs), 0.0)


def _extreme(name: str, c: str, start: str, identifier: str, ref: Callable[..., Any]) -> Op:
    return define(
        name,  # NaN if any element is NaN
        infer=_reduce_type,
        ref=lambda x, *, axes, keepdim: ref(x, axis=tuple(axes), keepdims=keepdim),
        vjp=by_operand(_extreme_gradient),
        lower=Reduce(
            (start,),
            f"{{acc0}} = ({{x}} {c}= {{acc0}} || {{acc0}} != {{acc0}}) ? {{acc0}} : {{x}};",
            identifier=identifier,
        ),
        samples=SAMPLES,
        torch=f"torch.{name}(a, dim=axes, keepdim=keepdim)",
        form=FirstResultOnly(f"{name.removeprefix('a')}_with_index"),
    )


amax = _extreme("amax", "<", "-INFINITY", "ag_max", np.max)
amin = _extreme("amin", ">", "INFINITY", "ag_min", np.min)


def _largest(x: Any, *, axes: tuple[int, ...], keepdim: bool) -> Any:
    most = np.maximum(np.max(x, axis=tuple(axes), keepdims=keepdim), 1)
    return np.where(np.isnan(most), np.inf, most).astype(x.dtype)


largest = define(
    "largest",  # max(1, elements), infinite if one is NaN; the bound of the operands of updates
    infer=_reduce_type,
    ref=_largest,
    vjp=by_operand(partial(_extreme_gradient, least=0)),
    lower=Reduce(("1.0f",), "{acc0} = {x} <= {acc0} ? {acc0} : {x} > {acc0} ? {x} : INFINITY;"),
    samples=SAMPLES,
    torch="torch.nan_to_num(torch.clamp(torch.amax(a, dim=axes, keepdim=keepdim), min=1.0), torch.inf, torch.inf)",
)


def _indexed_type(x: Type, *, axes: tuple[int, ...], keepdim: bool) -> tuple[Type, Type]:
    y = _one_axis(x, axes=axes, keepdim=keepdim)
    return y, Type(s32, y.shape)


def _indexed_gradient(dy: Value, x: Value, y: Value, index: Value, attrs: Attrs) -> Value:
    """dy at the element with the index, 0 elsewhere."""
    (axis,) = normalise_axes(attrs["axes"], len(x.type.shape))
    extent = x.type.shape[axis]
    place = apply("iota", size=extent)
    axes_after = len(x.type.shape) - axis - 1
    if axes_after:
        place = apply("reshape", place, shape=(extent, *(1,) * axes_after))
    chosen = apply("eq", place, expanded(index, x, attrs))
    return apply("where", chosen, expanded(dy, x, attrs), 0.0)


def _extreme_with_index(name: str, c: str, start: str, arg: Callable[..., Any]) -> Op:
    def ref(x: Any, *, axes: tuple[int, ...], keepdim: bool) -> tuple[Any, Any]:
        index = np.expand_dims(arg(x, axis=axes[0]), axes[0])
        values = np.take_along_axis(x, index, axes[0])
        return (values, index) if keepdim else (values.squeeze(axes[0]), index.squeeze(axes[0]))

    better = f"{{x}} {c} {{acc0}} || ({{x}} != {{x}} && {{acc0}} == {{acc0}})"
    return define(
        f"{name}_with_index",  # the extreme along one axis and its first index; NaN counts as the extreme
        infer=_indexed_type,
        ref=ref,
        vjp=by_operand(_indexed_gradient),
        lower=Reduce((start, "0"), f"if ({better}) {{{{ {{acc0}} = {{x}}; {{acc1}} = {{i}}; }}}}"),
        samples=ONE_AXIS,
        torch=f"torch.{name}(a, dim=axes[0], keepdim=keepdim)",
    )


max_with_index = _extreme_with_index("max", ">", "-INFINITY", np.argmax)
min_with_index = _extreme_with_index("min", "<", "INFINITY", np.argmin)
