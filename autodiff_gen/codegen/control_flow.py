"""The C of a scan: first values, then a loop over the time axis whose body reads like an entry function; and that of a
cond."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..ir.graph import State
from ..ir.identifiers import Scope
from ..ir.node import INPUT, Value
from ..lowering import c_ast as c
from ..lowering import c_syntax
from ..lowering.c_syntax import shown
from ..lowering.phases import layer_headings
from ..lowering.plan import Bound, CondPlan, EntryPlan, Part, Placed, ScanPlan, Step, Written
from .c_printer import PRINTER


@dataclass(frozen=True)
class Inside:
    """What surrounds a region: by pool, the arena around it with its offset there in bytes; names that are in scope;
    and how its steps are numbered."""

    arenas: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    prefix: str = ""
    start: int = 0

    def place(self, buffer: Placed) -> tuple[str, int]:
        """The arena of the entry that has the buffer, and its offset there in bytes."""
        arena, offset = self.arenas.get(buffer.home, (buffer.home, 0))
        return arena, offset + buffer.offset


class EntryBody(Protocol):
    """What a region needs of the entry around it (functions.EntryBody)."""

    plan: EntryPlan
    scope: Scope
    inside: Inside

    def bare(self, place: c.Expr) -> str: ...
    def place(self, v: Value) -> c.Expr: ...
    def scalar(self, v: Value) -> c.Expr: ...
    def by_value(self, v: Value) -> bool: ...
    def number(self, number: int) -> str: ...
    def statements(self, step: Step) -> list[c.Statement]: ...
    def freed(self, step: Step) -> list[c.Statement]: ...
    def nested(
        self,
        plan: EntryPlan,
        args: Mapping[Value, c.Expr],
        outputs: Mapping[str, c.Expr],
        slots: Mapping[State, c.Expr],
        inside: Inside,
    ) -> EntryBody: ...


def region_statements(body: EntryBody, step: Step) -> list[c.Statement]:
    """The comment and the statements of a scan or cond."""
    if isinstance(step.inner, CondPlan):
        return _cond(body, step, step.inner)
    assert step.inner is not None
    plan = step.inner
    order = ", from the last to the first" if plan.reverse else ""
    comment = f"{_targets(body, step)}: {plan.times} times{order}"
    if plan.samples:
        comment = (
            f"n samples, {plan.samples if plan.samples > 1 else 'one'} at a time: {_targets(body, step)}"
        )
    out: list[c.Statement] = [c.Comment(comment, body.number(step.number))]
    scope = Scope(body.scope.taken)
    if plan.first is not None:
        out += c.braced(_part(body, step, plan.first, Scope(scope.taken), None))
    if plan.samples:
        before = [c.Blank()] if plan.first is not None else []
        return [*out, *before, _micro_batches(body, step, plan, scope)]
    time = scope.fresh("time_step")
    inner = tuple(_part(body, step, plan.body, scope, c.Name(time)))
    first, last = c.number(0), c.number(plan.times - 1)
    if plan.reverse:
        return [*out, c.For(time, first, inner, start=last, step=-1)]
    return [*out, c.For(time, c.number(plan.times), inner)]


def _micro_batches(body: EntryBody, step: Step, plan: ScanPlan, scope: Scope) -> c.Statement:
    """The loop over micro-batches: from sample `start` on, `count` samples, of which the last one has what is left."""
    n, start, most = c.Name("n"), c.Name("start"), c.number(plan.samples)
    inner = tuple(_part(body, step, plan.body, scope, start))
    if plan.samples > 1:
        left = c.Binary("-", n, start)
        count = c.Conditional(c.Binary("<", left, most), left, most)
        inner = (c.declare("int32_t", "count", count, const=True), *inner)
    return c.For("start", n, inner, step=plan.samples)


def _targets(body: EntryBody, step: Step) -> str:
    named = ((body.bare(body.place(r)), r.type.shape) for r in step.node.results)
    return ", ".join(f"{name}{shown(shape) if shape else ''}" for name, shape in named)


def _cond(body: EntryBody, step: Step, plan: CondPlan) -> list[c.Statement]:
    (pred, *_) = step.node.operands
    value = body.scalar(pred)
    zero = c.Literal("0.0f" if pred.type.dtype.kind == "f" else "0")
    then, otherwise = (tuple(_part(body, step, p, Scope(body.scope.taken), None)) for p in plan.parts)
    comment = f"{_targets(body, step)}, chosen by {PRINTER.expression(value)}"
    return [
        c.Comment(comment, body.number(step.number)),
        c.If(c.Binary("!=", value, zero), then, otherwise),
    ]


def _part(body: EntryBody, step: Step, part: Part, scope: Scope, time: c.Expr | None) -> list[c.Statement]:
    """Pointers to what the part reads and writes, then its steps."""
    out: list[c.Statement] = []
    args: dict[Value, c.Expr] = {}
    for b in part.bound:
        if b.inner.node.op is INPUT:
            args[b.inner] = _read(body, b, scope, time, out)
    outputs: dict[str, c.Expr] = {}
    slots: dict[State, c.Expr] = {}
    for w in part.written:
        held = [b for b in part.bound if b.step is not None and b.inner.node.attrs.get("state") is w.key]
        note = f"was {body.bare(body.place(held[0].outer))}" if held else ""
        target = _target(body, step, w, scope, time, note, out)
        if isinstance(w.key, State):
            slots[w.key] = target
        else:
            outputs[w.key] = target
    number = f"{body.number(step.number)}."
    inside = Inside(_arenas(body, step), frozenset(scope.taken), number, part.start)
    inner = body.nested(part.plan, args, outputs, slots, inside)
    headings = layer_headings(part.plan) if time is not None else {}
    for s in part.plan.steps:
        heading = [c.Heading(headings[s])] if s in headings else []
        out += [*([c.Blank()] if out else []), *heading, *inner.statements(s), *inner.freed(s)]
    return out


def _arenas(body: EntryBody, step: Step) -> Mapping[str, tuple[str, int]]:
    """Where the arenas of the step's regions begin, by pool."""
    own = [b for b in body.plan.placed if b.owner is step and not b.values]
    return {b.pool: body.inside.place(b) for b in own}


