"""The C of a scan: first values, then a loop over the time axis whose body reads like an entry function; and that of a
cond."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..ir.graph import State
from ..ir.identifiers import Scope
from ..ir.node import INPUT, Value
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..lowering.c.c_syntax import shown
from ..lowering.loops.memory import Memory
from ..lowering.phases import layer_headings
from ..lowering.plan import Bound, CondPlan, EntryPlan, InnerPlan, ScanPlan, Step, Written
from .c_printer import PRINTER
from .entry_names import Inside, Names

Nested: TypeAlias = Callable[
    [EntryPlan, Mapping[Value, c.Expr], Mapping[str, c.Expr], Mapping[State, c.Expr], Inside],
    Callable[[Step], Sequence[c.Statement]],
]
"""Of a region, given as an entry by its plan, arguments, outputs, states and surroundings: the statements of a step."""


def region_statements(names: Names, step: Step, nested: Nested) -> list[c.Statement]:
    """The comment and the statements of a scan or cond."""
    if isinstance(step.inner, CondPlan):
        return _cond(names, step, step.inner, nested)
    assert step.inner is not None
    plan = step.inner
    order = ", from the last to the first" if plan.reverse else ""
    comment = f"{_targets(names, step)}: {plan.times} times{order}"
    if plan.samples:
        comment = (
            f"n samples, {plan.samples if plan.samples > 1 else 'one'} at a time: {_targets(names, step)}"
        )
    out: list[c.Statement] = [c.Comment(comment, names.number(step.number))]
    scope = Scope(names.scope.taken)
    if plan.first is not None:
        out += c.braced(_part(names, step, plan.first, Scope(scope.taken), None, nested))
    if plan.samples:
        before = [c.Blank()] if plan.first is not None else []
        return [*out, *before, _micro_batches(names, step, plan, scope, nested)]
    time = scope.fresh("time_step")
    inner = tuple(_part(names, step, plan.body, scope, c.Name(time), nested))
    first, last = c.number(0), c.number(plan.times - 1)
    if plan.reverse:
        return [*out, c.For(time, first, inner, start=last, step=-1)]
    return [*out, c.For(time, c.number(plan.times), inner, extent=plan.times)]


def _micro_batches(names: Names, step: Step, plan: ScanPlan, scope: Scope, nested: Nested) -> c.Statement:
    """The loop over micro-batches: from sample `start` on, `count` samples, of which the last one has what is left."""
    n, start, most = c.Name("n"), c.Name("start"), c.number(plan.samples)
    inner = tuple(_part(names, step, plan.body, scope, start, nested))
    if plan.samples > 1:
        left = c.Binary("-", n, start)
        count = c.Conditional(c.Binary("<", left, most), left, most)
        inner = (c.declare("int32_t", "count", count, const=True), *inner)
    return c.For("start", n, inner, step=plan.samples)


def _targets(names: Names, step: Step) -> str:
    named = ((names.bare(names.place(r)), r.type.shape) for r in step.node.results)
    return ", ".join(f"{name}{shown(shape) if shape else ''}" for name, shape in named)


def _cond(names: Names, step: Step, plan: CondPlan, nested: Nested) -> list[c.Statement]:
    (pred, *_) = step.node.operands
    value = names.scalar(pred)
    zero = c.Literal("0.0f" if pred.type.dtype.kind == "f" else "0")
    then, otherwise = (
        tuple(_part(names, step, p, Scope(names.scope.taken), None, nested)) for p in plan.parts
    )
    comment = f"{_targets(names, step)}, chosen by {PRINTER.expression(value)}"
    return [
        c.Comment(comment, names.number(step.number)),
        c.If(c.Binary("!=", value, zero), then, otherwise),
    ]


def _part(
    names: Names, step: Step, part: InnerPlan, scope: Scope, time: c.Expr | None, nested: Nested
) -> list[c.Statement]:
    """Pointers to what the part reads and writes, then its steps."""
    out: list[c.Statement] = []
    args: dict[Value, c.Expr] = {}
    memories = dict(names.memories)
    for b in part.bound:
        if b.inner.node.op is INPUT:
            args[b.inner] = _read(names, step, b, scope, time, out, memories)
    outputs: dict[str, c.Expr] = {}
    slots: dict[State, c.Expr] = {}
    for w in part.written:
        target = _target(names, step, w, scope, time, out, memories)
        if isinstance(w.key, State):
            slots[w.key] = target
            for b in part.bound:
                if b.step is not None and b.inner.node.attrs.get("state") is w.key and b.inner.type.shape:
                    name = c.Name(scope.fresh(f"{names.bare(names.place(b.outer))}_{_suffix(step)}"))
                    said = "read before it is overwritten"
                    memory = memories[name] = memories[target]
                    out.append(c.Declare(f"const {w.c_type} *", ((name.text, target),), True, said, memory))
                    args[b.inner] = name
        else:
            outputs[w.key] = target
    number = f"{names.number(step.number)}."
    inside = Inside(_arenas(names, step), frozenset(scope.taken), number, part.start, memories)
    statements = nested(part.plan, args, outputs, slots, inside)
    headings = layer_headings(part.plan) if time is not None else {}
    for s in part.plan.steps:
        heading = [c.Heading(headings[s])] if s in headings else []
        out += [*([c.Blank()] if out else []), *heading, *statements(s)]
    return out


def _arenas(names: Names, step: Step) -> Mapping[str, tuple[str, int]]:
    """Where the arenas of the step's regions begin, by pool."""
    own = [b for b in names.plan.placed if b.owner is step and not b.values]
    return {b.pool: names.inside.place(b) for b in own}


