"""The statements of a forward method: calls in order. The names of variables depend only on their use, so that equal
modules have equal texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .module_tree import Inline, Invocation
from .program import (
    CONSTANT,
    ImportedProgram,
    Names,
    ProgramCall,
    ValueRef,
    WeightRef,
    names,
    owner,
    references,
)
from .text import Nested, Text, lines, literal, member, prefixed

LETTERS = "xyzuvwabcdefghijklmnopqrst"


@dataclass(frozen=True)
class Statement:
    """`results = text`. text: gives the text for a function that writes an operand."""

    operands: list[ValueRef | WeightRef]
    results: Names
    text: Callable[[Callable[[Any], str]], Text]


@dataclass
class ForwardScope:
    """The module whose forward is written. access: (path from, path to) -> Python text; is_module: whether the module
    at a path can be called. If not, `statements` raises Inline."""

    path: str
    program: ImportedProgram
    access: Callable[[str, str], str]
    is_module: Callable[[str], bool]

    def statements(self, invocation: Invocation) -> Iterator[Statement]:
        for item in invocation.items:
            if isinstance(item, ProgramCall):
                yield self._call(item)
            elif self.is_module(item.path):
                yield self._module(item)
            else:
                raise Inline(item.path)

    def _call(self, call: ProgramCall) -> Statement:
        if call.layer is not None:
            head = self.access(self.path, call.layer)
        elif "{" in call.function:
            return Statement(
                list(call.references),
                call.results,
                lambda write: call.function.format(*map(write, call.args)),
            )
        else:
            head = f"F.{call.function}"

        def text(write: Callable[[Any], str]) -> Text:
            options = [f"{key}={write(value)}" for key, value in call.options.items()]
            args = call.args
            while args and args[-1] is None:  # the default
                args = args[:-1]
            return Nested(f"{head}(", [*map(write, args), *options], ")")

        return Statement(list(call.references), call.results, text)

    def _module(self, node: Invocation) -> Statement:
        head = self.access(self.path, node.path)
        return Statement(
            node.inputs,
            tuple(node.outputs),
            lambda write: Nested(f"{head}(", list(map(write, node.inputs)), ")"),
        )

    def own(self, ref: WeightRef) -> str:
        """Python text of a weight of this module or of one inside, or of a constant."""
        if self.program.weights[ref.name].role == CONSTANT:
            return f"constants[{literal(ref.name)}]"
        return member(self.access(self.path, owner(ref.name)), ref.name.rpartition(".")[2])

    def forward(self, invocation: Invocation, outputs: Any) -> list[str]:
        """The forward method, indented by 4."""
        body = list(self.statements(invocation))
        last = {ref: k for k, statement in enumerate(body) for ref in statement.operands}
        last |= dict.fromkeys(references(outputs), len(body))
        variables = _Variables()
        for ref in invocation.inputs:
            variables.name(ref)
        parameters = [variables.of[ref] for ref in invocation.inputs]

        def write(argument: Any) -> str:
            if isinstance(argument, WeightRef) and argument not in variables.of:
                return self.own(argument)
            if isinstance(argument, ValueRef | WeightRef):
                return variables.of[argument]
            if isinstance(argument, tuple | list):
                parts = ", ".join(map(write, argument))
                return f"({parts},)" if len(argument) == 1 else f"({parts})"
            return literal(argument)

        def pattern(results: Names | str, k: int, outer: bool = True) -> str:
            if isinstance(results, str):
                ref = ValueRef(results)
                return variables.name(ref) if last.get(ref, -1) > k else "_"
            parts = ", ".join(pattern(part, k, False) for part in results)
            return parts if outer else f"({parts})"

        found = [f"    def forward({', '.join(['self', *parameters])}):"]
        for k, statement in enumerate(body):
            text = statement.text(write)
            for ref in statement.operands:
                if last[ref] == k:
                    variables.release(ref)
            made = [ValueRef(name) for name in names(statement.results)]
            if k == len(body) - 1 and made == [outputs]:
                return found + lines(prefixed("return ", text), 8)
            found += lines(text, 8, before=f"{pattern(statement.results, k)} = ")
        result = write(outputs)
        return [
            *found,
            f"        return {result[1:-1] if isinstance(outputs, tuple) and len(outputs) > 1 else result}",
        ]


class _Variables:
    """Names of variables. A value gets the name that was released last, so that a chain of calls needs one variable."""

    def __init__(self) -> None:
        self.of: dict[ValueRef | WeightRef, str] = {}
        self.free: list[str] = []
        self.count = 0

    def name(self, ref: ValueRef | WeightRef) -> str:
        if self.free:
            self.of[ref] = self.free.pop()
        else:
            self.of[ref] = LETTERS[self.count] if self.count < len(LETTERS) else f"v{self.count}"
            self.count += 1
        return self.of[ref]

    def release(self, ref: ValueRef | WeightRef) -> None:
        if ref in self.of and self.of[ref] not in self.free:
            self.free.append(self.of[ref])
