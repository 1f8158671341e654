"""Kernels as text: what the graph API prints before its own functions."""

import re

import pytest
from graph_api_c import COMPILERS, HEADERS, compiled

from autodiff_gen.frontends.inline_c import header_files, items, static_functions
from autodiff_gen.kernels import registry


@pytest.mark.cc
@pytest.mark.parametrize("cc", COMPILERS)
def test_every_reference_kernel_and_function_can_be_inlined_alone(cc, tmp_path):
    """Each with just the helpers that it names: nothing is missing, and nothing is unused."""
    tables = registry.load(["ref"])
    kernels = {k.symbol: [k] for k in tables.backends[-1].kernels}
    functions = {
        i.name: [] for h in header_files(tables.root) for i in items(h) if re.search(rf" {i.name}\(", i.text)
    }
    assert len(kernels) >= 7 and len(functions) >= 20
    for symbol, calls in {**kernels, **functions}.items():
        text = "\n\n".join(static_functions(calls, header_files(tables.root), [symbol]))
        includes = "".join(f"#include <{h}>\n" for h in HEADERS)
        use = f"\ntypedef void any(void);\nany *use(void);\nany *use(void) {{\n    return (any *){symbol};\n}}\n"
        compiled(cc, includes + text + use, tmp_path, "-c", name=symbol)
