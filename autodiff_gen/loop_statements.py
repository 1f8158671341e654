"""The statements of a loop nest: expressions built on demand, shared ones as locals, what does not change in
a loop moved out of it.

They are built in the order in which they will stand, so that a value is a local exactly where it is in scope.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from . import c_text
from .dtypes import DType, normalise_axes, planned, product, s32
from .ir import CONST, Node, Value
from .labels import Axes
from .loops import Body, LoopNest, Root, Step
from .op import (
    ADD,
    ATOM,
    MUL,
    SELECT,
    UNARY,
    Assemble,
    Attrs,
    Elementwise,
    Extent,
    Iota,
    Pick,
    Reduce,
    RowContraction,
    View,
)
from .short_sums import side_by_side, written_out

LOOP_NAMES = "ijklpqrs"


@dataclass(eq=False)
class Expr:
    """A C expression: a template over arguments, built once and printed where it is used."""

    template: str
    precedence: int
    home: Body  # the outermost body in which it can be computed
    args: tuple[Expr, ...] = ()
    needs: tuple[int, ...] = ()  # the precedence each argument must reach to stand bare
    dtype: DType = s32
    hint: str = ""
    uses: int = 0
    moved: bool = False  # used in a deeper body than its home
    worth_a_name: bool = False
    memory: tuple[Value, tuple[Index, ...]] | None = None  # a load: of what, at which index
    number: int | None = None  # an index that is known
    is_variable: bool = False  # of a loop
    is_sum: bool = False  # of terms that may stand in several lines
    name: str = ""  # once it is a local

    @property
    def is_plain_load(self) -> bool:
        """Whether this is a load whose place the loops around it alone decide: it is a local where a deeper loop would
        read it in every turn."""
        return self.memory is not None and all(
            i is None or i.is_variable or i.number is not None for i in self.memory[1]
        )


Index: TypeAlias = Expr | None
Accumulators: TypeAlias = list[Expr]  # one for each result


@dataclass(frozen=True)
class Local:
    """The place where `expr` becomes a local, if it is used more than once or in a deeper loop."""

    expr: Expr


@dataclass(frozen=True)
class Loop:
    body: Body
    statements: list[Statement]


@dataclass(frozen=True)
class Begin:
    """The accumulators of a reduction are declared: those of each place, where several grow side by side."""

    root: Root
    accumulators: tuple[Accumulators, ...]


@dataclass(frozen=True)
class Accumulate:
    root: Root
    accumulators: Accumulators
    x: Expr
    at: Index  # the index along the first reduced axis, for arg-reductions


@dataclass(frozen=True)
class Store:
    """One element is written; `index` counts within the window of operand `piece`, where that is given."""

    value: Value
    index: tuple[Index, ...]
    expr: Expr
    piece: int | None = None


@dataclass(frozen=True)
class Row:
    """One row of a product is completed."""

    root: Root
    row: Index


Statement: TypeAlias = Local | Loop | Begin | Accumulate | Store | Row


@dataclass(eq=False)
class Statements:
    """The statements of `nest`. `locked` params are loaded into a local when they are used twice, because a
    result takes their bytes.
    """

    nest: LoopNest
    locked: frozenset[Value] = frozenset()
    loop_vars: dict[Body, Expr] = field(default_factory=dict)
    accumulators: dict[Root, Accumulators] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.params = set(self.nest.region.params)
        self.stored = set(self.nest.region.results) | set(self.nest.scratch)
        self.written_out, self.side_by_side = written_out(self.nest), side_by_side(self.nest)
        self._numbers: dict[int, Expr] = {}
        self._known: dict[int, Expr] = {}  # axes along which the place is known
        self._places: dict[
            Root, list[tuple[dict[int, Expr], Accumulators]]
        ] = {}  # sums that grow side by side
        self._grown: Root | None = None  # those whose stores are built
        self._memo: dict[Body, dict[tuple[Value, tuple[Index, ...]], Expr]] = {}
        self._out: dict[Body, list[Statement]] = {}
        self.top = self._build(self.nest.top)

    def index_in_memory(self, v: Value, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """The part of an index that addresses v's memory: scratch holds only the axes that its readers need."""
        if v not in self.nest.scratch:
            return index
        kept = self.nest.scratch[v].axes
        return tuple(i for i, a in zip(index, self.nest.labels.of[v], strict=True) if a in kept)

    def _build(self, body: Body) -> list[Statement]:
        self._memo[body] = {}
        out = self._out[body] = []
        for item in body.items:
            if isinstance(item, Body) and item in self.written_out.values():
                continue
            if isinstance(item, Body) and item in self.side_by_side:
                self._build_side_by_side(item, body, out)
            elif isinstance(item, Body):
                depth = sum(b in self.loop_vars for b in body.path)
                name = LOOP_NAMES[depth] if depth < len(LOOP_NAMES) else f"i{depth + 1}"
                self.loop_vars[item] = Expr(name, ATOM, item, is_variable=True)
                inner = self._build(item)
                out.append(Loop(item, inner))
            else:
                self._build_step(item, body, out)
        return out

    def _build_side_by_side(self, loop: Body, body: Body, out: list[Statement]) -> None:
        """The sums of every turn of the loops from `loop` inwards, in the reduction's loops; then what is made of
        each."""
        inner = self.side_by_side[loop]
        gone = inner.path[len(body.path) :]
        first = inner.items[0]
        assert isinstance(first, Step)
        root = first.root
        for b in gone:
            self._memo[b], self._out[b] = {}, out
        places = self._places[root] = []
        for at in itertools.product(*map(range, planned(tuple(b.extent for b in gone)))):
            known = {b.axis: self._number(k) for b, k in zip(gone, at, strict=True) if b.axis is not None}
            places.append((known, self._fresh_accumulators(root, body)))
        out.append(Begin(root, tuple(accumulators for _, accumulators in places)))
        reduction = Body(inner, items=inner.items[1:2])
        self._memo[reduction] = {}
        out += self._build(reduction)
        self._grown = root
        for known, accumulators in places:
            self._known, self.accumulators[root] = known, accumulators
            for step in inner.items[2:]:
                assert isinstance(step, Step)
                self._build_step(step, body, out)
        self._known, self._grown = {}, None

    def _fresh_accumulators(self, root: Root, body: Body) -> Accumulators:
        node = root.node
        names = [node.op.name, f"{node.op.name}_at"]
        return [
            Expr("", ATOM, body, dtype=r.type.dtype, hint=names[i], uses=1)
            for i, r in enumerate(node.results)
        ]

    def _build_step(self, step: Step, body: Body, out: list[Statement]) -> None:
        root, lower = step.root, step.root.node.op.lower
        if isinstance(lower, RowContraction):
            out.append(Row(root, self._index_of(root.node.results[0], body)[0]))
        elif isinstance(lower, Reduce):
            self._build_reduce(step, lower, body, out)
        elif isinstance(lower, Assemble):
            self._build_piece(root, body, out)
        else:
            (v,) = root.node.results
            index = self._index_of(v, body)
            value = self._compute(v, index, body)
            self._memo[body][v, index] = value
            self._out[value.home].append(Local(self._seen_from(value, body)))
            if v in self.stored:
                value.uses += 1
                out.append(Store(v, index, value))

    def _build_piece(self, root: Root, body: Body, out: list[Statement]) -> None:
        node = root.node
        (y,) = node.results
        assert root.piece is not None
        if root.piece < 0:
            fill = self._constant(node.attrs["fill"], y.type.dtype)
            out.append(Store(y, self._index_of(y, body), fill))
            return
        index = self._at(self.nest.labels.pieces[node][root.piece], body)
        value = self._value(node.operands[root.piece], index, body)
        value.uses += 1
        out.append(Store(y, index, value, root.piece))

    def _build_reduce(self, step: Step, lower: Reduce, body: Body, out: list[Statement]) -> None:
        root, node = step.root, step.root.node
        if step.kind == "begin" and root in self.written_out:
            self.accumulators[root] = [self._written_out(root, body)]
        elif step.kind == "begin":
            self.accumulators[root] = self._fresh_accumulators(root, body)
            out.append(Begin(root, (self.accumulators[root],)))
        elif step.kind == "step":
            for known, accumulators in self._places.get(root) or [({}, self.accumulators[root])]:
                self._known = known
                index = self._at(self.nest.labels.walked[node], body)
                x = self._value(node.operands[0], index, body)
                x.uses += lower.step.count("{x}")
                gone = normalise_axes(node.attrs["axes"], len(index))
                at = next((index[i] for i in gone if index[i] is not None), None)
                out.append(Accumulate(root, accumulators, x, at))
            self._known = {}
        else:
            for r, acc in zip(node.results, self.accumulators[root], strict=True):
                if r in self.stored:
                    out.append(Store(r, self._index_of(r, body), acc))

    def _written_out(self, root: Root, body: Body) -> Expr:
        """A sum of a few terms as one expression, in their order."""
        node = root.node
        reduced = root.nest[len(root.nest) - root.reduced :]
        terms = []
        extents = planned(tuple(self.nest.labels.extents[a] for a in reduced))
        for at in itertools.product(*map(range, extents)):
            self._known = {a: self._number(k) for a, k in zip(reduced, at, strict=True)}
            index = self._at(self.nest.labels.walked[node], body)
            terms.append(self._value(node.operands[0], index, body))
            terms[-1].uses += 1
        self._known = {}
        home = max((t.home for t in terms), key=lambda b: b.depth)
        for term in terms:
            term.moved = term.moved or (term.is_plain_load and term.home is not home)
        total = Expr(
            " + ".join(f"{{{k}}}" for k in range(len(terms))),
            ADD,
            home,
            tuple(terms),
            (ADD, *(MUL for _ in terms[1:])),
            node.results[0].type.dtype,
            node.op.name,
            uses=1,
            moved=True,
            worth_a_name=True,
            is_sum=True,
        )
        self._out[home].append(Local(total))
        return total

    def _number(self, number: int) -> Expr:
        return self._numbers.setdefault(number, Expr(str(number), ATOM, self.nest.top, number=number))

    def _index_of(self, v: Value, body: Body) -> tuple[Index, ...]:
        return self._at(self.nest.labels.of[v], body)

    def _at(self, axes: Axes, body: Body) -> tuple[Index, ...]:
        """The variables of the loops over these axes around `body`; or what is known of them."""
        vars_ = {b.axis: self.loop_vars[b] for b in body.path[1:] if b in self.loop_vars} | self._known
        return tuple(None if a is None else vars_.get(a) for a in axes)

    def _moved(self, at: Index, start: int, step: int) -> Index:
        """The index start + at * step."""
        if at is None:
            return self._number(start) if start else None
        if at.number is not None:
            return self._number(start + at.number * step)
        if step == 1:
            return at if start == 0 else Expr(f"{{0}} + {start}", ADD, at.home, (at,), (ADD,))
        return Expr(f"{start} + {{0}} * {step}", ADD, at.home, (at,), (MUL,))

    def _constant(self, value: Any, dtype: DType) -> Expr:
        text = c_text.literal(value, dtype)
        return Expr(text, UNARY if text.startswith("-") else ATOM, self.nest.top, dtype=dtype)

    def _value(self, v: Value, index: tuple[Index, ...], body: Body) -> Expr:
        """The expression of v at `index`, as seen from `body`."""
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
        for place in reversed(body.path):
            found = self._memo[place].get((v, index))
            if found is not None:
                return self._seen_from(found, body)
        expr = self._make(v, index, body)
        self._memo[expr.home][v, index] = expr
        self._out[expr.home].append(Local(expr))
        return self._seen_from(expr, body)

    def _seen_from(self, expr: Expr, body: Body) -> Expr:
        if expr.home is not body and expr.worth_a_name and not expr.is_plain_load:
            expr.moved = True
        return expr

    def _make(self, v: Value, index: tuple[Index, ...], body: Body) -> Expr:
        node, lower = v.node, v.node.op.lower
        if v in self.params:
            return self._load(v, index)
        root = self.nest.roots.get(node)
        if root is not None:
            if root in self.accumulators and (root is self._grown or root.home.encloses(body)):
                return self.accumulators[root][v.index]
            return self._load(v, index)
        if node.op is CONST:
            return self._constant(node.attrs["value"].reshape(-1)[0], v.type.dtype)
        if isinstance(lower, Extent):
            text = c_text.extent(node.attrs["extent"])
            return Expr(
                f"(float)({text})" if " " in text else f"(float){text}",
                ATOM,
                self.nest.top,
                dtype=v.type.dtype,
            )
        if isinstance(lower, Iota):
            return self._place(v, index)
        if isinstance(lower, Pick):
            return self._value(node.operands[0], self._picked_at(node, lower, index, body), body)
        return self._compute(v, index, body)

    def _place(self, v: Value, index: tuple[Index, ...]) -> Expr:
        """The number of the element at `index`: row by row, or by the strides of the node."""
        shape, attrs = v.type.shape, v.node.attrs
        steps = attrs.get("strides") or [product(shape[k + 1 :]) for k in range(len(shape))]
        terms: list[str] = []
        args: list[Expr] = []
        for at, size in zip(index, steps, strict=True):
            if at is None or size == 0:
                continue
            step, name = c_text.extent(size), f"{{{len(args)}}}"
            terms.append(name if step == "1" else f"{name} * ({step})" if " " in step else f"{name} * {step}")
            args.append(at)
        if attrs.get("offset"):
            terms.append(str(attrs["offset"]))
        if terms == ["{0}"]:
            return args[0]
        home = max((a.home for a in args), key=lambda b: b.depth, default=self.nest.top)
        precedence = ADD if len(terms) > 1 else MUL if args else ATOM
        return Expr(" + ".join(terms) or "0", precedence, home, tuple(args), (MUL,) * len(args))

    def _compute(self, v: Value, index: tuple[Index, ...], body: Body) -> Expr:
        """The expression that computes an elementwise value, even where it is also in memory."""
        node, lower = v.node, v.node.op.lower
        if isinstance(lower, Pick):
            return self._make_pick(node, lower, index, body)
        assert isinstance(lower, Elementwise), node.op.name
        args = []
        for operand in node.operands:
            rank = len(operand.type.shape)
            mine = index[len(index) - rank :]
            at = tuple(None if d == 1 else i for d, i in zip(operand.type.shape, mine, strict=True))
            args.append(self._value(operand, at, body))
        if lower.c == "{0}":
            return args[0]
        for k, arg in enumerate(args):
            arg.uses += max(lower.c.count(f"{{{k}}}"), 1)
        if self.locked:
            condition = lower.c.partition("?")[0]
            self._load_first([arg for k, arg in enumerate(args) if f"{{{k}}}" not in condition])
        needs = lower.operand_precedence
        per_arg = needs if isinstance(needs, tuple) else (needs,) * len(args)
        home = max((a.home for a in args), key=lambda b: b.depth, default=self.nest.top)
        for arg in args:
            arg.moved = arg.moved or (arg.is_plain_load and arg.home is not home)
        return Expr(
            _filled(lower.c, node.attrs),
            lower.precedence,
            home,
            tuple(args),
            per_arg,
            v.type.dtype,
            node.op.name,
            worth_a_name=True,
        )

    def _load_first(self, choices: list[Expr]) -> None:
        """All choices are read before one is taken: GCC 12 vectorises a read under a condition wrongly where the
        result takes the place of an operand (-O3 with AVX2: tests/regression)."""
        for choice in choices:
            if choice.memory is not None and any(i is not None for i in choice.memory[1]):
                choice.moved = choice.worth_a_name = True
                choice.hint = choice.hint or "choice"

    def _make_pick(self, node: Node, lower: Pick, index: tuple[Index, ...], body: Body) -> Expr:
        picked = self._value(node.operands[0], self._picked_at(node, lower, index, body), body)
        picked.uses += 1
        return Expr("{0}", picked.precedence, picked.home, (picked,), (SELECT,), picked.dtype, "picked")

    def _picked_at(self, node: Node, lower: Pick, index: tuple[Index, ...], body: Body) -> tuple[Index, ...]:
        """Where a pick reads its first operand; an axis of extent 1 has one element, whatever the index says."""
        of_x, of_index = lower.of(node)
        x = node.operands[0].type.shape
        chosen: Index = None
        if x[lower.chosen(node)] != 1:
            chosen = self._value(node.operands[1], tuple(index[k] for k in of_index), body)
            chosen.uses += 1
        return tuple(chosen if k is None else index[k] for k in of_x)

    def _load(self, v: Value, index: tuple[Index, ...]) -> Expr:
        """The element at `index`; scratch holds another one in every turn of the loops that its place leaves out."""
        home = max((i.home for i in index if i is not None), key=lambda b: b.depth, default=self.nest.top)
        hint = "old" if v in self.locked else ""
        memory = (v, self.index_in_memory(v, index))
        load = Expr("", ATOM, home, dtype=v.type.dtype, hint=hint, memory=memory)
        load.worth_a_name = v in self.locked or load.is_plain_load
        return load


def _filled(template: str, attrs: Attrs) -> str:
    """The template with its attributes in place and its operands left."""
    for key, value in attrs.items():
        if f"{{{key}}}" in template:
            template = template.replace(f"{{{key}}}", c_text.attribute(value))
    return template
