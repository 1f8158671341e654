"""The passes: text before and after on small graphs, the same meaning on random ones, the verifier, and long chains."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from call_count import growth
from equivalence import preserves
from generated_c import program_of
from graph_stages import rewritten
from hypothesis import given, settings
from hypothesis import strategies as st
from random_functions import Case, random_function
from random_models import random_model
from small_graphs import float_state, inputs_of, x_of

from autodiff_gen import functional as F
from autodiff_gen import passes
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.build import apply, apply_node, constant
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.node import OPS, Value, topological
from autodiff_gen.ir.printer import show
from autodiff_gen.passes.calls.fuse_optimizer import fuse_optimizer
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.fusion.groups import LARGEST_GROUP
from autodiff_gen.passes.layout.copy_insertion import copy_insertion
from autodiff_gen.passes.layout.store_in_order import store_in_order
from autodiff_gen.passes.simplify.cse import cse
from autodiff_gen.passes.simplify.fold_constants import fold_constants

# Text before -> after


@dataclass
class Row:
    name: str
    step: passes.Pass
    make: Callable[[], tuple[dict[str, Value], dict[State, Value]]]
    after: str


def _folded() -> tuple[dict[str, Value], dict[State, Value]]:
    x = x_of(2, 3)
    return {"y": x * (constant(2.0) * 0.25) + F.broadcast_to(constant(1.0), (2, 3)) * F.neg(F.neg(x))}, {}


def _folded_arrays() -> tuple[dict[str, Value], dict[State, Value]]:
    row, column = constant([[1.0, 2.0, 4.0]]), constant([[1.0], [2.0]])
    return {"y": x_of(2, 3) * (1.0 / F.sqrt(row) * row) + F.exp(row), "z": x_of(2, 3) * (row * column)}, {}


def _negations() -> tuple[dict[str, Value], dict[State, Value]]:
    a, b = x_of(2, name="a"), x_of(2, name="b")
    return {"v": a + F.neg(b), "w": F.neg(a) + b, "x": a - F.neg(b), "y": F.neg(a) - b}, {}


def _not_folded() -> tuple[dict[str, Value], dict[State, Value]]:
    return {"y": apply("exp", constant(1.0)) * x_of(2)}, {}


def _views_of_a_number() -> tuple[dict[str, Value], dict[State, Value]]:
    return {"y": x_of(3, 2) + F.unsqueeze(F.reshape(F.broadcast_to(2.0, (6,)), (3, 2)), 0)[0]}, {}


def _integers_with_themselves() -> tuple[dict[str, Value], dict[State, Value]]:
    i, x = F.to(x_of(3), "s32"), x_of(3)
    return {"y": F.where(F.gt(i, i), x, 1.0), "z": F.where(F.gt(x, x), x, 1.0)}, {}


def _common() -> tuple[dict[str, Value], dict[State, Value]]:
    x = x_of(2)
    return {"y": F.tanh(x * 2.0) + F.tanh(x * 2.0)}, {}


def _unread() -> tuple[dict[str, Value], dict[State, Value]]:
    return {"y": apply_node("max_with_index", x_of(2, 3), axes=(1,), keepdim=False).results[0]}, {}


def _sums() -> tuple[dict[str, Value], dict[State, Value]]:
    x = x_of(2, 3)
    return {"y": x / F.sum(x, 1, keepdim=True), "z": F.sum(x, 1)}, {}


def _transposed() -> tuple[dict[str, Value], dict[State, Value]]:
    a, b = x_of(2, 3, name="a"), x_of(3, 4, name="b")
    return {"y": F.matmul(a, b).T, "z": a.T.T}, {}


def _sgd(extra: float | None = None) -> tuple[dict[str, Value], dict[State, Value]]:
    s, w = float_state("w", 2, 3)
    a, b, lr = x_of(2, 4, name="a"), x_of(4, 3, name="b"), x_of(name="lr")
    g = F.matmul(a, b)
    return {}, {s: w - lr * (g if extra is None else g + extra * w)}


def _row_for_all() -> tuple[dict[str, Value], dict[State, Value]]:
    s, w = float_state("w", 2, 3)
    return {}, {s: w - F.matmul(x_of(1, 4, name="a"), x_of(4, 3, name="b"))}


def _momentum() -> tuple[dict[str, Value], dict[State, Value]]:
    s, v = float_state("v", 2, 3)
    return {}, {s: 0.5 * v + F.matmul(x_of(2, 4, name="a"), x_of(4, 3, name="b"))}


def _with_momentum() -> tuple[dict[str, Value], dict[State, Value]]:
    (s, w), (u, v) = float_state("w", 4, 8), float_state("v", 4, 8)
    new = 0.5 * v + F.matmul(x_of(4, 3, name="a"), x_of(3, 8, name="b"))
    return {}, {u: new, s: w - x_of(name="lr") * new}


def _leaf_out() -> tuple[dict[str, Value], dict[State, Value]]:
    s, w = float_state("w", 2)
    return {"y": w}, {s: w + 1.0}


ROWS = (
    Row(
        "exact arithmetic on constants",
        fold_constants,
        _folded,
        "%1 = mul(x, 0.5) | %2 = add(%1, x) | y <- %2",
    ),
    Row(
        "exact arithmetic on arrays of constants, to none that is larger",
        fold_constants,
        _folded_arrays,
        "%0 = const() | %1 = mul(x, %0) | %2 = const() | %3 = exp(%2) | %4 = add(%1, %3) | %5 = const() "
        "| %6 = mul(%2, %5) | %7 = mul(x, %6) | y <- %4 | z <- %7",
    ),
    Row(
        "signs of terms",
        fold_constants,
        _negations,
        "%0 = sub(a, b) | %1 = sub(b, a) | %2 = add(a, b) | %3 = neg(a) | %4 = sub(%3, b) | "
        "v <- %0 | w <- %1 | x <- %2 | y <- %4",
    ),
    Row("exp is left to the board", fold_constants, _not_folded, "%1 = exp(1.0) | %3 = mul(%1, x) | y <- %3"),
    Row("views of a number", fold_constants, _views_of_a_number, "%1 = add(x, 2.0) | y <- %1"),
    Row(
        "integers compared with themselves",
        fold_constants,
        _integers_with_themselves,
        "%0 = where(False, x, 1.0) | %1 = gt(x, x) | %2 = where(%1, x, 1.0) | y <- %0 | z <- %2",
    ),
    Row(
        "common values",
        cse,
        _common,
        "%2 = mul(x, 2.0) | %3 = tanh(%2) | %4 = add(%3, %3) | y <- %4",
    ),
    Row("index that nothing reads", cse, _unread, "%1 = amax(x, axes=(1,), keepdim=False) | y <- %1"),
    Row(
        "sums with and without their axis",
        cse,
        _sums,
        "%1 = sum(x, axes=(1,), keepdim=True) | %2 = div(x, %1) | %3 = reshape(%1, shape=(2,)) | y <- %2 | z <- %3",
    ),
    Row(
        "transposed product",
        store_in_order,
        _transposed,
        "%2 = permute(b, dims=(1, 0)) | %3 = permute(a, dims=(1, 0)) | %4 = matmul(%2, %3) | y <- %4 | z <- a",
    ),
    Row("SGD", fuse_optimizer, _sgd, "%4 = accumulate(a, b, w, lr, beta=1.0, negate=True) | w' <- %4"),
    Row(
        "weight decay is an epilogue",
        fuse_optimizer,
        lambda: _sgd(0.125),
        "%4 = matmul_rows(a, b) | %6 = mul(0.125, w) "
        "| %7 = add(%4, %6) | %8 = mul(lr, %7) | %9 = sub(w, %8) | w' <- %9",
    ),
    Row(
        "momentum",
        fuse_optimizer,
        _momentum,
        "%4 = accumulate(a, b, v, 1.0, beta=0.5, negate=False) | v' <- %4",
    ),
    Row(
        "a weight reads its momentum from memory",
        fuse_optimizer,
        _with_momentum,
        "%4 = accumulate(a, b, v, 1.0, beta=0.5, negate=False) | %7 = reshape(%4, shape=(32,)) "
        "| %9 = reshape(w, shape=(32,)) | %10 = axpby(%7, %9, lr, beta=1.0, negate=True) "
        "| %11 = reshape(%10, shape=(4, 8)) | v' <- %4 | w' <- %11",
    ),
    Row(
        "a row that is added to all",
        fuse_optimizer,
        _row_for_all,
        "%3 = matmul(a, b) | %4 = sub(w, %3) | w' <- %4",
    ),
    Row(
        "an output that is a state",
        copy_insertion,
        _leaf_out,
        "%1 = copy(w) | %3 = add(w, 1.0) | y <- %1 | w' <- %3",
    ),
)


def numbered(text: str) -> list[str]:
    """Lines with their values numbered in the order in which they appear."""
    names: dict[str, str] = {}
    text = re.sub(r"%\d+", lambda m: names.setdefault(m[0], f"%{len(names)}"), text)
    return text.split(" | ")


def shown(graph: Graph) -> list[str]:
    """The graph's nodes and roots without their types."""
    lines = [re.sub(r"(%\d+): \S+\[[^]]*\]", r"\1", line.strip()) for line in show(graph).splitlines()[1:]]
    return numbered(" | ".join(lines))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_text_before_and_after(row: Row) -> None:
    outputs, updates = row.make()
    graph = Graph("g", inputs_of(outputs, updates), outputs, updates)
    assert shown(row.step(graph, Context())) == numbered(row.after)


