"""From a loop nest to C: expressions are built on demand, shared ones become locals, what does not change in a loop moves out of it.

The text is produced in the order in which it will stand, so that a value is a local exactly where it is in scope. Every access of memory is noted
on the way: the planner asks `may_share` before it lets a result take the bytes of an operand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from . import c_text
from .dtypes import DType, normalise_axes, s32
from .ir import CONST, Node, Value
from .layout import Strided, dense
from .loops import Body, LoopNest, Root, Step
from .op import (
    ADD,
    ATOM,
    MUL,
    SELECT,
    UNARY,
    Attrs,
    Elementwise,
    Extent,
    Iota,
    Pick,
    Reduce,
    RowContraction,
    View,
)

LOOP_NAMES = "ijklpqrs"
C_TYPES = {"f32": "float", "s8": "int32_t", "u8": "int32_t", "s32": "int32_t", "u32": "uint32_t", "bool": "int32_t"}


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
    name: str = ""


Index: TypeAlias = Expr | None
RowCall: TypeAlias = Callable[[Node, str, "str | None", str], list[str]]


@dataclass(frozen=True)
class Access:
    """One read or write of memory, in the order in which it happens."""

    value: Value
    index: tuple[Index, ...] | None  # None: all of it, in any order
    path: tuple[Body, ...]
    time: int


class LoopText:
    """The C of one loop nest, as lines without indentation of their own (nesting by two-level lists is flattened by `render`).

    `places` gives the C pointer of a param, result or scratch value; `row_call(node, row index, target, ...)` the lines that complete one row
    of a product.
    """

    def __init__(self, nest: LoopNest, locked: frozenset[Value] = frozenset()) -> None:
        self.nest = nest
        self.locked = locked  # params whose loads must become locals when used twice, because a result takes their bytes
        self.results = set(nest.region.results)
        self.params = set(nest.region.params)
        self.memo: dict[Body, dict[tuple[Value, tuple[Index, ...]], Expr]] = {}
        self.loop_vars: dict[Body, Expr] = {}
        self.accumulators: dict[Root, list[Expr]] = {}
        self.reads: list[Access] = []
        self.writes: list[Access] = []
        self.time = 0
        self.taken: set[str] = set()
        self.layouts: dict[Value, Strided] = {}

    # Entry points

    def render(
        self,
        places: Callable[[Value], str],
        layouts: Callable[[Value], Strided | None],
        row_call: RowCall,
        taken: set[str],
    ) -> list[str]:
        """The lines, indented by four blanks per level."""
        self.place_of, self.layout_of, self.row_call = places, layouts, row_call
        self.taken = set(taken)
        built = self._build(self.nest.top)
        return self._print(built, self.nest.top)

    def may_share(self, param: Value, result: Value) -> bool:
        """Whether `result` may be written over `param`: each element is read, for the last time, before it is written."""
        for write in (w for w in self.writes if w.value is result):
            for read in (r for r in self.reads if r.value is param):
                common = [b for b in write.path if b in read.path and b.parent is not None]
                if read.time > write.time or len(read.index or ()) != len(write.index or ()):
                    return False
                for body in common:
                    var = self.loop_vars[body]
                    if read.index is None or write.index is None:
                        return False
                    if not any(a is var and b is var for a, b in zip(read.index, write.index, strict=True)):
                        return False
        return True

    # Building: expressions and statements in textual order

    def _build(self, body: Body) -> list[tuple[str, object]]:
        self.memo[body] = {}
        out: list[tuple[str, object]] = []
        self._out = getattr(self, "_out", {})
        self._out[body] = out
        for item in body.items:
            if isinstance(item, Body):
                name = LOOP_NAMES[item.depth - 1] if item.depth <= len(LOOP_NAMES) else f"i{item.depth}"
                self.loop_vars[item] = Expr(name, ATOM, item)
                inner = self._build(item)
                out.append(("loop", (item, inner)))
            else:
                self._build_step(item, body, out)
        return out

    def _build_step(self, step: Step, body: Body, out: list[tuple[str, object]]) -> None:
        root, lower = step.root, step.root.node.op.lower
        if isinstance(lower, RowContraction):
            out.append(("row", (root, self._index_of(root, root.node.results[0], body))))
        elif isinstance(lower, Reduce):
            self._build_reduce(step, lower, body, out)
        else:
            (v,) = root.node.results
            index = self._index_of(root, v, body)
            value = self._compute(v, index, body)
            self.memo[body][v, index] = value
            self._out[value.home].append(("local", self._seen_from(value, body)))
            if v in self.results or v in self.nest.scratch:
                value.uses += 1
                out.append(("store", (v, index, value)))

    def _build_reduce(self, step: Step, lower: Reduce, body: Body, out: list[tuple[str, object]]) -> None:
        root, node = step.root, step.root.node
        if step.kind == "begin":
            names = [node.op.name, f"{node.op.name}_at"]
            self.accumulators[root] = [
                Expr("", ATOM, body, dtype=r.type.dtype, hint=names[i], uses=1) for i, r in enumerate(node.results)
            ]
            out.append(("begin", root))
        elif step.kind == "step":
            walked = self.nest.labels.walked[node]
            vars_ = {b.axis: self.loop_vars[b] for b in body.path[1:]}
            index = tuple(None if a is None else vars_[a] for a in walked)
            x = self._value(node.operands[0], index, body)
            x.uses += lower.step.count("{x}")
            gone = normalise_axes(node.attrs["axes"], len(walked))
            at = next((index[i] for i in gone if index[i] is not None), None)
            out.append(("accumulate", (root, x, at)))
        else:
            for r, acc in zip(node.results, self.accumulators[root], strict=True):
                if r in self.results or r in self.nest.scratch:
                    out.append(("store", (r, self._index_of(root, r, body), acc)))

    def _index_of(self, root: Root, v: Value, body: Body) -> tuple[Index, ...]:
        vars_ = {b.axis: self.loop_vars[b] for b in body.path[1:]}
        return tuple(None if a is None else vars_.get(a) for a in self.nest.labels.of[v])

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
            return self._value(source, tuple(inner), body)
        for place in reversed(body.path):
            found = self.memo[place].get((v, index))
            if found is not None:
                return self._seen_from(found, body)
        expr = self._make(v, index, body)
        self.memo[expr.home][v, index] = expr
        if expr.home is not body and expr.worth_a_name:
            expr.moved = True
        self._out[expr.home].append(("local", expr))
        return expr

    def _seen_from(self, expr: Expr, body: Body) -> Expr:
        if expr.home is not body and expr.worth_a_name:
            expr.moved = True
        return expr

    def _make(self, v: Value, index: tuple[Index, ...], body: Body) -> Expr:
        node, lower = v.node, v.node.op.lower
        if v in self.params:
            return self._load(v, index, v.type.dtype)
        root = self.nest.roots.get(node)
        if root is not None:
            if root in self.accumulators and root.home.encloses(body):
                return self.accumulators[root][v.index]
            if v in self.nest.scratch:
                kept = self.nest.scratch[v].axes
                at = tuple(i for i, a in zip(index, self.nest.labels.of[v], strict=True) if a in kept)
                return self._load(v, at, v.type.dtype)
            return self._load(v, index, v.type.dtype)
        if node.op is CONST:
            text = c_text.literal(node.attrs["value"].reshape(-1)[0], v.type.dtype)
            return Expr(text, UNARY if text.startswith("-") else ATOM, self.nest.top, dtype=v.type.dtype)
        if isinstance(lower, Extent):
            text = c_text.extent(node.attrs["extent"])
            return Expr(f"(float)({text})" if " " in text else f"(float){text}", ATOM, self.nest.top, dtype=v.type.dtype)
        if isinstance(lower, Iota):
            (at_,) = index
            return at_ if at_ is not None else Expr("0", ATOM, self.nest.top)
        if isinstance(lower, Pick):
            return self._value(node.operands[0], self._picked_at(node, index, body), body)
        return self._compute(v, index, body)

    def _compute(self, v: Value, index: tuple[Index, ...], body: Body) -> Expr:
        """The expression that computes an elementwise value, even where it is also in memory."""
        node, lower = v.node, v.node.op.lower
        if isinstance(lower, Pick):
            return self._make_pick(node, index, body)
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
        needs = lower.operand_precedence
        per_arg = needs if isinstance(needs, tuple) else (needs,) * len(args)
        home = max((a.home for a in args), key=lambda b: b.depth, default=self.nest.top)
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

    def _make_pick(self, node: Node, index: tuple[Index, ...], body: Body) -> Expr:
        picked = self._value(node.operands[0], self._picked_at(node, index, body), body)
        picked.uses += 1
        return Expr("{0}", picked.precedence, picked.home, (picked,), (SELECT,), picked.dtype, "picked")

    def _picked_at(self, node: Node, index: tuple[Index, ...], body: Body) -> tuple[Index, ...]:
        """Where a pick reads its first operand; an axis of extent 1 has one element, whatever the index says."""
        if node.operands[0].type.shape[-1] == 1:
            return (*index, None)
        chosen = self._value(node.operands[1], index, body)
        chosen.uses += 1
        return (*index, chosen)

    def _load(self, v: Value, index: tuple[Index, ...], dtype: DType) -> Expr:
        home = max((i.home for i in index if i is not None), key=lambda b: b.depth, default=self.nest.top)
        named = v in self.locked
        return Expr("", ATOM, home, dtype=dtype, hint="old", worth_a_name=named, memory=(v, index))

    # Printing

    def _print(self, built: Sequence[tuple[str, object]], body: Body) -> list[str]:
        lines: list[str] = []
        names_before = set(self.taken)
        for kind, what in built:
            self.time += 1
            lines += getattr(self, f"_print_{kind}")(what, body)
        if body.parent is not None:
            self.taken = names_before
        return lines

    def _print_local(self, expr: Expr, body: Body) -> list[str]:
        if not expr.worth_a_name or expr.name or not (expr.moved or expr.uses > 1):
            return []
        text = self._text(expr, SELECT, body)
        expr.name = self._fresh(expr.hint, first="_1" if expr.hint[-1:].isdigit() else "1")
        return [f"const {C_TYPES[expr.dtype.name]} {expr.name} = {text};"]

    def _print_loop(self, what: tuple[Body, list[tuple[str, object]]], body: Body) -> list[str]:
        loop, inner = what
        var = self.loop_vars[loop].template
        lines = self._print(inner, loop)
        if not lines:
            return []
        head = f"for (int32_t {var} = 0; {var} < {c_text.extent(loop.extent)}; {var}++) {{"
        return [head, *("    " + line for line in lines), "}"]

    def _print_begin(self, root: Root, body: Body) -> list[str]:
        lower = root.node.op.lower
        assert isinstance(lower, Reduce)
        lines = []
        for acc, init in zip(self.accumulators[root], lower.init, strict=True):
            acc.name = self._fresh(acc.hint)
            lines.append(f"{C_TYPES[acc.dtype.name]} {acc.name} = {init};")
        return lines

    def _print_accumulate(self, what: tuple[Root, Expr, Index], body: Body) -> list[str]:
        root, x, at = what
        lower = root.node.op.lower
        assert isinstance(lower, Reduce)
        names = {f"acc{i}": acc.name for i, acc in enumerate(self.accumulators[root])}
        bare = ADD if lower.step.startswith("{acc0} +=") else ATOM
        return [lower.step.format(**names, x=self._text(x, bare, body), i=at.template if at is not None else "0")]

    def _print_store(self, what: tuple[Value, tuple[Index, ...], Expr], body: Body) -> list[str]:
        v, index, expr = what
        text = self._text(expr, SELECT, body)
        if v.type.dtype.size < 4:
            text = f"({v.type.dtype.c})({text})"
        if v in self.nest.scratch:
            kept = self.nest.scratch[v].axes
            index = tuple(i for i, a in zip(index, self.nest.labels.of[v], strict=True) if a in kept)
        target = self._element(v, index, body)
        self.writes.append(Access(v, index, tuple(body.path), self.time))
        if not expr.name and expr.template in ("{0} + {1}", "{0} - {1}") and text.startswith(f"{target} {expr.template[4]} "):
            return [f"{target} {expr.template[4]}= {self._text(expr.args[1], SELECT, body)};"]
        return [f"{target} = {text};"]

    def _print_row(self, what: tuple[Root, tuple[Index, ...]], body: Body) -> list[str]:
        root, index = what
        (v,) = root.node.results
        for operand in root.node.operands:
            self.reads.append(Access(operand, None, tuple(body.path), self.time))
        row = index[0].template if index[0] is not None else "0"
        in_scratch = v in self.nest.scratch
        self.writes.append(Access(v, (index[0], None), tuple(body.path), self.time))
        width = v.type.shape[1] if not in_scratch or self.nest.labels.of[v][0] in self.nest.scratch[v].axes else 0
        offset = f"{row} * {c_text.extent(width)}" if width and row != "0" else ""
        return self.row_call(root.node, row, self.place_of(v), offset)

    def _text(self, expr: Expr, needed: int, body: Body) -> str:
        if expr.name:
            return expr.name
        if expr.memory is not None:
            v, index = expr.memory
            if v in self.params:
                self.reads.append(Access(v, index, tuple(body.path), self.time))
            return self._element(v, index, body)
        args = [self._text(a, n, body) for a, n in zip(expr.args, expr.needs, strict=True)]
        text = expr.template.format(*args) if args else expr.template
        return f"({text})" if expr.precedence < needed else text

    def _element(self, v: Value, index: tuple[Index, ...], body: Body) -> str:
        """The C expression of one element: `name[i * 10 + j]`, or the name alone for a scalar passed by value."""
        if v in self.nest.scratch:
            at: Strided | None = dense(self.nest.scratch[v].shape)
        else:
            at = self.layout_of(v)
        place = self.place_of(v)
        if at is None:
            return place
        terms = [] if at.offset == 0 else [str(at.offset)]
        for i, step in zip(index, at.strides, strict=True):
            if i is not None and step:
                var = self._text(i, ATOM if step != 1 else MUL, body)
                terms.append(var if step == 1 else f"{var} * {step}")
        return c_text.element(place, " + ".join(terms) or "0")

    def _fresh(self, hint: str, first: str = "") -> str:
        name, k = hint + first, 1
        while name in self.taken:
            k += 1
            name = f"{hint}{k}"
        self.taken.add(name)
        return name


def _filled(template: str, attrs: Attrs) -> str:
    """The template with its attributes in place and its operands left."""
    for key, value in attrs.items():
        if f"{{{key}}}" in template:
            template = template.replace(f"{{{key}}}", c_text.attribute(value))
    return template


