"""A call of a kernel of the contract: what stands for each of its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from .c_text import extent
from .dtypes import Size
from .kernel_contract import CONTRACT

ALIGN = 4  # bytes of which the addresses of arrays are multiples: a caller's own have no more


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
class KernelCall:
    """Everything by parameter name: `pointers`, integer `sizes` (c or c*n), float `factors`; `shape` are the
    fields of the struct of geometry. `over` are leading axes of the result along which the call is repeated.
    """

    kernel: str
    pointers: Mapping[str, Place]
    sizes: Mapping[str, Size] = field(default_factory=dict)
    factors: Mapping[str, Factor] = field(default_factory=dict)
    shape: Mapping[str, int] = field(default_factory=dict)
    over: tuple[int, ...] = ()

    def facts(self) -> dict[str, int | float]:
        """What a kernel table's conditions may compare: the numbers that are known when the C is generated."""
        given = {**self.sizes, **self.factors, **self.shape, "align": ALIGN}
        return {k: v for k, v in given.items() if isinstance(v, int | float)}

    def text(self, symbol: str, values: Mapping[str, str]) -> str:
        """The C statement; `values` by parameter name."""
        return f"{symbol}({', '.join(values[p] for p in CONTRACT[self.kernel].param_names)});"

    @property
    def shown(self) -> str:
        """The sizes, for headers and reports; distances in memory are left out."""
        sizes = {k: extent(v) for k, v in self.sizes.items() if not k.startswith("ld")}
        sizes |= {k: str(v) for k, v in self.shape.items() if k in _TOLD}
        return " ".join(f"{k}={v}" for k, v in sizes.items())


_TOLD = ("h", "w", "c", "oh", "ow", "o", "kh", "kw", "groups")
