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

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, TypeAlias

from ...ir.identifiers import OURS, Scope
from ...lowering.c import c_ast as c
from ...lowering.c import c_query
from ...passes.costs import has_wide_vectors
from ...targets.cost_table import CostTable
from .loop_forms import ROLES, Known, Loops, Variable, fields_of, loops_of
from .role_names import Layers, function_name, role_name, text_of
from .vector_loops import iterations


@dataclass(frozen=True)
class Outlined:
    """A function without a result. passed: of each parameter but the last ones, the number of the variable that loops
    pass for it; numbers: of each of the last ones, the position of the number that they pass."""

    name: str
    parameters: tuple[c.Parameter, ...]
    passed: tuple[int, ...]
    numbers: tuple[int, ...]
    body: c.Statements
    callers: tuple[tuple[str, str], ...]  # entry and step


Visit: TypeAlias = Callable[[c.Statements, str, Known], c.Statements]
_ENDS = (c.Comment, c.Heading, c.Probe, c.Return, c.Blank)
_DECLARATIONS = (c.Declare, c.Array, c.Table)


def _has(statement: c.Statement, kinds: Any) -> bool:
    """Whether a statement or one inside of it is of such a kind."""
    pending = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, kinds):
            return True
        if isinstance(node, c.For | c.Block):
            pending += node.body
        elif isinstance(node, c.If):
            pending += (*node.then, *node.otherwise)
    return False


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
    taken: Iterable[str],
    layers: Layers,
    cost: CostTable,
    batch: int,
) -> tuple[list[tuple[c.Statements, ...]], list[Outlined]]:
    """The steps of entries, given by name with what is known before their first step, and the functions that they
    call. taken: names at file scope; layers: modules, whose names those in functions do without; batch: the most
    samples that a call may have."""
    found: list[tuple[str, Loops | None]] = []
    for name, steps, known in entries:
        scope = known.copy()

        def collect(body: c.Statements, step: str, known: Known, name: str = name) -> c.Statements:
            found.append((name, loops_of(body, step, known)))
            return body

        for step in steps:
            _visited(step, "", scope, collect)
    groups: dict[tuple[Any, ...], list[tuple[str, Loops]]] = {}
    for name, loops in found:
        if loops is not None and _is_worth_a_call(loops, cost, batch):
            groups.setdefault(_form(loops, cost), []).append((name, loops))
    names = Scope(taken)
    common = {form: group for form, group in groups.items() if _is_smaller(group)}
    functions = {
        form: _function(
            names.fresh(function_name([loops for _, loops in group], layers)), group, names, layers
        )
        for form, group in common.items()
    }
    called = {id(loops) for form in functions for _, loops in groups[form]}
    pending: Iterator[Loops | None] = (loops for _, loops in found)

    def call(body: c.Statements, _: str, __: Known) -> c.Statements:
        loops = next(pending)
        if loops is None or id(loops) not in called:
            return body
        function = functions[_form(loops, cost)]
        arguments: tuple[c.Expr, ...] = tuple(loops.outer[k].name for k in function.passed)
        arguments += tuple(loops.numbers[k].literal for k in function.numbers)
        return (c.ExprStatement(c.Call(function.name, arguments)),)

    changed = []
    for _, steps, known in entries:
        scope = known.copy()
        changed.append(tuple(_visited(step, "", scope, call) for step in steps))
    members = [loops for form in functions for _, loops in groups[form]]
    dropped = {v.name.text for loops in members for v in loops.dropped if isinstance(v.name, c.Name)}
    return [_without_unused(steps, dropped) for steps in changed], list(functions.values())


def _without_unused(steps: tuple[c.Statements, ...], names: set[str]) -> tuple[c.Statements, ...]:
    """Steps without the pointers of these names that nothing uses any more."""
    if not names:
        return steps
    unused = names - c_query.names(steps)
    return tuple(_without(step, unused) for step in steps) if unused else steps


def _without(body: c.Statements, names: set[str]) -> c.Statements:
    """Statements without the declarations of pointers of these names."""
    out: list[c.Statement] = []
    for s in body:
        match s:
            case c.Declare(variables=((name, _), *_)) if s.is_pointer and name in names:
                continue
            case c.For(body=inside):
                s = replace(s, body=_without(inside, names))
            case c.Block(inside):
                s = c.Block(_without(inside, names))
            case c.If(test, then, otherwise):
                s = c.If(test, _without(then, names), _without(otherwise, names))
        out.append(s)
    return tuple(out)


def _form(loops: Loops, cost: CostTable) -> tuple[Any, ...]:
    """What loops of one function have in common."""
    return (loops.form, loops.numbers) if has_wide_vectors(cost) else loops.form


def _is_smaller(group: Sequence[tuple[str, Loops]]) -> bool:
    """Whether one function and its calls are less code than the loops."""
    size, call = len(group[0][1].form[0]), 1 + len(group[0][1].passed) + len(_differing(group))
    return size + len(group) * call < len(group) * size


def _differing(group: Sequence[tuple[str, Loops]]) -> dict[tuple[str, tuple[str, ...]], list[int]]:
    """The positions of the numbers that differ, by their type and the numbers of all loops; those that are always equal
    to each other are one parameter."""
    found: dict[tuple[str, tuple[str, ...]], list[int]] = {}
    for k, same in enumerate(zip(*(loops.numbers for _, loops in group), strict=True)):
        texts = tuple(number.literal.text for number in same)
        if len(set(texts)) > 1:
            found.setdefault((same[0].c_type, texts), []).append(k)
    return found


