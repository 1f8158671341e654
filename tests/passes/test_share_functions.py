"""Activations that share a function with their gradients: the same bits as before, from one call."""

from __future__ import annotations

import re

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.node import OPS, Value
from autodiff_gen.ir.op_kinds import Elementwise
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.simplify.share_functions import share_functions

EXPANDED = [name for name, op in OPS.items() if isinstance(op.lower, Elementwise) and op.lower.expand]
X = np.concatenate(
    [
        np.linspace(-12, 12, 997),
        np.linspace(-200, 200, 101),
        [0.0, -0.0, 1e-30, 3e38, np.inf, -np.inf, np.nan],
    ]
).astype(np.float32)


def expansion(x: Value, name: str) -> Value:
    lower = OPS[name].lower
    assert isinstance(lower, Elementwise) and lower.expand is not None
    (y,) = lower.expand((x,), {})
    return y


def test_there_are_such_activations() -> None:
    assert {"gelu", "silu"} <= set(EXPANDED)


@pytest.mark.cc
@pytest.mark.parametrize("name", EXPANDED)
def test_an_expansion_gives_the_same_bits(name: str) -> None:
    x = ag.Input("x", X.shape)
    one, other = (ag.function([x], [y]).on_host()(X)[0] for y in (apply(name, x), expansion(x, name)))
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("name", EXPANDED)
def test_an_activation_and_its_gradient_call_a_function_once(name: str) -> None:
    x = ag.Input("x", (8,))
    y = apply(name, x)
    f = ag.function([x], [y, ag.grad(F.sum(y), x)])
    text = emit(compile_function(f, "f"))["f.c"]
    lower = OPS[name].lower
    assert isinstance(lower, Elementwise)
    functions = re.findall(r"ag_\w+f\(", lower.c)
    assert functions and all(text.count(function) == 1 for function in functions), text


@pytest.mark.parametrize("name", EXPANDED)
def test_an_activation_alone_stays_whole(name: str) -> None:
    x = ag.Input("x", (8,))
    graph = Graph("f", (x,), {"y": apply(name, apply(name, x))})
    assert share_functions(graph, Context()) is graph
