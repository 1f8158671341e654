"""Values that are read as parts, sums or selected elements are computed in parts, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from graph_stages import rewritten

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE, Value
from autodiff_gen.ir.op_kinds import Assemble, Contraction, Elementwise, KernelOp
from autodiff_gen.ir.origin import is_after_loss
from autodiff_gen.ir.types import planned_size
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.demand.part_propagation import part_propagation

Function = Callable[[Value, Value], Value]


def joined_sizes(graph: Graph) -> list[int]:
    return [planned_size(n.results[0].shape) for n in graph.of(Assemble)]


def both(y: Function, rng: np.random.Generator) -> tuple[Graph, Graph]:
    """A function of two arrays before and after the pass, which compute the same."""
    a, b = ag.Input("a", (3, 4)), ag.Input("b", (3, 4))
    graph = Graph("f", (a, b), outputs={"y": y(a, b)})
    after = part_propagation(graph, Context())
    feeds = {v: rng.normal(size=v.shape) for v in (a, b)}
    (expected,), (found,) = (evaluate(g.roots, feeds) for g in (graph, after))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    return graph, after


def weights(*shape: int) -> np.ndarray:
    return np.linspace(-1, 1, int(np.prod(shape)), dtype=np.float32).reshape(shape)


@pytest.mark.parametrize(
    "y",
    [
        pytest.param(lambda a, b: F.sum(F.stack([a, b], 0), 0), id="stacked"),
        pytest.param(lambda a, b: F.mean(F.stack([a, b, a * b], -1), -1), id="last axis"),
        pytest.param(
            lambda a, b: F.sum(F.stack([a, b], 1) * F.reshape(F.softmax(F.sum(a, 0)[:2], 0), (2, 1)), 1),
            id="weighted",
        ),
        pytest.param(lambda a, b: F.sum(F.tanh(F.cat([a, b], 0)) * weights(6, 4), 0), id="joined"),
        pytest.param(lambda a, b: F.sum(F.cat([a, b], 1), (0, 1), keepdim=True), id="all axes, kept"),
        pytest.param(lambda a, b: F.sum(F.stack([a, b], 1), (0, 1)), id="two axes, parts along one of them"),
        pytest.param(
            lambda a, b: F.sum(F.permute(F.reshape(F.stack([a, b], 0), (2, 3, 4, 1)), (2, 0, 3, 1)), 1),
            id="through views",
        ),
        pytest.param(
            lambda a, b: F.sum(F.stack([F.tanh(a)[k] * (k + b[0, 0]) for k in range(3)], 0), 0),
            id="parts of one value",
        ),
        pytest.param(lambda a, b: F.sum(F.pad(a * b, (0, 0, 1, 1)), 0), id="a border of zeros"),
    ],
)
def test_nothing_is_joined(y: Function, rng: np.random.Generator) -> None:
    before, after = both(y, rng)
    assert joined_sizes(before) and not joined_sizes(after)


@pytest.mark.parametrize(
    "y",
    [
        lambda a, b: F.sum(F.flip(F.cat([a, b[:1]], 0), (0,)) * weights(4, 4), 0),
        lambda a, b: F.sum(F.cat([a, b], 0)[::2] * weights(3, 4), 0),
        lambda a, b: F.tanh(F.cat([a, b], 0))[1:5] * weights(4, 4),
    ],
)
def test_slices_of_joined_values(y: Function, rng: np.random.Generator) -> None:
    both(y, rng)


def test_sums_over_another_axis_are_joined(rng: np.random.Generator) -> None:
    before, after = both(lambda a, b: F.sum(F.square(F.cat([a, b], 1)), 0), rng)
    assert (joined_sizes(before), joined_sizes(after)) == ([24], [8])


def test_parts_of_what_is_summed_up_are_read_as_they_are(rng: np.random.Generator) -> None:
    def y(a: Value, b: Value) -> Value:
        both = F.tanh(F.stack([a, b], 0))
        return F.sum(both, 0) + both[1]

    _, after = both(y, rng)
    assert not joined_sizes(after)


def of_two_parts(joined: Value) -> Value:
    return F.sum(joined, 0) + F.sum(joined[2:5], 0)


@pytest.mark.parametrize(
    "y",
    [
        pytest.param(lambda a, b: F.matmul(F.cat([a, b], 1), weights(8, 2)), id="a product reads it"),
        pytest.param(lambda a, b: F.amax(F.stack([a, b], 0), 0), id="no sum"),
        pytest.param(lambda a, b: of_two_parts(F.cat([a, b], 0)), id="a window of two parts"),
        pytest.param(lambda a, b: F.sum(F.reshape(F.stack([a, b], 0), (4, 6)), 0), id="axes that are merged"),
        pytest.param(lambda a, b: F.sum(F.pad(a, (0, 0, 1, 1), value=2.0), 0), id="one part and a border"),
    ],
)
def test_what_is_read_in_other_ways_is_joined(y: Function, rng: np.random.Generator) -> None:
    before, after = both(y, rng)
    assert joined_sizes(after) == joined_sizes(before)


def sizes(graph: Graph, *kinds: type[Any]) -> list[int]:
    return [planned_size(n.results[0].shape) for n in graph.of(*kinds)]


def overlapping(a: Value, b: Value) -> Value:
    z = F.exp(F.cat([a, b], 1))
    return z[:, 1:3] * z[:, 2:4]


def gates(a: Value, b: Value) -> Value:
    z = F.exp(a + b)
    return F.tanh(z[:, :2]) * z[:, 2:]


@pytest.mark.parametrize(
    ("y", "largest"),
    [
        pytest.param(gates, 6, id="gates"),
        pytest.param(overlapping, 9, id="parts that overlap"),
        pytest.param(lambda a, b: F.exp(F.cat([a * 2, b * 3], 0))[1:3], 8, id="of one operand"),
        pytest.param(lambda a, b: F.cat([F.exp(a * b)[:, :1], F.exp(a * b)[:, 3:]], 1), 3, id="with a gap"),
        pytest.param(lambda a, b: F.sum(F.exp(a * b)[:2, 1:], 0), 6, id="two axes"),
    ],
)
def test_loops_compute_parts(y: Function, largest: int, rng: np.random.Generator) -> None:
    before, after = both(y, rng)
    assert max(sizes(before, Elementwise)) >= 12 > max(sizes(after, Elementwise))
    assert max(sizes(after, Elementwise)) == largest


@pytest.mark.parametrize(
    ("y", "parts"),
    [
        pytest.param(
            lambda a, b: F.cat([F.cat([a, b], 0), a * b], 0), [3], id="concatenations of concatenations"
        ),
        pytest.param(lambda a, b: F.cat([F.cat([a, b], 1)[:, 4:], a], 1), [2], id="a part of one"),
        pytest.param(lambda a, b: F.pad(a, (0, 4)) + F.pad(b, (4, 0)), [2], id="a sum of disjoint parts"),
        pytest.param(lambda a, b: F.pad(a, (0, 4)) + F.pad(b, (3, 1)), [1, 1], id="parts that overlap"),
        pytest.param(lambda a, b: F.pad(F.pad(a, (1, 1), value=1.0), (0, 2)), [1, 1], id="another number"),
    ],
)
def test_joins_are_merged(y: Function, parts: list[int], rng: np.random.Generator) -> None:
    _, after = both(y, rng)
    assert [len(n.operands) for n in after.of(Assemble)] == parts


def test_gradients_that_nothing_reads_are_not_computed() -> None:
    """An image is joined with constant coordinates, whose gradient nothing needs."""

    class Located(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(3, 4, 3, padding=1), nn.Conv2d(6, 5, 3, padding=1)
            self.head = nn.Linear(5, 3)

        def forward(self, x: Value) -> Value:
            places = F.broadcast_to(np.ones((1, 2, 6, 6), np.float32), (x.shape[0], 2, 6, 6))
            image = F.cat([F.relu(self.first(x)), places], 1)
            return self.head(F.mean(F.relu(self.second(image)), (2, 3)))

    model = ag.Model.supervised(Located(), (1, 3, 6, 6), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    graph = next(g for g in model.entries() if g.name == "train_step")
    before = {n: n.results[0].shape for n in graph.of(KernelOp) if is_after_loss(n.origin)}
    after = [
        n.results[0].shape
        for n in rewritten(graph, "part_propagation").of(KernelOp)
        if is_after_loss(n.origin)
    ]
    assert (1, 6, 6, 6) in before.values() and (1, 6, 6, 6) not in after and (1, 6, 6, 4) in after


def weighted(x: Value) -> Value:
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
    ("of", "columns"), [(weighted, 2), (pooled, 2), (repeated, None)], ids=["weighted", "pooled", "repeated"]
)
def test_products_are_computed_of_what_is_selected(
    of: Callable[[Value], Value], columns: int | None, rng: np.random.Generator
) -> None:
    x = ag.Input("x", (6, 4))
    y = of(x)
    y = F.index_select(y, y.ndim - 1, np.array([3, 1], np.int32))
    graph = Graph("f", (x,), outputs={"y": y})
    after = part_propagation(graph, Context())
    products = [n.results[0].shape[-1] for n in after.of(KernelOp, Contraction)]
    assert products == ([] if columns is None else [columns])
    feeds = {x: rng.normal(size=(6, 4)), **{v: rng.normal(size=v.shape) for v in graph.leaves(STATE)}}
    (expected,), (found,) = (evaluate(g.roots, feeds) for g in (graph, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6)


class Mixture(nn.Module):
    """Experts, and a gate that weights their outputs."""

    def __init__(self, experts: int) -> None:
        super().__init__()
        self.experts = nn.ModuleList([nn.Linear(8, 16) for _ in range(experts)])
        self.gate, self.head = nn.Linear(8, experts), nn.Linear(16, 4)

    def forward(self, x: Value) -> Value:
        outputs = F.stack([F.tanh(expert(x)) for expert in self.experts], 1)
        return self.head(F.sum(outputs * F.softmax(self.gate(x), 1)[:, :, None], 1))


def test_a_mixture_of_experts_trains_without_their_outputs_joined() -> None:
    """The gradients of the experts, and of the gate, agree with PyTorch."""
    model = ag.Model.supervised(Mixture(3), (5, 8), nn.CrossEntropyLoss(), optim.SGD(lr=0.5))
    program = compile_model(model, "mixture")
    joined = [n for entry in program.entries for n in entry.plan.graph.of(Assemble)]
    assert [n for n in joined if planned_size(n.results[0].shape) >= 5 * 3 * 16] == []
    trainer, rng = model.on_host(), np.random.default_rng(0)
    state = {name: torch.tensor(v, requires_grad=True) for name, v in trainer.state_dict().items()}
    for _ in range(3):
        x, label = rng.normal(size=(5, 8)).astype(np.float32), rng.integers(0, 4, 5).astype(np.uint8)
        linear = lambda name, v: v @ state[f"{name}.weight"].T + state[f"{name}.bias"]
        given = torch.tensor(x)
        outputs = torch.stack([torch.tanh(linear(f"experts.{k}", given)) for k in range(3)], 1)
        y = (outputs * torch.softmax(linear("gate", given), 1)[:, :, None]).sum(1)
        loss = torch.nn.functional.cross_entropy(linear("head", y), torch.tensor(label).long())
        found = trainer.train_step(x, label)
        np.testing.assert_allclose(found, loss.item(), rtol=1e-5)
        for v, g in zip(state.values(), torch.autograd.grad(loss, list(state.values())), strict=True):
            v.data -= 0.5 * g
    for name, v in trainer.state_dict().items():
        np.testing.assert_allclose(v, state[name].detach().numpy(), rtol=1e-4, atol=1e-6)
