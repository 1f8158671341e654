"""Which fused nodes have one loop nest together: those that compute the same of operands with equal layouts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_functions, compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.ir.interpreter import evaluate

Make = Callable[[Any], Any]


def nests(program: Program) -> list[Any]:
    """The nest of each step that has one, over all entries."""
    return [step.nest for e in program.entries for step in e.plan.steps if step.nest is not None]


@pytest.mark.parametrize(
    "first, second, shape, is_one",
    [
        (lambda x: F.tanh(x) * 2.0, lambda x: F.tanh(x) * 2.0, (4, 3), True),
        (lambda x: F.tanh(x) * 2.0, lambda x: F.tanh(x) * 3.0, (4, 3), False),
        (lambda x: F.tanh(x) * 2.0, lambda x: F.sigmoid(x) * 2.0, (4, 3), False),
        (lambda x: F.tanh(x) - x, lambda x: x - F.tanh(x), (4, 3), False),
        (lambda x: F.leaky_relu(x, 0.1), lambda x: F.leaky_relu(x, 0.2), (4, 3), False),
        (lambda x: F.sum(x, 0), lambda x: F.sum(x, 1), (3, 3), False),
        (lambda x: F.sum(x, 1), lambda x: F.sum(x.T, 1), (3, 3), False),
    ],
)
def test_nodes_of_the_same_structure_share_a_nest(
    first: Make, second: Make, shape: tuple[int, ...], is_one: bool
) -> None:
    x, z = ag.Input("x", shape), ag.Input("z", shape)
    function = ag.function([x, z], [first(x), second(z)], name="f")
    found = nests(compile_functions([function], "m"))
    assert len(found) == 2
    assert (found[0] is found[1]) == is_one
    given = [np.random.default_rng(k).uniform(-2, 2, shape).astype(np.float32) for k in range(2)]
    expected = evaluate(function.graph.roots, dict(zip((x, z), given, strict=True)), float_dtype="float64")
    for y, e in zip(function.on_host(kernels="ref")(*given), expected, strict=True):
        np.testing.assert_allclose(y, e, rtol=1e-5, atol=1e-6)


def test_equal_layers_add_no_nests() -> None:
    def count(depth: int) -> int:
        layers = [layer for _ in range(depth) for layer in (nn.Linear(16, 16), nn.ReLU())]
        net = nn.Sequential(*layers)
        model = ag.Model.supervised(net, (1, 16), nn.MSELoss(), optim.Adam(lr=0.01))
        return len(set(nests(compile_model(model, "deep"))))

    assert count(24) == count(12)
