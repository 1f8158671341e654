"""The C of a loop nest, and the record of its accesses to memory.

The planner asks `may_share` before it lets a result take the bytes of an operand: the answer is read off the
accesses in the order in which they are written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..ir.node import Node, Value
from ..ir.op_kinds import ADD, ATOM, MUL, SELECT, Reduce
from ..ir.strides import Strided, dense
from . import c_syntax
from .expressions import Expr, Index
from .loop_nest import Body, LoopNest
from .statements import Accumulate, Begin, Local, Loop, Row, Statement, Statements, Store

C_TYPES = {
    "f32": "float",
    "s8": "int32_t",
    "u8": "int32_t",
    "s32": "int32_t",
    "u32": "uint32_t",
    "bool": "int32_t",
}

RowCall: TypeAlias = Callable[[Node, str, str, Sequence[str]], list[str]]


@dataclass(frozen=True)
class Access:
    """One read or write of memory, in the order in which it happens."""

    value: Value
    index: tuple[Index, ...] | None  # None: all of it, in any order
    path: tuple[Body, ...]
    time: int


def _apart(a: tuple[Index, ...] | None, b: tuple[Index, ...] | None) -> bool:
    """Whether two places of one array are never the same."""
    if a is None or b is None or len(a) != len(b):
        return False
    numbers = [(i.number, j.number) for i, j in zip(a, b, strict=True) if i is not None and j is not None]
    return any(i is not None and j is not None and i != j for i, j in numbers)


class LoopText:
    """Writes one loop nest; `locked` as in Expressions."""

    def __init__(self, nest: LoopNest, locked: frozenset[Value] = frozenset()) -> None:
        self.nest = nest
        statements = Statements(nest, locked)
        self.top, self.exprs = statements.top, statements.exprs
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.time = 0
        self.taken: set[str] = set()

    def render(
        self,
        places: Callable[[Value], str],
        layouts: Callable[[Value], Strided | None],
        row_call: RowCall,
        taken: set[str],
    ) -> list[str]:
        """The lines, indented by four blanks per level.

        places: the C pointer of a param, result or scratch value; layouts: where its elements lie, None for a
        scalar passed by value; row_call(node, row, target, offset): the lines that complete one row of a
        product; taken: names in scope.
        """
        self.place_of, self.layout_of, self.row_call = places, layouts, row_call
        self.taken = set(taken)
        return self._print(self.top, self.nest.top)

    def may_share(self, param: Value, result: Value) -> bool:
        """Whether `result` may be written over `param`: each element is read, for the last time, before it is
        written.
        """
        for write in (w for w in self.writes if w.value is result):
            for read in (r for r in self.reads if r.value is param):
                if _apart(read.index, write.index):
                    continue
                common = [b for b in write.path if b in read.path and b.parent is not None]
                if read.time > write.time or len(read.index or ()) != len(write.index or ()):
                    return False
                for body in common:
                    var = self.exprs.loop_vars[body]
                    if read.index is None or write.index is None:
                        return False
                    if not any(a is var and b is var for a, b in zip(read.index, write.index, strict=True)):
                        return False
        return True

    def _print(self, statements: Sequence[Statement], body: Body) -> list[str]:
        lines: list[str] = []
        names_before = set(self.taken)
        for statement in statements:
            self.time += 1
            lines += self._statement(statement, body)
        if body.parent is not None:
            self.taken = names_before
        return lines

    def _statement(self, statement: Statement, body: Body) -> list[str]:
        match statement:
            case Local(expr):
                return self._local(expr, body)
            case Loop():
                return self._loop(statement)
            case Begin():
                return self._begin(statement)
            case Accumulate():
                return self._accumulate(statement, body)
            case Store():
                return self._store(statement, body)
            case Row():
                return self._row(statement, body)

    def _local(self, expr: Expr, body: Body) -> list[str]:
        if not expr.worth_a_name or expr.name or not (expr.moved or expr.uses > 1):
            return []
        if expr.memory is not None and not expr.hint:
            v = expr.memory[0]
            by_value = v not in self.nest.scratch and self.layout_of(v) is None
            if by_value or not expr.moved:
                return []
            expr.hint = re.sub(r"\W+", "_", self.place_of(v).removeprefix("t->")).strip("_") + "_"
        terms = [self._text(expr, SELECT, body)]
        if expr.is_sum:
            terms = [self._text(a, n, body) for a, n in zip(expr.args, expr.needs, strict=True)]
        expr.name = self._fresh(expr.hint, first="_1" if expr.hint[-1:].isdigit() else "1")
        return c_syntax.wrapped(f"const {C_TYPES[expr.dtype.name]} {expr.name} = ", terms)

    def _loop(self, loop: Loop) -> list[str]:
        lines = self._print(loop.statements, loop.body)
        if not lines:
            return []
        var = self.exprs.loop_vars[loop.body].template
        head = f"for (int32_t {var} = 0; {var} < {c_syntax.extent(loop.body.extent)}; {var}++) {{"
        return [head, *("    " + line for line in lines), "}"]

    def _begin(self, begin: Begin) -> list[str]:
        lower = begin.root.node.op.lower
        assert isinstance(lower, Reduce)
        lines = []
        for k, init in enumerate(lower.init):
            of_all = [accumulators[k] for accumulators in begin.accumulators]
            for acc in of_all:
                acc.name = self._fresh(acc.hint)
            for some in (of_all[i : i + 6] for i in range(0, len(of_all), 6)):
                declared = ", ".join(f"{acc.name} = {init}" for acc in some)
                lines.append(f"{C_TYPES[some[0].dtype.name]} {declared};")
        return lines

    def _accumulate(self, what: Accumulate, body: Body) -> list[str]:
        lower = what.root.node.op.lower
        assert isinstance(lower, Reduce)
        names = {f"acc{i}": acc.name for i, acc in enumerate(what.accumulators)}
        bare = ADD if lower.step.startswith("{acc0} +=") else ATOM
        at = what.at.template if what.at is not None else "0"
        return [lower.step.format(**names, x=self._text(what.x, bare, body), i=at)]

    def _store(self, store: Store, body: Body) -> list[str]:
        v, expr = store.value, store.expr
        index = self.exprs.index_in_memory(v, store.index)
        text = self._text(expr, SELECT, body)
        if v.type.dtype.size < 4:
            text = f"({v.type.dtype.c})({text})"
        if store.piece is None:
            target = self._element(v, index, body)
            self.writes.append(Access(v, index, tuple(body.path), self.time))
        else:
            attrs, shape = v.node.attrs, v.node.operands[store.piece].type.shape
            at = dense(v.type.shape).window(shape, attrs["starts"][store.piece], attrs["steps"][store.piece])
            target = self._at(self.place_of(v), at, index, body)
            self.writes.append(Access(v, None, tuple(body.path), self.time))
        if not expr.name and expr.template in ("{0} + {1}", "{0} - {1}") and v.type.dtype.size == 4:
            first, second = expr.args
            if self._text(first, SELECT, body) == target:
                return [f"{target} {expr.template[4]}= {self._text(second, SELECT, body)};"]
        return [f"{target} = {text};"]

    def _row(self, what: Row, body: Body) -> list[str]:
        node = what.root.node
        (v,) = node.results
        for operand in node.operands:
            self.reads.append(Access(operand, None, tuple(body.path), self.time))
        self.writes.append(Access(v, (what.row, None), tuple(body.path), self.time))
        row = what.row.template if what.row is not None else "0"
        scratch = self.nest.scratch.get(v)
        one_row = scratch is not None and self.nest.labels.of[v][0] not in scratch.axes
        offset = [] if one_row or row == "0" else [f"{row} * {c_syntax.extent(v.type.shape[1])}"]
        return self.row_call(node, row, self.place_of(v), offset)

    def _text(self, expr: Expr, needed: int, body: Body) -> str:
        if expr.name:
            return expr.name
        if expr.memory is not None:
            v, index = expr.memory
            if v in self.exprs.params:
                self.reads.append(Access(v, index, tuple(body.path), self.time))
            return self._element(v, index, body)
        args = [self._text(a, n, body) for a, n in zip(expr.args, expr.needs, strict=True)]
        text = expr.template.format(*args) if args else expr.template
        return f"({text})" if expr.precedence < needed else text

    def _element(self, v: Value, index: tuple[Index, ...], body: Body) -> str:
        """The C expression of one element: `name[i * 10 + j]`, or the name alone for a scalar passed by
        value.
        """
        if v in self.nest.scratch:
            at: Strided | None = dense(self.nest.scratch[v].shape)
        else:
            at = self.layout_of(v)
        place = self.place_of(v)
        return place if at is None else self._at(place, at, index, body)

    def _at(self, place: str, at: Strided, index: tuple[Index, ...], body: Body) -> str:
        """`name[i * 10 + j + 4]`; what counts downwards stands last."""
        up: list[str] = []
        down: list[str] = []
        offset = at.offset
        for i, step in zip(index, at.strides, strict=True):
            if i is not None and i.number is not None:
                offset += i.number * step
            elif i is not None and step:
                var = self._text(i, ATOM if abs(step) != 1 else MUL, body)
                (up if step > 0 else down).append(var if abs(step) == 1 else f"{var} * {abs(step)}")
        if offset:
            up.append(str(offset))
        return c_syntax.element(place, c_syntax.index(up, down))

    def _fresh(self, hint: str, first: str = "") -> str:
        name, k = hint + first, 1
        while name in self.taken:
            k += 1
            name = f"{hint}{k}"
        self.taken.add(name)
        return name
