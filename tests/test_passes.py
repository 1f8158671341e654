"""The passes: text before and after on small graphs, the same meaning on random ones, and the graphs that every pass
must survive.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from generated import Running, expected, library_of, poisoned, program_of
from graphs import float_state
from hypothesis import given, settings
from hypothesis import strategies as st
from random_functions import Case, close, random_function
from random_models import random_model

from autodiff_gen import functional as F
from autodiff_gen import passes
from autodiff_gen.autodiff import grad
from autodiff_gen.dtypes import Dim, Type, f32
from autodiff_gen.errors import GraphError
from autodiff_gen.ir import (
    Graph,
    State,
    Value,
    apply,
    apply_node,
    constant,
    make_input,
    make_state,
    topological,
)
from autodiff_gen.passes.cancel_layouts import cancel_layouts
from autodiff_gen.passes.common_values import common_values
from autodiff_gen.passes.fold_constants import fold_constants
from autodiff_gen.passes.fuse_updates import fuse_updates
from autodiff_gen.passes.grouping import LARGEST_GROUP
from autodiff_gen.passes.own_bytes import own_bytes
from autodiff_gen.verify import verify


def x_of(*shape: Any, name: str = "x") -> Value:
    return make_input(name, Type(f32, shape))


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


def _not_folded() -> tuple[dict[str, Value], dict[State, Value]]:
    return {"y": apply("exp", constant(1.0)) * x_of(2)}, {}


def _common() -> tuple[dict[str, Value], dict[State, Value]]:
    x = x_of(2)
    return {"y": F.tanh(x * 2.0) + F.tanh(x * 2.0)}, {}


def _unread() -> tuple[dict[str, Value], dict[State, Value]]:
    return {"y": apply_node("max_with_index", x_of(2, 3), axes=(1,), keepdim=False).results[0]}, {}


def _turned() -> tuple[dict[str, Value], dict[State, Value]]:
    a, b = x_of(2, 3, name="a"), x_of(3, 4, name="b")
    return {"y": F.matmul(a, b).T, "z": a.T.T}, {}


def _sgd(extra: float | None = None) -> tuple[dict[str, Value], dict[State, Value]]:
    s, w = float_state("w", 2, 3)
    a, b, lr = x_of(2, 4, name="a"), x_of(4, 3, name="b"), x_of(name="lr")
    g = F.matmul(a, b)
    return {}, {s: w - lr * (g if extra is None else g + extra * w)}


def _momentum() -> tuple[dict[str, Value], dict[State, Value]]:
    s, v = float_state("v", 2, 3)
    return {}, {s: 0.5 * v + F.matmul(x_of(2, 4, name="a"), x_of(4, 3, name="b"))}


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
    Row("exp is left to the board", fold_constants, _not_folded, "%1 = exp(1.0) | %3 = mul(%1, x) | y <- %3"),
    Row(
        "common values",
        common_values,
        _common,
        "%2 = mul(x, 2.0) | %3 = tanh(%2) | %4 = add(%3, %3) | y <- %4",
    ),
    Row("unread index", common_values, _unread, "%1 = amax(x, axes=(1,), keepdim=False) | y <- %1"),
    Row(
        "transposed product",
        cancel_layouts,
        _turned,
        "%2 = permute(b, dims=(1, 0)) | %3 = permute(a, dims=(1, 0)) | %4 = matmul(%2, %3) | y <- %4 | z <- a",
    ),
    Row("SGD", fuse_updates, _sgd, "%4 = accumulate(a, b, w, lr, beta=1.0, negate=True) | w' <- %4"),
    Row(
        "weight decay is an epilogue",
        fuse_updates,
        lambda: _sgd(0.125),
        "%4 = matmul_rows(a, b) | %6 = mul(0.125, w) "
        "| %7 = add(%4, %6) | %8 = mul(lr, %7) | %9 = sub(w, %8) | w' <- %9",
    ),
    Row(
        "momentum",
        fuse_updates,
        _momentum,
        "%4 = accumulate(a, b, v, 1.0, beta=0.5, negate=False) | v' <- %4",
    ),
    Row(
        "an output that is a state",
        own_bytes,
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
    lines = [re.sub(r"(%\d+): \S+\[[^]]*\]", r"\1", line.strip()) for line in str(graph).splitlines()[1:]]
    return numbered(" | ".join(lines))


def inputs_of(outputs: dict[str, Value], updates: dict[State, Value]) -> tuple[Value, ...]:
    graph = Graph("g", (), outputs, updates)
    return tuple(graph.leaves("input"))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_text_before_and_after(row: Row) -> None:
    outputs, updates = row.make()
    graph = Graph("g", inputs_of(outputs, updates), outputs, updates)
    assert shown(row.step(graph)) == numbered(row.after)


# Meaning


def preserves(case: Case) -> None:
    """Each pass keeps the value of every root, to rounding, and the verifier's rules."""
    graph = case.graph
    before = [case.values(n) for n in case.batches]
    for step in passes.PIPELINE:
        graph = step(graph)
        verify(graph)
        for n, reference in zip(case.batches, before, strict=True):
            values = case.values(n, graph=graph)
            if graph.proof is not None:
                assert np.isfinite(values.pop()), f"seed {case.seed}: no proof at n = {n}\n{case.graph}"
            for after, root in zip(values, reference, strict=True):
                assert close(after, root, 0.1), (
                    f"seed {case.seed}: {step.__name__} changes a value at n = {n}\n{case.graph}"
                )


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


