"""A product that is only read through a permute is stored in its order, without a copy, where kernels can write it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from generated_c import Running, library_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.interpreter import evaluate

A, B = (3, 4, 9, 10), (3, 4, 10, 8)


def heads(a: Any, b: Any) -> Any:
    return F.permute(F.matmul(a, b), (0, 2, 1, 3))


# an expression of [3,4,9,10] and [3,4,10,8], the shape in which it is read, and the copies that it needs
ROWS = {
    "heads": (heads, (27, 32), 0),
    "tokens first": (lambda a, b: F.permute(F.matmul(a, b), (2, 0, 1, 3)), (9, 96), 0),
    "columns before heads": (lambda a, b: F.permute(F.matmul(a, b), (0, 3, 1, 2)), (24, 36), 0),
    "one sample": (lambda a, b: F.permute(F.reshape(F.matmul(a, b)[:1], (4, 9, 8)), (1, 0, 2)), (9, 32), 0),
    "one matrix": (lambda a, b: F.permute(F.reshape(F.matmul(a, b), (12, 9, 8)), (1, 0, 2)), (9, 96), 0),
    "neither rows nor columns": (lambda a, b: F.permute(F.matmul(a, b), (2, 0, 3, 1)), (27, 32), 1),
    "read in both orders": (lambda a, b: heads(a, b) + F.reshape(F.matmul(a, b), (3, 9, 4, 8)), (27, 32), 1),
}


@pytest.mark.cc
@pytest.mark.parametrize("name", ROWS)
def test_products_are_stored_in_the_order_in_which_they_are_read(name: str) -> None:
    compute, shape, copies = ROWS[name]
    a, b, c = ag.Input("a", A), ag.Input("b", B), ag.Input("c", (shape[1], 16))
    y = F.matmul(F.reshape(compute(a, b), shape), c)
    function = ag.function([a, b, c], [y], name="f")
    program = compile_function(function, "f")
    text = emit(program)["f.c"]
    assert text.count("permute(") == copies, text
    random = np.random.default_rng(3)
    feeds = {v: random.standard_normal(v.type.shape).astype(np.float32) for v in (a, b, c)}
    running = Running(library_of([program], "-O0"), program)
    (got,) = running.call(program.entries[0], feeds, 1).values()
    (wanted,) = evaluate([y], feeds, 1)
    np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-4)


def test_products_read_parts_of_a_sum_where_it_is_stored() -> None:
    """Parts are not computed apart where only products read them; they are where a loop reads them."""
    x, w, bias = ag.Input("x", (16, 24)), ag.Input("w", (24, 48)), ag.Input("bias", (48,))
    a, b = F.chunk(F.matmul(x, w) + bias, 2, 1)
    by_products = compile_function(ag.function([x, w, bias], [F.matmul(a, F.transpose(b, 0, 1))]), "f")
    by_loop = compile_function(ag.function([x, w, bias], [F.sigmoid(a) * b]), "f")
    assert [len(p.entries[0].plan.steps) for p in (by_products, by_loop)] == [2, 2]
    assert ".bias = bias" in emit(by_products)["f.c"]
    assert ".bias = bias" not in emit(by_loop)["f.c"]