def test_a_mask_of_an_integer_and_itself_that_compares_nothing_stays() -> None:
    q, op = F.quantize(x_of(3), 0.1, 3), OPS["add_within_s8"]
    outputs = {"y": apply(op.name, q, q, **op.samples[0].attrs)}
    graph = fold_constants(Graph("g", inputs_of(outputs, {}), outputs, {}), Context())
    assert graph.roots[0].node.op is op


# Meaning on random graphs


@settings(max_examples=60)
@given(st.integers(0, 2**32 - 1), st.integers(3, 30))
def test_meaning_is_kept_on_random_graphs(seed: int, size: int) -> None:
    case = random_function(seed, size)
    if case.is_tame():
        preserves(case)


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.integers(3, 20))
def test_meaning_is_kept_on_random_models(seed: int, size: int) -> None:
    case = random_model(seed, size)
    if case.is_tame():
        preserves(case)


# Size


def chain(length: int) -> tuple[Value, Value]:
    x = x_of(2)
    y = x
    for k in range(length):
        y = apply("sin" if k % 2 else "tanh", y)
    return x, F.sum(y)


@pytest.mark.slow
def test_a_chain_of_100_000_nodes_is_differentiated() -> None:
    x, y = chain(100_000)
    assert grad(y, x).type == x.type


