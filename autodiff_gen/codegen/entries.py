"""The functions of a program as C trees: signature, checks of the arguments, pointers into the arena, steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

from ..ir.identifiers import Scope
from ..ir.node import Value, base
from ..ir.types import Shape, product
from ..lowering.c import c_ast as c
from ..lowering.c import c_query, c_syntax
from ..lowering.phases import Phases
from ..lowering.plan import EntryPlan
from .convolution_structs import Geometry
from .entry_body import EntryBody, poisoned
from .entry_names import ONE_STRUCT
from .index_check import index_check
from .program import INDEX, Arg, Entry, Program


@dataclass(frozen=True)
class EntryCode:
    """One entry. `checks` are the checks of every call; `scans` are checks that traverse the arguments before the first
    step; `pointers` are declarations that all steps share in a function in parts.
    """

    entry: Entry
    checks: c.Statements
    scans: c.Statements
    steps: tuple[c.Statements, ...]
    pointers: tuple[c.Declare, ...] = ()


def step_trees(entry: Entry, program: Program) -> list[c.Statements]:
    """The C of every step of an entry, for reports: without headings, probes and tests."""
    body = _body(entry, program, program.constant_names, {})
    return [tuple(body.statements(step)) for step in entry.plan.steps]


def entry_code(
    entry: Entry,
    program: Program,
    tables: Mapping[Value, str],
    geometry: Mapping[Geometry, str],
    probes: Mapping[str, int],
    poison: bool = False,
) -> EntryCode:
    """The code of an entry; `tables` and `geometry` are the names of constants at file scope, `probes` ids by the
    numbers of steps; with `poison`, memory that holds no value is filled with NaN."""
    body = _body(entry, program, tables, geometry, poison)
    steps = [c_query.with_probes(body.statements(step), probes) for step in entry.plan.steps]
    headings = Phases(entry.plan).headings()
    for k, step in enumerate(entry.plan.steps):
        if step in headings:
            steps[k] = (c.Heading(headings[step]), *steps[k])
    if entry.plan.graph.guard is not None:
        _add_tests(steps, entry, body, program.name.upper())
    if poison:
        steps = [(*code, *body.freed(step)) for code, step in zip(steps, entry.plan.steps, strict=True)]
        steps[:1] = [(*_poisoned_arenas(program), *code) for code in steps[:1]]
    checks = (*_checks(entry, program), *_regions(steps, program))
    return EntryCode(entry, checks, _scans(entry, program, tables, geometry), tuple(steps))


def in_parts(code: EntryCode) -> EntryCode:
    """The steps as the cases of train_part: an error ends the step, and the scans belong to the first case."""
    end = c.Assign(c.Member("t", "part"), c.number(0))
    pointers = tuple(s for step in code.steps for s in step if _is_pointer(s))
    steps = [tuple(s for s in step if not _is_pointer(s)) for step in code.steps]
    steps[0] = (*code.scans, *steps[0])
    ended = tuple(c_query.before_returns(step, end) for step in steps)
    return replace(code, scans=(), steps=ended, pointers=pointers)


def _is_pointer(statement: c.Statement) -> TypeGuard[c.Declare]:
    return isinstance(statement, c.Declare) and statement.is_pointer


def _poisoned_arenas(program: Program) -> c.Statements:
    arenas = arenas_of(program)
    return tuple(poisoned(arenas[a], 4 * count) for a, count in program.arenas.items() if count)


def _body(
    entry: Entry,
    program: Program,
    tables: Mapping[Value, str],
    geometry: Mapping[Geometry, str],
    poison: bool = False,
    plan: EntryPlan | None = None,
) -> EntryBody:
    """The body of an entry, or of a check of its arguments."""
    outputs = {a.name: c.Name(a.c_name) for a in entry.args if a.role == "output"}
    if plan is not None:
        outputs = {INDEX: c.Name(Scope([a.c_name for a in entry.args]).fresh("index"))}
    return EntryBody(
        plan or entry.plan,
        {a.value: c.Name(a.c_name) for a in entry.args if a.value is not None},
        outputs,
        program.slot_places,
        {v: c.Name(name) for v, name in tables.items()},
        geometry=geometry,
        layers=program.layers,
        poison=poison,
        arenas=arenas_of(program),
    )


def arenas_of(program: Program) -> Mapping[str, c.Expr]:
    """The memory of every arena of the plans."""
    members = ("arena", "int_arena")
    found: dict[str, c.Expr] = {}
    for r in program.regions:
        found |= {a: c.Member(r.pointer, m) for a, m in zip(r.arenas, members, strict=False)}
    return found or ONE_STRUCT


def _add_tests(steps: list[c.Statements], entry: Entry, body: EntryBody, prefix: str) -> None:
    """Add to `steps` the tests of the loss and of the bound of all updates, each after the step that computes it."""
    graph = entry.plan.graph
    said = c.Comment("bounds of all updates, times 2^28: none begins unless they are finite")
    for v, what, comment in ((graph.outputs.get("loss"), "LOSS", ()), (graph.bound, "GRADIENTS", (said,))):
        if v is not None:
            k = next((i for i, step in enumerate(entry.plan.steps) if step.node is base(v).node), 0)
            steps[k] += (*comment, _rejected(_not_finite(body.place(v), ()), f"{prefix}_ERR_{what}"))


# Signatures


def parameters(entry: Entry, program: Program) -> list[c.FunctionParameter]:
    """The parameters of an entry: the struct, arrays, n, scalars, outputs."""
    out = [c.FunctionParameter(f"{program.struct} *", "t")]
    for arg in entry.parameters:
        if arg is None:
            out.append(c.FunctionParameter("int32_t", "n"))
        elif arg.by_value:
            out.append(c.FunctionParameter(arg.type.dtype.c, arg.c_name))
        else:
            const = "" if arg.role == "output" else "const "
            out.append(c.FunctionParameter(f"{const}{arg.type.dtype.c} *", arg.c_name))
    return out


# Checks


def _rejected(test: c.Expr, status: str) -> c.If:
    return c.If(test, (c.Return(c.Name(status)),))


def _any(tests: list[c.Expr]) -> c.Expr:
    out = tests[0]
    for test in tests[1:]:
        out = c.Binary("||", out, test)
    return out


def _checks(entry: Entry, program: Program) -> c.Statements:
    """The tests of every call: pointers, and the number of samples."""
    prefix = program.name.upper()
    used = {v for n in entry.plan.graph.nodes for v in n.operands}
    unused = [a for a in entry.args if a.by_value and a.value not in used]
    out: list[c.Statement] = [c.ExprStatement(c.Cast("void", c.Name(a.c_name))) for a in unused]
    pointers: list[c.Expr] = [c.Name("t"), *(c.Member("t", r.member) for r in program.regions)]
    pointers += [c.Name(a.c_name) for a in entry.args if not a.by_value]
    missing: list[c.Expr] = [c.Binary("==", p, c.Name("NULL")) for p in pointers]
    out.append(_rejected(_any(missing), f"{prefix}_ERR_NULL"))
    if entry.takes_n:
        n = c.Name("n")
        few, many = c.Binary("<", n, c.number(entry.least_n)), c.Binary(">", n, c.Name(f"{prefix}_BATCH"))
        out.append(_rejected(_any([few, many]), f"{prefix}_ERR_BATCH"))
    return tuple(out)


def _regions(steps: Sequence[c.Statements], program: Program) -> c.Statements:
    """Pointers to the structs in regions of memory that the steps use."""
    if not program.regions:
        return ()
    used = {node.pointer for node in c_query.nodes(steps) if isinstance(node, c.Member)}
    return tuple(
        c.declare(f"{r.struct} *", r.pointer, c.Member("t", r.member), const=True)
        for r in program.regions
        if r.pointer in used
    )


def _scans(
    entry: Entry, program: Program, tables: Mapping[Value, str], geometry: Mapping[Geometry, str]
) -> c.Statements:
    """The tests before the first step: indices out of range, and inputs that are not finite."""
    prefix = program.name.upper()
    out: list[c.Statement] = []
    for check in entry.checks:
        out += index_check(
            check, _body(entry, program, tables, geometry, plan=check.plan), f"{prefix}_ERR_LABEL"
        )
    if entry.plan.graph.guard is not None and (guarded := float_inputs(entry)):
        names = ((a, c.Name(a.c_name)) for a in guarded)
        tests = [_not_finite(c.Unary("&", x) if a.by_value else x, a.type.shape) for a, x in names]
        out.append(_rejected(_any(tests), f"{prefix}_ERR_INPUT"))
    return tuple(out)


def float_inputs(entry: Entry) -> list[Arg]:
    """The arguments that may hold a number that is not finite."""
    return [a for a in entry.args if a.role == "input" and a.type.dtype.kind == "f"]


def _not_finite(place: c.Expr, shape: Shape) -> c.Expr:
    return c.Unary("!", c.Call("ag_all_finite", (place, c_syntax.size(product(shape)))))
