"""Outlining: loops that steps of a program have in common become one function, which each of these steps calls. It is
the last change of loops.

    for (i = 0; i < 64; i++) {              static void compute_out(const float *x, float *out) {
        fc1_out[i] = relu(fc1_x[i]);            for (i = 0; i < 64; i++) out[i] = relu(x[i]);
    }                                 ->    }
    ...
    for (i = 0; i < 64; i++) {              compute_out(fc1_x, fc1_out);
        fc2_out[i] = relu(fc2_x[i]);        ...
    }                                       compute_out(fc2_x, fc2_out);

Steps have loops in common if the loops differ only in names: of arrays, of other variables from outside, and of local
variables. The arrays and variables from outside become parameters. On targets without wide vectors the loops may also
differ in literals, such as the sizes of layers, which then become parameters too. With wide vectors compilers have to
know the sizes of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from ...ir.identifiers import Scope
from ...ir.names import Called
from ...passes.costs import has_wide_vectors
from ...targets.cost_table import CostTable
from ..c import c_ast as c
from ..c import c_query
from .outlined_form import Known, Section, Variable, declared_by, section_of
from .outlined_function import CommonFunction, differing, function_of
from .outlined_names import StepName, function_names
from .vector_loops import iterations

Visit: TypeAlias = Callable[[c.Statements, tuple[str, str], Known], c.Statements]
_ENDS = (c.Comment, c.Heading, c.Probe, c.Return, c.Blank)
_DECLARATIONS = (c.Declare, c.Array, c.Table)


@dataclass(frozen=True)
class EntrySteps:
    """The steps of an entry. known: the variables of the entry before its first step; names: the names of its steps, by
    their numbers."""

    name: str
    steps: Sequence[c.Statements]
    known: Known
    names: Mapping[str, StepName]


@dataclass(frozen=True)
class Sections:
    """Statements of a step from the first loop to the last one, and each statement by itself where they are several;
    None for statements that have to stay where they are."""

    whole: Section | None
    parts: tuple[Section | None, ...]


def outlined(
    entries: Sequence[EntrySteps], taken: Collection[str], cost: CostTable
) -> tuple[list[tuple[c.Statements, ...]], list[CommonFunction]]:
    """The steps of entries, and the functions that they call. taken: names at file scope."""
    runs: list[Sections] = []
    step_names = {(e.name, step): name for e in entries for step, name in e.names.items()}

    def collect(body: c.Statements, caller: tuple[str, str], known: Known) -> c.Statements:
        parts = [section_of((s,), caller, known) if _has_loop(s) else None for s in body]
        runs.append(Sections(section_of(body, caller, known), tuple(parts) if len(body) > 1 else ()))
        return body

    for entry in entries:
        _visited(entry, collect)
    divided = {id(part) for run in runs for part in run.parts}
    names = Scope([*taken, *c_query.variables([entry.steps for entry in entries])])
    inside = Scope(taken)  # functions do not call each other
    functions: list[CommonFunction] = []
    called: dict[int, CommonFunction] = {}
    groups = list(_common(runs, cost))
    parts = [id(group[0]) in divided for group in groups]
    for group, name in zip(groups, function_names(groups, step_names, parts), strict=True):
        functions.append(function_of(names.fresh(name), group, inside))
        called |= {id(section): functions[-1] for section in group}
    pending = iter(runs)

    def call(section: Section | None, body: c.Statements) -> c.Statements:
        function = called.get(id(section))
        return body if section is None or function is None else (c.ExprStatement(function.call(section)),)

    def with_calls(body: c.Statements, _: tuple[str, str], __: Known) -> c.Statements:
        run = next(pending)
        if id(run.whole) in called or not run.parts:
            return call(run.whole, body)
        return tuple(made for s, part in zip(body, run.parts, strict=True) for made in call(part, (s,)))

    return [_visited(entry, with_calls) for entry in entries], functions


def _has_loop(statement: c.Statement) -> bool:
    return any(c_query.loops(statement))


def _visited(entry: EntrySteps, visit: Visit) -> tuple[c.Statements, ...]:
    """The steps of an entry with `visit` applied to runs of loops, with the entry, the number of the step and the
    variables that are known there."""
    known, step = dict(entry.known), ""

    def visited(body: c.Statements, known: dict[c.Name | c.Member, Variable]) -> c.Statements:
        nonlocal step
        out: list[c.Statement] = []
        run: list[c.Statement] = []

        def end() -> None:
            loops = [k for k, s in enumerate(run) if _has_loop(s)]
            if loops:
                first, stop = loops[0], loops[-1] + 1
                run[first:stop] = visit(tuple(run[first:stop]), (entry.name, step), known)
            out.extend(run)
            run.clear()

        for statement in body:
            is_end = any(isinstance(s, _ENDS) for s in c_query.statements(statement))
            if not is_end and not isinstance(statement, _DECLARATIONS):
                run.append(statement)
                continue
            end()
            if isinstance(statement, c.Comment) and statement.step:
                step = statement.step
            known |= {v.name: v for v in declared_by(statement)}
            match statement:
                case c.For(variable, body=inside):
                    index = Variable(c.Name(variable), statement.c_type, Called(variable))
                    statement = replace(statement, body=visited(inside, {**known, index.name: index}))
                case c.Block(inside):
                    statement = c.Block(visited(inside, dict(known)))
                case c.If(test, then, otherwise):
                    statement = c.If(test, visited(then, dict(known)), visited(otherwise, dict(known)))
            out.append(statement)
        end()
        return tuple(out)

    return tuple(visited(body, known) for body in entry.steps)


def _common(runs: Sequence[Sections], cost: CostTable) -> Iterator[list[Section]]:
    """Groups of equal sections in the order of their first callers; each group becomes a function. The group that saves
    most code is taken first. Its sections are whole runs or single statements."""
    is_fixed = has_wide_vectors(cost)
    groups: dict[tuple[Any, ...], list[tuple[int, Section]]] = {}
    for k, run in enumerate(runs):
        for section in (run.whole, *run.parts):
            if section is not None and _is_worth_a_call(section, cost):
                form = (section.form, section.numbers) if is_fixed else section.form
                groups.setdefault(form, []).append((k, section))
    whole, divided = set[int](), set[int]()  # runs that are in one function; runs with parts in functions

    def is_free(k: int, section: Section) -> bool:
        return k not in whole and not (k in divided and section is runs[k].whole)

    found: list[tuple[int, list[Section]]] = []
    several = list(groups.values())
    order = [(-_saved(group), number) for number, group in enumerate(several)]
    heapify(order)
    while order and order[0][0] < 0:
        _, number = heappop(order)
        group = [member for member in several[number] if is_free(*member)]
        if len(group) < len(several[number]):
            several[number] = group
            if group:
                heappush(order, (-_saved(group), number))
            continue
        for k, section in group:
            (whole if section is runs[k].whole else divided).add(k)
        found.append((group[0][0], [section for _, section in group]))
    return (group for _, group in sorted(found, key=lambda item: item[0]))


def _saved(group: Sequence[tuple[int, Section]]) -> int:
    """How much less code one function and its calls are than the sections; its head takes as much as a call."""
    same = [section for _, section in group]
    if len(same) < 2:
        return 0
    call = 1 + len(same[0].outer) + len(differing(same))
    return (len(same) - 1) * same[0].size - (len(same) + 1) * call


def _is_worth_a_call(section: Section, cost: CostTable) -> bool:
    """Whether the time of a call is small compared with the time of the statements. True without vectors. With vectors
    a function is slower: only in place do compilers know which arrays are apart."""
    return cost.vector == 1 or cost.axpby.call * cost.vector < (cost.code - 1) * _executed(section.body)


def _executed(tree: Any) -> int:
    """About how many operations statements execute: the nodes of their trees, as often as loops run them."""
    count = 0
    for node in c_query.nodes(tree, stop=c.For):
        count += 1
        if isinstance(node, c.For):
            times = max(iterations(replace(node, step=1), 1) // abs(node.step), 1)
            count += times * _executed(node.body)
    return count