# Graphs that every pass must survive: outputs, updates, and the states of which a copy must be kept

Made = tuple[dict[str, Value], dict[State, Value], list[str]]


def shared_weight() -> Made:
    s, w = float_state("w", 3, 3)
    x, lr = x_of(Dim(1, 3), 3), x_of(name="lr")
    y = F.tanh(F.matmul(F.tanh(F.matmul(x, w.T)), w.T))
    loss = F.sum(y * y)
    return {"loss": loss}, {s: w - lr * grad(loss, w)}, []


def weight_seen_three_ways() -> Made:
    s, w = float_state("w", 4, 4)
    x, lr = x_of(Dim(1, 3), 4), x_of(name="lr")
    y = (F.matmul(x, w) + F.matmul(x, w.T)) * F.sum(F.reshape(w, (2, 2, 4)), (0, 1))
    loss = F.mean(F.tanh(y))
    return {"loss": loss}, {s: w - lr * grad(loss, w)}, []


def swapped() -> Made:
    (s, a), (t, b) = float_state("a", 2, 3), float_state("b", 2, 3)
    return {}, {s: b, t: a}, ["a"]


def swapped_matrices_turned() -> Made:
    (s, a), (t, b) = float_state("a", 3, 3), float_state("b", 3, 3)
    return {}, {s: b.T, t: a.T}, ["a"]


def three_in_a_circle() -> Made:
    (s, a), (t, b), (u, c) = (float_state(k, 5) for k in "abc")
    return {"y": a + b + c}, {s: b * 2.0, t: c * 3.0, u: a * 4.0}, ["c"]


def old_and_new_read() -> Made:
    s, w = float_state("w", 2, 3)
    x, lr = x_of(Dim(1, 3), 3), x_of(name="lr")
    loss = F.sum(F.tanh(F.matmul(x, w.T)))
    new = w - lr * grad(loss, w)
    return {"old": F.matmul(x, w.T), "new": F.matmul(x, new.T), "w": w, "w2": new}, {s: new}, []


def view_of_updated_state() -> Made:
    s, w = float_state("w", 2, 3)
    t, v = float_state("v", 6)
    new = w * 0.5
    return {"y": F.reshape(new, (3, 2)), "z": w.T}, {s: new, t: F.reshape(new, (6,)) + v}, []


def transposed_in_place() -> Made:
    s, w = float_state("w", 3, 3)
    return {}, {s: w.T}, ["w"]


def symmetrised() -> Made:
    s, w = float_state("w", 3, 3)
    return {}, {s: 0.5 * (w + w.T)}, ["w"]


def divided_by_its_sum() -> Made:
    s, w = float_state("w", 3, 4)
    return {}, {s: w / F.sum(w * w), float_state("unused", 1)[0]: constant(np.zeros(1, "float32"))}, []


def jacobi() -> Made:
    (s, a), (t, b) = float_state("a", 6), float_state("b", 6)
    return {}, {s: 0.5 * a + 0.25 * b, t: 0.5 * b + 0.25 * a}, []


def jacobi_products() -> Made:
    (s, a), (t, b) = float_state("a", 3, 3), float_state("b", 3, 3)
    lr = x_of(name="lr")
    return {}, {s: a - lr * F.matmul(b, b), t: b - lr * F.matmul(a, a)}, ["a"]


