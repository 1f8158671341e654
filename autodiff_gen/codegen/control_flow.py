"""The C of a scan: first values, then a loop over the time axis whose body reads like an entry function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ..ir.graph import State
from ..ir.identifiers import Scope
from ..ir.node import INPUT, Value
from ..lowering import c_syntax
from ..lowering.c_syntax import plus, shown
from ..lowering.plan import Bound, CondPlan, EntryPlan, Part, Step, Written


@dataclass(frozen=True)
class Pointer:
    """A declaration `type *const name = t->arena + offset;` with its comment."""

    text: str
    comment: str


@dataclass(frozen=True)
class Inside:
    """Where the text of a region stands: its arenas' offsets in bytes by pool, names that are in scope, and how its
    steps are numbered. `said` collects what every step computes, by its number; `marks` are the ids of AG_MARK by the
    same numbers, of the steps that have one.
    """

    offsets: Mapping[str, int] = field(default_factory=dict)
    taken: frozenset[str] = frozenset()
    prefix: str = ""
    start: int = 0
    said: dict[str, str] = field(default_factory=dict)
    marks: Mapping[str, int] = field(default_factory=dict)


class EntryText(Protocol):
    """What the text of a region needs of the entry's around it (functions.EntryText)."""

    plan: EntryPlan
    scope: Scope
    inside: Inside
    pointers: list[Pointer]

    def bare(self, place: str) -> str: ...
    def place(self, v: Value) -> str: ...
    def scalar(self, v: Value) -> str: ...
    def by_value(self, v: Value) -> bool: ...
    def number(self, number: int) -> str: ...
    def comment(self, number: int, text: str) -> str: ...
    def lines(self, step: Step) -> list[str]: ...
    def nested(
        self,
        plan: EntryPlan,
        args: Mapping[Value, str],
        outputs: Mapping[str, str],
        slots: Mapping[State, str],
        inside: Inside,
    ) -> EntryText: ...


def region_lines(text: EntryText, step: Step) -> list[str]:
    """The lines of a scan or cond."""
    if isinstance(step.inner, CondPlan):
        return _cond_lines(text, step, step.inner)
    assert step.inner is not None
    plan, results = step.inner, step.node.results
    targets = ", ".join(f"{text.bare(text.place(r))}{shown(r.type.shape)}" for r in results)
    times = f"{plan.length} times" + (", from the last to the first" if plan.reverse else "")
    lines = [text.comment(step.number, f"{targets}: {times}")]
    scope = Scope(text.scope.taken)
    if plan.first is not None:
        lines += _block(_part_lines(text, step, plan.first, Scope(scope.taken), ""))
    time = scope.fresh("time_step")
    lines += [_loop(time, plan.length, plan.reverse)]
    lines += _indented(_part_lines(text, step, plan.body, scope, time))
    return [*lines, "}"]


def _indented(lines: list[str]) -> list[str]:
    return ["    " + line if line else "" for line in lines]


def _cond_lines(text: EntryText, step: Step, plan: CondPlan) -> list[str]:
    targets = ", ".join(f"{text.bare(text.place(r))}{shown(r.type.shape)}" for r in step.node.results)
    (pred, *_) = step.node.operands
    name = text.scalar(pred)
    test = f"{name} != 0.0f" if pred.type.dtype.kind == "f" else f"{name} != 0"
    lines = [text.comment(step.number, f"{targets}, chosen by {name}"), f"if ({test}) {{"]
    for k, part in enumerate(plan.parts):
        lines += ["} else {"] if k else []
        lines += _indented(_part_lines(text, step, part, Scope(text.scope.taken), ""))
    return [*lines, "}"]


def _block(lines: list[str]) -> list[str]:
    """Lines in braces where they declare something."""
    if any("*const " in line for line in lines if not line.startswith(" ")):
        return ["{", *_indented(lines), "}"]
    return lines


def _loop(time: str, length: int, reverse: bool) -> str:
    if reverse:
        return f"for (int32_t {time} = {length - 1}; {time} >= 0; {time}--) {{"
    return f"for (int32_t {time} = 0; {time} < {length}; {time}++) {{"


def _part_lines(text: EntryText, step: Step, part: Part, scope: Scope, time: str) -> list[str]:
    """Pointers to where the part reads and writes, then its steps."""
    lines: list[str] = []
    args: dict[Value, str] = {}
    for b in part.bound:
        if b.inner.node.op is INPUT:
            args[b.inner] = _read(text, b, scope, time, lines)
    outputs: dict[str, str] = {}
    slots: dict[State, str] = {}
    for w in part.written:
        name = _target(text, step, w, scope, time, lines)
        if isinstance(w.key, State):
            slots[w.key] = name
        else:
            outputs[w.key] = name
    number = f"{text.number(step.number)}."
    told = (text.inside.said, text.inside.marks)
    inside = Inside(_offsets(text, step), frozenset(scope.taken), number, part.start, *told)
    inner = text.nested(part.plan, args, outputs, slots, inside)
    lines += [f"{p.text} /* {p.comment} */" for p in inner.pointers]
    for s in part.plan.steps:
        lines += [*([""] if lines else []), *inner.lines(s)]
    return lines


def _offsets(text: EntryText, step: Step) -> Mapping[str, int]:
    """Where the arenas of the step's regions begin, in bytes, by pool."""
    own = [b for b in text.plan.placed if b.owner is step and not b.values]
    return {b.pool: text.inside.offsets.get(b.pool, 0) + b.offset for b in own}


def _read(text: EntryText, b: Bound, scope: Scope, time: str, lines: list[str]) -> str:
    """What the inner text calls an operand; an element of a walked one is declared."""
    if text.by_value(b.outer):
        return text.place(b.outer)
    start = _at(b.offset, b.step, time)
    place = text.place(b.outer)
    if b.inner.type.shape == () and b.step is None:
        return c_syntax.element(place, c_syntax.index(start))
    if not start:
        return place
    name = scope.fresh(b.inner.name or "x")
    c_type = b.inner.type.dtype.c
    if b.inner.type.shape == ():
        lines.append(f"const {c_type} {name} = {c_syntax.element(place, c_syntax.index(start))};")
    else:
        lines.append(f"const {c_type} *const {name} = {plus(place, start)};")
    return name


def _target(text: EntryText, step: Step, w: Written, scope: Scope, time: str, lines: list[str]) -> str:
    """What the inner text calls the place of a result; that of an element of a stack is declared."""
    place = text.place(step.node.results[w.index])
    if w.step is None:
        return place
    name = scope.fresh(f"{text.bare(place)}_t")
    lines.append(f"{w.c_type} *const {name} = {plus(place, _at(0, w.step, time))};")
    return name


def _at(offset: int, step: int | None, time: str) -> list[str]:
    return c_syntax.offset(offset, [(time, step or 0)])
