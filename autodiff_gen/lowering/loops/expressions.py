"""The expressions of a loop nest: the C of a value at an index, built on demand and once for each body from which it
can be read.

`Statements` asks for the expressions in the order of its statements, and is told of each one that could become a
local.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...ir.loop_axes import Axes
from ...ir.node import CONST, Node, Value
from ...ir.op_kinds import Elementwise, Extent, Iota, Pick, View
from ...ir.types import DType, planned, product
from ...ir.views import pick_axes, picked_axis
from ...passes.loops.loop_nest import LoopNest
from ...passes.loops.nesting import Body, Root
from ..c import c_ast as c
from ..c import c_query, c_syntax
from ..c.op_template import of_op
from .c_expression import Accumulators, Index, LoopExpr, RowArrays, element_of, home_of, unnamed


@dataclass(eq=False)
class Expressions:
    """The expressions of `nest`. `locked` params are loaded into a local when they are used twice, because a result
    reuses their memory; `declare` is told of each new expression that may become a local in its home.
    """

    nest: LoopNest
    locked: frozenset[Value]
    declare: Callable[[LoopExpr], None]
    loop_vars: dict[Body, LoopExpr] = field(default_factory=dict)
    accumulators: dict[Root, Accumulators] = field(default_factory=dict)
    parts: dict[Root, Accumulators] = field(default_factory=dict)  # of the inner loops of sums in two steps
    rows: dict[Body, RowArrays] = field(default_factory=dict)  # of innermost loops
    known: dict[int, LoopExpr] = field(default_factory=dict)  # axes along which the place is known

    def __post_init__(self) -> None:
        self.params = set(self.nest.region.params)
        self._numbers: dict[int, LoopExpr] = {}
        self._memo: dict[Body, dict[tuple[Value, tuple[Index, ...]], LoopExpr]] = {}

    def enter(self, body: Body) -> None:
        """Begin to remember the expressions whose home is `body`."""
        self._memo[body] = {}

    def index_in_memory(self, v: Value, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """The part of an index that addresses v's memory: scratch holds only the axes that its readers need."""
        if v not in self.nest.scratch:
            return index
        s = self.nest.scratch[v]
        kept = tuple(i for i, a in zip(index, self.nest.labels.of[v], strict=True) if a in s.axes)
        return tuple(map(self._in_block, kept, s.blocks)) if s.blocks else kept

    def _in_block(self, at: Index, block: Body | None) -> Index:
        if at is None or block is None:
            return at
        args = at, self.loop_vars[block]
        return LoopExpr(lambda i, start: c.index((i, 1), (start, -1)), at.home, args)

    def number(self, number: int) -> LoopExpr:
        if number not in self._numbers:
            self._numbers[number] = LoopExpr(lambda: c.number(number), self.nest.top, number=number)
        return self._numbers[number]

    def constant(self, value: Any, dtype: DType) -> LoopExpr:
        literal = c.Literal(c_syntax.literal(value, dtype))
        return LoopExpr(lambda: literal, self.nest.top, dtype=dtype)

    def index_of(self, v: Value, body: Body) -> tuple[Index, ...]:
        return self.at(self.nest.labels.of[v], body)

    def at(self, axes: Axes, body: Body) -> tuple[Index, ...]:
        """The variables of the loops over these axes around `body`, or the known index along an axis."""
        vars_ = {b.axis: self.loop_vars[b] for b in body.path[1:] if b in self.loop_vars} | self.known
        return tuple([None if a is None else vars_.get(a) for a in axes])

    def _moved(self, at: Index, start: int, step: int) -> Index:
        """The index start + at * step."""
        if at is None:
            return self.number(start) if start else None
        if at.number is not None:
            return self.number(start + at.number * step)
        if step == 1 and start == 0:
            return at

        def form(i: c.Expr) -> c.Expr:
            terms = [(c.number(start), 1), (i, step)]
            return c.index(*(terms[::-1] if step == 1 else terms))

        return LoopExpr(form, at.home, (at,))

    def value(self, v: Value, index: tuple[Index, ...], body: Body) -> LoopExpr:
        """The expression of v at `index`, which is read in `body`."""
        return self._read_in(body, self._value(v, index, body))

    def _value(self, v: Value, index: tuple[Index, ...], body: Body) -> LoopExpr:
        """The expression of v at `index`, shared by all bodies inside its home."""
        node = v.node
        if isinstance(node.op.lower, View) and v not in self.params:
            source = node.operands[0]
            dims = node.op.lower.dims(source.type.shape, v.type.shape, node.attrs)
            assert dims is not None
            inner: list[Index] = [None] * len(source.type.shape)
            for out_axis, in_axis in enumerate(dims):
                if in_axis is not None:
                    inner[in_axis] = index[out_axis]
            if node.op.lower.window:
                inner = [
                    self._moved(at, start, step)
                    for at, start, step in zip(inner, node.attrs["starts"], node.attrs["steps"], strict=True)
                ]
            return self._value(source, tuple(inner), body)
        key = v, index
        for place in reversed(body.path):
            found = self._memo[place].get(key)
            if found is not None:
                return found
        expr = self._make(v, index, body)
        self._memo[expr.home][key] = expr
        self.declare(expr)
        return expr

    def of_root(self, v: Value, index: tuple[Index, ...], body: Body) -> LoopExpr:
        """The expression that computes an elementwise root in `body`, remembered for what reads it there."""
        expr = self._compute(v, index, body)
        self._memo[body][v, index] = expr
        self.declare(self._read_in(body, expr))
        return expr

    def _read_in(self, body: Body, expr: LoopExpr) -> LoopExpr:
        if expr.home is not body and expr.worth_a_name and not expr.is_plain_load:
            expr.moved = True
        return expr

    def _make(self, v: Value, index: tuple[Index, ...], body: Body) -> LoopExpr:
        node, lower = v.node, v.node.op.lower
        if v in self.params:
            return self._load(v, index)
        root = self.nest.roots.get(node)
        if root is not None:
            if root in self.accumulators and root.home.encloses(body):
                return self.accumulator(root, v, index)
            return self._load(v, index)
        if node.op is CONST:
            return self.constant(node.attrs["value"].reshape(-1)[0], v.type.dtype)
        if isinstance(lower, Extent):
            extent = c_syntax.size(node.attrs["extent"])
            number = c.Cast("float", extent) if v.type.dtype.kind == "f" else extent
            return LoopExpr(lambda: number, self.nest.top, dtype=v.type.dtype)
        if isinstance(lower, Iota):
            return self._place(v, index)
        if isinstance(lower, Pick):
            return self.value(node.operands[0], self._picked_at(node, index, body), body)
        return self._of_row(v, index) or self._compute(v, index, body)

    def _load(self, v: Value, index: tuple[Index, ...]) -> LoopExpr:
        """The element at `index`; scratch holds another one in every iteration of the loops that it leaves out."""
        row = self._of_row(v, index)
        if row is not None:
            return row
        home = home_of(index, self.nest.top)
        hint = v if v in self.locked else ""
        memory = (v, self.index_in_memory(v, index))
        load = LoopExpr(unnamed, home, dtype=v.type.dtype, hint=hint, memory=memory)
        load.worth_a_name = v in self.locked or load.is_plain_load
        return load

    def _of_row(self, v: Value, index: tuple[Index, ...]) -> LoopExpr | None:
        """The element of the local array of a tile of rows, in which it is loaded or computed once for all rows; None
        for a value that changes along other axes too."""
        home = home_of(index, self.nest.top)
        if home not in self.rows or any(i is not None and i is not self.loop_vars[home] for i in index):
            return None
        rows = self.rows[home]
        element = self.value(v, tuple(None if i is None else rows.at for i in index), rows.at.home)
        element.uses += 1
        return rows.element(rows.filled(element), self.loop_vars[home])

    def _place(self, v: Value, index: tuple[Index, ...]) -> LoopExpr:
        """The number of the element at `index`: row by row, or by the strides of the node."""
        shape, attrs = v.type.shape, v.node.attrs
        steps = attrs.get("strides") or [product(shape[k + 1 :]) for k in range(len(shape))]
        moving = [(at, size) for at, size in zip(index, steps, strict=True) if at is not None and size != 0]
        args = tuple(at for at, _ in moving)
        start = [(c.number(attrs["offset"]), 1)] if attrs.get("offset") else []
        if not start and len(moving) == 1 and moving[0][1] == 1:
            return args[0]

        def form(*places: c.Expr) -> c.Expr:
            terms = [
                (p, s) if isinstance(s, int) else (c.Binary("*", p, c_syntax.size(s)), 1)
                for p, (_, s) in zip(places, moving, strict=True)
            ]
            return c.index(*terms, *start)

        return LoopExpr(form, home_of(args, self.nest.top), args)

    def _compute(self, v: Value, index: tuple[Index, ...], body: Body) -> LoopExpr:
        """The expression that computes an elementwise value, even where it is also in memory."""
        node, lower = v.node, v.node.op.lower
        if isinstance(lower, Pick):
            return self._make_pick(node, lower, index, body)
        assert isinstance(lower, Elementwise), node.op.name
        args = []
        for operand in node.operands:
            rank = len(operand.type.shape)
            mine = index[len(index) - rank :]
            at = tuple([None if d == 1 else i for d, i in zip(operand.type.shape, mine, strict=True)])
            args.append(self._value(operand, at, body))
        if lower.is_identity:
            return args[0]
        reads = c_query.reads(lower.c, len(args))
        for arg, (times, _) in zip(args, reads, strict=True):
            arg.uses += times
        self._load_first([arg for arg, (_, is_choice) in zip(args, reads, strict=True) if is_choice])
        home = home_of(args, self.nest.top)
        for arg in args:
            arg.moved = self._read_in(home, arg).moved or (arg.home is not home and arg.is_plain_load)
        return LoopExpr(
            of_op(node.op, node.attrs, v.type.dtype),
            home,
            tuple(args),
            v.type.dtype,
            v,
            worth_a_name=True,
        )

    def _load_first(self, choices: list[LoopExpr]) -> None:
        """All floats are read before one of them is chosen: so a compiler needs no branch. And GCC 12 vectorises a read
        under a condition wrongly where the result takes the place of an operand (-O3 with AVX2: tests/regression)."""
        for choice in choices:
            moves = choice.memory is not None and any(i is not None for i in choice.memory[1])
            if moves and (choice.dtype.kind == "f" or self.locked):
                choice.moved = choice.worth_a_name = True

    def _make_pick(self, node: Node, lower: Pick, index: tuple[Index, ...], body: Body) -> LoopExpr:
        picked = self.value(node.operands[0], self._picked_at(node, index, body), body)
        picked.uses += 1
        return LoopExpr(lambda x: x, picked.home, (picked,), picked.dtype, node.results[0])

    def _picked_at(self, node: Node, index: tuple[Index, ...], body: Body) -> tuple[Index, ...]:
        """Where a pick reads its first operand; an axis of extent 1 has one element, whatever the index says."""
        of_x, of_index = pick_axes(node)
        x = node.operands[0].type.shape
        chosen: Index = None
        if x[picked_axis(node)] != 1:
            chosen = self.value(node.operands[1], tuple(index[k] for k in of_index), body)
            chosen.uses += 1
        return tuple(chosen if k is None else index[k] for k in of_x)

    def fresh_accumulators(self, root: Root, body: Body, hint: str = "") -> Accumulators:
        """New accumulators of a reduction in `body`, one for each result."""
        return [
            LoopExpr(unnamed, body, dtype=r.type.dtype, hint=hint or r, uses=1) for r in root.node.results
        ]

    def accumulator(self, root: Root, v: Value, index: tuple[Index, ...]) -> LoopExpr:
        """The accumulator of result v; of a tile, the accumulator at `index`."""
        acc = self.parts.get(root, self.accumulators[root])[v.index]
        tile = root.tile
        if tile is None:
            return acc
        at = dict(zip(self.nest.labels.of[v], index, strict=True))
        places = [place for a in tile.axes if (place := at[a]) is not None]
        sizes = [math.prod(tile.shape[k + 1 :]) for k in range(len(tile.shape))]
        terms = list(zip(places, sizes, strict=False))
        if tile.block is not None:
            terms.append((self.loop_vars[tile.block], -1))
        return element_of(acc, home_of((acc, *(i for i, _ in terms)), self.nest.top), *terms, uses=1)

    def written_out(self, root: Root, body: Body) -> LoopExpr:
        """A sum of a few terms as one expression, in their order."""
        node = root.node
        reduced = root.nest[len(root.nest) - root.reduced :]
        terms = []
        extents = planned(tuple(self.nest.labels.extents[a] for a in reduced))
        for at in itertools.product(*map(range, extents)):
            self.known = {a: self.number(k) for a, k in zip(reduced, at, strict=True)}
            index = self.at(self.nest.labels.operands[node], body)
            terms.append(self.value(node.operands[0], index, body))
            terms[-1].uses += 1
        self.known = {}
        home = home_of(terms, self.nest.top)
        for term in terms:
            term.moved = term.moved or (term.is_plain_load and term.home is not home)
        total = LoopExpr(
            lambda *operands: c.total(operands),
            home,
            tuple(terms),
            node.results[0].type.dtype,
            node.results[0],
            uses=1,
            moved=True,
            worth_a_name=True,
        )
        self.declare(total)
        return total
