"""Kernels as text, which the graph API prints before its functions."""

import re

import pytest
from graph_api_c import COMPILERS, HEADERS, compiled

from autodiff_gen.frontends.inline_c import header_files, items, static_functions
from autodiff_gen.kernels import registry


@pytest.mark.cc
@pytest.mark.parametrize("cc", COMPILERS)
def test_every_reference_kernel_and_function_can_be_inlined_alone(cc, tmp_path):
    """Each with just the helpers that it names: nothing is missing, and nothing is unused. One file has all,
    and functions that are inlined for one have their names, so that they serve no other."""
    tables = registry.load(["ref"])
    headers = header_files(tables.root)
    kernels = {k.symbol: [k] for k in tables.backends[-1].kernels}
    functions = {i.name: [] for h in headers for i in items(h) if re.search(rf" {i.name}\(", i.text)}
    assert len(kernels) >= 7 and len(functions) >= 20
    parts = [f"#include <{h}>" for h in HEADERS] + ["typedef void any(void);"]
    for symbol, calls in {**kernels, **functions}.items():
        text = "\n\n".join(static_functions(calls, headers, [symbol]))
        use = f"\nany *use(void);\nany *use(void) {{\n    return (any *){symbol};\n}}\n"
        parts.append(re.sub(r"\b(ag_\w+|AG_\w+|use)\b", rf"\1_for_{symbol}", text + use))
    compiled(cc, "\n".join(parts), tmp_path, "-c", name="all")
