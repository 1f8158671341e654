"""Sums over one-hot vectors: which become one number, and that they are the same number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import topological
from autodiff_gen.ir.traits import is_sum
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.simplify.cse import cse
from autodiff_gen.passes.simplify.fold_one_hot_sums import fold_one_hot_sums

X = np.float32([[1.5, -2.0, 0.25], [0.0, -0.5, np.inf]])


def checked(i: Any) -> Any:
    """An index whose range the generated function checks."""
    F.one_hot(i, 3)
    return i


def hot(i: Any) -> Any:
    return F.to(F.one_hot(i, 3), "f32")


# the value of x: f32[2,3] and the index i: u8[2], and whether its sum is folded
CASES = {
    "ones": (lambda x, i: F.sum(hot(i), 1), True),
    "kept": (lambda x, i: F.sum(hot(i), -1, keepdim=True), True),
    "of a transposed vector": (lambda x, i: F.sum(F.transpose(hot(i), 0, 1), 0), False),
    "scaled": (lambda x, i: F.sum(F.where(F.one_hot(i, 3) > 0, x[:, :1], 0.0), 1), False),  # no comparison of indices
    "gradient of a choice": (lambda x, i: F.sum(ag.grad(F.sum(F.pick(x, i) * x[:, 1]), [x])[0], 1), False),
    "both axes": (lambda x, i: F.sum(hot(i)), False),
    "index out of range": (lambda x, i: F.sum(hot(F.to(x @ np.ones(3), "s32")), 1), False),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_sums(name: str) -> None:
    make, folded = CASES[name]
    x, i = ag.Input("x", (2, 3)), ag.Input("i", (2,), "u8")
    graph = Graph("f", (x, i), {"y": make(x, checked(i))})
    after = fold_one_hot_sums(graph, Context())
    assert any(is_sum(n) for n in topological(graph.roots))
    assert (not any(is_sum(n) for n in topological(after.roots))) == folded
    feeds = {x: X, i: np.uint8([2, 0])}
    for a, b in zip(evaluate(graph.roots, feeds), evaluate(after.roots, feeds), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_gradient_of_a_cross_entropy_adds_up_no_one_hot_vector() -> None:
    """One sum is that of the exponentials, one that of the losses, and one is the gradient of the bias."""
    net = nn.Sequential(nn.Linear(4, 3))
    graph = ag.Model.supervised(net, (5, 4), nn.CrossEntropyLoss(), optim.SGD(lr=0.1)).entries()[0]
    folded = fold_one_hot_sums(cse(graph, Context()), Context())
    assert len([n for n in folded.nodes if is_sum(n)]) == 3
