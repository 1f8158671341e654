"""The comments of functions of loops: the formula, taken from the comments of the calling steps, and these steps:

/* 6  fc1_out[n,120] = relu(fc1_xw + fc1_bias) */        /* out = relu(xw + bias); loops of step 6 of train_step */
bias_add_relu(t->fc1_bias, fc1_xw, fc1_out, n);    ->    static void bias_add_relu(...
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from ..lowering.c import c_ast as c
from ..lowering.c import c_query
from ..lowering.loops.outlined_function import CommonFunction
from .entry_body import POISON
from .formulas import LET

_SHAPE = re.compile(r"(?<=[\w\]])\[[\dn,]+\]")  # of a value that has its size from the caller
_WORD = re.compile(r"[A-Za-z_]\w*")
_VALUE = re.compile(r"[A-Za-z_]\w*\b(?![(=])")  # neither a function nor the name of an argument


def function_comments(
    steps: Iterable[c.Statements], functions: Sequence[CommonFunction]
) -> Mapping[str, str]:
    """The comments of functions, by their names."""
    computes = _computed(steps, functions)
    return {f.name: _comment(f, computes.get(f.name, "")) for f in functions}


def _comment(function: CommonFunction, computes: str) -> str:
    steps: dict[str, list[str]] = {}
    for entry, step in function.callers:
        steps.setdefault(entry, []).append(step)
    callers = " and ".join(
        f"step{'s' if len(numbers) > 1 else ''} {', '.join(numbers)} of {entry}"
        for entry, numbers in steps.items()
    )
    needs = "".join(f"; {name} is a multiple of {width}" for name, width in _multiples(function).items())
    between = "\nL" if "\n" in computes else "; l" if computes else "L"
    return f"{computes}{between}oops of {callers}{needs}"


def _multiples(function: CommonFunction) -> dict[str, int]:
    """The parameters that have to be multiples of the width of a block."""
    found: dict[str, int] = {}
    for loop in c_query.loops(function.body):
        count = loop.stop.left if isinstance(loop.stop, c.Binary) else loop.stop
        if loop.blocks_macro == "BLOCKS" and isinstance(count, c.Name):
            found[count.text] = max(loop.step, found.get(count.text, 0))
    return found


def _computed(steps: Iterable[c.Statements], functions: Sequence[CommonFunction]) -> Mapping[str, str]:
    """For each function by its name, the comment of its callers in the function's names, if each calling step consists
    of the call only and all comments agree."""
    known = {f.name: f for f in functions}
    said: dict[str, set[str]] = {name: set() for name in known}
    for comment, statements in _steps(steps):
        called = {n.function: n for n in c_query.nodes(statements) if isinstance(n, c.Call)}
        own = called.keys() & known.keys()
        for name in own:
            is_all = len(statements) == 1
            said[name].add(_renamed(comment, called[name], known[name]) if is_all else "")
    return {name: min(texts) for name, texts in said.items() if len(texts) == 1 and "" not in texts}


def _steps(steps: Iterable[c.Statements]) -> list[tuple[str, list[c.Statement]]]:
    """The comments of steps, with the statements that follow them and compute something."""
    found: list[tuple[str, list[c.Statement]]] = []
    for step in steps:
        for statement in c_query.statements(step):
            if isinstance(statement, c.Comment) and statement.step:
                found.append((statement.text, []))
            elif found and not _is_around(statement):
                found[-1][1].append(statement)
        found.append(("", []))
    return found


def _is_around(statement: c.Statement) -> bool:
    """Whether a statement belongs to no computation: a pointer, a probe, a test after a step."""
    match statement:
        case c.Declare():
            return statement.is_pointer
        case c.ExprStatement(c.Call(function)):
            return function == POISON
    return isinstance(statement, (c.Probe, c.Blank, c.Heading, c.Comment, c.If, c.Return))


def _renamed(comment: str, call: c.Call, function: CommonFunction) -> str:
    """A comment of the caller in the function's names; empty if a name would have two meanings, or if a local value has
    another name in the function."""
    names = {}
    for argument, parameter in zip(call.arguments, function.parameters, strict=True):
        if isinstance(argument, (c.Name, c.Member)):
            names[c_query.words(argument)[-1]] = parameter.name
    text = _SHAPE.sub("", comment)
    defined = {line.removeprefix(LET).partition(" ")[0] for line in text.split("\n") if line.startswith(LET)}
    if not defined <= c_query.variables(function.body):
        return ""
    others = set(_VALUE.findall(text)) - names.keys()
    return (
        _WORD.sub(lambda word: names.get(word[0], word[0]), text) if others.isdisjoint(names.values()) else ""
    )
