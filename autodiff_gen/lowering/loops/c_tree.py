"""The C tree of a loop nest."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import TypeAlias

from ...ir.identifiers import identifier, numbered
from ...ir.names import Called, called, label_of, short_called
from ...ir.node import Node, Value
from ...ir.op_kinds import ADD, ATOM, Reduce
from ...ir.strides import Strided
from ...ir.types import planned_size, s8
from ...passes.loops.nesting import Body
from ..c import c_ast as c
from ..c import c_query, c_syntax
from .c_expression import Index, LoopExpr
from .nest_accesses import window_of
from .pointed_memory import PointedMemory, local_array
from .statements import Accumulate, Begin, LoadRows, Local, Loop, ProductRow, Statement, Statements, Store

C_TYPES = {
    "f32": "float",
    "s8": "int32_t",
    "u8": "int32_t",
    "s32": "int32_t",
    "u32": "uint32_t",
    "bool": "int32_t",
}

# (node, row, column, target, offset of the row in it) -> the statements that complete a row or a block of a product
RowCall: TypeAlias = Callable[
    [Node, c.Expr | None, c.Expr | None, c.Expr, Sequence[c.Expr]], Sequence[c.Statement]
]


class LoopTree:
    """Builds the tree of the statements of one loop nest.

    places: the C pointer of a param, result or scratch value; memories: the memory of such pointers; arrays: the
    meaning of their names; layouts: the layout of a value in memory, None for a scalar passed by value; outer: the
    outer values of params and results; taken: names in scope around the nest; own: for values of the nest, other values
    that give them names. called: the names of locals that are values of the nest.
    """

    def __init__(
        self,
        statements: Statements,
        places: Callable[[Value], c.Expr],
        memories: Mapping[c.Expr, PointedMemory],
        arrays: Mapping[c.Expr, Called],
        layouts: Callable[[Value], Strided | None],
        row_call: RowCall,
        outer: Mapping[Value, Value],
        taken: Set[str],
        own: Mapping[Value, Value],
    ) -> None:
        self.nest = nest = statements.nest
        self.place_of, self.layout_of, self.row_call = places, layouts, row_call
        self.memories, self.arrays = memories, arrays
        self.outer, self.around, self.taken, self.own = outer, taken, set[str](), own
        self.exprs = statements.exprs
        self.names: dict[LoopExpr, c.Name] = {}  # of the expressions that are locals
        self.called: dict[Value, str] = {}
        self.top = self._sequence(statements.top, nest.top)

    def _sequence(self, statements: Sequence[Statement], body: Body) -> c.Statements:
        names_before = set(self.taken)
        out: list[c.Statement] = []
        for statement in statements:
            out += self._statement(statement)
        if body.parent is not None:
            self.taken = names_before
        return tuple(out)

    def _statement(self, statement: Statement) -> list[c.Statement]:
        match statement:
            case Local(expr):
                return self._local(expr)
            case Loop():
                return self._loop(statement)
            case Begin():
                return self._begin(statement)
            case Accumulate():
                return [self._accumulate(statement)]
            case Store():
                return [self._store(statement)]
            case ProductRow():
                return self._row(statement)
            case LoadRows():
                return self._load_rows(statement)

    def _local(self, expr: LoopExpr) -> list[c.Statement]:
        if not expr.is_local or expr in self.names:
            return []
        value = self._made(expr)
        if expr.memory is None:
            name, called = self._named(expr, self._called(expr.hint))
        else:
            v, index = expr.memory
            if expr.hint == "" and v not in self.nest.scratch and self.layout_of(v) is None:
                return []
            name, called = self._named(expr, self._load_called(v, index, expr.hint != ""), "")
        c_type = "int8_t" if expr.dtype is s8 and expr.is_plain_load else C_TYPES[expr.dtype.name]
        return [c.declare(c_type, name, value, const=True, called=called)]

    def _load_called(self, v: Value, index: tuple[Index, ...], replaced: bool) -> Called | c.OfArray:
        """The name of a local that holds an element of v. replaced: whether a result reuses the memory of v; then the
        name is `old_exp_avg` for a state, and the role of v for another value that has one. Otherwise it is the array
        with the place in it, `x_1`, or with `i` for the element at the variables of the loops, `x_i`."""
        if replaced:
            source = self.outer[v].part
            state = source.node.attrs.get("state")
            if state is not None:
                return Called(f"old_{identifier(state.name.rpartition('.')[2])}")
            if source.index in source.node.origin.labels:
                return short_called(source)
        known = [str(i.number) for i in index if i is not None and i.number is not None]
        return self._of_array(v, "_".join(known or ["i" if any(index) else "0"]))

    def _of_array(self, v: Value, word: str) -> Called | c.OfArray:
        place = self.place_of(v)
        if not isinstance(place, c.Name | c.Member):
            return Called("_".join([*c_query.words(place), word]))
        text = place.text if isinstance(place, c.Name) else place.name
        return c.OfArray(place, word, self.arrays.get(place, Called(text)))

    def _loop(self, loop: Loop) -> list[c.Statement]:
        statements = self._sequence(loop.statements, loop.body)
        return [self._for(loop.body, statements)] if statements else []

    def _for(self, body: Body, statements: c.Statements) -> c.For:
        var = self._expr(self.exprs.loop_vars[body])
        assert isinstance(var, c.Name)
        start: c.Expr = c.number(0)
        stop = c_syntax.size(body.extent)
        if body.of is not None:
            start = self._expr(self.exprs.loop_vars[body.of])
            stop = c.Binary("+", start, stop)
        return c.For(var.text, stop, statements, start, body.block, rolled=body.rolled, extent=body.extent)

    def _load_rows(self, what: LoadRows) -> list[c.Statement]:
        size = what.loop.extent
        assert isinstance(size, int)
        arrays = [s for e in what.rows.elements.values() for s in self._locals_before(e, what.loop)]
        filled: list[c.Statement] = [s for local in what.locals for s in self._statement(local)]
        for array, element in what.rows.elements.items():
            memory = element.memory
            if memory is None:
                of = self._called(element.hint)
                wanted: Called | c.OfArray = replace(of, words=f"{of.words}_i")
            else:
                wanted = self._of_array(memory[0], "i")
            name, called = self._named(array, wanted, element.hint if memory is None else "")
            arrays.append(c.Array(C_TYPES[array.dtype.name], name, size, called=called))
            at = self._expr(what.rows.element(array, what.rows.at))
            filled.append(c.Assign(at, self._expr(element)))
        return [*arrays, self._for(what.loop, tuple(filled))]

    def _locals_before(self, expr: LoopExpr, loop: Body) -> list[c.Statement]:
        """The locals of an expression in this loop that are computed before it."""
        index = () if expr.memory is None else expr.memory[1]
        read = [arg for arg in (*expr.args, *index) if arg is not None]
        out = [s for arg in read for s in self._locals_before(arg, loop)]
        return out if loop.encloses(expr.home) else [*out, *self._local(expr)]

    def _begin(self, begin: Begin) -> list[c.Statement]:
        lower = begin.root.node.op.lower
        assert isinstance(lower, Reduce)
        out: list[c.Statement] = []
        tile = begin.root.tile
        for acc, init in zip(begin.accumulators, lower.init, strict=True):
            name, called = self._named(acc, self._called(acc.hint))
            c_type = C_TYPES[acc.dtype.name]
            if tile is None:
                out.append(c.declare(c_type, name, c.Literal(init), called=called))
            else:
                array = c.Array(c_type, name, math.prod(tile.shape), called=called)
                out += _filled(array, init, begin.variable)
        return out

    def _accumulate(self, what: Accumulate) -> c.Statement:
        lower = what.root.node.op.lower
        assert isinstance(lower, Reduce)
        accumulators = tuple(map(self._expr, what.accumulators))
        x, at = self._expr(what.x), None
        if lower.indexed:
            at = self._expr(what.at) if what.at is not None else c.number(0)
        need = ADD if lower.sums else ATOM
        calls = c_query.functions_of(lower.step)
        return c.StepTemplate(lower.step, accumulators, x, at, need, calls, lower.identifier)

    def _store(self, store: Store) -> c.Statement:
        v, expr = store.value, store.expr
        index = self.exprs.index_in_memory(v, store.index)
        value = self._expr(expr)
        if store.piece is None:
            target = self._element(v, index)
        else:
            target = self._at(self.place_of(v), window_of(v, store.piece), index)
        c_type = v.type.dtype.c
        if v.type.dtype.size < 4 and not (isinstance(value, c.Cast) and value.c_type == c_type):
            return c.Assign(target, c.Cast(c_type, value))
        if isinstance(value, c.Template) and value.is_sum:
            first, second = value.operands
            if first == target:
                return c.Assign(target, second, "+=" if value.signs == (1, 1) else "-=")
        return c.Assign(target, value)

    def _row(self, what: ProductRow) -> list[c.Statement]:
        node = what.root.node
        (v,) = node.results
        row, column = (None if i is None else self._expr(i) for i in (what.row, what.column))
        scratch = self.nest.scratch.get(v)
        alone = scratch is not None and (scratch.blocks or self.nest.labels.of[v][0] not in scratch.axes)
        offset: list[c.Expr] = []
        if not alone and row is not None:
            offset = [c.Binary("*", row, c_syntax.size(v.type.shape[1]))]
        return list(self.row_call(node, row, column, self.place_of(v), offset))

    def _expr(self, expr: LoopExpr) -> c.Expr:
        return self.names[expr] if expr in self.names else self._made(expr)

    def _made(self, expr: LoopExpr) -> c.Expr:
        if expr.memory is not None:
            return self._element(*expr.memory)
        return expr.form(*map(self._expr, expr.args))

    def _element(self, v: Value, index: tuple[Index, ...]) -> c.Expr:
        """One element: `name[i * 10 + j]`, or only the name for a scalar passed by value."""
        if v in self.nest.scratch:
            at: Strided | None = self.nest.scratch[v].layout
        else:
            at = self.layout_of(v)
        place = self.place_of(v)
        return place if at is None else self._at(place, at, index)

    def _at(self, place: c.Expr, at: Strided, index: tuple[Index, ...]) -> c.Expr:
        """`name[i * 10 + j + 4]`: the widest steps first. An index that counts downwards is one from the axis' end,
        `name[i * 10 + (4 - j)]`."""
        terms: list[tuple[c.Expr, int]] = []
        offset = at.offset
        axes = zip(index, at.strides, at.shape, strict=True)
        for i, step, extent in sorted(axes, key=lambda axis: -abs(axis[1])):
            if i is None or i.number is not None:
                offset += 0 if i is None else (i.number or 0) * step
            elif step < 0:
                last = planned_size((extent,)) - 1
                offset += last * step
                terms.append((c.index((c.number(last), 1), (self._expr(i), -1)), -step))
            elif step:
                terms.append((self._expr(i), step))
        if offset:
            terms.append((c.number(offset), 1))
        return c.Element(place, c.index(*terms), self.memories[place])

    def _named(
        self, expr: LoopExpr, name: Called | c.OfArray, hint: str | Value | None = None
    ) -> tuple[str, Called | c.OfArray]:
        """The name of a new local and its meaning; hint: its value or word, if it differs from the expression's
        hint."""
        value = expr.hint if hint is None else hint
        v = None if isinstance(value, str) else self.own.get(value, value)
        if v is not None and name.text in self.taken and label_of(v) is not None:
            name = called(v)  # with the layer, which tells it apart from another one
        if name.text in self.around:
            name = c.OfArray(c.Name(name.text), "i", Called(name.text))
        text = self._fresh(name.text)
        self.names[expr] = c.Name(text)
        if v is not None:
            self.called.setdefault(v, text)
        return text, name

    def _called(self, hint: str | Value) -> Called:
        return Called(hint) if isinstance(hint, str) else short_called(self.own.get(hint, hint))

    def _fresh(self, hint: str) -> str:
        name, k = hint, 1
        while name in self.taken or name in self.around:
            k += 1
            name = numbered(hint, k)
        self.taken.add(name)
        return name


def _filled(array: c.Array, init: str, variable: str) -> list[c.Statement]:
    """An array of accumulators with their initial value."""
    if init in ("0", "0.0f"):
        return [replace(array, first=init)]
    memory = local_array(array.name, is_float=array.c_type == "float")
    each = c.Assign(c.Element(c.Name(array.name), c.Name(variable), memory), c.Literal(init))
    return [array, c.For(variable, c.number(array.size), (each,), extent=array.size)]
