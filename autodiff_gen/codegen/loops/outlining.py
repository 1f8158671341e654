"""Outlining: loops that steps of a program have in common become one function, which each of these steps calls.

    for (i = 0; i < 64; i++) {              static void compute_out(const float *x, float *out) {
        fc1_out[i] = relu(fc1_x[i]);            for (i = 0; i < 64; i++) out[i] = relu(x[i]);
    }                                 ->    }
    ...
    for (i = 0; i < 64; i++) {              compute_out(fc1_x, fc1_out);
        fc2_out[i] = relu(fc2_x[i]);        ...
    }                                       compute_out(fc2_x, fc2_out);

Steps have loops in common where these differ in names only, of arrays and numbers, which become parameters, and of
local variables; on targets without wide vectors also in numbers, such as the sizes of layers, which are parameters,
too, where they differ. With wide vectors compilers have to know the sizes of loops.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from ...ir.identifiers import Scope
from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from ...lowering.loops.vector_loops import iterations
from ...passes.costs import has_wide_vectors
from ...targets.cost_table import CostTable
from ..step_names import StepName
from .loop_forms import Known, Loops, loops_of
from .loop_functions import LoopFunction, differing, function_of
from .role_names import Layers, function_names

Visit: TypeAlias = Callable[[c.Statements, str, Known], c.Statements]
_ENDS = (c.Comment, c.Heading, c.Probe, c.Return, c.Blank)
_DECLARATIONS = (c.Declare, c.Array, c.Table)


def _has(statement: c.Statement, kinds: Any) -> bool:
    """Whether a statement or one inside of it is of such a kind."""
    return any(isinstance(node, kinds) for node in c_query.statements(statement))


def _visited(body: c.Statements, step: str, known: Known, visit: Visit) -> c.Statements:
    """Statements in which loops are what `visit` makes of them, with the number of their step and what is known
    there."""
    out: list[c.Statement] = []
    run: list[c.Statement] = []

    def end() -> None:
        is_loop = [_has(s, c.For) for s in run]
        if any(is_loop):
            first, last = is_loop.index(True), len(run) - is_loop[::-1].index(True)
            out.extend([*run[:first], *visit(tuple(run[first:last]), step, known), *run[last:]])
        else:
            out.extend(run)
        run.clear()

    for statement in body:
        if not isinstance(statement, _DECLARATIONS) and not _has(statement, _ENDS):
            run.append(statement)
            continue
        end()
        if isinstance(statement, c.Comment) and statement.step:
            step = statement.step
        known.declare(statement)
        match statement:
            case c.For(variable, body=inside):
                inner = known.copy()
                inner.types[c.Name(variable)] = statement.c_type
                statement = replace(statement, body=_visited(inside, step, inner, visit))
            case c.Block(inside):
                statement = c.Block(_visited(inside, step, known.copy(), visit))
            case c.If(test, then, otherwise):
                parts = (_visited(part, step, known.copy(), visit) for part in (then, otherwise))
                statement = c.If(test, *parts)
        out.append(statement)
    end()
    return tuple(out)


def outlined(
    entries: Sequence[tuple[str, Sequence[c.Statements], Known]],
    taken: Collection[str],
    layers: Layers,
    cost: CostTable,
    step_names: Mapping[tuple[str, str], StepName],
) -> tuple[list[tuple[c.Statements, ...]], list[LoopFunction]]:
    """The steps of entries, given by name with what is known before their first step, and the functions that they
    call. taken: names at file scope; layers: the modules, whose names are left out of names in functions; step_names:
    the names of steps, by entry and number."""
    runs = _all_loops(entries)
    common = _common_loops(runs, cost)
    divided = {id(part) for run in runs for part in run.parts}
    names = Scope([*taken, *c_query.variables([steps for _, steps, _ in entries])])
    inside = Scope(taken)  # functions of loops do not call each other
    called: dict[int, LoopFunction] = {}
    functions = []
    parts = [id(group[0]) in divided for group in common]
    for group, name in zip(common, function_names(common, layers, step_names, parts), strict=True):
        functions.append(function_of(names.fresh(name), group, inside, layers))
        called |= {id(loops): functions[-1] for loops in group}
    return _calling(entries, runs, called), functions


@dataclass(frozen=True)
class Run:
    """Statements of a step from the first loop to the last one, and each statement by itself where they are several;
    None for those that have to stay where they are."""

    statements: c.Statements
    whole: Loops | None
    parts: tuple[Loops | None, ...]


def _common_loops(runs: Sequence[Run], cost: CostTable) -> list[list[Loops]]:
    """Groups of equal loops in the order of their first callers; each group becomes a function. The group that saves
    most code is taken first. It has all loops of a run, or single ones."""
    groups: dict[tuple[Any, ...], list[tuple[int, Loops]]] = {}
    for k, run in enumerate(runs):
        for loops in (run.whole, *run.parts):
            if loops is not None and _is_worth_a_call(loops, cost):
                groups.setdefault(_form(loops, cost), []).append((k, loops))
    whole, divided = (
        set[int](),
        set[int](),
    )  # runs whose loops are all in one function; runs with single loops in functions

    def is_free(k: int, loops: Loops) -> bool:
        return k not in whole and not (k in divided and loops is runs[k].whole)

    found: list[tuple[int, list[Loops]]] = []
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
        for k, loops in group:
            (whole if loops is runs[k].whole else divided).add(k)
        found.append((group[0][0], [loops for _, loops in group]))
    return [group for _, group in sorted(found, key=lambda item: item[0])]


def _all_loops(entries: Sequence[tuple[str, Sequence[c.Statements], Known]]) -> list[Run]:
    """What `_visited` visits, in its order."""
    found: list[Run] = []
    for name, steps, known in entries:
        scope = known.copy()

        def collect(body: c.Statements, step: str, known: Known, name: str = name) -> c.Statements:
            caller = name, step
            parts = [loops_of((s,), caller, known) if _has(s, c.For) else None for s in body]
            found.append(Run(body, loops_of(body, caller, known), tuple(parts) if len(body) > 1 else ()))
            return body

        for step in steps:
            _visited(step, "", scope, collect)
    return found


def _calling(
    entries: Sequence[tuple[str, Sequence[c.Statements], Known]],
    found: Iterable[Run],
    called: Mapping[int, LoopFunction],
) -> list[tuple[c.Statements, ...]]:
    """The steps of entries with calls in place of loops; called: functions by the ids of loops that were found."""
    pending = iter(found)

    def call(loops: Loops | None, body: c.Statements) -> c.Statements:
        function = called.get(id(loops))
        return body if loops is None or function is None else (c.ExprStatement(function.call(loops)),)

    def visit(body: c.Statements, _: str, __: Known) -> c.Statements:
        run = next(pending)
        if id(run.whole) in called or not run.parts:
            return call(run.whole, body)
        return tuple(made for s, part in zip(body, run.parts, strict=True) for made in call(part, (s,)))

    changed = []
    for _, steps, known in entries:
        scope = known.copy()
        changed.append(tuple(_visited(step, "", scope, visit) for step in steps))
    return changed


def _form(loops: Loops, cost: CostTable) -> tuple[Any, ...]:
    """What loops of one function have in common."""
    return (loops.form, loops.numbers) if has_wide_vectors(cost) else loops.form


def _saved(group: Sequence[tuple[int, Loops]]) -> int:
    """How much less code one function and its calls are than the loops."""
    same = [loops for _, loops in group]
    if len(same) < 2:
        return 0
    size, call = len(same[0].form[0]), 1 + len(same[0].outer) + len(differing(same))
    return (len(same) - 1) * size - len(same) * call


def _is_worth_a_call(loops: Loops, cost: CostTable) -> bool:
    """Whether a call takes little of the loops' time."""
    instructions = _instructions(loops.body, cost)
    return instructions + cost.axpby.call < cost.code * instructions


def _instructions(tree: Any, cost: CostTable) -> float:
    """What statements or an expression take, about."""
    match tree:
        case tuple():
            return sum(_instructions(part, cost) for part in tree)
        case c.For(body=body):
            times = max(iterations(replace(tree, step=1), 1) // abs(tree.step), 1)
            return times * (cost.loop + _instructions(body, cost))
        case c.Element():
            return cost.load
        case c.Template() | c.StepTemplate() | c.Binary() | c.Sum() | c.Call():
            return cost.arithmetic + _inside(tree, cost)
    return _inside(tree, cost)


def _inside(node: Any, cost: CostTable) -> float:
    kind: Any = type(node)
    names = c_query.node_fields(kind) or ()
    return sum(_instructions(getattr(node, name), cost) for name in names)