def product_with_itself() -> Made:
    s, w = float_state("w", 3, 3)
    lr = x_of(name="lr")
    return {}, {s: w - lr * F.matmul(w, w)}, ["w"]


def _model_with(
    rule: Callable[[Value, Value, Value, dict[State, Value]], Value], shared: bool = False
) -> Made:
    (s, w), (t, v) = float_state("w", 4, 3), float_state("v", 2, 4)
    x, lr = x_of(Dim(1, 3), 3), x_of(name="lr")
    h = F.tanh(F.matmul(x, w.T))
    y = F.matmul(h, v.T)
    loss = F.sum(F.tanh(y)) + (F.sum(F.sin(F.matmul(x, w.T) * 0.5)) if shared else 0.0)
    updates: dict[State, Value] = {}
    for state, old, g in zip((s, t), (w, v), grad(loss, [w, v]), strict=True):
        updates[state] = rule(old, g, lr, updates)
    return {"loss": loss}, updates, []


def sgd_momentum(shared: bool = False) -> Made:
    def rule(w: Value, g: Value, lr: Value, updates: dict[State, Value]) -> Value:
        s, m = float_state(f"{w.name}.m", *w.shape)
        updates[s] = 0.9 * m + g
        return w - lr * updates[s]

    return _model_with(rule, shared)


def weight_decay() -> Made:
    return _model_with(lambda w, g, lr, updates: w - lr * (g + 0.01 * w))


def adam(shared: bool = False) -> Made:
    step, t = float_state("step")
    new_t = F.abs(t) + 1.0

    def rule(w: Value, g: Value, lr: Value, updates: dict[State, Value]) -> Value:
        (s1, m), (s2, v) = float_state(f"{w.name}.m", *w.shape), float_state(f"{w.name}.v", *w.shape)
        updates[s1] = m + (g - m) * 0.1
        updates[s2] = 0.99 * F.square(v) + 0.01 * F.square(g)
        return w - lr / new_t * (updates[s1] / (F.sqrt(updates[s2]) + 1e-2))

    outputs, updates, kept = _model_with(rule, shared)
    return outputs, {**updates, step: new_t}, kept


def normalised_gradient() -> Made:
    """No update before all gradients exist."""
    outputs, updates, kept = _model_with(lambda w, g, lr, u: w - lr * g)
    (s, a), (t, b) = updates.items()
    norm = F.sqrt(F.sum(F.square(a)) + F.sum(F.square(b)))
    return outputs, {s: a / norm, t: b / norm}, kept


SURVIVORS: dict[str, Callable[[], Made]] = {
    f.__name__: f
    for f in (
        shared_weight, weight_seen_three_ways, swapped, swapped_matrices_turned, three_in_a_circle, old_and_new_read,
        view_of_updated_state, transposed_in_place, symmetrised, divided_by_its_sum, jacobi, jacobi_products,
        product_with_itself, sgd_momentum, weight_decay, adam, normalised_gradient,
    )
}  # fmt: skip
SURVIVORS["shared_momentum"] = lambda: sgd_momentum(shared=True)
SURVIVORS["shared_adam"] = lambda: adam(shared=True)


def survivor(name: str) -> tuple[Case, list[str]]:
    outputs, updates, kept = SURVIVORS[name]()
    inputs = inputs_of(outputs, updates)
    graph = Graph("train_step", inputs, outputs, updates)
    numbers = np.random.default_rng(7)
    feeds: dict[Value, Any] = {}
    states: dict[State, Any] = {}
    for v in inputs:
        shape = tuple(d.cap if isinstance(d, Dim) else d for d in v.shape)
        feeds[v] = numbers.uniform(-1, 1, shape).astype("float32") if shape else np.float32(0.1)
    for v in graph.leaves("state"):
        feeds[v] = states[v.node.attrs["state"]] = v.node.attrs["state"].init.array()
    for s in updates:
        states.setdefault(s, s.init.array())
    return Case(graph, feeds, states, 0), kept


@pytest.mark.parametrize("name", SURVIVORS)
def test_every_pass_survives(name: str) -> None:
    preserves(survivor(name)[0])


@pytest.fixture
def large_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """No product counts as tiny."""
    monkeypatch.setattr(sys.modules["autodiff_gen.passes.inline_products"], "LARGEST", 0)


