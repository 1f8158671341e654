"""The C of a scan: first values, then a loop over the time axis whose body reads like an entry function; the C of a
cond."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ..ir.graph import State
from ..ir.identifiers import Scope
from ..ir.names import Called
from ..ir.node import INPUT, Value
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..lowering.c.c_syntax import shown
from ..lowering.phases import layer_headings
from ..lowering.plan import Bound, CondPlan, EntryPlan, InnerPlan, PlannedStep, ScanPlan, Written
from .c_printer import PRINTER
from .entry_names import Inside, Names
from .step_names import called_in_region

Nested: TypeAlias = Callable[
    [EntryPlan, Mapping[Value, c.Expr], Mapping[str, c.Expr], Mapping[State, c.Expr], Inside],
    Callable[[PlannedStep], Sequence[c.Statement]],
]
"""From a region, given like an entry by its plan, arguments, outputs, states and surroundings, to a function that gives
the statements of a step."""


def region_statements(names: Names, step: PlannedStep, nested: Nested) -> list[c.Statement]:
    """The comment and the statements of a scan or cond."""
    if isinstance(step.inner, CondPlan):
        return _cond(names, step, step.inner, nested)
    assert step.inner is not None
    plan = step.inner
    function = called_in_region(step.node)
    order = ", from the last to the first" if plan.reverse else ""
    over = f"{function} over {plan.times} time steps" if function else f"{plan.times} time steps"
    comment = f"{over}{order}: {_targets(names, step)}"
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


def _micro_batches(
    names: Names, step: PlannedStep, plan: ScanPlan, scope: Scope, nested: Nested
) -> c.Statement:
    """The loop over micro-batches: `count` samples from sample `start` on; the last micro-batch has the rest."""
    n, start, most = c.Name("n"), c.Name("start"), c.number(plan.samples)
    inner = tuple(_part(names, step, plan.body, scope, start, nested))
    if plan.samples > 1:
        left = c.Binary("-", n, start)
        count = c.Conditional(c.Binary("<", left, most), left, most)
        inner = (c.declare("int32_t", "count", count, const=True), *inner)
    return c.For("start", n, inner, step=plan.samples)


def _targets(names: Names, step: PlannedStep) -> str:
    named = ((names.bare(names.place(r)), r.type.shape) for r in step.node.results)
    return ", ".join(f"{name}{shown(shape) if shape else ''}" for name, shape in named)


def _cond(names: Names, step: PlannedStep, plan: CondPlan, nested: Nested) -> list[c.Statement]:
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
    names: Names, step: PlannedStep, part: InnerPlan, scope: Scope, time: c.Expr | None, nested: Nested
) -> list[c.Statement]:
    """Pointers to the part's operands and results, then its steps."""
    pointers = _Pointers(names, step, scope, time)
    out, memories = pointers.declared, pointers.memories
    args = {b.inner: pointers.read(b) for b in part.bound if b.inner.node.op is INPUT}
    outputs: dict[str, c.Expr] = {}
    slots: dict[State, c.Expr] = {}
    for w in part.written:
        target = pointers.target(w)
        if isinstance(w.key, State):
            slots[w.key] = target
            for b in part.bound:
                if b.step is not None and b.inner.node.attrs.get("state") is w.key and b.inner.type.shape:
                    name, called = pointers.part_of(names.place(b.outer))
                    said = "read before it is overwritten"
                    out.append(c.Declare(f"const {w.c_type} *", ((name.text, target),), True, said, called))
                    args[b.inner] = name
                    memories[name] = memories[target]
        else:
            outputs[w.key] = target
    number = f"{names.number(step.number)}."
    taken = frozenset(scope.taken)
    inside = Inside(_arenas(names, step), taken, number, part.start, memories, pointers.called)
    statements = nested(part.plan, args, outputs, slots, inside)
    headings = layer_headings(part.plan) if time is not None else {}
    for s in part.plan.steps:
        heading = [c.Heading(headings[s])] if s in headings else []
        out += [*([c.Blank()] if out else []), *heading, *statements(s)]
    return out


def _arenas(names: Names, step: PlannedStep) -> Mapping[str, tuple[str, int]]:
    """Where the arenas of the step's regions begin, by pool."""
    own = [b for b in names.plan.placed if b.owner is step and not b.values]
    return {b.pool: names.inside.place(b) for b in own}


class _Pointers:
    """The operands and results of a part of a region. declared: pointers, and numbers that are read; memories: of
    arrays, by their places."""

    def __init__(self, names: Names, step: PlannedStep, scope: Scope, time: c.Expr | None) -> None:
        self.names, self.step, self.scope, self.time = names, step, scope, time
        self.declared: list[c.Statement] = []
        self.memories, self.called = dict(names.memories), dict(names.called)

    def part_of(self, place: c.Expr) -> tuple[c.Name, Called]:
        """A new name for the part of a value that a loop indexes: at a time step, or of a micro-batch."""
        is_samples = isinstance(self.step.inner, ScanPlan) and self.step.inner.samples
        part, whole = "part" if is_samples else "t", self.names.bare(place)
        name = c.Name(self.scope.fresh(f"{whole}_{part}"))
        self.called[name] = self.names.called.get(place, Called(whole)).with_part(part)
        return name, self.called[name]

    def read(self, b: Bound) -> c.Expr:
        """The expression of an operand inside the part. For an operand that moves with the loop or begins at an offset,
        a pointer or a number is declared."""
        place = self.names.place(b.outer)
        if self.names.by_value(b.outer):
            return place
        steps = [(self.time, b.step or 0)]
        if b.inner.type.shape == () and b.step is None:
            return self.names.element(place, b.offset, steps)
        if not c_syntax.offset(b.offset, steps):
            return place
        if b.step is not None:
            name, called = self.part_of(place)
        else:
            called = Called(b.inner.name or "x")
            name = c.Name(self.scope.fresh(called.text))
        c_type = b.inner.type.dtype.c
        if b.inner.type.shape:
            return self._pointer(name, called, f"const {c_type} *", place, b.offset, steps)
        element = self.names.element(place, b.offset, steps)
        self.declared.append(c.declare(c_type, name.text, element, const=True, called=called))
        return name

    def target(self, w: Written) -> c.Expr:
        """The name of a result's memory inside of the loop. For a result that is stacked over
        time, a pointer to its element is declared."""
        place = self.names.place(self.step.node.results[w.index])
        if w.step is None:
            return place
        return self._pointer(*self.part_of(place), f"{w.c_type} *", place, 0, [(self.time, w.step)])

    def _pointer(
        self,
        name: c.Name,
        called: Called,
        c_type: str,
        place: c.Expr,
        start: int,
        steps: list[tuple[c.Expr | None, int]],
    ) -> c.Expr:
        """Declare a pointer to an element of an array and the elements after it."""
        moved = c.plus(place, c_syntax.offset(start, steps))
        self.declared.append(c.Declare(c_type, ((name.text, moved),), True, called=called))
        is_moving = any(v is not None and k for v, k in steps)
        self.memories[name] = self.memories[place].moved(name.text, start, is_moving)
        return name
