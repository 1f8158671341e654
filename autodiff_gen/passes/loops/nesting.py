"""The loops of a nest: how bodies are nested, and the statements of roots in each body."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from ...ir.node import Node, Value
from ...ir.op_kinds import RowContraction
from ...ir.strides import Strided, dense, row_major
from ...ir.types import DType, Shape, Size


@dataclass(eq=False)
class Body:
    """A sequence of loops and steps: the body of a loop over `axis`, or the top of the nest.

    A loop may be split in two: the outer one goes over blocks, `block` elements at a time, and has no axis; the inner
    one over the elements of the block `of`. `rolled`: compilers are not to unroll it.
    """

    parent: Body | None = None
    axis: int | None = None
    extent: Size = 1
    items: list[Body | RootStep] = field(default_factory=list)
    block: int = 1
    of: Body | None = None
    rolled: bool = False

    def __post_init__(self) -> None:
        """path: the bodies from the top down to this one."""
        self.path: tuple[Body, ...] = (self,) if self.parent is None else (*self.parent.path, self)
        self.depth = len(self.path) - 1

    def encloses(self, other: Body) -> bool:
        return self.depth <= other.depth and other.path[self.depth] is self

    def innermost_of(self, axes: Collection[int]) -> Body:
        """The innermost loop over one of these axes: this loop or a loop around it; the top if there is none."""
        return next((b for b in reversed(self.path[1:]) if b.axis in axes), self.path[0])

    def steps(self) -> Iterator[RootStep]:
        for item in self.items:
            if isinstance(item, Body):
                yield from item.steps()
            else:
                yield item


@dataclass(eq=False)
class Root:
    """A node that has statements in the nest. `nest` are its loops, outermost first; the last `reduced` of them are
    reduced over.
    """

    node: Node
    nest: tuple[int, ...]
    reduced: int = 0
    piece: int | None = (
        None  # for `assemble`, the number of the operand that is stored in its window; -1 for the fill
    )
    needs: dict[Root, set[int]] = field(default_factory=dict)  # roots it reads -> axes that must be complete
    home: Body = field(init=False)  # where the finished value can be read as a local
    inner: Body = field(init=False)  # where its innermost statement is
    tile: AccumulatorTile | None = None
    inner_loops: int = 0  # how many of the reduced loops compute partial sums, which are added up

    @property
    def reads(self) -> tuple[Value, ...]:
        """The operands of its statement."""
        operands = self.node.operands
        return operands if self.piece is None else operands[self.piece : self.piece + 1]

    @property
    def in_memory_only(self) -> bool:
        return isinstance(self.node.op.lower, RowContraction)


@dataclass(frozen=True)
class AccumulatorTile:
    """The axes, and the extents, over which the accumulators of a reduction are a local array: all of an axis, or a
    block of it."""

    axes: tuple[int, ...]
    shape: tuple[int, ...]
    block: Body | None = None


@dataclass(eq=False)
class RootStep:
    """One statement of a root: "begin" declares accumulators, "step" accumulates or stores, "finish" stores the reduced
    values. "begin part" and "add part" are around the inner loops of a sum in two steps. "load rows" declares and fills
    the local arrays of a tile of rows, for all steps in the same loop.
    """

    root: Root
    kind: str


def chains(body: Body) -> list[list[Body]]:
    """The loops in `body`, each followed by the nested loops that are the only item of the loop around them."""
    found = []
    for item in body.items:
        if isinstance(item, Body):
            chain = [item]
            while len(chain[-1].items) == 1 and isinstance(inner := chain[-1].items[0], Body):
                chain.append(inner)
            found.append(chain)
    return found


def roots_of(item: Body | RootStep) -> set[Root]:
    """The roots that have a statement in a loop, or the root of a step."""
    return {s.root for s in item.steps()} if isinstance(item, Body) else {item.root}


@dataclass(frozen=True)
class Scratch:
    """Memory that a nest needs in addition while it runs. `blocks`, for a block of a product: the loops over blocks
    along both axes, None where one block is all; `transposed`: it is stored column by column."""

    value: Value
    axes: tuple[int | None, ...]
    shape: Shape
    dtype: DType
    blocks: tuple[Body | None, ...] = ()
    transposed: bool = False

    @property
    def layout(self) -> Strided:
        """Where the elements are stored."""
        if not self.transposed:
            return dense(self.shape)
        return Strided(self.shape, row_major(self.shape[::-1])[::-1])
