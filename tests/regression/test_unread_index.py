"""F.max, when only its values are used: the index was computed, and compilers warned that nothing reads it."""

from __future__ import annotations

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.codegen.files import emit


def test_no_index_is_computed() -> None:
    x = ag.Input("x", (2, 3))
    text = emit(compile_function(ag.function([x], [F.max(x, 1)[0]]), "f"))["f.c"]
    assert "int32_t reduced_index" not in text
    text = emit(compile_function(ag.function([x], [F.max(x, 1)[1]]), "f"))["f.c"]
    assert "int32_t reduced_index" in text
