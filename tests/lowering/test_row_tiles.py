"""Which elementwise loops go over blocks of columns, so that rows which they all read stay in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated_c import Running, library_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_functions
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.targets import board

Make = Callable[..., Any]


def compiled(make: Make, *shapes: tuple[int, ...], name: str = "stm32") -> tuple[ag.Function, Program]:
    """A function of inputs x0, x1, ... for a board."""
    xs = [ag.Input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    outputs = make(*xs)
    function = ag.function(xs, outputs if isinstance(outputs, list) else [outputs], name="f")
    return function, compile_functions([function], "m", ["ref"], board.load(name))


def body(program: Program) -> str:
    text = " ".join(emit(program)["m.c"].split())
    return text[text.index("/* 1 ") : text.index("return M_OK")]


def scaled(x: Any, scale: Any, shift: Any) -> Any:
    return F.relu(x * scale + shift)


@pytest.mark.parametrize(
    "make, shapes, has, has_not",
    [
        (
            scaled,
            [(9, 16), (16,), (16,)],
            [
                "for (int32_t i = 0; i < 16; i += 4) { float x1_i[4]; float x2_i[4];",
                "for (int32_t j = 0; j < 4; j++) { x1_i[j] = x1[i + j]; x2_i[j] = x2[i + j]; }",
                "AG_NOUNROLL for (int32_t j = 0; j < 9; j++) { for (int32_t k = 0; k < 4; k++)",
                "x0[j * 16 + i + k] * x1_i[k] + x2_i[k]",
            ],
            [],
        ),
        # the operands of a row's elements are computed before them
        (
            lambda x, row, y: F.where(x > 0.0, row * (F.square(y) * (1.0 - y)), 0.0),
            [(3, 3), (3,), (1,)],
            [
                "const float product = x2[0] * x2[0] * (1.0f - x2[0]); float product_i[3];",
                "product_i[i] = x1[i] * product;",
            ],
            [],
        ),
        # up to four long rows are read by blocks, more are kept
        (scaled, [(9, 64), (64,), (64,)], ["x1[j]"], ["AG_NOUNROLL"]),
        (
            lambda x, *rows: scaled(x, *rows[:2]) * rows[2],
            [(9, 64), *[(64,)] * 3],
            ["x1[j]", "x2[j]", "x3[j]"],
            ["AG_NOUNROLL"],
        ),
        # values that depend on rows only are computed for a tile
        (
            lambda x, scale, y: x * scale + (y - scale),
            [(7, 16), (16,), (16,)],
            ["x1_i[j] = x1[i + j]; difference_i[j] = x2[i + j] - x1[i + j]; }", "x1_i[k] + difference_i[k]"],
            ["x2_i"],
        ),
        # as few columns as make the end of an iteration cheap, unless the registers are for fewer
        (lambda x, scale: x * scale, [(9, 42), (42,)], ["i < 42; i += 3"], []),
        (lambda x, *rows: sum(rows, x), [(9, 64), *[(64,)] * 5], ["i < 64; i += 2"], []),
        # all of the row, around two loops
        (
            lambda x, scale: x * scale,
            [(9, 5, 3), (3,)],
            ["float x1_i[3]; for (int32_t i = 0; i < 3; i++) { x1_i[i] = x1[i]; }", "x1_i[k]"],
            ["i += "],
        ),
        # a row of another axis is read once by its own loop; without rows, or for one row, there is nothing to keep
        (lambda x, scale: x * F.unsqueeze(scale, 1), [(9, 64), (9,)], ["x1[i]"], ["x1_i["]),
        (lambda x, y: x * y, [(9, 64), (9, 64)], [], ["AG_NOUNROLL"]),
        (lambda x, scale: x * scale, [(1, 64), (64,)], [], ["AG_NOUNROLL"]),
        # registers do not outlive calls; a prime number of columns has no blocks
        (lambda x, scale: F.exp(x * scale), [(9, 64), (64,)], [], ["AG_NOUNROLL"]),
        (lambda x, scale: x * scale, [(9, 37), (37,)], [], ["AG_NOUNROLL"]),
    ],
)
def test_what_is_tiled(make: Make, shapes: list[tuple[int, ...]], has: list[str], has_not: list[str]) -> None:
    text = body(compiled(make, *shapes)[1])
    assert [h for h in has if h not in text] == [] and [h for h in has_not if h in text] == [], text


def test_vectors_read_rows_as_they_are() -> None:
    assert "AG_NOUNROLL" not in body(compiled(scaled, (9, 16), (16,), (16,), name="host_avx2")[1])


@pytest.mark.cc
def test_results_are_the_same() -> None:
    """With two statements in a loop, too."""
    shapes = [(9, 16), (16,), (16,)]

    def two(x: Any, scale: Any, shift: Any) -> Any:
        y = scaled(x, scale, shift)
        return [y * scale, y - shift]

    for make in (scaled, two):
        function, program = compiled(make, *shapes)
        numbers = np.random.default_rng(1)
        feeds = {v: numbers.normal(size=v.shape).astype("f") for v in function.graph.inputs}
        expected = evaluate(list(function.graph.outputs.values()), feeds, 1)
        assert "AG_NOUNROLL" in body(program)
        (entry,) = program.entries
        got = Running(library_of([program]), program).call(entry, feeds, 1)
        for a, b in zip(got.values(), expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
