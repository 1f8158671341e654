"""NAME.c of a Program as C trees: its entries in forms that are fast on the target, and functions for loops that they
have in common."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from ..ir.identifiers import of_program
from ..ir.names import Called
from ..kernels.table import MathFunction
from ..lowering.c import c_ast as c
from ..lowering.c import c_query
from ..lowering.loops.outlined_form import Variable
from ..lowering.loops.outlined_function import CommonFunction
from ..lowering.loops.outlining import EntrySteps, outlined
from ..lowering.loops.schedule import scheduled
from ..lowering.loops.vector_loops import all_short
from .constants import ConstantArray, constant_tables
from .convolution_structs import Geometry, geometry_names
from .entries import EntryCode, entry_code, parameters
from .program import Program
from .step_names import step_names


@dataclass(frozen=True)
class Source:
    """NAME.c as trees. own: functions of backends that replace functions of ag_math.h; all_short: see
    vector_loops.py."""

    codes: Sequence[EntryCode]
    functions: Sequence[CommonFunction]
    tables: Sequence[ConstantArray]
    geometry: Mapping[Geometry, str]
    own: Sequence[MathFunction]
    all_short: bool

    @property
    def steps(self) -> list[c.Statements]:
        return [*(step for code in self.codes for step in code.steps), *(f.body for f in self.functions)]


def source_of(program: Program, probes: Mapping[str, Mapping[str, int]], poison: bool) -> Source:
    """The trees of a program. probes, poison: see files.emit."""
    plans = [plan for e in program.entries for plan in e.plans]
    arguments = [a.c_name for e in program.entries for a in e.args]
    tables = constant_tables(program.constant_names)
    global_names = {
        *of_program(program.name),
        *(e.c_name for e in program.entries),
        *(t.name for t in tables),
    }
    geometry = geometry_names(plans, {*arguments, *global_names})
    codes = [
        entry_code(e, program, program.constant_names, geometry, probes.get(e.name, {}), poison)
        for e in program.entries
    ]
    codes, own = _with_own_functions(codes, program.backends.functions)
    cost, reorder = program.backends.cost, not program.backends.only_ref
    for k, (code, entry) in enumerate(zip(codes, program.entries, strict=True)):
        taken = [a.c_name for a in entry.args if not a.by_value]
        codes[k] = replace(code, steps=scheduled(code.steps, cost, reorder, taken))
    steps = [step for code in codes for step in code.steps]
    short = all_short(steps, cost.vector_loop)
    codes, functions = _with_outlined_loops(codes, program, {*global_names, *geometry.values()})
    return Source(codes, functions, tables, geometry, own, short)


def _with_own_functions(
    codes: Sequence[EntryCode], functions: Mapping[str, MathFunction]
) -> tuple[list[EntryCode], list[MathFunction]]:
    """Code that calls a backend's replacements for functions of ag_math.h, and the replacements that are called."""
    if not functions:
        return list(codes), []
    called = [[c_query.calls(step) for step in code.steps] for code in codes]
    every = set[str]().union(*chain.from_iterable(called))
    used = [f for name, f in sorted(functions.items()) if f"ag_{name}" in every]
    names = {f"ag_{f.name}": f.symbol for f in used}
    made = []
    for code, calls in zip(codes, called, strict=True):
        steps = zip(code.steps, calls, strict=True)
        changed = [s if names.keys().isdisjoint(c) else c_query.with_functions(s, names) for s, c in steps]
        made.append(replace(code, steps=tuple(changed)))
    return made, used


def _with_outlined_loops(
    codes: Sequence[EntryCode], program: Program, taken: Collection[str]
) -> tuple[list[EntryCode], list[CommonFunction]]:
    """Code that calls functions where steps have loops in common, and these functions."""
    states = [
        Variable(place, f"{s.type.dtype.c} *", name, is_trained=s.role == "parameter")
        for s, (place, name) in zip(program.slots, program.called.items(), strict=True)
    ]
    entries = []
    for code in codes:
        _, *own = parameters(code.entry, program)
        known = [*states, *(Variable(c.Name(p.name), p.c_type, Called(p.name)) for p in own)]
        names = step_names(code.entry.plan)
        entries.append(EntrySteps(code.entry.name, code.steps, {v.name: v for v in known}, names))
    steps, functions = outlined(entries, taken, program.backends.cost)
    return [replace(code, steps=made) for code, made in zip(codes, steps, strict=True)], functions
