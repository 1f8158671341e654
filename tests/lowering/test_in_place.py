"""Calls whose result replaces their operand in the arena: depthwise convolutions of 8-bit integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import _Compiled
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value

CHANNELS = 13
RESULT = (0.04, 3)
FORMS: dict[str, tuple[int, dict[str, Any]]] = {  # the window, its options
    "of the same size": (3, {"padding": 1}),
    "smaller": (3, {"padding": 1, "stride": 2}),
    "fewer columns": (5, {"padding": (2, 0)}),
}
LARGER: tuple[int, dict[str, Any]] = (3, {"padding": 2})


def network(size: int, options: dict[str, Any], read_again: bool = False) -> tuple[Value, Value]:
    """Convolutions of 1x1, of each channel, and of 1x1: most is alive around the second. read_again: the sum at the end
    reads the operand of the second."""
    rng = np.random.default_rng(3)

    def product(x: Value, *shape: int, **options: Any) -> Value:
        w = rng.integers(-127, 128, shape).astype(np.int8)
        scales = rng.uniform(0.002, 0.01, shape[0])
        return F.quantized_conv2d(x, F.quantized_weight(w, scales), None, *RESULT, **options)

    x = ag.Input("x", (2, 2, 16, 15))
    wide = product(F.quantize(x, 0.02, -5), CHANNELS, 2, 1, 1)
    y = product(wide, CHANNELS, 1, size, size, groups=CHANNELS, **options)
    y = F.dequantize(product(y, 3, CHANNELS, 1, 1))
    return x, y + F.sum(F.dequantize(wide)) if read_again else y


def compiled(x: Value, y: Value, *kernels: str) -> tuple[Program, bool]:
    """The C program, and whether one of its calls is in place."""
    program = compile_function(ag.function([x], [y]), "f", kernels or ("ref",))
    return program, any("in_place" in kernel.name for kernel in program.entries[0].plan.kernels)


@pytest.mark.cc
@pytest.mark.parametrize("form", FORMS)
def test_bits(form: str, rng: np.random.Generator) -> None:
    """C that fills what holds no value with NaN computes the bits of NumPy."""
    x, y = network(*FORMS[form])
    program, in_place = compiled(x, y)
    assert in_place
    array = rng.uniform(-2, 2, x.shape).astype(np.float32)
    (got,) = _Compiled(program, Compiler(find_compiler()), True).run(program.entries[0], [array])
    np.testing.assert_array_equal(got, evaluate([y], {x: array})[0])


def test_where_not(tmp_path: Path) -> None:
    """A larger result, an operand that is read again, and a backend without such a kernel."""
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "kernels.toml").write_text("schema = 1\n[serves]\ndepthwise2d_s8 = []\n")
    (mine / "k.c").write_text("\nvoid ag_depthwise2d_s8_mine(void);\n")
    small = FORMS["smaller"]
    assert not compiled(*network(*LARGER))[1]
    assert not compiled(*network(*small, read_again=True))[1]
    assert not compiled(*network(*small), f"{mine}/", "ref")[1]