def test_differentiating_a_chain_of_functions_is_linear_work() -> None:
    def work(length: int) -> Callable[[], Any]:
        x, y = chain(length)
        return lambda: grad(y, x)

    assert growth(work, 1000) < 2.1


def long_chain(length: int, gradient: bool) -> Graph:
    x = x_of(4, 8)
    y = x
    for k in range(length):
        y = apply(("tanh", "sigmoid", "sin")[k % 3], y)
    outputs = {"y": F.sum(y)}
    return Graph("g", (x,), {**outputs, "dx": grad(outputs["y"], x)} if gradient else outputs)


def windows_of_windows(length: int) -> Graph:
    x, w = x_of(length + 4, 8), x_of(8, 8, name="w")
    y = F.relu(F.matmul(x, w))
    for _ in range(length):
        y = y[1:]
    return Graph("g", (x, w), {"y": F.sum(F.matmul(y, w))})


@pytest.mark.parametrize("chain_of", [partial(long_chain, gradient=False), windows_of_windows])
def test_passes_do_not_recurse_along_the_graph(chain_of: Callable[[int], Graph]) -> None:
    graph = chain_of(1200)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(min(limit, 600))
    try:
        graph = rewritten(graph)
    finally:
        sys.setrecursionlimit(limit)
    assert show(graph).startswith("entry g(")


@pytest.mark.parametrize(("length", "gradient"), [(250, False), (100, True)])
def test_compiling_a_long_chain_is_nearly_linear_work(length: int, gradient: bool) -> None:
    def work(length: int) -> Callable[[], Any]:
        case = Case(long_chain(length, gradient), {})
        return lambda: program_of(case, "g")

    assert growth(work, length) < 2.2


def test_fusion_is_capped() -> None:
    graph = rewritten(long_chain(200, gradient=False))
    fused = [n for n in topological(graph.roots) if n.regions]
    sizes = [sum(1 for m in topological(n.regions[0].results) if m.operands) for n in fused]
    assert sum(sizes) >= 200
    assert max(sizes) <= LARGEST_GROUP
