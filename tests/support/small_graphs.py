"""Small graphs for tests, and numbers to feed them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from autodiff_gen import init
from autodiff_gen.ir.build import make_input, make_state
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.node import INPUT, STATE, Value
from autodiff_gen.ir.types import Type, bound, f32


def graph_of(
    outputs: Mapping[str, Value], updates: Mapping[State, Value] | None = None, inputs: Sequence[Value] = ()
) -> Graph:
    return Graph("g", tuple(inputs), dict(outputs), dict(updates or {}))


def feeds_of(graph: Graph, seed: int = 0) -> dict[Value, Any]:
    """Random arrays for every input and state of a graph, at the largest batch."""
    numbers = np.random.default_rng(seed)
    out: dict[Value, Any] = {}
    for v in [*graph.inputs, *(u for u in graph.leaves(STATE) if u not in graph.inputs)]:
        shape = bound(v.shape, None)
        if v.dtype.kind == "f":
            out[v] = np.float32(0.1) if v.name == "lr" else numbers.uniform(-1, 1, shape).astype("float32")
        else:
            out[v] = numbers.integers(0, v.node.attrs.get("classes", 2), shape).astype(v.dtype.numpy)
    return out


def float_state(name: str, *shape: int, seed: int = 0) -> tuple[State, Value]:
    numbers = np.random.default_rng([seed, len(name), *map(ord, name)])
    state = State(name, Type(f32, shape), init.Given(numbers.uniform(-1, 1, shape).astype("float32")))
    return state, make_state(state)


def x_of(*shape: Any, name: str = "x") -> Value:
    return make_input(name, Type(f32, shape))


def inputs_of(outputs: dict[str, Value], updates: dict[State, Value]) -> tuple[Value, ...]:
    graph = Graph("g", (), outputs, updates)
    return tuple(graph.leaves(INPUT))
