"""The record of an op, and the registry of all of them.

One record holds everything the project knows of an op: its shape rule, its meaning in NumPy, its VJP, how it
becomes C, what PyTorch calls it, and samples for the tests. Nothing else may special-case an op by name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from .dtypes import Shape, Type

if TYPE_CHECKING:
    from .ir import Node, Value
    from .kernel_calls import KernelCall
    from .layout import Strided

Attrs: TypeAlias = Mapping[str, Any]

# Precedence of a C expression, as far as generated code needs it: what may stand unparenthesised where.
ATOM, UNARY, MUL, ADD, COMPARE, SELECT = 100, 90, 80, 70, 60, 10


@dataclass(frozen=True)
class Leaf:
    """Inputs, states and constants: read from memory, never computed."""


@dataclass(frozen=True)
class Elementwise:
    """One C expression per element; operands broadcast. `{0}`, `{1}` stand for operands, `{name}` for
    attributes.

    `precedence` is that of the expression's outermost operator; `operand_precedence` is what an operand must
    reach to stand without parentheses (one value, or one per operand). `cheap` expressions may be computed
    again rather than stored. `header` declares what the expression calls, beyond ag_math.h.
    """

    c: str
    precedence: int = ATOM
    operand_precedence: int | tuple[int, ...] = SELECT
    cheap: bool = False
    header: str = ""


@dataclass(frozen=True)
class Iota:
    """The row-major index of each element of the result, as s32."""


@dataclass(frozen=True)
class Extent:
    """The run-time number of elements in `attrs["extent"]` (c or c*n) as a scalar."""


@dataclass(frozen=True)
class Reduce:
    """A reduction over `attrs["axes"]`, kept or dropped by `attrs["keepdim"]`, in ascending index order.

    One C initialiser per result, and a step statement over `{acc0}`, `{acc1}`..., `{x}` (the element) and
    `{i}` (its index along the only reduced axis, for arg-reductions).
    """

    init: tuple[str, ...]
    step: str
    alone: str | None = None  # the op that computes the first result alone, for when nothing reads the others


@dataclass(frozen=True)
class View:
    """The same bytes seen through another shape.

    `dims(in_shape, out_shape, attrs)` gives for each axis of the result the operand's axis that it walks, or
    None for an axis that does not move (a 1, or a broadcast); it returns None itself when axes are split or
    merged, as by a general reshape. With `window`, index i along an axis of the result is starts[axis] + i *
    steps[axis] along that of the operand.
    """

    dims: Callable[[Shape, Shape, Attrs], tuple[int | None, ...] | None]
    window: bool = False


@dataclass(frozen=True)
class Pick:
    """An integer operand chooses the place along one axis of x; loops walk over the others.

    `axes(x shape, index shape, attrs)` gives for each axis of x the result's axis that it walks along, None for
    the one that is chosen, and for each axis of the index the same.
    """

    axes: Callable[[Shape, Shape, Attrs], tuple[tuple[int | None, ...], tuple[int, ...]]]

    def of(self, node: Node) -> tuple[tuple[int | None, ...], tuple[int, ...]]:
        """The axes of x and of the index."""
        x, index = node.operands
        return self.axes(x.type.shape, index.type.shape, node.attrs)

    def chosen(self, node: Node) -> int:
        """The axis of x along which the index chooses."""
        return self.of(node)[0].index(None)


@dataclass(frozen=True)
class Assemble:
    """Operand k stands in its window of the result, y[starts[k] + i * steps[k]] = x_k[i], and `fill` elsewhere.
    Windows do not overlap.
    """


@dataclass(frozen=True)
class Contraction:
    """`y[..., m, n] = a[..., m, k] . b[..., k, n]`: the gemm family of kernels; either operand may be any
    strided view. `into` and `added` as in Call.
    """

    into: int | None = None
    added: str = ""


@dataclass(frozen=True)
class Call:
    """One call of a kernel of the contract: `choose(layouts, result types, attrs)` says which, and with what.

    layouts: where each operand lies; those in `strided` may be any view, all others have been made dense (from
    an offset on); those in `scalars` are numbers, passed by value. Results are dense. An op that is added to
    memory, y = (+ or -) alpha term + beta old, has the old value as operand `into`, whose bytes the result takes,
    alpha as the operand behind it, and the attributes `beta` and `negate`; `term` is then the name of the op
    that computes what is added, and that op has the name of this one as `added`; without `term` operand 0 is added
    as it is. An op whose results are sums of products of operands, each of its own, names them in `summed`; the
    elements of the last of them over all axes but its last one are as many as the terms, or more.
    """

    choose: Callable[[Sequence[Strided], Sequence[Type], Attrs], KernelCall]
    strided: tuple[int, ...] = ()
    scalars: tuple[int, ...] = ()
    into: int | None = None
    term: str = ""
    added: str = ""
    summed: tuple[int, ...] = ()


@dataclass(frozen=True)
class RowContraction:
    """A contraction that is completed one row at a time inside a fused loop; its consumers are the epilogue."""


@dataclass(frozen=True)
class Moded:
    """Settled by the entry's mode, training or evaluation, before anything is lowered."""


@dataclass(frozen=True)
class Fused:
    """A region of elementwise ops and reductions, lowered to loops. Made by passes only."""


@dataclass(frozen=True)
class Scan:
    """A region that is run once per element of the time axis; a C loop whose body is planned like an entry."""


@dataclass(frozen=True)
class Cond:
    """Two regions of which one is run; an if statement whose branches are planned like entries."""


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
    | Call
    | RowContraction
    | Moded
    | Fused
    | Scan
    | Cond
)


@dataclass(frozen=True)
class Sample:
    """One row of an op's test table.

    `inputs` are shapes (drawn from a seeded generator in `domain`, (low, high)), or NumPy-like literals;
    `attrs` as given to `apply`. `dtypes` names an operand's dtype where it is not f32; integer operands are
    drawn below `high`.
    """

    inputs: tuple[tuple[int, ...], ...]
    attrs: Attrs = field(default_factory=dict)
    domain: tuple[float, float] = (-2.0, 2.0)
    dtypes: Mapping[int, str] = field(default_factory=dict)
    high: int = 2


VJP: TypeAlias = Callable[
    [Sequence["Value | None"], Sequence["Value"], Sequence["Value"], Attrs, Sequence[bool]],
    "Sequence[Value | None]",
]


@dataclass(frozen=True)
class Op:
    """An operation.

    infer: (*operand types, **attrs) -> result type, or a tuple of them; raises ShapeError with the rule that
           failed (the caller prefixes the op's name and appends the operand types).
    ref:   (*arrays, **attrs) -> array, or a tuple of them; works in any float dtype; the op's meaning.
    vjp:   (dys, inputs, outs, attrs, wanted) -> one gradient value (or None) per input; `dys` has None where
           no gradient arrives, `wanted` tells which inputs need one. None: the op is not differentiable.
    lower: how it becomes C.
    torch: the same thing as a PyTorch expression over a, b, c (or `operands`) and the attributes' names; None
           where PyTorch has none.
    """

    name: str
    infer: Callable[..., Type | tuple[Type, ...]]
    ref: Callable[..., Any]
    vjp: VJP | None
    lower: Lowering
    samples: tuple[Sample, ...] = ()
    torch: str | None = None


OPS: dict[str, Op] = {}


def register(op: Op) -> Op:
    """Add a record to the registry; a name registered twice is our mistake and raises ValueError."""
    if op.name in OPS:
        raise ValueError(f"op {op.name!r} is registered twice")
    OPS[op.name] = op
    return op
