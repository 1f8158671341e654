"""Products that are stored in the order in which loops read them, where the board has wide vectors."""

from __future__ import annotations

import pytest
from graph_text import parsed

from autodiff_gen.ir.views import known_layout
from autodiff_gen.kernels import registry
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.layout.store_in_order import store_in_order
from autodiff_gen.targets import board

ALONE = """
    entry f(a: f32[2,16,8], b: f32[2,8,32], c: f32[2,32,16])
      %0: f32[2,16,32] = matmul(a, b)
      %1: f32[2,32,16] = permute(%0, dims=(0, 2, 1))
      %2: f32[2,32,16] = add(%1, c)
      y <- %2
"""
READ_TWICE = """
    entry f(a: f32[2,16,8], b: f32[2,8,32], c: f32[2,32,16])
      %0: f32[2,16,32] = matmul(a, b)
      %1: f32[2,32,16] = permute(%0, dims=(0, 2, 1))
      %2: f32[2,32,16] = add(%1, c)
      %3: f32[512,2] = reshape(%1, shape=(512, 2))
      %4: f32[512,2] = exp(%3)
      y <- %2
      z <- %4
"""
READ_BY_ROWS_TOO = """
    entry f(a: f32[2,16,8], b: f32[2,8,32], c: f32[2,32,16])
      %0: f32[2,16,32] = matmul(a, b)
      %1: f32[2,32,16] = permute(%0, dims=(0, 2, 1))
      %2: f32[2,32,16] = add(%1, c)
      %3: f32[2,16,32] = exp(%0)
      y <- %2
      z <- %3
"""


@pytest.mark.parametrize(
    ("text", "name", "step"),
    [
        (ALONE, "host_avx2", 1),
        (ALONE, "mps2_an386", 32),  # loads a float by each instruction, whatever the step
        (READ_TWICE, "host_avx2", 1),  # in the same order
        (READ_TWICE, "mps2_an386", 1),  # for the reshape
        (READ_BY_ROWS_TOO, "host_avx2", 32),
    ],
)
def test_elements_of_a_row_that_a_loop_reads_are(text: str, name: str, step: int) -> None:
    """... so many elements apart in memory."""
    context = Context(backends=registry.for_board(board.load(name)))
    graph = store_in_order(parsed(text), context)
    operand = graph.outputs["y"].node.operands[0]
    assert known_layout(operand).strides[-1] == step
