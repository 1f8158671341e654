"""Helpers of convolution and pooling: arguments that are numbers or tuples, and images with the channels last.

PyTorch's images are [N, C, H, W] or [C, H, W], and [N, C, L] or [C, L] for the functions of one axis; the images of ops
are [n, h, w, c]. The permutes between them are views.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from ..errors import ShapeError
from ..ir.build import apply, apply_node
from ..ir.node import Node, Value
from .arguments import TensorLike, as_value, shape_error
from .shapes import reshape

Numbers: TypeAlias = int | Sequence[int]
Pair: TypeAlias = tuple[int, int]
Padding: TypeAlias = tuple[int, int, int, int]


@dataclass(frozen=True)
class Images:
    """`value`: [n, h, w, c]; `axes`: 1 or 2 spatial axes; `batched`: whether the caller's array has the axis N."""

    value: Value
    axes: int
    batched: bool

    @property
    def size(self) -> Pair:
        h, w = self.value.shape[1:3]
        assert isinstance(h, int) and isinstance(w, int)
        return h, w

    @property
    def channels(self) -> int:
        c = self.value.shape[3]
        assert isinstance(c, int)
        return c

    def back(self, y: Value) -> Value:
        """y[n, h, w, c] with the caller's order of axes."""
        y = apply("permute", y, dims=(0, 3, 1, 2))
        n, c, *space = y.shape
        return reshape(y, (*((n,) if self.batched else ()), c, *space[2 - self.axes :]))


def images(name: str, input: TensorLike, axes: int) -> Images:
    """The caller's [N, C, ...] or [C, ...] with `axes` spatial axes. Raises ShapeError for other shapes."""
    x = as_value(input)
    if x.ndim not in (axes + 1, axes + 2):
        shapes = "[N, C, L] or [C, L]" if axes == 1 else "[N, C, H, W] or [C, H, W]"
        raise shape_error(name, [x], f"the input must be {shapes}")
    batched = x.ndim == axes + 2
    n, c, *space = x.shape if batched else (1, *x.shape)
    if not all(isinstance(d, int) for d in (c, *space)):
        raise shape_error(name, [x], "only the first axis may be the batch axis")
    wide = reshape(x, (n, c, *(1 for _ in range(2 - axes)), *space))
    return Images(apply("permute", wide, dims=(0, 2, 3, 1)), axes, batched)


def pair(name: str, role: str, given: Numbers, axes: int, absent: int = 1) -> Pair:
    """Numbers for two axes, from one number for all axes or one for each; `absent`: the number for the first axis if
    there is only one. Raises ShapeError for anything else."""
    items = (given,) * axes if not isinstance(given, Sequence) else tuple(given)
    try:
        numbers = tuple(operator.index(k) for k in items)
    except TypeError:
        raise ShapeError(f"{name}: {role}={given!r} must be an integer, or {axes} of them") from None
    if len(numbers) == 1:
        numbers *= axes
    if len(numbers) != axes:
        raise ShapeError(f"{name}: {role}={given!r} must be an integer, or {axes} of them")
    return (absent, numbers[0]) if axes == 1 else (numbers[0], numbers[1])


def on_both_sides(padding: Pair) -> Padding:
    return padding[0], padding[0], padding[1], padding[1]


def applied(name: str, given: Sequence[Value], op: str, *operands: Value, **attrs: Any) -> Node:
    """The op's node; a ShapeError of the op names the caller's function `name` and its operands `given`."""
    try:
        return apply_node(op, *operands, **attrs)
    except ShapeError as error:
        raise shape_error(name, given, str(error.args[0]).split("): ", 1)[-1]) from None
