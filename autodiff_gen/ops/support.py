"""What several families of op records share: shape rules, and helpers for short VJPs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..dtypes import Shape, Type, bool_, broadcast
from ..errors import ShapeError
from ..ir import Value, apply
from ..op import VJP, Attrs


def same_dtype(*types: Type) -> None:
    if len({t.dtype for t in types}) != 1:
        raise ShapeError("dtypes differ; convert with F.to first")


def broadcasting(*types: Type) -> Type:
    """The shape rule of elementwise arithmetic."""
    same_dtype(*types)
    return Type(types[0].dtype, broadcast(*(t.shape for t in types)))


def comparing(*types: Type) -> Type:
    return Type(bool_, broadcasting(*types).shape)


def floating(*types: Type) -> Type:
    """The shape rule of functions that exist on floats only."""
    if types[0].dtype.kind != "f":
        raise ShapeError(f"needs a float, not {types[0].dtype}")
    return broadcasting(*types)


def sum_to(v: Value, shape: Shape) -> Value:
    """Sum a gradient over the axes that broadcasting added or stretched, back to `shape`."""
    if v.type.shape == shape:
        return v
    added = len(v.type.shape) - len(shape)
    stretched = [i + added for i, d in enumerate(shape) if d == 1 and v.type.shape[i + added] != 1]
    axes = (*range(added), *stretched)
    if axes:
        v = apply("sum", v, axes=axes, keepdim=True)
    return v if v.type.shape == shape else apply("reshape", v, shape=shape)


def simple(*pullbacks: Callable[..., Value] | None) -> VJP:
    """A VJP from one function per operand, `(dy, *inputs, y) -> dx`; broadcasting is undone here. None: not differentiable."""

    def vjp(
        dys: Sequence[Value | None], inputs: Sequence[Value], outs: Sequence[Value], attrs: Attrs, wanted: Sequence[bool]
    ) -> list[Value | None]:
        dy = dys[0]
        assert dy is not None
        out: list[Value | None] = []
        for x, f, want in zip(inputs, pullbacks, wanted, strict=True):
            out.append(sum_to(f(dy, *inputs, outs[0]), x.type.shape) if want and f is not None else None)
        return out

    return vjp
