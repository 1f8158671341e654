"""Selections of what products compute are moved onto their operands, through all ops that compute an element of those
at the same index."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE, Value
from autodiff_gen.ir.op_kinds import Call, Contraction
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.parts.selection_propagation import selection_propagation


def product(x: Value) -> Value:
    return F.tanh(x @ ag.Param("w", np.ones((4, 5), np.float32))) * 0.5


def pooled(x: Value) -> Value:
    kernel = ag.Param("k", np.ones((5, 1, 1, 4), np.float32))
    options = {"stride": (1, 1), "padding": (0, 0, 0, 0), "dilation": (1, 1), "groups": 1}
    return F.mean(apply("conv2d", F.reshape(x, (1, 3, 2, 4)), kernel, **options), (1, 2))


def repeated(x: Value) -> Value:
    """The second result of a scan, which has another rank than the first."""
    w = ag.Param("u", np.ones((4, 5), np.float32))
    return F.scan(lambda h, row: (h + F.sum(row), F.matmul(row, w)), F.sum(x), F.reshape(x, (3, 2, 4)))[1]


@pytest.mark.parametrize(
    ("of", "columns"), [(product, 2), (pooled, 2), (repeated, None)], ids=["product", "pooled", "repeated"]
)
def test_products_are_computed_of_what_is_selected(
    of: Callable[[Value], Value], columns: int | None, rng: np.random.Generator
) -> None:
    x = ag.Input("x", (6, 4))
    y = of(x)
    y = F.index_select(y, y.ndim - 1, np.array([3, 1], np.int32))
    graph = Graph("f", (x,), outputs={"y": y})
    after = selection_propagation(graph, Context())
    products = [n.results[0].shape[-1] for n in after.of(Call, Contraction)]
    assert products == ([] if columns is None else [columns])
    feeds = {x: rng.normal(size=(6, 4)), **{v: rng.normal(size=v.shape) for v in graph.leaves(STATE)}}
    (expected,), (found,) = (evaluate(g.roots, feeds) for g in (graph, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
