"""Graphs that every pass must survive: a weight used twice or transposed, states that swap, readers of the old and
of the new, and the optimizers' rules.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from random_functions import Case
from small_graphs import float_state, inputs_of, x_of

from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.build import constant
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.node import STATE, Value
from autodiff_gen.ir.types import Dim

# outputs, updates, and the states that must be copied
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


def swapped_matrices_transposed() -> Made:
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


def scale_read_after_its_gradient() -> Made:
    """As in BatchNorm: the gradient of the input needs the sum that is the scale's gradient."""
    s, w = float_state("w", 4)
    x, lr = x_of(Dim(1, 3), 4), x_of(name="lr")
    g = F.sum(x * w, 0)
    return {"y": x * w - g}, {s: w - lr * F.sum(x * x, 0) * g}, []


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
        shared_weight, weight_seen_three_ways, swapped, swapped_matrices_transposed, three_in_a_circle,
        old_and_new_read,
        view_of_updated_state, transposed_in_place, symmetrised, divided_by_its_sum, jacobi, jacobi_products,
        product_with_itself, scale_read_after_its_gradient, sgd_momentum, weight_decay, adam, normalised_gradient,
    )
}  # fmt: skip
SURVIVORS["shared_momentum"] = lambda: sgd_momentum(shared=True)
SURVIVORS["shared_adam"] = lambda: adam(shared=True)


def survivor(name: str) -> tuple[Case, list[str]]:
    """The graph with numbers for its inputs and states, and the states that must be copied."""
    outputs, updates, kept = SURVIVORS[name]()
    inputs = inputs_of(outputs, updates)
    graph = Graph("train_step", inputs, outputs, updates)
    numbers = np.random.default_rng(7)
    feeds: dict[Value, Any] = {}
    states: dict[State, Any] = {}
    for v in inputs:
        shape = tuple(d.cap if isinstance(d, Dim) else d for d in v.shape)
        feeds[v] = numbers.uniform(-1, 1, shape).astype("float32") if shape else np.float32(0.1)
    for v in graph.leaves(STATE):
        feeds[v] = states[v.node.attrs["state"]] = v.node.attrs["state"].init.array()
    for s in updates:
        states.setdefault(s, s.init.array())
    return Case(graph, feeds, states, 0), kept