def _is_worth_a_call(loops: Loops, cost: CostTable, batch: int) -> bool:
    """Whether a call takes little of the loops' time."""
    instructions = _instructions(loops.body, cost, batch)
    return instructions + cost.axpby.call < cost.code * instructions


def _instructions(tree: Any, cost: CostTable, batch: int) -> float:
    """What statements or an expression take, about."""
    match tree:
        case tuple():
            return sum(_instructions(part, cost, batch) for part in tree)
        case c.For(body=body):
            times = max(iterations(replace(tree, step=1), batch, 1) // abs(tree.step), 1)
            return times * (cost.loop + _instructions(body, cost, batch))
        case c.Element():
            return cost.load
        case c.Template() | c.StepTemplate() | c.Binary() | c.Sum() | c.Call():
            return cost.arithmetic + _inside(tree, cost, batch)
    return _inside(tree, cost, batch)


def _inside(node: Any, cost: CostTable, batch: int) -> float:
    kind: Any = type(node)
    return sum(_instructions(getattr(node, name), cost, batch) for name in fields_of(kind))


def _function(name: str, group: Sequence[tuple[str, Loops]], names: Scope, layers: Layers) -> Outlined:
    """The function of this name for loops that have a form in common: what they read, what they write, and numbers are
    its parameters."""
    (_, first), *_ = group
    local = Scope(names.taken)
    arrays: dict[
        str, str
    ] = {}  # what is from outside, by its name in the first loops, with and without layer
    renamed: dict[Variable, str] = {}

    def short(variable: Variable) -> str:
        if isinstance(variable, c.Name) and variable.text in OURS:
            return variable.text
        if variable not in renamed:
            assert isinstance(variable, c.Name)
            renamed[variable] = local.fresh(
                _named_after(variable.text, arrays) or layers.without(variable.text)
            )
        return renamed[variable]

    order = dict.fromkeys([*first.passed, *range(len(first.outer))])
    for k in order:
        variable = first.outer[k].name
        if isinstance(variable, c.Member) or variable.text not in OURS:
            text, role = text_of(first.outer[k]), role_name([loops.outer[k] for _, loops in group], layers)
            renamed[variable] = arrays[text] = local.fresh(role)
            arrays.setdefault(layers.without(text), renamed[variable])

    types = {}
    for k in first.passed:
        c_type = first.outer[k].c_type.removeprefix("const ")
        is_const = c_type.endswith("*") and any(loops.outer[k].is_const for _, loops in group)
        types[k] = f"const {c_type}" if is_const else c_type
    passed = sorted(types, key=lambda k: (not types[k].endswith("*"), not types[k].startswith("const ")))
    parameters = tuple(c.Parameter(types[k], short(first.outer[k].name)) for k in passed)
    differing = list(_differing(group).values())
    numbers: dict[int, c.Name] = {}
    for positions in differing:
        roles = {first.numbers[k].role for k in positions}
        role = min(roles, key=ROLES.index)
        parameter = c.Parameter(first.numbers[positions[0]].c_type, local.fresh(role))
        numbers |= dict.fromkeys(positions, c.Name(parameter.name))
        parameters += (parameter,)
    copies = [
        c.declare(types[k], short(v.name), c.Name(short(first.outer[k].name)), const=True)
        for i, (v, k) in enumerate(zip(first.outer, first.same, strict=True))
        if i != k
    ]
    return Outlined(
        name,
        parameters,
        tuple(passed),
        tuple(positions[0] for positions in differing),
        (*copies, *c.unbraced(_renamed(first.body, {v.name for v in first.outer}, short, numbers))),
        tuple((entry, loops.step) for entry, loops in group),
    )


def _named_after(name: str, arrays: Mapping[str, str]) -> str:
    """The name of a local variable of loops that is that of an array and a word, such as `fc1_x_block`, after the new
    name of the array; empty if it is not named so."""
    found = [array for array in arrays if name.startswith(f"{array}_")]
    longest = max(found, key=len, default=None)
    return "" if longest is None else f"{arrays[longest]}{name.removeprefix(longest)}"


def _renamed(
    body: c.Statements,
    outer: set[Variable],
    short: Callable[[Variable], str],
    numbers: Mapping[int, c.Name],
) -> c.Statements:
    """Loops with other names of local variables and of those from outside, and with names of numbers by position."""
    position = count()
    declarations = [n for n in c_query.nodes(body) if isinstance(n, c.For | c.Declare | c.Array | c.Table)]
    local = {name for node in declarations for name in _declared(node)}

    def new(name: str) -> str:
        return short(c.Name(name))

    def change(node: Any) -> Any:
        match node:
            case c.Literal():
                return numbers.get(next(position), node)
            case c.Name(text) if text in local or node in outer:
                return c.Name(short(node))
            case c.Member() if node in outer:
                return c.Name(short(node))
            case c.For(variable):
                return replace(node, variable=new(variable))
            case c.Declare(variables=pairs):
                return replace(node, variables=tuple((new(name), value) for name, value in pairs))
            case c.Array(name=name) | c.Table(name=name) | c.Increment(name):
                return replace(node, name=new(name))
            case c.Reduction(names=names):
                return replace(node, names=tuple(map(new, names)))
        return node

    return c_query.rewritten(body, change)


def _declared(node: c.For | c.Declare | c.Array | c.Table) -> list[str]:
    match node:
        case c.For(variable):
            return [variable]
        case c.Declare(variables=pairs):
            return [name for name, _ in pairs]
    return [node.name]
