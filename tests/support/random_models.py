"""Random models for tests: states, and rules that update them, the hazards of donation among them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from random_functions import BATCH, Builder, Case, gaps

from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.build import apply, make_input
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.types import Type, f32


@dataclass
class Model:
    """What compile_model needs of a model."""

    states: tuple[State, ...]
    batch: int
    default_lr: float
    graphs: list[Graph]
    split: bool = False
    guard: str | None = None
    restore_after: int = 0
    program_id: int = 0
    stages: tuple[()] = ()
    frozen: dict[str, Any] = field(default_factory=dict)
    tied: dict[str, str] = field(default_factory=dict)

    @property
    def state_names(self) -> tuple[str, ...]:
        return tuple(s.name for s in self.states)

    def entries(self, guard: str | None = None) -> list[Graph]:
        return self.graphs


def random_model(seed: int, size: int, batch: int = BATCH) -> Case:
    """An entry train_step whose states are updated by random rules, the hazards of donation among them."""
    b = Builder(seed, batch)
    lr = make_input("lr", Type(f32, ()))
    b.inputs.append(lr)
    b.feeds[lr] = b.data[lr] = np.float32(0.05)
    x = b.input((b.n, 3))
    square = b.random.random() < 0.5
    olds = [
        b.state((3, 3) if square else (4, 3)),
        b.state((3, 3) if square else (4, 3)),
        b.state(b.random.choice(((3,), (3, 4), (4, 3), ()))),
    ]
    h = b.keep(apply("tanh", apply("matmul", x, apply("permute", olds[0], dims=(1, 0)))))
    b.keep(apply("tanh", apply("matmul", x, apply("permute", olds[1], dims=(1, 0)))) * h)
    b.grow(size)
    smooth = [v for v in b.pool if v.dtype is f32 and v.node.operands]
    loss = F.sum(F.square(apply("tanh", smooth[-1]))) + F.sum(F.square(h))
    for v in b.random.sample(smooth, min(2, len(smooth))):
        loss = loss + F.sum(F.square(apply("tanh", v)))
    updates: dict[State, Value] = {}
    gradients = grad(loss, olds)
    for old, g in zip(olds, gradients, strict=True):
        if b.random.random() < 0.9:
            _rule(b, lr, old, g, olds, updates)
    outputs = {"loss": loss}
    extras = [
        v
        for v in [*olds, *updates.values(), *(F.sum(u) for u in updates.values()), *smooth]
        if not gaps(v.shape)
    ]
    for i, v in enumerate(b.random.sample(extras, b.random.randint(0, 2))):
        outputs[f"y{i}"] = v
    guard = (None, "loss", "gradients")[seed % 3]
    graph = Graph("train_step", tuple(b.inputs), outputs, updates, guard=guard)
    return Case(graph, dict(b.feeds), {s: b.feeds[v] for s, v in _state_feeds(b)}, seed)


def _state_feeds(b: Builder) -> list[tuple[State, Value]]:
    return [(v.node.attrs["state"], v) for v in b.feeds if v.node.attrs.get("state") is not None]


def _rule(
    b: Builder, lr: Value, old: Value, g: Value, olds: list[Value], updates: dict[State, Value]
) -> None:
    state = old.node.attrs["state"]
    peers = [o for o in olds if o is not old and o.shape == old.shape]
    kinds = ["sgd", "sgd", "decay", "momentum", "nesterov", "adam", "normalised", "of_new"]
    kinds += ["swap", "mix", "mix_gradient"] if peers else []
    kinds += ["transposed", "transposed_sum"] if old.ndim == 2 and old.shape[0] == old.shape[1] else []
    kinds += ["centred"] if old.ndim == 2 else []
    kind = b.random.choice(kinds)
    if kind == "sgd":
        new = old - lr * g
    elif kind == "decay":
        new = old - lr * (g + 0.1 * old)
    elif kind in ("momentum", "nesterov", "adam"):
        m = b.state(old.shape, f"{state.name}.m")
        new_m = 0.9 * m + g
        if kind == "adam":
            v = b.state(old.shape, f"{state.name}.v")
            new_m = m + (g - m) * 0.1
            new_v = apply("square", v) * 0.9 + F.square(g) * 0.1
            updates[v.node.attrs["state"]] = new_v
            new = old - lr * (new_m / (F.sqrt(new_v) + 0.1))
        else:
            new = old - lr * (new_m if kind == "momentum" else g + 0.9 * new_m)
        updates[m.node.attrs["state"]] = new_m
    elif kind == "normalised":
        new = old / (F.sum(F.square(old)) + 1.0) - lr * g
    elif kind == "swap":
        new = b.random.choice(peers)
    elif kind == "mix":
        new = 0.75 * old + 0.25 * b.random.choice(peers)
    elif kind == "mix_gradient":
        new = b.random.choice(peers) - lr * g
    elif kind == "transposed":
        new = apply("permute", old, dims=(1, 0))
    elif kind == "transposed_sum":
        new = old * 0.5 + apply("permute", old, dims=(1, 0)) * 0.5
    elif kind == "centred":
        new = old - F.mean(old, b.random.choice((0, 1)), keepdim=True)
    else:  # reads the new value of another state
        done = [u for u in updates.values() if u.shape == old.shape]
        new = old - lr * (b.random.choice(done) if done else g)
    updates[state] = new
