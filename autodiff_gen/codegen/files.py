"""From a Program to files: NAME.h, NAME.c, NAME_params.c. Python decides, the templates lay out.

The text is a function of the program alone: no time, path, host or hash order.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import jinja2

from ..ir.identifiers import Scope
from ..ir.node import CONST, Value, base, topological
from ..ir.types import planned_size, product
from ..kernels.table import Function
from ..lowering import c_syntax
from ..lowering.plan import EntryPlan
from ..targets.installation import __version__
from .constants import WIDTH, Table, table
from .control_flow import Inside, Pointer
from .functions import EntryText
from .init import init_lines
from .kernel_call import sizes
from .program import Arg, Entry, Program, Slot
from .vector_loops import VECTOR, all_short

_SHORTCUTS = "#define AG_MATH_SHORTCUTS 1 /* no loop that calls its functions is long enough for vectors */"


def templates() -> jinja2.Environment:
    """The templates of generated files; an undefined name is an error."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("autodiff_gen.codegen"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def emit(program: Program, marks: Mapping[str, Mapping[str, int]] | None = None) -> dict[str, str]:
    """File name -> text. `marks`: for a benchmark, the id of AG_MARK of steps by the entry's name and their number."""
    env = templates()
    tables, table_names = constant_tables(
        (e.plan for e in program.entries), [a.c_name for e in program.entries for a in e.args]
    )
    entries = [_entry(e, program, table_names, (marks or {}).get(e.name, {})) for e in program.entries]
    common = {
        "p": program,
        "P": program.name.upper(),
        "version": __version__,
        "kind": "trainer" if program.is_model else "work",
        "guarded": any(e.plan.graph.guard is not None for e in program.entries),
        "proved": any(e.plan.graph.bound is not None for e in program.entries),
        "marked": marks is not None,
    }
    declarations = [k.declaration for k in program.kernels if not k.declared]
    if declarations:
        declarations.append("")
    source, used = _with_functions(
        env.get_template("source.c.j2").render(
            **common, entries=entries, tables=tables, declarations=declarations
        ),
        program.backends.functions,
    )
    if all_short(source, program.batch, program.backends.vectors or VECTOR):
        source = source.replace('#include "ag_math.h"\n', f'{_SHORTCUTS}\n#include "ag_math.h"\n', 1)
    header = env.get_template("header.h.j2").render(
        **common,
        what="a trainer" if program.is_model else "functions" if len(program.entries) > 1 else "a function",
        facts=[*_facts(program), *(f"  {f.shown}" for f in used)],
        slots=[_slot(s) for s in program.slots],
        entries=entries,
        default_lr=c_syntax.float_literal(program.default_lr or 0.0),
        arena_comment=_arena_comment(program),
    )
    lines, init_tables, draws = init_lines(program.slots)
    params = env.get_template("params.c.j2").render(**common, lines=lines, tables=init_tables, draws=draws)
    name = program.name
    return {f"{name}.h": header, f"{name}.c": source, f"{name}_params.c": params}


def _with_functions(source: str, functions: Mapping[str, Function]) -> tuple[str, list[Function]]:
    """Generated C that calls a backend's functions where it has its own, and those that are called."""
    called = set(re.findall(r"\bag_(\w+)\(", source))
    used = [f for name, f in sorted(functions.items()) if name in called]
    for f in used:
        source = re.sub(rf"\bag_{f.name}\(", f"{f.symbol}(", source)
    headers = "".join(f'#include "{h}"\n' for h in dict.fromkeys(f.header for f in used))
    return source.replace('#include "ag_math.h"\n', f'#include "ag_math.h"\n{headers}', 1), used


# Header


def _facts(program: Program) -> list[str]:
    """What the header tells: sizes, and the kernel of every call."""
    lines = []
    if program.slots:
        lines.append(
            f"State {program.state_bytes} bytes, arena {4 * program.arena_words}, together {program.struct_bytes};"
        )
        lines.append(f"lower bound of this order: {program.bound_bytes}.")
        lines += [f"{program.guard_cost}."] if program.guard_cost else []
    else:
        lines.append(
            f"Arena {4 * program.arena_words} bytes; lower bound of this order: {program.bound_bytes}."
        )
    lines.append(f"Kernels asked in this order: {', '.join(program.backends.names)}.")
    lines += [f"  but for {k}: {', '.join(names)}" for k, names in program.backends.use.items()]
    for entry in program.entries:
        for number, step in entry.plan.all_steps():
            for call, kernel in step.calls.values():
                owner = "" if kernel.declared else f" of {kernel.backend}"
                lines.append(f"  {entry.name} step {number}: {kernel.symbol}{owner} ({sizes(call)})")
                lines += [f"    not {why}" for why in program.backends.passed_over(call.kernel, call.facts())]
        for state in entry.plan.copies:
            lines.append(
                f"  {entry.name} keeps a copy of the old {state}, which is still read after its update"
            )
    return lines


