"""A call of a kernel of the contract: the argument for each of its parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..kernels.contract import MAX
from .types import Size, planned

ALIGN = 4  # addresses of arrays are multiples of so many bytes: callers align no more


@dataclass(frozen=True)
class Place:
    """Memory that a call reads or writes."""

    index: int = 0


class Operand(Place):
    """The memory of a node's operand."""


class Result(Place):
    """The memory of a node's result."""


@dataclass(frozen=True)
class Scalar:
    """The number that a scalar operand holds, passed by value."""

    index: int
    negate: bool = False


Factor: TypeAlias = float | Scalar


@dataclass(frozen=True)
class Epilogue:
    """The operations of a kernel on each result before it stores the result: y = min(max(scale y + bias + residual,
    low), high). A term that is None is left out; the limits hold where low < high."""

    scale: Operand | None = None
    bias: Operand | None = None
    residual: Operand | None = None
    low: float = 0.0
    high: float = 0.0

    @classmethod
    def of(cls, attrs: Mapping[str, Any]) -> Epilogue:
        """The epilogue of an op of ops/products/epilogue.py, whose operands follow two factors."""
        named = {name: Operand(i) for i, name in enumerate(attrs["epilogue"], start=2)}
        return cls(**named, low=attrs["low"], high=attrs["high"])

    @property
    def pointers(self) -> dict[str, Operand]:
        """Its operands, by the names of the fields of ag_epilogue."""
        named = {"scale": self.scale, "bias": self.bias, "residual": self.residual}
        return {k: v for k, v in named.items() if v is not None}


@dataclass(frozen=True)
class Matrix:
    """A factor of a product: the operand, its rows and columns as they are stored, and whether it is transposed."""

    operand: int
    stored: tuple[Size, Size]
    transposed: bool = False

    @property
    def shape(self) -> tuple[Size, Size]:
        """Rows and columns as the product takes them."""
        return self.stored[::-1] if self.transposed else self.stored


@dataclass(frozen=True)
class KernelCall:
    """Everything by parameter name: `pointers`, integer `sizes` (c or c*n), float `factors`; `shape` are the
    fields of the struct of geometry. `over` are leading axes of the result along which the call is repeated. `product`:
    both factors, where the call is a product of matrices or vectors. `in_place`: the kernel that computes the call with
    the result in the memory of operand 0, both dense; "" where there is none.
    """

    kernel: str
    pointers: Mapping[str, Place]
    sizes: Mapping[str, Size] = field(default_factory=dict)
    factors: Mapping[str, Factor] = field(default_factory=dict)
    shape: Mapping[str, int] = field(default_factory=dict)
    over: tuple[int, ...] = ()
    epilogue: Epilogue | None = None
    product: tuple[Matrix, Matrix] | None = None
    in_place: str = ""

    def scratch(self, formula: Callable[[Mapping[str, int | float]], int | float] | None) -> int:
        """The bytes that a kernel with this formula needs for itself, with a full batch."""
        if formula is None:
            return 0
        return int(formula({**self.facts(), **self._full()}))

    def _full(self) -> dict[str, int]:
        """The sizes with a full batch."""
        return dict(zip(self.sizes, planned(tuple(self.sizes.values())), strict=True))

    def facts(self) -> dict[str, int | float]:
        """The numbers that a kernel table's conditions may compare: all that are known when the C is generated, and the
        maximum of each size."""
        with_epilogue = int(self.epilogue is not None)
        most = {f"{MAX}{name}": size for name, size in self._full().items()}
        given = {
            **most,
            **self.sizes,
            **self.factors,
            **self.shape,
            "epilogue": with_epilogue,
            "align": ALIGN,
        }
        return {k: v for k, v in given.items() if isinstance(v, int | float)}
