"""Element types, shapes and the type of a value. Knows neither ops nor graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, TypeAlias

from ..errors import ShapeError
from .quantization import Quantization


@dataclass(frozen=True, eq=False)
class DType:
    """An element type, compared by identity: `name` as it prints, `c` as C spells it, `numpy` as NumPy does, `size` in
    bytes."""

    name: str
    c: str
    numpy: str
    size: int
    kind: str  # "f" float, "i" signed, "u" unsigned, "b" mask

    def __repr__(self) -> str:
        return self.name


f32 = DType("f32", "float", "float32", 4, "f")
f64 = DType("f64", "double", "float64", 8, "f")  # interpreter and oracle only: generated C holds no double
s8 = DType("s8", "int8_t", "int8", 1, "i")
u8 = DType("u8", "uint8_t", "uint8", 1, "u")
s32 = DType("s32", "int32_t", "int32", 4, "i")
u32 = DType("u32", "uint32_t", "uint32", 4, "u")
bool_ = DType("bool", "uint8_t", "bool", 1, "b")

DTYPES = {d.name: d for d in (f32, f64, s8, u8, s32, u32, bool_)}


def dtype(name: str | DType) -> DType:
    """The DType called `name`; ShapeError with the known names otherwise."""
    if isinstance(name, DType):
        return name
    if not isinstance(name, str) or name not in DTYPES:
        raise ShapeError(f"unknown dtype {name!r}; known: {', '.join(DTYPES)}")
    return DTYPES[name]


def varies(shape: Iterable[Size]) -> bool:
    """Whether an extent follows the batch."""
    return any(isinstance(d, Dim) for d in shape)


@dataclass(frozen=True)
class Dim:
    """An extent that follows the batch: `coef * n^power` with a run-time n of at most `cap`. Extents of values have the
    power 1; their products, numbers of elements, may have others. `name`: of the number in C and in the text of
    graphs: another one than n inside the loop over micro-batches (passes/memory/micro_batches.py).

    Only arithmetic whose result has this form is defined; anything else is a ShapeError, raised where the op is built.
    """

    coef: int
    cap: int
    power: int = 1
    name: str = "n"

    @property
    def planned(self) -> int:
        return self.at(self.cap)

    def at(self, n: int) -> int:
        """The number at batch size n."""
        return int(self.coef * n**self.power)

    def __repr__(self) -> str:
        n = self.name if self.power == 1 else f"{self.name}^{self.power}"
        return n if self.coef == 1 else f"{self.coef}{n}" if self.name == "n" else f"{self.coef} {n}"

    def __mul__(self, other: Size) -> Dim:
        if not isinstance(other, Dim):
            return replace(self, coef=self.coef * other) if isinstance(other, int) else NotImplemented
        if (self.cap, self.name) != (other.cap, other.name):
            raise ShapeError(
                f"extents {self!r} and {other!r} are of batches of at most {self.cap} and {other.cap}"
            )
        return replace(self, coef=self.coef * other.coef, power=self.power + other.power)

    __rmul__ = __mul__

    def __add__(self, other: Size) -> Dim:
        if isinstance(other, Dim) and replace(other, coef=self.coef) == self:
            return replace(self, coef=self.coef + other.coef)
        if not isinstance(other, (int, Dim)):
            return NotImplemented
        if other == 0:  # where sum() begins
            return self
        raise ShapeError(
            f"extent {self!r} + {other!r} is not a multiple of the batch size n; add a float where it is a number"
        )

    __radd__ = __add__

    def __floordiv__(self, other: int) -> Dim:
        if self.coef % other:
            raise ShapeError(f"extent {self!r} is not divisible by {other}")
        return replace(self, coef=self.coef // other)


Size: TypeAlias = int | Dim
Shape: TypeAlias = tuple[Size, ...]


@cache
def planned(shape: Shape) -> tuple[int, ...]:
    """The shape at the largest batch, as plain integers."""
    return tuple(d.planned if isinstance(d, Dim) else d for d in shape)


def bound(shape: Shape, n: int | None) -> tuple[int, ...]:
    """The shape at batch size n; None for the largest batch."""
    return tuple(d.at(d.cap if n is None else n) if isinstance(d, Dim) else d for d in shape)


def product(shape: Shape) -> Size:
    """The number of elements: `c`, or `c` times a power of n."""
    result: Size = 1
    for d in shape:
        result = result * d
    return result


@cache
def planned_size(shape: Shape) -> int:
    return math.prod(planned(shape))


@dataclass(frozen=True, eq=False)
class Type:
    """dtype and shape of a value, and the quantisation of its integers if it has one; prints as `f32[n,10]`."""

    dtype: DType
    shape: Shape
    quantization: Quantization | None = None

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            type(other) is Type
            and self.dtype is other.dtype
            and self.shape == other.shape
            and self.quantization == other.quantization
        )

    def __hash__(self) -> int:
        return hash(self.shape)

    def __repr__(self) -> str:
        return f"{self.dtype}[{','.join(map(repr, self.shape))}]{self.quantization or ''}"

    def with_shape(self, shape: Shape) -> Type:
        """The same elements in another shape."""
        return Type(self.dtype, shape, self.quantization)

    def moved(self, move: Callable[[Any], Any], shape: Shape) -> Type:
        """The type of the array of `shape` that `move`, which only moves elements, makes from an array of this type."""
        of = self.quantization
        return Type(self.dtype, shape, of and of.moved(move, planned(self.shape)))

    @property
    def gradient(self) -> Type | None:
        """The type of a gradient with respect to it: the gradient of a quantised tensor is with respect to the real
        numbers that its integers represent. None: it has none."""
        if self.dtype.kind == "f":
            return self
        return None if self.quantization is None else Type(f32, self.shape)

    @cached_property
    def bytes(self) -> int:
        """Bytes at the largest batch."""
        return planned_size(self.shape) * self.dtype.size


def of_one_sample(t: Type) -> Type:
    """The type where the batch is 1."""
    return t.with_shape(bound(t.shape, 1))


def broadcast(*shapes: Shape) -> Shape:
    """NumPy's broadcasting rule; a batch extent matches only itself or a 1. ShapeError names both shapes."""
    rank = max((len(s) for s in shapes), default=0)
    out: list[Size] = []
    for axis in range(-rank, 0):
        extent: Size = 1
        for s in shapes:
            d: Size = s[axis] if -axis <= len(s) else 1
            if d == 1 or d == extent:
                continue
            if extent != 1:
                shown = " and ".join(str(list(s)) for s in shapes)
                raise ShapeError(f"shapes {shown} do not broadcast: {extent!r} against {d!r} in axis {axis}")
            extent = d
        out.append(extent)
    return tuple(out)


def plain(x: Any) -> Any:
    """A number of NumPy as Python's own; everything else as it is."""
    return x.item() if hasattr(x, "item") and getattr(x, "shape", None) == () else x


def normalise_axes(axes: int | tuple[int, ...] | None, rank: int) -> tuple[int, ...]:
    """Axes as sorted non-negative integers; None means all. ShapeError when one is out of range or doubled."""
    if axes is None:
        return tuple(range(rank))
    axes = plain(axes)
    given = (axes,) if isinstance(axes, int) else tuple(axes)
    out = []
    for a in given:
        if not -rank <= a < rank:
            raise ShapeError(f"axis {a} is out of range for {rank} axes")
        out.append(a % rank)
    if len(set(out)) != len(out):
        raise ShapeError(f"an axis is named twice in {given}")
    return tuple(sorted(out))


def conversion(*types: Type) -> str:
    """How to convert operands of these types to a type that an op accepts, for messages."""
    if all(t.quantization is None for t in types):
        return "convert with F.to first"
    return "use F.dequantize first, or the functions F.quantized_... on s8, where low=zero_point is a ReLU"
