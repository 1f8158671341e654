"""C for `kernels/compare`: declarations of a backend's kernels with the contract's types, and its table of rows."""

from __future__ import annotations

from collections.abc import Sequence

from ..kernels.contract import CONTRACT, STRUCTS, KernelSpec
from ..kernels.table import Kernel

DECLARATIONS = "declarations.h"


def declarations(rows: Sequence[Kernel]) -> str:
    """A header for the backend's sources, so that the compiler rejects definitions that differ from the contract."""
    head = (
        "/* Kernels under test, which report what they need of their scratch memory. */",
        "#include <stdint.h>",
        "void compare_scratch_needed(int32_t bytes);",
        "#define AG_SCRATCH_NEEDED(bytes) compare_scratch_needed(bytes)",
        '#include "ag_kernels.h"',
    )
    return "\n".join([*head, *dict.fromkeys(row.declaration for row in rows), ""])


def table(rows: Sequence[Kernel], align: int = 0) -> str:
    """C that defines `compare_rows`, and the only alignment of the arrays, 0 for all."""
    lines = [f'#include "{DECLARATIONS}"', '#include "compare.h"', ""]
    lines += [f"void compare_{name}(const compare_row *row);" for name in sorted({row.name for row in rows})]
    for number, row in enumerate(rows):
        spec = CONTRACT[row.name]
        names = _names(spec)
        tests = [f"({c.c_text(names)})" for c in row.when if c.feature is None]
        used = [] if tests else ["    (void)f;"]
        lines += [f"static bool when_{number}(const compare_attributes *f) {{", *used]
        lines += [f"    return {' && '.join(tests) or 'true'};", "}", ""]
        formula = row.scratch.c_text(names) if row.scratch else "0"
        lines += [f"static int32_t scratch_{number}(const compare_attributes *f) {{", "    (void)f;"]
        lines += [f"    return {formula};", "}", ""]
        floats = {p.name for p in spec.params if p.ctype == "float"}
        lines.append(f"static void print_{number}(const compare_attributes *f) {{")
        for fact in spec.facts[:-1]:  # all but `align`
            word = "float" if fact in floats else "int32_t"
            lines.append(f'    compare_print_{word}("{fact}", {names[fact]});')
        lines += ["}", ""]
    lines.append("const compare_row compare_rows[] = {")
    for number, row in enumerate(rows):
        words = (f'"{row.name}"', f'"{row.symbol}"', f"(compare_any *){row.symbol}")
        functions = (f"when_{number}", f"scratch_{number}", f"print_{number}", f"compare_{row.name}")
        lines.append(f"    {{{', '.join((*words, *functions))}}},")
    lines += ["};", f"const int32_t compare_row_count = {len(rows)};"]
    lines += [f"const int32_t compare_only_alignment = {align};", ""]
    return "\n".join(lines)


def _names(spec: KernelSpec) -> dict[str, str]:
    names = {"align": "f->align"}
    for p in spec.params:
        if p.struct:
            names |= {field: f"f->{p.struct}.{field}" for field in STRUCTS[p.struct]}
        elif not p.is_pointer and not p.is_scratch:
            names[p.name] = f"f->{p.name}"
    return names
