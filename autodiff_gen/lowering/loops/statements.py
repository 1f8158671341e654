"""The statements of a loop nest, with loop-invariant expressions moved out of loops.

They are built in the order in which they are written, so that a value is a local exactly where it is in scope.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ...ir.node import Value
from ...ir.op_kinds import Assemble, Reduce, RowContraction
from ...ir.types import normalise_axes
from ...passes.loops.loop_nest import LoopNest
from ...passes.loops.nesting import Body, Root, RootStep
from ..c import c_ast as c
from .c_expression import Accumulators, Index, LoopExpr, RowArrays
from .expressions import Expressions

LOOP_NAMES = "ijklpqrs"


@dataclass(frozen=True)
class Local:
    """The place where `expr` becomes a local, if it is used more than once or in a deeper loop."""

    expr: LoopExpr


@dataclass(frozen=True)
class Loop:
    body: Body
    statements: list[Statement]


@dataclass(frozen=True)
class Begin:
    """The accumulators of a reduction are declared, as arrays where it is tiled. variable: the variable of a loop over
    them."""

    root: Root
    accumulators: Accumulators
    variable: str


@dataclass(frozen=True)
class Accumulate:
    root: Root
    accumulators: Accumulators
    x: LoopExpr
    at: Index  # the index along the first reduced axis, for arg-reductions


@dataclass(frozen=True)
class Store:
    """One element is written; `index` counts within the window of operand `piece`, where that is given."""

    value: Value
    index: tuple[Index, ...]
    expr: LoopExpr
    piece: int | None = None


@dataclass(frozen=True)
class ProductRow:
    """One row of a product is completed, or a block that begins with this row and column."""

    root: Root
    row: Index
    column: Index = None


@dataclass(frozen=True)
class LoadRows:
    """The local arrays of a tile of rows are declared and filled by `loop`, after `locals` in it."""

    loop: Body
    rows: RowArrays
    locals: list[Statement]


Statement: TypeAlias = Local | Loop | Begin | Accumulate | Store | ProductRow | LoadRows


def _variable(name: str, loop: Body) -> LoopExpr:
    variable = c.Name(name)
    return LoopExpr(lambda: variable, loop, is_variable=True)


class Statements:
    """The statements of `nest`; `locked` as in Expressions."""

    def __init__(self, nest: LoopNest, locked: frozenset[Value] = frozenset()) -> None:
        self.nest = nest
        self.exprs = Expressions(nest, locked, self._declare)
        self.stored = set(nest.region.results) | set(nest.scratch)
        self._out: dict[Body, list[Statement]] = {}
        self.top = self._build(nest.top)

    def _declare(self, expr: LoopExpr) -> None:
        self._out[expr.home].append(Local(expr))

    def _build(self, body: Body) -> list[Statement]:
        self.exprs.enter(body)
        out = self._out[body] = []
        for item in body.items:
            if isinstance(item, Body) and item in self.nest.written_out.values():
                continue
            if isinstance(item, Body):
                self._name_variable(item, body)
                out.append(Loop(item, self._build(item)))
            else:
                self._build_step(item, body, out)
        return out

    def _name_variable(self, loop: Body, around: Body) -> None:
        self.exprs.loop_vars[loop] = _variable(self._free_name(around), loop)

    def _free_name(self, around: Body) -> str:
        """The variable of a loop in the body `around`."""
        depth = sum(b in self.exprs.loop_vars for b in around.path)
        return LOOP_NAMES[depth] if depth < len(LOOP_NAMES) else f"i{depth + 1}"

    def _build_step(self, step: RootStep, body: Body, out: list[Statement]) -> None:
        root, lower = step.root, step.root.node.op.lower
        if step.kind == "load rows":
            loop = self.nest.row_loops[root.inner]
            self._name_variable(loop, body)
            first = None if loop.of is None else self.exprs.loop_vars[loop.of]
            rows = self.exprs.rows[root.inner] = RowArrays(self.exprs.loop_vars[loop], first)
            self.exprs.enter(loop)
            self._out[loop] = []
            out.append(LoadRows(loop, rows, self._out[loop]))
        elif isinstance(lower, RowContraction):
            (v,) = root.node.results
            scratch = self.nest.scratch.get(v)
            if scratch is not None and scratch.blocks:
                row, column = (None if b is None else self.exprs.loop_vars[b] for b in scratch.blocks)
                out.append(ProductRow(root, row, column))
            else:
                out.append(ProductRow(root, self.exprs.index_of(v, body)[0]))
        elif isinstance(lower, Reduce):
            self._build_reduce(step, lower, body, out)
        elif isinstance(lower, Assemble):
            self._build_piece(root, body, out)
        else:
            (v,) = root.node.results
            index = self.exprs.index_of(v, body)
            value = self.exprs.of_root(v, index, body)
            if v in self.stored:
                value.uses += 1
                out.append(Store(v, index, value))

    def _build_piece(self, root: Root, body: Body, out: list[Statement]) -> None:
        node = root.node
        (y,) = node.results
        assert root.piece is not None
        if root.piece < 0:
            fill = self.exprs.constant(node.attrs["fill"], y.type.dtype)
            out.append(Store(y, self.exprs.index_of(y, body), fill))
            return
        index = self.exprs.at(self.nest.labels.pieces[node][root.piece], body)
        value = self.exprs.value(node.operands[root.piece], index, body)
        value.uses += 1
        out.append(Store(y, index, value, root.piece))

    def _accumulated(self, root: Root, body: Body) -> Accumulators:
        """The accumulators that a reduction adds to in `body`."""
        return [self.exprs.accumulator(root, r, self.exprs.index_of(r, body)) for r in root.node.results]

    def _build_reduce(self, step: RootStep, lower: Reduce, body: Body, out: list[Statement]) -> None:
        root, node = step.root, step.root.node
        if step.kind == "begin" and root in self.nest.written_out:
            self.exprs.accumulators[root] = [self.exprs.written_out(root, body)]
        elif step.kind == "begin":
            self.exprs.accumulators[root] = self.exprs.fresh_accumulators(root, body)
            out.append(Begin(root, self.exprs.accumulators[root], self._free_name(body)))
        elif step.kind == "begin part":
            self.exprs.parts[root] = self.exprs.fresh_accumulators(root, body, "part")
            out.append(Begin(root, self.exprs.parts[root], self._free_name(body)))
        elif step.kind == "add part":
            (part,) = self._accumulated(root, body)
            del self.exprs.parts[root]
            out.append(Accumulate(root, self._accumulated(root, body), part, None))
        elif step.kind == "step":
            index = self.exprs.at(self.nest.labels.operands[node], body)
            x = self.exprs.value(node.operands[0], index, body)
            x.uses += lower.step.count("{x}")
            gone = normalise_axes(node.attrs["axes"], len(index))
            at = next((index[i] for i in gone if index[i] is not None), None)
            out.append(Accumulate(root, self._accumulated(root, body), x, at))
        else:
            for r in node.results:
                if r in self.stored:
                    index = self.exprs.index_of(r, body)
                    out.append(Store(r, index, self.exprs.accumulator(root, r, index)))
