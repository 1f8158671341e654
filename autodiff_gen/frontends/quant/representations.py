"""Representations of the values of a float graph while it is converted to quantised tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from ...ir.node import Node, Value


@dataclass(frozen=True)
class Static:
    """An array that does not depend on the input."""

    array: Any


@dataclass(frozen=True)
class Pending:
    """The result of a node that is not computed yet. build: (its quantisation, low, high) -> s8; for a product it also
    takes the factor and the shift of each channel. views: later views, which change its shape."""

    node: Node
    build: Callable[..., Value]
    limits: tuple[float, float] = (-math.inf, math.inf)
    views: tuple[Node, ...] = ()
    factor: Any = None
    shift: Any = None
    shape: tuple[int, ...] = ()  # of a product's result


@dataclass(frozen=True)
class Sums:
    """Sums of `count` elements each, whose mean is quantised."""

    mean: Value
    count: int


@dataclass(frozen=True)
class QuantizableTensor:
    """A value as a float, as s8, or both."""

    s8: Value | None = None
    float: Value | None = None


@dataclass(frozen=True)
class IntegerFunction:
    """An elementwise function of one quantised tensor. source: the tensor's value in the float graph; numbers: the
    function's value for each integer."""

    source: Value
    numbers: Any


Representation: TypeAlias = Static | Pending | Sums | IntegerFunction | QuantizableTensor
