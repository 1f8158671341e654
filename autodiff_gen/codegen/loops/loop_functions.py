"""The function that loops of one form become: what they read, what they write, and numbers in which they differ are its
parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from ...ir.identifiers import OURS, Scope
from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from .loop_forms import ROLES, Loops, Variable
from .role_names import Layers, parameter_name, text_of

OLD = "old_"  # begins the name of the element of a state before it is replaced


@dataclass(frozen=True)
class LoopFunction:
    """A function without a result. passed: of each parameter but the last ones, the number of the variable that loops
    pass for it; numbers: of each of the last ones, the position of the number that they pass."""

    name: str
    parameters: tuple[c.Parameter, ...]
    passed: tuple[int, ...]
    numbers: tuple[int, ...]
    body: c.Statements
    callers: tuple[tuple[str, str], ...]  # entry and step

    def call(self, loops: Loops) -> c.Call:
        """The call in place of loops that it is a function for."""
        variables: tuple[c.Expr, ...] = tuple(loops.outer[k].name for k in self.passed)
        return c.Call(self.name, variables + tuple(loops.numbers[k].literal for k in self.numbers))


def differing(group: Sequence[Loops]) -> dict[tuple[str, tuple[str, ...]], list[int]]:
    """The positions of the numbers that differ, by their type and the numbers of all loops; those that are always equal
    to each other are one parameter."""
    found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for k, same in enumerate(zip(*(loops.numbers for loops in group), strict=True)):
        texts = tuple(number.literal.text for number in same)
        if len(set(texts)) > 1:
            found.setdefault((same[0].c_type, texts), []).append(k)
    return found


def function_of(name: str, group: Sequence[Loops], names: Scope, layers: Layers) -> LoopFunction:
    """The function of this name for loops that have a form in common; names: those that are taken."""
    first, *_ = group
    called = _Names(group, Scope(names.taken), layers)
    types = {k: _type(group, k) for k in range(len(first.outer))}
    passed = sorted(types, key=lambda k: (not types[k].endswith("*"), not types[k].startswith("const ")))
    parameters = [c.Parameter(types[k], called[first.outer[k].name]) for k in passed]
    positions = list(differing(group).values())
    numbers: dict[int, c.Name] = {}
    for same in positions:
        role = min({first.numbers[k].role for k in same}, key=ROLES.index)
        parameters.append(c.Parameter(first.numbers[same[0]].c_type, called.scope.fresh(role)))
        numbers |= dict.fromkeys(same, c.Name(parameters[-1].name))
    return LoopFunction(
        name,
        tuple(parameters),
        tuple(passed),
        tuple(same[0] for same in positions),
        c.unbraced(_renamed(first.body, {v.name for v in first.outer}, called, numbers)),
        tuple(loops.caller for loops in group),
    )


def _type(group: Sequence[Loops], number: int) -> str:
    """The type of the parameter for an outer variable: what any of the loops may only read is constant."""
    same = [loops.outer[number] for loops in group]
    c_type = same[0].c_type.removeprefix("const ")
    return f"const {c_type}" if c_type.endswith("*") and any(v.is_const for v in same) else c_type


class _Names:
    """What the function for loops calls the variables of the first of them: those from outside by their roles, and
    local ones as there, without the names of layers."""

    def __init__(self, group: Sequence[Loops], scope: Scope, layers: Layers) -> None:
        self.scope, self.layers = scope, layers
        self.names: dict[Variable, str] = {}
        self.arrays: dict[
            str, str
        ] = {}  # by names of variables from outside, with and without those of layers
        first, *_ = group
        for k in range(len(first.outer)):
            text = text_of(first.outer[k])
            if text not in OURS or isinstance(first.outer[k].name, c.Member):
                name = scope.fresh(parameter_name(group, k, layers))
                self.names[first.outer[k].name] = self.arrays[text] = name
                self.arrays.setdefault(layers.without(text), name)

    def __getitem__(self, variable: Variable) -> str:
        if variable not in self.names:
            assert isinstance(variable, c.Name)
            text = variable.text
            if text in OURS:
                return text
            name = self._named_after(text) or self.layers.without(text)
            is_element = name in self.arrays.values()
            self.names[variable] = self.scope.fresh(f"{name}_i" if is_element else name)
        return self.names[variable]

    def _named_after(self, name: str) -> str:
        """Of a name that is that of an array and a word, such as `fc1_x_block`, the new name of the array and the word;
        empty for another one."""
        if (of := self.arrays.get(name.removeprefix(OLD))) is not None and name.startswith(OLD):
            return f"{OLD}{of}"
        found = [array for array in self.arrays if name.startswith(f"{array}_")]
        longest = max(found, key=len, default=None)
        return "" if longest is None else f"{self.arrays[longest]}{name.removeprefix(longest)}"


def _renamed(
    body: c.Statements,
    outer: set[Variable],
    called: _Names,
    numbers: Mapping[int, c.Name],
) -> c.Statements:
    """Loops with other names of local variables and of those from outside, and with names of numbers by position."""
    position = count()
    parameters = {name.text for name in numbers.values()}
    declarations = [
        n for n in c_query.nodes(body) if isinstance(n, (c.For, c.Declare, c.Array, c.Table, c.BlockOperand))
    ]
    local = {name for node in declarations for name in _declared(node)}

    def new(name: str) -> str:
        return called[c.Name(name)]

    def change(node: Any) -> Any:
        match node:
            case c.Literal():
                return numbers.get(next(position), node)
            case c.Name(text) if text in local or node in outer:
                return c.Name(called[node])
            case c.Member() if node in outer:
                return c.Name(called[node])
            case c.For(variable, stop):
                is_parameter = not parameters.isdisjoint(c_query.names(stop))
                return replace(node, variable=new(variable), extent=None if is_parameter else node.extent)
            case c.Declare(variables=pairs):
                return replace(node, variables=tuple((new(name), value) for name, value in pairs))
            case c.Array(name=name) | c.Table(name=name) | c.Increment(name) | c.BlockOperand(name):
                return replace(node, name=new(name))
            case c.Reduction(names=names):
                return replace(node, names=tuple(map(new, names)))
        return node

    return c_query.rewritten(body, change)


def _declared(node: c.For | c.Declare | c.Array | c.Table | c.BlockOperand) -> list[str]:
    match node:
        case c.For(variable):
            return [variable]
        case c.Declare(variables=pairs):
            return [name for name, _ in pairs]
    return [node.name]
