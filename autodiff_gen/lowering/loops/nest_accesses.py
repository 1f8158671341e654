"""Which memory a loop nest reads and writes, in order: read from its statements, before any C is made of them.

The planner calls `may_share` before a result may reuse the memory of an operand. An operand may show a window of that
memory, and a result may be assembled of windows: windows without common elements do not conflict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ...ir.node import Value
from ...ir.strides import Strided
from ...ir.types import Shape, planned
from ...ir.views import stored
from ...passes.loops.nesting import Body
from .c_expression import Index, LoopExpr
from .statements import Accumulate, Begin, LoadRows, Local, Loop, ProductRow, Statement, Statements, Store


@dataclass(frozen=True, slots=True)
class NestAccess:
    """One read or write of a value in memory. path: the bodies of loops around it, the outermost first; time: its
    position in the order of all reads and writes; index: the index along axes with more
    than one element; None: all elements, in any order. window: the part of the value that the index counts in; None:
    all of it."""

    index: tuple[Index, ...] | None
    path: tuple[Body, ...]
    time: int
    window: Strided | None = None


def _varying(shape: Shape, index: tuple[Index, ...]) -> tuple[Index, ...]:
    """The index without the indices of axes with one element."""
    return (
        tuple([i for i, d in zip(index, shape, strict=True) if d != 1]) if len(index) == len(shape) else index
    )


def _apart(a: tuple[Index, ...] | None, b: tuple[Index, ...] | None) -> bool:
    """Whether two places of one array are never the same."""
    if a is None or b is None or len(a) != len(b):
        return False
    numbers = [(i.number, j.number) for i, j in zip(a, b, strict=True) if i is not None and j is not None]
    return any(i is not None and j is not None and i != j for i, j in numbers)


Ranges: TypeAlias = "tuple[range, ...] | None"


def _ranges(window: Strided, whole: Strided) -> Ranges:
    """The indices along each axis of `whole` at which the elements of a window are; None if they are not consecutive
    elements of `whole` along each axis."""
    if len(window.shape) != len(whole.shape):
        return None
    found, rest = [], window.offset - whole.offset
    for d, step, size, unit in zip(
        planned(window.shape), window.strides, planned(whole.shape), whole.strides, strict=True
    ):
        start, rest = divmod(rest, unit) if size != 1 else (0, rest)
        if (d != 1 and step != unit) or not 0 <= start <= size - d:
            return None
        found.append(range(start, start + d))
    return tuple(found) if rest == 0 else None


def _same_iteration(loop: Body, a: tuple[Index, ...], b: tuple[Index, ...]) -> bool:
    """Whether both places have the variable of a loop, or of the loop over the elements of its blocks, as the index
    along one axis: then they are never the same element in different iterations."""

    def is_of(i: Index) -> bool:
        return i is not None and i.is_variable and (i.home is loop or i.home.of is loop)

    return any(is_of(i) and is_of(j) for i, j in zip(a, b, strict=True))


class NestAccesses:
    """The reads and the writes of the statements of one loop nest, by value."""

    def __init__(self, statements: Statements) -> None:
        self.exprs = statements.exprs
        self.reads: dict[Value, list[NestAccess]] = {}
        self.writes: dict[Value, list[NestAccess]] = {}
        self._time = 0
        self._locals: set[LoopExpr] = set()
        self._visit(statements.top, statements.nest.top)

    def may_share(
        self, param: Value, result: Value, shown: Strided | None = None, at: Strided | None = None
    ) -> bool:
        """Whether `result` may be written over `param`, or over another result: each element of it is read, for the
        last time, before it is written. shown, at: the layouts of the param and of the result in this memory; None:
        both are stored alike.
        """
        for write in self.writes.get(result, ()):
            for read in (*self.reads.get(param, ()), *self.writes.get(param, ())):
                first, second = read.index, write.index
                if shown is not None or read.window != write.window:
                    whole = at or stored(result)
                    theirs = _ranges(read.window or shown or whole, whole)
                    mine = _ranges(write.window or whole, whole)
                    if (
                        theirs
                        and mine
                        and any(set(a).isdisjoint(b) for a, b in zip(theirs, mine, strict=True))
                    ):
                        continue
                    if not theirs or theirs != mine:
                        first = second = None
                if _apart(first, second):
                    continue
                common = [b for b in write.path if b in read.path and b.parent is not None]
                if read.time > write.time or len(first or ()) != len(second or ()):
                    return False
                if common and (first is None or second is None):
                    return False
                if not all(_same_iteration(body, first or (), second or ()) for body in common):
                    return False
        return True

    def read_first(self, param: Value, result: Value) -> bool:
        """Whether every read of `param` comes before the first write of `result`, in no loop that both share."""
        return all(
            r.time < w.time and not any(b.parent is not None and b in w.path for b in r.path)
            for w in self.writes.get(result, ())
            for r in self.reads.get(param, ())
        )

    def _visit(self, statements: Sequence[Statement], body: Body) -> None:
        for statement in statements:
            self._time += 1
            match statement:
                case Local(expr):
                    if expr.is_local and expr not in self._locals:
                        self._read(expr, body)
                        self._locals.add(expr)
                case Loop():
                    self._visit(statement.statements, statement.body)
                case Begin():
                    pass
                case Accumulate():
                    self._read(statement.x, body)
                case Store(value, index, expr):
                    self._read_index(index, body)
                    self._read(expr, body)
                    at, window = self.exprs.index_in_memory(value, index), None
                    if statement.piece is not None:
                        window = window_of(value, statement.piece)
                    self._add(self.writes, value, at, body, window)
                case LoadRows(loop, rows, local):
                    self._visit(local, loop)
                    for element in rows.elements.values():
                        self._read(element, loop)
                case ProductRow():
                    node = statement.root.node
                    for operand in node.operands:
                        self._add(self.reads, operand, None, body)
                    self._add(self.writes, node.results[0], (statement.row, None), body)

    def _read(self, expr: LoopExpr, body: Body) -> None:
        if expr in self._locals:
            return
        if expr.memory is not None:
            v, index = expr.memory
            self._add(self.reads, v, index, body)
            self._read_index(index, body)
        for arg in expr.args:
            self._read(arg, body)

    def _read_index(self, index: tuple[Index, ...], body: Body) -> None:
        for i in index:
            if i is not None:
                self._read(i, body)

    def _add(
        self,
        to: dict[Value, list[NestAccess]],
        v: Value,
        index: tuple[Index, ...] | None,
        body: Body,
        window: Strided | None = None,
    ) -> None:
        at = None if index is None else _varying(v.type.shape if window is None else window.shape, index)
        to.setdefault(v, []).append(NestAccess(at, body.path, self._time, window))


def window_of(v: Value, piece: int) -> Strided:
    """Where an assembled value holds its operand `piece`; all of it for the fill."""
    attrs, whole = v.node.attrs, stored(v)
    if piece < 0:
        return whole
    return whole.window(v.node.operands[piece].type.shape, attrs["starts"][piece], attrs["steps"][piece])
