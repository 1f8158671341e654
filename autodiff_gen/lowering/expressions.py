"""The expressions of a loop nest: the C of a value at an index, built on demand and once for each body from which it
can be read.

`Statements` says in which order; an expression is declared where it could become a local.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ..ir.loop_axes import Axes
from ..ir.node import CONST, Node, Value
from ..ir.op_kinds import ADD, ATOM, MUL, SELECT, UNARY, Attrs, Elementwise, Extent, Iota, Pick, View
from ..ir.types import DType, planned, product, s32
from ..ir.views import pick_axes, picked_axis
from . import c_syntax
from .loop_nest import Body, LoopNest, Root


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


@dataclass(eq=False)
class Expressions:
    """The expressions of `nest`. `locked` params are loaded into a local when they are used twice, because a result
    takes their bytes; `declare` is told of each new expression that may become a local in its home.
    """

    nest: LoopNest
    locked: frozenset[Value]
    declare: Callable[[Expr], None]
    loop_vars: dict[Body, Expr] = field(default_factory=dict)
    accumulators: dict[Root, Accumulators] = field(default_factory=dict)
    known: dict[int, Expr] = field(default_factory=dict)  # axes along which the place is known
    grown: Root | None = None  # sums that grow side by side, while what is made of them is built

    def __post_init__(self) -> None:
        self.params = set(self.nest.region.params)
        self._numbers: dict[int, Expr] = {}
        self._memo: dict[Body, dict[tuple[Value, tuple[Index, ...]], Expr]] = {}

    def enter(self, body: Body) -> None:
        """From here on, values are remembered for `body`."""
        self._memo[body] = {}

    def index_in_memory(self, v: Value, index: tuple[Index, ...]) -> tuple[Index, ...]:
        """The part of an index that addresses v's memory: scratch holds only the axes that its readers need."""
        if v not in self.nest.scratch:
            return index
        kept = self.nest.scratch[v].axes
        return tuple(i for i, a in zip(index, self.nest.labels.of[v], strict=True) if a in kept)

    def number(self, number: int) -> Expr:
        return self._numbers.setdefault(number, Expr(str(number), ATOM, self.nest.top, number=number))

    def constant(self, value: Any, dtype: DType) -> Expr:
        text = c_syntax.literal(value, dtype)
        return Expr(text, UNARY if text.startswith("-") else ATOM, self.nest.top, dtype=dtype)

    def index_of(self, v: Value, body: Body) -> tuple[Index, ...]:
        return self.at(self.nest.labels.of[v], body)

    def at(self, axes: Axes, body: Body) -> tuple[Index, ...]:
        """The variables of the loops over these axes around `body`; or what is known of them."""
        vars_ = {b.axis: self.loop_vars[b] for b in body.path[1:] if b in self.loop_vars} | self.known
        return tuple(None if a is None else vars_.get(a) for a in axes)

    def _moved(self, at: Index, start: int, step: int) -> Index:
        """The index start + at * step."""
        if at is None:
            return self.number(start) if start else None
        if at.number is not None:
            return self.number(start + at.number * step)
        if step == 1:
            return at if start == 0 else Expr(f"{{0}} + {start}", ADD, at.home, (at,), (ADD,))
        return Expr(f"{start} + {{0}} * {step}", ADD, at.home, (at,), (MUL,))

    def value(self, v: Value, index: tuple[Index, ...], body: Body) -> Expr:
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
            return self.value(source, tuple(inner), body)
        for place in reversed(body.path):
            found = self._memo[place].get((v, index))
            if found is not None:
                return self._seen_from(found, body)
        expr = self._make(v, index, body)
        self._memo[expr.home][v, index] = expr
        self.declare(expr)
        return self._seen_from(expr, body)

    def of_root(self, v: Value, index: tuple[Index, ...], body: Body) -> Expr:
        """The expression that computes an elementwise root in `body`, remembered for what reads it there."""
        expr = self._compute(v, index, body)
        self._memo[body][v, index] = expr
        self.declare(self._seen_from(expr, body))
        return expr

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
            if root in self.accumulators and (root is self.grown or root.home.encloses(body)):
                return self.accumulators[root][v.index]
            return self._load(v, index)
        if node.op is CONST:
            return self.constant(node.attrs["value"].reshape(-1)[0], v.type.dtype)
        if isinstance(lower, Extent):
            text = c_syntax.extent(node.attrs["extent"])
            return Expr(
                f"(float)({text})" if " " in text else f"(float){text}",
                ATOM,
                self.nest.top,
                dtype=v.type.dtype,
            )
        if isinstance(lower, Iota):
            return self._place(v, index)
        if isinstance(lower, Pick):
            return self.value(node.operands[0], self._picked_at(node, lower, index, body), body)
        return self._compute(v, index, body)

    def _load(self, v: Value, index: tuple[Index, ...]) -> Expr:
        """The element at `index`; scratch holds another one in every turn of the loops that its place leaves out."""
        home = max((i.home for i in index if i is not None), key=lambda b: b.depth, default=self.nest.top)
        hint = "old" if v in self.locked else ""
        memory = (v, self.index_in_memory(v, index))
        load = Expr("", ATOM, home, dtype=v.type.dtype, hint=hint, memory=memory)
        load.worth_a_name = v in self.locked or load.is_plain_load
        return load

    def _place(self, v: Value, index: tuple[Index, ...]) -> Expr:
        """The number of the element at `index`: row by row, or by the strides of the node."""
        shape, attrs = v.type.shape, v.node.attrs
        steps = attrs.get("strides") or [product(shape[k + 1 :]) for k in range(len(shape))]
        terms: list[str] = []
        args: list[Expr] = []
        for at, size in zip(index, steps, strict=True):
            if at is None or size == 0:
                continue
            step, name = c_syntax.extent(size), f"{{{len(args)}}}"
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
            args.append(self.value(operand, at, body))
        if lower.c == "{0}":
            return args[0]
        for k, arg in enumerate(args):
            arg.uses += max(lower.c.count(f"{{{k}}}"), 1)
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
        """All floats are read before one is taken: so a compiler needs no branch. And GCC 12 vectorises a read under a
        condition wrongly where the result takes the place of an operand (-O3 with AVX2: tests/regression)."""
        for choice in choices:
            moves = choice.memory is not None and any(i is not None for i in choice.memory[1])
            if moves and (choice.dtype.kind == "f" or self.locked):
                choice.moved = choice.worth_a_name = True
                choice.hint = choice.hint or "choice"

    def _make_pick(self, node: Node, lower: Pick, index: tuple[Index, ...], body: Body) -> Expr:
        picked = self.value(node.operands[0], self._picked_at(node, lower, index, body), body)
        picked.uses += 1
        return Expr("{0}", picked.precedence, picked.home, (picked,), (SELECT,), picked.dtype, "picked")

    def _picked_at(self, node: Node, lower: Pick, index: tuple[Index, ...], body: Body) -> tuple[Index, ...]:
        """Where a pick reads its first operand; an axis of extent 1 has one element, whatever the index says."""
        of_x, of_index = pick_axes(node)
        x = node.operands[0].type.shape
        chosen: Index = None
        if x[picked_axis(node)] != 1:
            chosen = self.value(node.operands[1], tuple(index[k] for k in of_index), body)
            chosen.uses += 1
        return tuple(chosen if k is None else index[k] for k in of_x)

    def fresh_accumulators(self, root: Root, body: Body) -> Accumulators:
        """What a reduction grows in `body`, one for each result."""
        node = root.node
        names = [node.op.name, f"{node.op.name}_at"]
        return [
            Expr("", ATOM, body, dtype=r.type.dtype, hint=names[i], uses=1)
            for i, r in enumerate(node.results)
        ]

    def written_out(self, root: Root, body: Body) -> Expr:
        """A sum of a few terms as one expression, in their order."""
        node = root.node
        reduced = root.nest[len(root.nest) - root.reduced :]
        terms = []
        extents = planned(tuple(self.nest.labels.extents[a] for a in reduced))
        for at in itertools.product(*map(range, extents)):
            self.known = {a: self.number(k) for a, k in zip(reduced, at, strict=True)}
            index = self.at(self.nest.labels.walked[node], body)
            terms.append(self.value(node.operands[0], index, body))
            terms[-1].uses += 1
        self.known = {}
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
        self.declare(total)
        return total


def _filled(template: str, attrs: Attrs) -> str:
    """The template with its attributes in place and its operands left."""
    for key, value in attrs.items():
        if f"{{{key}}}" in template:
            template = template.replace(f"{{{key}}}", c_syntax.attribute(value))
    return template
