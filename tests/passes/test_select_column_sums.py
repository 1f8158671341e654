"""Which sums become calls of the kernel for sums of columns, and that results stay as they are."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from equivalence import preserves
from hypothesis import given, settings
from hypothesis import strategies as st
from random_models import random_model

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.node import Value, topological
from autodiff_gen.ir.types import Dim, Type, f32
from autodiff_gen.kernels import registry
from autodiff_gen.passes.calls.select_column_sums import select_column_sums
from autodiff_gen.passes.context import Context
from autodiff_gen.report.explain import explain
from autodiff_gen.targets import board

PASS = sys.modules["autodiff_gen.passes.calls.select_column_sums"]


def centred(x: Value) -> list[Value]:
    d = x - F.mean(x, 0)
    return [F.sum(d * d, 0)]


def stored(x: Value) -> list[Value]:
    y = F.exp(x)
    return [y, F.sum(y, 0)]


ROWS: list[tuple[str, tuple[Any, ...], Callable[[Value], list[Value]], int]] = [
    ("an input", (24, 8), lambda x: [F.sum(x, 0)], 1),
    ("of a batch that varies", (Dim(1, 32), 8), lambda x: [F.sum(x, 0)], 1),
    ("of channels", (6, 4, 1, 8), lambda x: [F.sum(x, (0, 1), keepdim=True)], 1),
    ("of the last two axes", (24, 2, 4), lambda x: [F.sum(x, 0)], 1),
    ("of a view", (6, 32), lambda x: [F.sum(F.reshape(x, (24, 8)), 0)], 1),
    ("a result", (24, 8), stored, 1),
    ("computed for the sum", (24, 8), lambda x: [F.sum(F.exp(x), 0)], 0),
    ("mean, then squares", (24, 8), centred, 1),
    ("beside another sum", (24, 8), lambda x: [F.sum(x, 0), F.sum(x * x, 0)], 0),
    ("of few rows", (4, 40), lambda x: [F.sum(x, 0)], 0),
    ("of few terms", (11, 8), lambda x: [F.sum(x, 0)], 0),
    ("of few columns", (200, 2), lambda x: [F.sum(x, 0)], 1),
    ("of one column", (200, 1), lambda x: [F.sum(x, 0)], 0),
    ("of all", (24, 8), lambda x: [F.sum(x)], 0),
    ("along rows", (24, 8), lambda x: [F.sum(x, 1)], 0),
    ("of columns with gaps between them", (8, 24), lambda x: [F.sum(x.T, 0)], 0),
    ("of a slice", (24, 16), lambda x: [F.sum(x[:, :8], 0)], 0),
]


@pytest.mark.parametrize("name, shape, make, calls", ROWS, ids=[r[0] for r in ROWS])
def test_which_sums_are_calls(
    name: str, shape: tuple[Any, ...], make: Callable[[Value], list[Value]], calls: int
) -> None:
    x = make_input("x", Type(f32, shape))
    graph = Graph("g", (x,), {f"y{i}": y for i, y in enumerate(make(x))}, {})
    after = select_column_sums(graph, Context(backends=registry.for_board(board.load("mps2_an386"))))
    assert [n.op.name for n in topological(after.roots)].count("column_sums") == calls
    assert [v.type for v in after.roots] == [v.type for v in graph.roots]


def net(optimizer: optim.Optimizer, **options: Any) -> ag.Model:
    layers = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 8))
    return ag.Model.supervised(layers, input=(16, 6), loss=nn.MSELoss(), optimizer=optimizer, **options)


def test_the_gradient_of_a_bias_is_added_to_it() -> None:
    b = board.load("mps2_an386")
    program = compile_model(net(optim.SGD(lr=0.1)), "net", ["armv7em", "ref"], b)
    call = "ag_column_sums_f32_armv7em(d_layer0_out, 24, t->layer0_bias, n, 24, -lr, 1.0f);"
    assert call in emit(program)["net.c"]
    told = "layer0_bias[24] -= lr * column_sums(d_layer0_out[n,24]) ag_column_sums_f32_armv7em (m=n n=24)"
    assert told in " ".join(explain(program, b, None, full=True).split())


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20))
def test_meaning_is_kept_when_every_sum_is_called(seed: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PASS, "sums_are_inlined", lambda *_: False)
        case = random_model(seed, size)
        if case.is_tame():
            preserves(case)


OPTIMIZERS = [optim.SGD(lr=0.1), optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.01), optim.Adam(lr=0.01)]


@pytest.mark.cc
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=["sgd", "momentum", "adam"])
@pytest.mark.parametrize("guard", [None, "loss", "gradients"])
def test_ref_gives_the_bits_of_a_loop(
    optimizer: optim.Optimizer, guard: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(5)
    x, t = rng.normal(size=(16, 6)).astype(np.float32), rng.normal(size=(16, 8)).astype(np.float32)

    def trained() -> bytes:
        trainer = net(optimizer, guard=guard).on_host(kernels="ref")
        for n in (16, 11, 16):
            trainer.train_step(x[:n], t[:n])
        return b"".join(v.tobytes() for v in trainer.state_dict().values())

    called = trained()
    monkeypatch.setattr(PASS, "sums_are_inlined", lambda *_: True)
    assert trained() == called


@pytest.mark.cc
def test_columns_that_follow_the_batch() -> None:
    """The rows are as far apart as with a full batch."""
    x = ag.Input("x", (6, 8), batch_axis=0)
    sums = ag.function([x], [F.sum(F.reshape(x, (8, x.shape[0])), 0)]).on_host()
    array = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(sums(array)[0], array.reshape(8, 4).sum(0))
