"""From a Program to files: NAME.h, NAME.c, NAME_params.c. Python decides, the templates lay out.

The text depends only on the program: no time, path, host or hash order.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2

from ..ir.parameter_layout import PartialStorage
from ..lowering.c import c_ast as c
from ..lowering.c import c_query, c_syntax
from ..lowering.loops.block_moves import COPY, FILL
from ..lowering.pipeline import without_cycle_collection
from ..targets.installation import __version__
from .c_printer import PRINTER
from .call_statement import sizes
from .constants import declared
from .convolution_structs import table as geometry_table
from .entries import EntryCode, in_parts, parameters
from .entry_docs import entry_doc
from .function_comments import function_comments
from .init_function import init_statements
from .legend import legend
from .line_breaking import WIDTH, folded
from .program import Program, Slot
from .program_regions import state_parts
from .source import Source, source_of
from .stack import stack_bounds, stack_line

_COMPILED = Path(__file__).parent / "__pycache__"  # bytecode, of the templates too


@functools.cache  # compiling them takes longer than rendering
def templates() -> jinja2.Environment:
    """The templates of generated files; an undefined name is an error. Jinja caches their bytecode beside Python's, if
    Python writes bytecode."""
    keep = not sys.dont_write_bytecode and os.access(_COMPILED, os.W_OK)
    return jinja2.Environment(
        bytecode_cache=jinja2.FileSystemBytecodeCache(str(_COMPILED)) if keep else None,
        loader=jinja2.PackageLoader("autodiff_gen.codegen"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


@without_cycle_collection()
def emit(
    program: Program, probes: Mapping[str, Mapping[str, int]] | None = None, poison: bool = False
) -> dict[str, str]:
    """File name -> text. `probes`: for a benchmark, the ids of steps by the entry's name and their number; `poison`: to
    find errors of the plan, memory of the arena that holds no value is filled with NaN (runtime/ag_poison.h)."""
    source = source_of(program, probes or {}, poison)
    common = {
        "p": program,
        "init_signature": _init_signature(program),
        "P": program.name.upper(),
        "version": __version__,
        "kind": "trainer" if program.is_model else "work",
        "guarded": any(e.plan.graph.guard is not None for e in program.entries),
        "proved": any(e.plan.graph.bound is not None for e in program.entries),
        "probed": probes is not None,
        "poisoned": poison,
        "entries": [_shown(code, program) for code in source.codes],
    }
    name = program.name
    return {
        f"{name}.h": templates().get_template("header.h.j2").render(**common, **_header(program, source)),
        f"{name}.c": templates().get_template("source.c.j2").render(**common, **_source(program, source)),
        f"{name}_params.c": templates().get_template("params.c.j2").render(**common, **_params(program)),
    }


def _source(program: Program, source: Source) -> dict[str, Any]:
    """The variables of the template of NAME.c."""
    declarations = [k.declaration for k in program.kernels if not k.declared]
    if declarations:
        declarations = ["/* Kernels that ag_kernels.h does not declare. */", *declarations, ""]
    loops = c_query.loops(source.steps)
    return {
        "tables": source.tables,
        "constants": declared(source.tables),
        "geometry": [PRINTER.lines([geometry_table(g, name)]) for g, name in source.geometry.items()],
        "declarations": declarations,
        "function_headers": dict.fromkeys(f.header for f in source.own),
        "legend": PRINTER.lines([c.Comment(text)]) if (text := legend(source.steps)) else [],
        "state_parts": _state_parts(program),
        "missing": "".join(f" || t->{r.member} == NULL" for r in program.regions),
        "blocks": any(loop.blocks for loop in c_query.loops(source.steps))
        or not c_query.calls(source.steps).isdisjoint((COPY, FILL)),
        "loops_header": any(f.numbers for f in source.functions)
        or any(x.independent or x.reduction or x.rolled for x in loops),
        "all_short": source.all_short,
        "functions": _functions(source),
    }


def _header(program: Program, source: Source) -> dict[str, Any]:
    """The variables of the template of NAME.h."""
    return {
        "what": "a trainer"
        if program.is_model
        else "functions"
        if len(program.entries) > 1
        else "a function",
        "facts": [*_facts(program), *_stack(program, source)],
        "calls": [*_calls(program), *(f.shown for f in source.own)],
        "slots": [_slot(s) for s in program.slots],
        "regions": [
            (r, [_slot(s) for s in r.slots], _arena_comment(program, r.arenas[0])) for r in program.regions
        ],
        "default_lr": c_syntax.float_literal(program.default_lr or 0.0),
        "arena_comment": _arena_comment(program),
    }


def _params(program: Program) -> dict[str, Any]:
    """The variables of the template of NAME_params.c."""
    statements, init_tables, draws = init_statements(program.slots)
    return {"lines": PRINTER.lines(statements), "tables": init_tables, "draws": draws}


def _functions(source: Source) -> list[dict[str, Any]]:
    """The functions of loops as the template wants them: as lines."""
    said = function_comments((step for code in source.codes for step in code.steps), source.functions)
    return [
        {
            "comment": "\n".join(PRINTER.lines([c.Comment(said[f.name])])),
            "signature": _head(f"static {'AG_NOINLINE ' if f.numbers else ''}void {f.name}", f.parameters),
            "body": PRINTER.lines(f.body),
        }
        for f in source.functions
    ]


def _head(start: str, parameters: Iterable[c.FunctionParameter]) -> str:
    """The head of a function, without semicolon or brace."""
    shown = [p.c_type + p.name if p.c_type.endswith("*") else f"{p.c_type} {p.name}" for p in parameters]
    whole = [text.replace(" ", "\0") for text in (f"{start}(", *shown)]
    return "\n".join(folded(f"{whole[0]}{', '.join(whole[1:])})"))


# Header


def _facts(program: Program) -> list[str]:
    """The first lines of the header: sizes, and the backends of kernels."""
    lines = []
    if program.slots:
        lines.append(
            f"State {program.state_bytes} bytes, arena {_floats(program)}, together {program.struct_bytes};"
        )
        lines += [
            f"  in {r.region}: state {r.state_bytes}, arena {4 * r.arena_words};" for r in program.regions
        ]
        lines.append(f"lower bound of this order: {program.bound_bytes}.")
        if program.frozen:
            constants = sum(array.nbytes for array in program.frozen.values())
            lines.append(f"Frozen parameters, constants of the C file: {constants} bytes.")
        lines += [f"{program.guard_cost}."] if program.guard_cost else []
    else:
        lines.append(
            f"Arena {4 * program.arena_words} bytes; lower bound of this order: {program.bound_bytes}."
        )
    lines.append(f"Kernel backends by priority: {', '.join(program.backends.names)}.")
    lines += [f"  but for {k}: {', '.join(names)}" for k, names in program.backends.use.items()]
    for entry in program.entries:
        for state in entry.plan.copies:
            lines.append(
                f"{entry.name} keeps a copy of the old {state}, which is still read after its update."
            )
    return lines


def _calls(program: Program) -> list[str]:
    """The kernel of every call."""
    lines = []
    for entry in program.entries:
        for number, step in entry.plan.all_steps():
            for call, kernel in step.calls.values():
                owner = "" if kernel.declared else f" of {kernel.backend}"
                lines.append(f"{entry.name} step {number}: {kernel.symbol}{owner} ({sizes(call)})")
                lines += [f"  not {why}" for why in program.backends.rejected(call.kernel, call.facts())]
    return lines


def _stack(program: Program, source: Source) -> list[str]:
    """The stack that its functions take, as lines."""
    line = stack_line(stack_bounds(source, program))
    return folded(f"{line}.", WIDTH - 3, "  ") if line else []


def _floats(program: Program) -> int:
    """Bytes of all arenas except the arena of integers."""
    return sum(4 * words for arena, words in program.arenas.items() if arena != "int")


def _arena_comment(program: Program, arena: str = "float") -> str:
    parts = [f"{e.name} {e.plan.plans[arena].peak} bytes" for e in program.entries if arena in e.plan.plans]
    return f"overwritten by each call: {', '.join(parts)}"


def _slot(slot: Slot) -> dict[str, Any]:
    return {
        "c_type": slot.type.dtype.c,
        "c_name": slot.c_name,
        "count": slot.count,
        "comment": f"{_extents(slot)} {slot.role} {slot.name}",
    }


def _extents(slot: Slot) -> str:
    storage, logical, stored = slot.state.storage, slot.state.logical.shape, slot.type.shape
    if storage is None:
        return str(list(stored))
    part = " in part" if isinstance(storage, PartialStorage) else ""
    return f"{list(logical)} stored{part} as {storage if stored == logical else list(stored)}:"


def _state_parts(program: Program) -> list[tuple[str, str, int]]:
    """For each part of the state: the member of the handle, the member of the first state, and the bytes."""
    members = {r.pointer: r.member for r in program.regions}
    return [(members[s.owner], s.c_name, size) for s, size in state_parts(program)]


# Entries


def _shown(code: EntryCode, program: Program) -> dict[str, Any]:
    """An entry as its template wants it: as lines."""
    entry = code.entry
    split = program.split and entry.name == "train_step"
    return {
        "signature": _signature(entry.c_name, code, program),
        "doc": entry_doc(entry),
        "checks": PRINTER.lines([*code.checks, *code.scans]),
        "steps": [PRINTER.lines(step) for step in code.steps],
        "parts": _parts(in_parts(code), program) if split else None,
    }


def _parts(code: EntryCode, program: Program) -> dict[str, Any]:
    """The step as train_part: a case for each of its parts."""
    name = f"{program.name}_train_part"
    arguments = tuple(c.Name(p.name) for p in parameters(code.entry, program))
    return {
        "signature": _signature(name, code, program),
        "abort": _head(f"int {program.name}_abort", [c.FunctionParameter(f"{program.struct} *", "t")]),
        "to_abort": code.entry.plan.steps_before_updates,
        "call": PRINTER.expression(c.Call(name, arguments)),
        "checks": PRINTER.lines(code.checks),
        "pointers": PRINTER.lines(code.pointers),
        "steps": [PRINTER.lines(_after_label(step)) for step in code.steps],
    }


def _after_label(step: c.Statements) -> c.Statements:
    """The step, in braces if it begins with a declaration: C99 does not allow a declaration after a label."""
    first = next((s for s in step if not isinstance(s, c.Comment | c.Heading | c.Blank)), None)
    return (c.Block(step),) if isinstance(first, c.Declare | c.Array | c.Table) else step


def _signature(name: str, code: EntryCode, program: Program) -> str:
    """The head of an entry."""
    return _head(f"int {name}", parameters(code.entry, program))


def _init_signature(program: Program) -> str:
    """The head of <m>_init."""
    regions = [c.FunctionParameter(f"{r.struct} *", r.pointer) for r in program.regions]
    own = [c.FunctionParameter(f"{program.struct} *", "t"), *regions, c.FunctionParameter("uint32_t", "seed")]
    return _head(f"int {program.name}_init", own)
