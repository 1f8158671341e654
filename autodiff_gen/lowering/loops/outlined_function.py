"""The function of statements with one form: its parameters are the variables that they read and write, and the numbers
in which they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count

from ...ir.identifiers import OURS, Scope
from ...ir.names import Called
from ..c import c_ast as c
from ..c import c_query
from .outlined_form import ROLES, Section, VariableRef, locals_of, renamed
from .outlined_names import parameter_name

OLD = "old_"  # begins the name of the element of a state before it is replaced


@dataclass(frozen=True)
class CommonFunction:
    """A function without a result. passed: for each parameter that is a variable, its position in the `outer` of
    sections; numbers: for each of the other parameters, its position in their `numbers`; callers: by entry and step."""

    name: str
    parameters: tuple[c.FunctionParameter, ...]
    passed: tuple[int, ...]
    numbers: tuple[int, ...]
    body: c.Statements
    callers: tuple[tuple[str, str], ...]

    def call(self, section: Section) -> c.Call:
        """The call in place of a section that it is a function for."""
        variables: tuple[c.Expr, ...] = tuple(section.outer[k].name for k in self.passed)
        return c.Call(self.name, variables + tuple(section.numbers[k].literal for k in self.numbers))


def differing(group: Sequence[Section]) -> dict[tuple[str, tuple[str, ...]], list[int]]:
    """The positions of the numbers that differ, by their type and the numbers of all sections; numbers that are equal
    in every section are one parameter."""
    found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for k, same in enumerate(zip(*(section.numbers for section in group), strict=True)):
        texts = tuple(number.literal.text for number in same)
        if len(set(texts)) > 1:
            found.setdefault((same[0].c_type, texts), []).append(k)
    return found


def function_of(name: str, group: Sequence[Section], taken: Scope) -> CommonFunction:
    """The function of this name for sections that have a form in common. Its parameters are named after their roles,
    its local variables as in the first section."""
    first, *_ = group
    scope = Scope(taken.taken)
    types = [_type(group, k) for k in range(len(first.outer))]
    names: dict[VariableRef, str] = {}
    for k, v in enumerate(first.outer):
        if isinstance(v.name, c.Name) and v.name.text in OURS:
            names[v.name] = v.name.text
        else:
            names[v.name] = scope.fresh(parameter_name(group, k))
    passed = sorted(range(len(types)), key=lambda k: (not types[k].endswith("*"), "const " not in types[k]))
    parameters = [c.FunctionParameter(types[k], names[first.outer[k].name]) for k in passed]
    positions = list(differing(group).values())
    numbers: dict[int, c.Name] = {}
    for same in positions:
        role = min({first.numbers[k].role for k in same}, key=ROLES.index)
        parameters.append(c.FunctionParameter(first.numbers[same[0]].c_type, scope.fresh(role)))
        numbers |= dict.fromkeys(same, c.Name(parameters[-1].name))
    return CommonFunction(
        name,
        tuple(parameters),
        tuple(passed),
        tuple(same[0] for same in positions),
        c.unbraced(_body(first, names, numbers, scope)),
        tuple(section.caller for section in group),
    )


def _type(group: Sequence[Section], number: int) -> str:
    """The type of the parameter for an outer variable: constant if any section only reads through it."""
    same = [section.outer[number] for section in group]
    c_type = same[0].c_type.removeprefix("const ")
    return f"const {c_type}" if same[0].is_pointer and any(v.is_const for v in same) else c_type


def _body(
    section: Section, names: dict[VariableRef, str], numbers: dict[int, c.Name], scope: Scope
) -> c.Statements:
    """Statements with these names of variables from outside, and of numbers by position. A local for
    the old element of an array is named after the array, `old_x`. A local with the name of an array gets `_i`."""
    position, own = count(), locals_of(section.body)
    old = {f"{OLD}{v.called.in_layer}": f"{OLD}{names[v.name]}" for v in section.outer}
    arrays = set(names.values())

    def local(text: str) -> str:
        if text in OURS:
            return text
        place = c.Name(text)
        if place not in names:
            match own[text]:
                case c.OfArray(array, word, called):
                    text = f"{names.get(array) or called.in_layer}_{word}"
                case Called() as called:
                    text = old.get(called.text) or (called.in_layer if called.layer else text)
            names[place] = scope.fresh(f"{text}_i" if text in arrays else text)
        return names[place]

    def loop(made: c.For) -> c.For:
        is_parameter = any(name in numbers.values() for name in c_query.nodes(made.stop))
        return replace(made, extent=None) if is_parameter else made

    return renamed(
        section.body,
        local,
        lambda place: c.Name(names[place]) if place in names else place,
        lambda literal: numbers.get(next(position), literal),
        loop,
    )
