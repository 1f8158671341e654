"""Where the elements of a value lie: views resolved to (base value, offset, strides). Views take no bytes."""

from __future__ import annotations

from dataclasses import dataclass

from .dtypes import Dim, Shape, Size, planned
from .ir import Value
from .op import View


@dataclass(frozen=True)
class Strided:
    """Element `idx` lies at `offset + sum(idx * strides)`, counted in elements of the base's dtype; strides
    are planned for the largest batch, so they are plain integers. An axis of extent 1 may carry any
    stride.
    """

    shape: Shape
    strides: tuple[int, ...]
    offset: int = 0

    @property
    def dense(self) -> bool:
        """Row-major without gaps, from the first element on."""
        return self.offset == 0 and all(
            a == b or d == 1 for a, b, d in zip(self.strides, row_major(self.shape), self.shape, strict=True)
        )


def row_major(shape: Shape) -> tuple[int, ...]:
    strides: list[int] = []
    step = 1
    for d in reversed(planned(shape)):
        strides.append(step)
        step *= d
    return tuple(reversed(strides))


def dense(shape: Shape) -> Strided:
    return Strided(shape, row_major(shape))


def base(v: Value) -> Value:
    """The value whose bytes a chain of views shows."""
    while isinstance(v.node.op.lower, View):
        v = v.node.operands[0]
    return v


def layout(v: Value) -> Strided | None:
    """The layout of `v` over the bytes of base(v), which are dense; None when a reshape needs a copy first."""
    chain = []
    while isinstance(v.node.op.lower, View):
        chain.append(v.node)
        v = v.node.operands[0]
    at = dense(v.type.shape)
    for node in reversed(chain):
        assert isinstance(node.op.lower, View)
        out = node.results[0].type.shape
        dims = node.op.lower.dims(at.shape, out, node.attrs)
        if dims is not None:
            at = Strided(out, tuple(0 if d is None else at.strides[d] for d in dims), at.offset)
            continue
        strides = split_or_merge(at, out)
        if strides is None:
            return None
        at = Strided(out, strides, at.offset)
    return at


def split_or_merge(at: Strided, out: Shape) -> tuple[int, ...] | None:
    """Strides of a general reshape: merge what lies contiguously, then cut; None where the elements do not
    line up.
    """
    merged: list[tuple[Size, int]] = []
    for d, s in zip(at.shape, at.strides, strict=True):
        if d == 1:
            continue
        if merged and isinstance(d, int) and merged[-1][1] == s * d:
            merged[-1] = (merged[-1][0] * d, s)
        else:
            merged.append((d, s))
    strides: list[int] = []
    blocks = list(reversed(merged))
    rest: Size = 1  # what is left of the current block, innermost axes first
    step = 1
    for d in reversed(out):
        if d == 1:
            strides.append(step)
            continue
        if rest == 1:
            if not blocks:
                return None
            rest, step = blocks.pop(0)
        strides.append(step)
        if d == rest:
            rest = 1
        elif isinstance(d, int) and (rest.coef if isinstance(rest, Dim) else rest) % d == 0:
            rest = rest // d
            step *= d
        else:
            return None
    return tuple(reversed(strides)) if rest == 1 and not blocks else None
