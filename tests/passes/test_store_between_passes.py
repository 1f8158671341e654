"""Values that a loop nest reads before and after a sum of them: where they reuse the buffer of an operand, and
that the C computes the results of the graph."""

from __future__ import annotations

import re
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
ROWS, INNER, COLUMNS = 24, 16, 64


def compiled(make: Make, name: str = "stm32") -> tuple[ag.Function, Program]:
    """A function of a product and a mask, both [ROWS,COLUMNS], that are computed by kernels or given."""
    a, b = ag.Input("a", (ROWS, INNER)), ag.Input("b", (INNER, COLUMNS))
    mask = ag.Input("mask", (ROWS, COLUMNS))
    outputs = make(a @ b, mask)
    function = ag.function([a, b, mask], outputs if isinstance(outputs, list) else [outputs], name="f")
    return function, compile_functions([function], "m", ["ref"], board.load(name))


def body(program: Program) -> str:
    text = " ".join(emit(program)["m.c"].split())
    return text[text.index("/* 1 ") : text.index("return M_OK")]


def centred(d: Any, mask: Any) -> Any:
    """A gradient masked as ReLU6's is, without its mean of each column."""
    masked = F.where((mask <= 0.0) | (mask >= 6.0), 0.0, d)
    return masked - masked.mean(0)


def plain(d: Any, mask: Any) -> Any:
    """Nothing is computed twice."""
    return d - d.mean(0)


def read_elsewhere(d: Any, mask: Any) -> Any:
    """The operand is needed as it was."""
    return [centred(d, mask), d]


def read_once(d: Any, mask: Any) -> Any:
    """The second pass reads something else."""
    masked = F.where(mask <= 0.0, 0.0, d)
    return mask - masked.mean(0)


def for_a_kernel(d: Any, mask: Any) -> Any:
    """A kernel reads the result of the second pass, which needs memory too."""
    return centred(d, mask) @ (0.001 * mask).T


def plain_for_a_kernel(d: Any, mask: Any) -> Any:
    return plain(d, mask) @ (0.001 * mask).T


def activation_beside(d: Any, mask: Any) -> Any:
    """Kernels read the activation that the mask compares, and the results of the second pass."""
    m = 0.05 * mask
    x = m @ (m.T @ m)
    y = F.relu6(x)
    masked = F.where((y <= 0.0) | (y >= 6.0), 0.0, d)
    return [0.0005 * (masked - x * masked.mean(0)) @ m.T, y.T @ m]


def stored(program: Program) -> bool:
    """Whether the masked gradient is stored; its mask is computed once then."""
    text = body(program)
    return text.count(">= 6.0f") - text.count(">= 6.0f ? 6.0f") == 1


def loops_over_rows(program: Program) -> int:
    return len(re.findall(r"for \(int32_t (\w) = 0; \1 < 24; \1\+\+\)|AG_BLOCK_ROWS\(\w, 24,", body(program)))


def test_the_value_takes_the_place_of_its_operand() -> None:
    _, program = compiled(centred)
    assert stored(program)
    assert loops_over_rows(program) == 2, "it is stored while it is added up"
    _, without_a_mask = compiled(plain)
    assert program.arena_words <= without_a_mask.arena_words


def test_the_result_of_the_second_pass_takes_its_place_in_turn() -> None:
    _, program = compiled(for_a_kernel)
    assert stored(program)
    _, without_a_mask = compiled(plain_for_a_kernel)
    assert program.arena_words <= without_a_mask.arena_words


def test_an_activation_that_is_stored_beside_it_takes_no_place_of_it() -> None:
    _, program = compiled(activation_beside)
    assert stored(program)
    assert loops_over_rows(program) == 2, "the activation joins the loops of the sum"


def test_a_value_that_would_need_memory_is_computed_again() -> None:
    assert not stored(compiled(read_elsewhere)[1])


@pytest.mark.cc
@pytest.mark.parametrize("make", [centred, plain, read_elsewhere, read_once, for_a_kernel, activation_beside])
@pytest.mark.parametrize("name", ["stm32", "host"])
def test_the_result_is_that_of_the_graph(make: Make, name: str, rng: np.random.Generator) -> None:
    function, program = compiled(make, name)
    scales = (
        0.5,
        0.5,
        4.0,
    )  # of the factors, whose product is near 1, and of the mask, on both sides of its limits
    feeds = {
        v: (scale * rng.normal(size=v.shape)).astype(np.float32)
        for v, scale in zip(function.graph.inputs, scales, strict=True)
    }
    expected = evaluate(list(function.graph.outputs.values()), feeds, 1)
    (entry,) = program.entries
    got = Running(library_of([program]), program).call(entry, feeds, 1)
    for a, b in zip(got.values(), expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=2e-6)
