"""Products that are stored in the order in which they are read."""

from __future__ import annotations

import pytest
from graph_text import parsed

from autodiff_gen.ir.views import known_layout
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.layout.store_in_order import store_in_order

READ_ONCE = """
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


RESHAPED_AND_READ_BY_ROWS = """
    entry f(a: f32[2,16,8], b: f32[2,8,32], c: f32[2,16,32])
      %0: f32[2,16,32] = matmul(a, b)
      %1: f32[2,16,32] = add(%0, c)
      %2: f32[2,32,16] = permute(%0, dims=(0, 2, 1))
      %3: f32[512,2] = reshape(%2, shape=(512, 2))
      %4: f32[512,2] = exp(%3)
      y <- %1
      z <- %4
"""
COMPUTED_BY_LOOPS = """
    entry f(x: f32[2,12,8], w: f32[12,12])
      %0: f32[2,12,8] = exp(x)
      %1: f32[2,12,8] = neg(%0)
      %2: f32[2,8,12] = permute(%0, dims=(0, 2, 1))
      %3: f32[16,12] = reshape(%2, shape=(16, 12))
      %4: f32[16,12] = matmul(%3, w)
      y <- %1
      z <- %4
"""


@pytest.mark.parametrize(
    ("text", "step"),
    [
        (READ_ONCE, 1),
        (READ_TWICE, 1),  # in the same order
        (READ_BY_ROWS_TOO, 32),  # as many bytes in each order
        (RESHAPED_AND_READ_BY_ROWS, 16),  # the reshape would need a copy
        (COMPUTED_BY_LOOPS, 12),  # the product would need a copy
    ],
)
def test_elements_of_a_row_that_a_loop_reads_are(text: str, step: int) -> None:
    """... so many elements apart in memory."""
    graph = store_in_order(parsed(text), Context())
    operand = graph.outputs["y"].node.operands[0]
    assert known_layout(operand).strides[-1] == step


def test_joined_values_are_stored_once() -> None:
    """In the order in which a product reads them, which is the only copy."""
    graph = parsed("""
    entry f(a: f32[2,6,4], b: f32[2,6,4], w: f32[6,3])
      %0: f32[2,6,8] = assemble(a, b, shape=(2, 6, 8), starts=((0, 0, 0), (0, 0, 4)),
          steps=((1, 1, 1), (1, 1, 1)), fill=0.0)
      %1: f32[2,8,6] = permute(%0, dims=(0, 2, 1))
      %2: f32[16,6] = reshape(%1, shape=(16, 6))
      %3: f32[16,3] = matmul(%2, w)
      %4: f32[2,6,8] = exp(%0)
      y <- %3
      z <- %4
    """)
    made = store_in_order(graph, Context())
    names = [n.op.name for n in made.nodes]
    assert "copy" not in names and names.count("assemble_placed") == 1
