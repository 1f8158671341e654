"""How an op becomes C: the kinds of lowering that a record of an op may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any, TypeAlias

from .kernel_call import KernelCall
from .strides import Strided
from .types import Shape, Type

Attrs: TypeAlias = Mapping[str, Any]

# Precedence of a C expression, as far as generated code needs it for parentheses.
ATOM, UNARY, MUL, ADD, COMPARE, SELECT = 100, 90, 80, 70, 60, 10


@dataclass(frozen=True)
class Leaf:
    """Inputs, states and constants: read from memory, never computed."""


@dataclass(frozen=True)
class Elementwise:
    """One C expression per element; operands broadcast. `{0}`, `{1}` are operands, `{name}` for
    attributes.

    `precedence`: of the expression's outermost operator; `operand_precedence` is the least precedence of an operand
    without parentheses (one value, or one per operand). `cheap` expressions may be computed again rather than stored.
    `calls`: whether it calls a function that ag_math.h also has without branches, for vectors. `header` declares the
    functions that the expression calls beyond ag_math.h. `converts`: it is a conversion to the result's dtype.
    `expand`, for an expression that calls a function among other operations, gives the same number, to the last bit, by
    the op of this function and other ops.
    """

    c: str
    precedence: int = ATOM
    operand_precedence: int | tuple[int, ...] = SELECT
    cheap: bool = False
    calls: bool = False
    header: str = ""
    converts: bool = False
    expand: Callable[[Sequence[Any], Attrs], Sequence[Any]] | None = None

    @property
    def is_identity(self) -> bool:
        """Whether the result is the one operand."""
        return self.c == "{0}"

    @property
    def is_operator(self) -> bool:
        """Whether the expression is an operator of C and its operands, nothing else."""
        infix = self.c.startswith("{0} ") and self.c.endswith(" {1}") and self.c.count(" ") == 2
        return infix or self.c == "-{0}"


@dataclass(frozen=True)
class Iota:
    """The index of each element of the result, as s32: row-major, or by `attrs["strides"]` and `attrs["offset"]`."""


@dataclass(frozen=True)
class Extent:
    """The run-time number of elements in `attrs["extent"]` (c or c*n) as a scalar."""


@dataclass(frozen=True)
class Reduce:
    """A reduction over `attrs["axes"]`, kept or dropped by `attrs["keepdim"]`, in ascending index order.

    One C initialiser per result, and a step statement over `{acc0}`, `{acc1}`..., `{x}` (the element) and
    `{i}` (its index along the only reduced axis, for arg-reductions). `identifier`: of OpenMP's reduction clause, where
    partial results can be combined (runtime/ag_loops.h).
    """

    init: tuple[str, ...]
    step: str
    identifier: str = ""

    @property
    def sums(self) -> bool:
        """Whether the result is the sum of the elements."""
        return self.identifier == "+"

    @property
    def indexed(self) -> bool:
        """Whether the last result is the index of the chosen element, along the only reduced axis."""
        return "{i}" in self.step


class ViewKind(Enum):
    """The effect of a view on the axes of its operand."""

    PERMUTE = auto()  # `dims`: in another order
    RESHAPE = auto()  # `shape`: the same elements in row-major order
    BROADCAST = auto()  # `shape`: repeats elements
    WINDOW = auto()  # `starts`, `steps`: a strided slice
    WINDOWS = auto()  # `kernel`, `stride`, `dilation`: sliding windows over axes 1 and 2, which may overlap


@dataclass(frozen=True)
class View:
    """The same bytes in another shape.

    `dims(in_shape, out_shape, attrs)` gives for each axis of the result the operand's axis that it indexes, or
    None for an axis that indexes none (a 1, or a broadcast); it returns None itself when axes are split or
    merged, as by a general reshape. In a window, index i along an axis of the result is starts[axis] + i * steps[axis]
    along the operand's axis.
    """

    dims: Callable[[Shape, Shape, Attrs], tuple[int | None, ...] | None]
    kind: ViewKind

    @property
    def window(self) -> bool:
        return self.kind is ViewKind.WINDOW


@dataclass(frozen=True)
class Pick:
    """An integer operand is the index along one axis of x; loops iterate over the others.

    `axes(x shape, index shape, attrs)` gives for each axis of x the result's axis with the same index, None for
    the axis along which the index chooses; and for each axis of the index the result's axis with the same index.
    """

    axes: Callable[[Shape, Shape, Attrs], tuple[tuple[int | None, ...], tuple[int, ...]]]


@dataclass(frozen=True)
class Assemble:
    """Operand k is stored in its window of the result, y[starts[k] + i * steps[k]] = x_k[i], and `fill` elsewhere.
    Windows do not overlap."""


def _nothing(*given: Any) -> None:
    """The function of ops that lack a property."""


@dataclass(frozen=True)
class Contraction:
    """`y[..., m, n] = a[..., m, k] . b[..., k, n]`: the gemm family of kernels; either operand may be any
    strided view."""


def _no_macs(call: KernelCall) -> int:
    return 0


@dataclass(frozen=True)
class Range:
    """The elements from index `start` to before `stop` along an axis."""

    axis: int
    start: int
    stop: int


@dataclass(frozen=True)
class Tile:
    """The computation of a tile of a result: the op reads these ranges of operands, by index, and all of the others,
    with these attributes changed."""

    ranges: Mapping[int, Range]
    changes: Attrs = field(default_factory=dict)


@dataclass(frozen=True)
class KernelOp:
    """One call of a kernel of the contract.

    choose: (layouts of the operands, result types, attributes) -> which call. Results are dense.
    macs: the multiply-accumulates of a call with a full batch.
    strided: the operands that may be any view; all others have been made dense, from an offset on. Numbers that are
    added to memory are passed by value (`AddedToMemory` in op_forms.py).
    summed: the results are sums of products of these operands, each a different operand. The terms are at most
    as many as the elements of the last of these operands along all axes but its last.
    tile: (a range of the first result, shapes of the operands, attributes) -> how the op computes that part of it, None
    where it cannot.
    term_of: (operand, a range of it, shapes of the operands, attributes) -> how the op computes a term of its result,
    which is the sum of the terms of ranges that make up an axis; None where the result is no such sum.
    """

    choose: Callable[[Sequence[Strided], Sequence[Type], Attrs], KernelCall]
    macs: Callable[[KernelCall], int] = _no_macs
    strided: tuple[int, ...] = ()
    summed: tuple[int, ...] = ()
    tile: Callable[[Range, Sequence[Shape], Attrs], Tile | None] = _nothing
    term_of: Callable[[int, Range, Sequence[Shape], Attrs], Tile | None] = _nothing


@dataclass(frozen=True)
class RowContraction:
    """A contraction that is completed one row at a time inside a fused loop; its consumers are the epilogue. Row i is
    computed of row i of operand 0 and of all of operand 1. `call`: layouts of the operands, a number of rows,
    attributes -> the call that completes so many rows, which reads operand 0 as it is stored; None for products of
    matrices. by_channel: of operand 1, row i reads only channel i, its last axis; the call stores a block of rows with
    the channels last, as [columns, rows]."""

    call: Callable[[Sequence[Strided], int, Attrs], KernelCall] | None = None
    by_channel: bool = False


@dataclass(frozen=True)
class Moded:
    """Resolved by the entry's mode, training or evaluation, before anything is lowered: to operand 0 in training and
    operand 1 in evaluation. With `updates`: to operand 0 in both, and in training the other operands are the new values
    of `attrs["states"]`.
    """

    updates: bool = False


@dataclass(frozen=True)
class Composite:
    """Expanded into other ops once gradients are known: `expand(operands, attrs)` gives the results. An op is a
    composite where its gradient takes less work than the gradients of its parts, or loses less to rounding. Its operand
    0 has the axes of its results; `attrs["axes"]` are the axes that its statistics, and other operands, have with
    extent 1, or along which it changes the elements. `elementwise`: each element of the result depends only on the
    operands' elements at the same place, and the op has no axes. `own_gradient`: the gradient is not the gradient of
    the result; such an op has no `axes`. `is_shorthand`: programs with the op and with its expansion are the same
    program (model/program_id.py).
    """

    expand: Callable[[Sequence[Any], Attrs], Sequence[Any]]
    elementwise: bool = False
    own_gradient: bool = False
    is_shorthand: Callable[[Attrs], bool] = lambda _: False


@dataclass(frozen=True)
class Fused:
    """A region of elementwise ops and reductions, lowered to loops. Made by passes only."""


@dataclass(frozen=True)
class Scan:
    """A region that is run once per element of the time axis; a C loop whose body is planned like an entry."""


@dataclass(frozen=True)
class Cond:
    """Two regions, one of them is run; an if statement whose branches are planned like entries."""


Lowering: TypeAlias = (
    Leaf
    | Elementwise
    | Iota
    | Extent
    | Reduce
    | View
    | Pick
    | Assemble
    | Contraction
    | KernelOp
    | RowContraction
    | Moded
    | Composite
    | Fused
    | Scan
    | Cond
)
