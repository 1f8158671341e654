"""C for `kernels/compare`: declarations of a backend's kernels with the contract's types, and its table of rows."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels.contract import CONTRACT, MAX, STRUCTS, KernelSpec
from ..kernels.table import Kernel

DECLARATIONS = "declarations.h"


def declarations(rows: Sequence[Kernel]) -> str:
    """A header for the backend's sources, so that the compiler rejects definitions that differ from the contract."""
    head = (
        "/* Kernels under test, which report how much scratch memory they use. */",
        "#include <stdint.h>",
        "void compare_scratch_needed(int32_t bytes);",
        "#define AG_SCRATCH_NEEDED(bytes) compare_scratch_needed(bytes)",
        '#include "ag_kernels.h"',
    )
    return "\n".join([*head, *dict.fromkeys(row.declaration for row in rows), ""])


def table(rows: Sequence[Kernel], align: int = 0) -> str:
    """C that defines `compare_rows`. align: the only alignment of arrays that is tested, 0 for all."""
    lines = [f'#include "{DECLARATIONS}"', '#include "compare.h"', ""]
    lines += [f"void compare_{name}(const compare_row *row);" for name in sorted({row.name for row in rows})]
    for number, row in enumerate(rows):
        spec = CONTRACT[row.name]
        names = _names(spec)
        conditions = [f"({c.c_text(names)})" for c in row.when if c.feature is None]
        lines += _function("bool when", number, f"return {' && '.join(conditions) or 'true'};")
        scratch = row.scratch.c_text(names) if row.scratch else "0"
        lines += _function("int32_t scratch", number, f"return {scratch};")
        floats = {p.name for p in spec.params if p.ctype == "float"}
        facts = {f: "float" if f in floats else "int32_t" for f in spec.facts[:-1]}  # all but `align`
        prints = (f'compare_print_{word}("{fact}", {names[fact]});' for fact, word in facts.items())
        lines += _function("void print", number, " ".join(prints))
        called = f"(c->of_ref ? ag_{row.name}_ref : {row.symbol})({', '.join(_operands(spec))});"
        lines += _function("void call", number, called, ", const compare_call *c")
        arrays = ", ".join(f"{{'{kind}', \"{name}\"}}" for kind, name in _arrays(spec))
        lines.append(f"static const compare_array arrays_{number}[] = {{{arrays}, {{0, NULL}}}};")
    lines.append("const compare_row compare_rows[] = {")
    for number, row in enumerate(rows):
        functions = [f"{name}_{number}" for name in ("arrays", "when", "scratch", "print", "call")]
        functions.insert(3, str(row.scratch_optional).lower())
        lines.append(f"    {{{', '.join(functions)}, compare_{row.name}}},")
    lines += ["};", f"const int32_t compare_row_count = {len(rows)};"]
    lines += [f"const int32_t compare_only_alignment = {align};", ""]
    return "\n".join(lines)


def _function(name: str, number: int, body: str, more: str = "") -> list[str]:
    head = f"static {name}_{number}(const compare_attributes *f{more}) {{"
    return [head, "    (void)f;", f"    {body}", "}", ""]


def _arrays(spec: KernelSpec) -> list[tuple[str, str]]:
    """The arrays of a call, each as a letter of compare.h and a name. `multiplier` and `shift` are not among them: they
    are stored with the bias."""
    kinds = {"float": "f", "int8_t": "b", "uint8_t": "u", "int32_t": "n"}
    found = []
    for p in (p for p in spec.params if p.is_pointer and p.name not in ("multiplier", "shift")):
        kind = kinds[p.ctype.removeprefix("const ").removesuffix(" *")]
        kind = "w" if (kind, p.name) == ("n", "bias") else kind
        found.append((kind if p.ctype.startswith("const") else kind.upper(), p.name))
    return found


def _operands(spec: KernelSpec) -> list[str]:
    """C of the arguments of a call."""
    arrays = {name: kind for kind, name in _arrays(spec)}
    inputs = [name for name, kind in arrays.items() if kind in "fb"]
    own = {"multiplier": "c->multiplier", "shift": "c->shift", "alpha": "c->alpha", "beta": "c->beta"}
    by_kind = {"w": "c->bias", "u": "c->selected", "U": "c->index", "n": "c->indices"}
    words = []
    for p in spec.params:
        kind = arrays.get(p.name, "")
        if p.struct:
            words.append(f"&f->{p.struct}")
        elif p.is_epilogue or p.is_scratch:
            words.append("c->epilogue" if p.is_epilogue else "c->scratch")
        elif kind in by_kind:
            words.append(by_kind[kind])
        elif kind:
            words.append(f"({p.ctype})" + (f"c->in[{inputs.index(p.name)}]" if kind in "fb" else "c->out"))
        else:
            own_word = own.get(p.name) if p.is_pointer or p.ctype == "float" else None
            words.append(own_word or f"f->{p.name}")
    return words


def _names(spec: KernelSpec) -> dict[str, str]:
    names = {"align": "f->align"}
    for p in spec.params:
        if p.struct:
            names |= {field: f"f->{p.struct}.{field}" for field in STRUCTS[p.struct]}
        elif not p.is_pointer and not p.is_scratch:
            names[p.name] = names[f"{MAX}{p.name}"] = f"f->{p.name}"
    return names