def _arena_comment(program: Program) -> str:
    parts = [f"{e.name} {e.plan.plans['float'].peak} bytes" for e in program.entries]
    return "shared by the entries: " + ", ".join(parts) if len(parts) > 1 else parts[0]


def _slot(slot: Slot) -> dict[str, Any]:
    return {
        "c_type": slot.type.dtype.c,
        "c_name": slot.c_name,
        "count": planned_size(slot.type.shape),
        "comment": f"{_extents(slot)} {slot.role} {slot.name}",
    }


def _extents(slot: Slot) -> str:
    if slot.state.storage is None:
        return str(list(slot.type.shape))
    return f"{list(slot.state.logical.shape)} stored as {list(slot.type.shape)}:"


# Entries


def step_text(entry: Entry, program: Program) -> EntryText:
    """The text of an entry, for what it says of its steps."""
    args = {a.value: a.c_name for a in entry.args if a.value is not None}
    outputs = {a.name: a.c_name for a in entry.args if a.role == "output"}
    graphs = [plan.graph for plan in entry.plan.all_plans()]
    constants = {n.results[0]: "table" for g in graphs for n in topological(g.roots) if n.op is CONST}
    return EntryText(entry.plan, args, outputs, program.slot_names, constants)


def _entry(
    entry: Entry, program: Program, tables: dict[Value, str], marks: Mapping[str, int]
) -> dict[str, Any]:
    args = {a.value: a.c_name for a in entry.args if a.value is not None}
    outputs = {a.name: a.c_name for a in entry.args if a.role == "output"}
    text = EntryText(entry.plan, args, outputs, program.slot_names, tables, Inside(marks=marks))
    split = program.split and entry.name == "train_step"
    steps = [text.lines(step) for step in entry.plan.steps]
    if entry.plan.graph.guard is not None:
        _add_tests(steps, entry, text, program.name.upper())
    return {
        "signature": _signature(entry, program),
        "doc": _doc(entry),
        "checks": [*_checks(entry, program), *_looks(entry, program)],
        "pointers": _aligned(text.pointers),
        "steps": steps,
        "parts": _parts(entry, program, steps) if split else None,
    }


def _add_tests(steps: list[list[str]], entry: Entry, text: EntryText, prefix: str) -> None:
    """Behind the steps that make them, the tests of the loss and of the bound of the updates."""
    graph = entry.plan.graph
    said = "/* bounds of all updates, times 2^28: none begins unless they are finite */"
    gates = ((graph.outputs.get("loss"), "LOSS", ()), (graph.bound, "GRADIENTS", (said,)))
    for v, what, comment in gates:
        if v is not None:
            k = next((i for i, step in enumerate(entry.plan.steps) if step.node is base(v).node), 0)
            steps[k] += [*comment, *_refusal(f"!ag_all_finite({text.place(v)}, 1)", f"{prefix}_ERR_{what}")]


def _parts(entry: Entry, program: Program, steps: list[list[str]]) -> dict[str, Any]:
    """The step as train_part: a case for each of its parts; a refusal ends the step."""
    refused = f"return {program.name.upper()}_ERR_"

    def ended(lines: Iterable[str]) -> Iterator[str]:
        for line in lines:
            if line.strip().startswith(refused):
                yield line[: len(line) - len(line.lstrip())] + "t->part = 0;"
            yield line

    order = [a.c_name for a in entry.args]
    if entry.takes_n:
        due = next((k for k, a in enumerate(entry.args) if a.by_value or a.role == "output"), len(order))
        order.insert(due, "n")
    name = f"{program.name}_train_part"
    return {
        "signature": _signature(entry, program).replace(f"int {entry.c_name}(", f"int {name}(", 1),
        "call": f"{name}({', '.join(['t', *order])})",
        "checks": _checks(entry, program),
        "steps": [[*_looks(entry, program), *ended(steps[0])], *(list(ended(lines)) for lines in steps[1:])],
    }


def _signature(entry: Entry, program: Program) -> str:
    parts = [f"{program.struct} *t"]
    seen_n = not entry.takes_n
    for arg in entry.args:
        if not seen_n and (arg.by_value or arg.role == "output"):
            parts.append("int32_t n")
            seen_n = True
        if arg.by_value:
            parts.append(f"{arg.type.dtype.c} {arg.c_name}")
        else:
            parts.append(f"{'' if arg.role == 'output' else 'const '}{arg.type.dtype.c} *{arg.c_name}")
    return _wrapped(f"int {entry.c_name}({', '.join(parts)})")


def _wrapped(text: str) -> str:
    """A statement cut into lines of at most WIDTH columns, at its blanks; what follows is set in by eight."""
    return "\n".join(textwrap.wrap(text, WIDTH - 4, subsequent_indent=" " * 8, break_on_hyphens=False))


