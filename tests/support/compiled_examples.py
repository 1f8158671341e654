"""The examples with the kernels of `ref` for any board, compiled once in each process."""

from __future__ import annotations

import functools

from checkout import ROOT

from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file

EXAMPLES = sorted(path.parent.name for path in (ROOT / "examples").glob("*/model.py"))


def compiled_anew(name: str) -> Program:
    """The program of an example, or of another model that is found by its name."""
    return compile_file(load_file(name).made, name)


compiled = functools.cache(compiled_anew)


@functools.cache
def files(name: str) -> dict[str, str]:
    """The generated files."""
    return emit(compiled(name))