def _read(
    names: Names,
    step: Step,
    b: Bound,
    scope: Scope,
    time: c.Expr | None,
    out: list[c.Statement],
    memories: dict[c.Expr, Memory],
) -> c.Expr:
    """What an operand is called inside; an element of one that is indexed by time is declared."""
    if names.by_value(b.outer):
        return names.place(b.outer)
    steps = [(time, b.step or 0)]
    start = c_syntax.offset(b.offset, steps)
    place = names.place(b.outer)
    if b.inner.type.shape == () and b.step is None:
        return names.element(place, b.offset, steps)
    if not start:
        return place
    name = scope.fresh(f"{names.bare(place)}_{_suffix(step)}" if b.step is not None else b.inner.name or "x")
    c_type = b.inner.type.dtype.c
    if b.inner.type.shape == ():
        out.append(c.declare(c_type, name, names.element(place, b.offset, steps), const=True))
        return c.Name(name)
    return _pointer(name, f"const {c_type} *", names, place, b.offset, steps, out, memories)


def _pointer(
    name: str,
    c_type: str,
    names: Names,
    place: c.Expr,
    start: int,
    steps: list[tuple[c.Expr | None, int]],
    out: list[c.Statement],
    memories: dict[c.Expr, Memory],
) -> c.Expr:
    """A pointer that is declared, to an element of an array and those after it."""
    is_moving = any(v is not None and k for v, k in steps)
    memory = memories[c.Name(name)] = names.memories[place].moved(name, start, is_moving)
    moved = c.plus(place, c_syntax.offset(start, steps))
    out.append(c.Declare(c_type, ((name, moved),), True, memory=memory))
    return c.Name(name)


def _target(
    names: Names,
    step: Step,
    w: Written,
    scope: Scope,
    time: c.Expr | None,
    out: list[c.Statement],
    memories: dict[c.Expr, Memory],
) -> c.Expr:
    """What the memory of a result is called inside; that of an element of a stack is declared."""
    place = names.place(step.node.results[w.index])
    if w.step is None:
        return place
    name = scope.fresh(f"{names.bare(place)}_{_suffix(step)}")
    return _pointer(name, f"{w.c_type} *", names, place, 0, [(time, w.step)], out, memories)


def _suffix(step: Step) -> str:
    """What the name of a part of a value that a loop indexes ends in: at a time step, or of a micro-batch."""
    return "part" if isinstance(step.inner, ScanPlan) and step.inner.samples else "t"
