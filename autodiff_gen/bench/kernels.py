"""The kernel benchmark: a program that calls the kernels which a list of backends selects, and its record."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..codegen.c_printer import PRINTER
from ..codegen.call_statement import statement
from ..codegen.files import templates
from ..kernels.contract import CONTRACT, STRUCTS
from ..kernels.registry import Backends
from ..kernels.table import Kernel
from ..lowering.c import c_ast as c
from ..lowering.c import c_syntax
from ..targets.board import BoardSpec
from ..targets.installation import __version__
from .kernel_cases import Case
from .step_benchmark import count_program, measurement

SCHEMA = 1

# The value of an element by the name of its buffer, otherwise by its type; s is a random uint32_t.
VALUES = {
    "float": "(float)(s >> 8) / 16777216.0f - 0.5f",  # in [-0.5, 0.5)
    "uint8_t": "(uint8_t)(s >> 30)",  # an index in a pooling window of 2x2
    "int8_t": "(int8_t)(s >> 24)",
    "bias": "(int32_t)(s >> 20)",
    "multiplier": "(int32_t)(s >> 2 | 1u << 30)",
    "shift": "(int8_t)(-(int32_t)(s >> 30) - 8)",
}


def kernel_texts(tables: Backends, cases: Iterable[Case]) -> dict[str, str]:
    """File name -> text: kernels_bench.c, and kernels_probes.json with the calls in it."""
    chosen = [(case, tables.select(case.call.kernel, case.call.facts())) for case in cases]
    sizes: dict[tuple[str, str], int] = {}
    for case, _ in chosen:
        for key, count in _buffers(case).items():
            sizes[key] = max(count, sizes.get(key, 0))
    scratch = max(_scratch(case, kernel) for case, kernel in chosen)
    text = (
        templates()
        .get_template("kernels.c.j2")
        .render(
            version=__version__,
            declarations=list(dict.fromkeys(k.declaration for _, k in chosen if not k.declared)),
            buffers=[
                {"c_type": t, "name": name, "count": n, "value": VALUES.get(name) or VALUES[t]}
                for (t, name), n in sizes.items()
            ],
            scratch=scratch,
            calls=[_call(case, kernel) for case, kernel in chosen],
        )
    )
    listed = [{"family": c.family, "sizes": c.title, "symbol": k.symbol, "macs": c.macs} for c, k in chosen]
    return {
        "kernels_bench.c": text,
        "kernels_probes.json": json.dumps({"schema": SCHEMA, "cases": listed}, indent=1) + "\n",
    }


def _buffers(case: Case) -> dict[tuple[str, str], int]:
    """Element counts by C type and buffer name: the k-th pointers of all calls share one buffer per type. Integers
    whose values matter have one buffer per name."""
    counts = {}
    for k, p in enumerate(p for p in CONTRACT[case.call.kernel].params if p.is_pointer):
        c_type = p.ctype.removeprefix("const ").removesuffix(" *")
        name = p.name if p.name in VALUES and c_type != "float" else f"{c_type.removesuffix('_t')}_{k}"
        counts[c_type, name] = case.elements[p.name]
    return counts


def _scratch(case: Case, kernel: Kernel) -> int:
    """The bytes of scratch memory of a call."""
    return 0 if kernel.scratch is None else int(kernel.scratch(case.call.facts()))


def _call(case: Case, kernel: Kernel) -> dict[str, Any]:
    call = case.call
    pointers = [p.name for p in CONTRACT[call.kernel].params if p.is_pointer]
    buffers = (c.Name(name) for _, name in _buffers(case))
    values: dict[str, c.Expr] = dict(zip(pointers, buffers, strict=True))
    values |= {k: c_syntax.size(v) for k, v in call.sizes.items()}
    factors = {k: v for k, v in call.factors.items() if isinstance(v, float)}
    values |= {k: c.Literal(c_syntax.float_literal(v)) for k, v in factors.items()}
    table: list[str] = []
    for p in CONTRACT[call.kernel].params:
        if p.is_scratch:
            values[p.name] = c.Name("scratch" if _scratch(case, kernel) else "NULL")
        if p.struct:
            fields = ", ".join(f".{k} = {call.shape[k]}" for k in STRUCTS[p.struct])
            table = [f"static const ag_{p.struct} shape = {{{fields}}};"]
            values[p.name] = c.Unary("&", c.Name("shape"))
    return {
        "title": f"{case.family} {case.title}",
        "table": table,
        "text": PRINTER.lines([statement(call, kernel.symbol, values)]),
    }


def measure_kernels(
    board: BoardSpec, kernels: list[str], elf: Path, probes: Path, plugins: Path
) -> dict[str, Any]:
    """The record of the kernels on a board. Raises ToolError."""
    listed = json.loads(probes.read_text())["cases"]
    counted = count_program(board, elf, plugins)
    rows = [
        {**case, **measurement(counted, number, 1, case["macs"])} for number, case in enumerate(listed, 1)
    ]
    core = board.target.core
    return {
        "schema": SCHEMA, "board": board.id, "core": core, "kernels": kernels, "stack": counted.stack, "cases": rows
    }  # fmt: skip