@pytest.mark.usefixtures("large_products")
@pytest.mark.parametrize("name", SURVIVORS)
def test_the_copies_are_those_that_are_needed_and_are_named(name: str) -> None:
    case, kept = survivor(name)
    (entry,) = program_of(case, "m").entries
    assert entry.plan.copies == kept


@pytest.mark.cc
@pytest.mark.parametrize("products", ["tiny_products", "large_products"])
def test_survivors_in_c(products: str, request: pytest.FixtureRequest) -> None:
    if products == "large_products":
        request.getfixturevalue(products)
    cases = {name: survivor(name)[0] for name in SURVIVORS}
    programs = {name: program_of(case, name) for name, case in cases.items()}
    with poisoned():
        library = library_of(list(programs.values()), "-O0")
    for name, case in cases.items():
        running = Running(library, programs[name])
        for n in case.batches:
            outputs, states = expected(case.graph, case.values(n))
            for state, array in case.init.items():
                running.array(state.name)[...] = array
            got = running.call(running.program.entries[0], case.at(n), n)
            for key, array in outputs.items():
                assert close(got[key], array), f"{name}, n = {n}, output {key}"
            for key, array in states.items():
                assert close(running.array(key), array), f"{name}, n = {n}, new {key}"


@pytest.mark.usefixtures("large_products")
@pytest.mark.parametrize("name", ["sgd_momentum", "weight_decay", "adam", "shared_adam"])
def test_no_gradient_of_a_weight_is_stored(name: str) -> None:
    """Products that only feed the rules of their weights are completed by rows."""
    case, _ = survivor(name)
    (entry,) = program_of(case, "m").entries
    weights = [s.type for s in case.init if len(s.type.shape) == 2]
    assert weights
    stored = [(v.type.shape, b.bytes) for b in entry.plan.placed for v in b.values]
    assert not [t for t in weights if (t.shape, t.bytes) in stored]


# The verifier


def test_the_verifier_names_what_is_wrong() -> None:
    s, w = float_state("w", 2)
    twin, other = float_state("w", 2)
    x, batch = x_of(2), x_of(Dim(1, 2), 3)
    wrong = {
        "is not among the inputs": Graph("g", (), {"y": x + 1.0}),
        "two inputs or parameters are called 'w'": Graph("g", (), {"y": w + other}),
        "new value of 'w' is": Graph("g", (), {}, {s: make_state(s) * np.ones((3, 1), "float32")}),
        "batch axis must come first": Graph("g", (batch,), {"y": F.tanh(batch).T}),
    }
    assert twin is not s
    for message, graph in wrong.items():
        with pytest.raises(GraphError, match=message):
            verify(graph)


# Size


@pytest.mark.slow
def test_a_chain_of_100_000_nodes_differentiates_in_seconds() -> None:
    x = x_of(2)
    y = x
    for k in range(100_000):
        y = apply("sin" if k % 2 else "tanh", y)
    start = time.process_time()
    dx = grad(F.sum(y), x)
    assert time.process_time() - start < 20
    assert dx.type == x.type


def long_chain(length: int, gradient: bool) -> Graph:
    x = x_of(4, 8)
    y = x
    for k in range(length):
        y = apply(("tanh", "sigmoid", "sin")[k % 3], y)
    outputs = {"y": F.sum(y)}
    return Graph("g", (x,), {**outputs, "dx": grad(outputs["y"], x)} if gradient else outputs)


def test_passes_do_not_recurse_along_the_graph() -> None:
    graph = long_chain(1200, gradient=False)
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(min(limit, 600))
    try:
        for step in passes.PIPELINE:
            graph = step(graph)
    finally:
        sys.setrecursionlimit(limit)
    assert len(str(graph)) > 1200


@pytest.mark.parametrize(("length", "gradient"), [(500, False), (200, True)])
def test_compiling_a_long_chain_takes_seconds(length: int, gradient: bool) -> None:
    case = Case(long_chain(length, gradient), {})
    start = time.process_time()
    program_of(case, "g")
    assert time.process_time() - start < 5


def test_fusion_is_capped() -> None:
    graph = passes.run(long_chain(200, gradient=False))
    fused = [n for n in topological(graph.roots) if n.regions]
    sizes = [sum(1 for m in topological(n.regions[0].results) if m.operands) for n in fused]
    assert sum(sizes) >= 200
    assert max(sizes) <= LARGEST_GROUP