def _read(body: EntryBody, b: Bound, scope: Scope, time: c.Expr | None, out: list[c.Statement]) -> c.Expr:
    """What an operand is called inside; an element of one that is indexed by time is declared."""
    if body.by_value(b.outer):
        return body.place(b.outer)
    start = c_syntax.offset(b.offset, [(time, b.step or 0)])
    place = body.place(b.outer)
    if b.inner.type.shape == () and b.step is None:
        return c.Element(place, c.total(start))
    if not start:
        return place
    name = scope.fresh(b.inner.name or "x")
    c_type = b.inner.type.dtype.c
    if b.inner.type.shape == ():
        out.append(c.declare(c_type, name, c.Element(place, c.total(start)), const=True))
    else:
        out.append(c.declare(f"const {c_type} *", name, c.plus(place, start), const=True))
    return c.Name(name)


def _target(
    body: EntryBody,
    step: Step,
    w: Written,
    scope: Scope,
    time: c.Expr | None,
    note: str,
    out: list[c.Statement],
) -> c.Expr:
    """What the memory of a result is called inside; that of an element of a stack is declared, with a note."""
    place = body.place(step.node.results[w.index])
    if w.step is None:
        return place
    is_part = isinstance(step.inner, ScanPlan) and step.inner.samples
    name = scope.fresh(f"{body.bare(place)}_{'part' if is_part else 't'}")
    moved = c.plus(place, c_syntax.offset(0, [(time, w.step)]))
    out.append(c.Declare(f"{w.c_type} *", ((name, moved),), True, note))
    return c.Name(name)