def _doc(entry: Entry) -> str:
    what = {
        "train_step": "One step of training on n samples; loss is that before the update.",
        "accumulate": "Adds the gradients of n samples to those that wait for apply; loss is theirs.",
        "apply": "One step of training by the gradients that were accumulated, which are cleared.",
        "predict": "Evaluation; leaves the weights as they are.",
        "predict_averaged": "Evaluation with the averages of the weights.",
    }.get(entry.name, "Outputs must not overlap inputs.")
    shapes = ", ".join(f"{a.c_name}{_dims(a)}" for a in entry.args if a.type.shape)
    n = f"; {entry.least_n} <= n <= the batch" if entry.takes_n else ""
    text = " ".join(["/*", what, *([shapes + n] if shapes else [])]) + "\0*/"  # its end never stands alone
    lines = textwrap.wrap(text, WIDTH, subsequent_indent=" * ", break_on_hyphens=False)
    return "\n".join(lines).replace("\0", " ")


def _dims(arg: Arg) -> str:
    return "[" + "][".join(c_syntax.extent(d) for d in arg.type.shape) + "]"


def _checks(entry: Entry, program: Program) -> list[str]:
    """What every call tests: pointers, and the number of samples."""
    prefix = program.name.upper()
    pointers = ["t", *(a.c_name for a in entry.args if not a.by_value)]
    used = {v for n in topological(entry.plan.graph.roots) for v in n.operands}
    lines = [f"(void){a.c_name};" for a in entry.args if a.by_value and a.value not in used]
    missing = _wrapped(f"if ({' || '.join(f'{p} == NULL' for p in pointers)}) {{").split("\n")
    lines += [*missing, f"    return {prefix}_ERR_NULL;", "}"]
    if entry.takes_n:
        lines += [
            f"if (n < {entry.least_n} || n > {prefix}_BATCH) {{",
            f"    return {prefix}_ERR_BATCH;",
            "}",
        ]
    return lines


def _looks(entry: Entry, program: Program) -> list[str]:
    """What a step looks through before it begins: labels out of range, and inputs that are not finite."""
    prefix = program.name.upper()
    lines: list[str] = []
    for a in entry.args:
        if a.classes is not None and not (a.type.dtype.name == "u8" and a.classes >= 256):
            lines += _range_check(a, prefix)
    if entry.plan.graph.guard is not None:
        for a in entry.args:
            if a.role == "input" and a.type.dtype.kind == "f":
                lines += _finite_check(a, prefix)
    return lines


def _refusal(test: str, status: str) -> list[str]:
    return [*_wrapped(f"if ({test}) {{").split("\n"), f"    return {status};", "}"]


def _finite_check(arg: Arg, prefix: str) -> list[str]:
    place = f"&{arg.c_name}" if arg.by_value else arg.c_name
    return _refusal(
        f"!ag_all_finite({place}, {c_syntax.extent(product(arg.type.shape))})", f"{prefix}_ERR_INPUT"
    )


def _range_check(arg: Arg, prefix: str) -> list[str]:
    count = c_syntax.extent(product(arg.type.shape))
    test = f"{arg.c_name}[i] >= {arg.classes}"
    if arg.type.dtype.kind == "i":
        test = f"{arg.c_name}[i] < 0 || {test}"
    if arg.ignored is not None:
        test = f"{arg.c_name}[i] != {arg.ignored} && ({test})"
    if count == "1":
        return [
            f"if ({test.replace('[i]', '' if arg.by_value else '[0]')}) {{",
            f"    return {prefix}_ERR_LABEL;",
            "}",
        ]
    inner = [f"    if ({test}) {{", f"        return {prefix}_ERR_LABEL;", "    }"]
    return [f"for (int32_t i = 0; i < {count}; i++) {{", *inner, "}"]


def _aligned(pointers: Sequence[Pointer]) -> list[str]:
    width = max((len(p.text) for p in pointers), default=0)
    return [f"{p.text:<{width}} /* {p.comment} */" for p in pointers]


# Constants


def constant_tables(
    plans: Iterable[EntryPlan], taken: Iterable[str] = ()
) -> tuple[list[Table], dict[Value, str]]:
    """Constant arrays that are too large to be written into expressions; `taken` are the names of arguments."""
    scope, tables, names = Scope(taken), [], {}
    seen: dict[bytes, str] = {}
    for plan in (p for outer in plans for p in outer.all_plans()):
        for node in topological(plan.graph.roots):
            if node.op is CONST and node.attrs["value"].size > 1:
                v = node.results[0]
                key = node.attrs["value"].tobytes() + v.type.dtype.name.encode()
                if key not in seen:
                    seen[key] = scope.fresh("table")
                    tables.append(table(seen[key], node.attrs["value"], v.type.dtype))
                names[v] = seen[key]
    return tables, names
