"""Kernels compute only the ranges of their results that are read: training agrees with PyTorch, and nothing is
dropped."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE
from autodiff_gen.ir.op_kinds import Assemble, Contraction, Elementwise, KernelOp, Leaf, Scan, View, ViewKind
from autodiff_gen.ir.traits import view_kind
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.demand.demand_propagation import demand_propagation
from autodiff_gen.passes.layout.layout_assignment import assign_layouts
from autodiff_gen.passes.training.resolve_mode import resolve_mode


def causal(of: Any) -> Any:
    """Two causal convolutions as PyTorch has none: with padding on both sides, the last results dropped."""

    class Causal(of.Module):  # type: ignore[misc]
        def __init__(self, c: int, o: int, dilation: int) -> None:
            super().__init__()
            self.conv = of.Conv1d(c, o, 3, padding=2 * dilation, dilation=dilation)
            self.act, self.surplus = of.ReLU(), 2 * dilation

        def forward(self, x: Any) -> Any:
            return self.act(self.conv(x)[:, :, : -self.surplus])

    return of.Sequential(Causal(4, 8, 1), Causal(8, 8, 2), of.Flatten(), of.Linear(8 * 12, 3))


def trimmed(of: Any) -> Any:
    """Borders of images are cut off after two convolutions, along both axes."""

    class Trimmed(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.up, self.down = (
                of.ConvTranspose2d(4, 6, 3, stride=2),
                of.Conv2d(6, 5, 3, padding=2),
            )
            self.flat, self.out = of.Flatten(), of.Linear(5 * 6 * 7, 3)

        def forward(self, x: Any) -> Any:
            y = self.up(x.reshape(-1, 4, 3, 4))[:, :, 1:, 1:]
            return self.out(self.flat(self.down(y)[:, :, 1:-1, 2:-1]))

    return Trimmed()


def residual(of: Any) -> Any:
    """Causal convolutions with residual connections; the last element is classified."""

    class Residual(of.Module):  # type: ignore[misc]
        def __init__(self, dilation: int) -> None:
            super().__init__()
            self.conv = of.Conv1d(4, 4, 3, padding=2 * dilation, dilation=dilation)
            self.act, self.surplus = of.ReLU(), 2 * dilation

        def forward(self, x: Any) -> Any:
            return self.act(self.conv(x)[:, :, : -self.surplus] + x)

    class Last(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.blocks, self.out = of.Sequential(Residual(1), Residual(2)), of.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.out(self.blocks(x)[:, :, -1])

    return Last()


def encoder(of: Any) -> Any:
    """Two layers of a transformer; the first token is classified."""

    class First(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            options = {"dropout": 0.0, "activation": "gelu", "batch_first": True}
            self.layers = of.Sequential(*(of.TransformerEncoderLayer(12, 2, 20, **options) for _ in range(2)))
            self.out = of.Linear(12, 3)

        def forward(self, x: Any) -> Any:
            return self.out(self.layers(x)[:, 0])

    return First()


def recurrent(of: Any) -> Any:
    """Both directions of an LSTM; the last element of the sequence and the state at its end are classified."""

    class Last(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.lstm = of.LSTM(12, 5, batch_first=True, bidirectional=True)
            self.out = of.Linear(10, 3)

        def forward(self, x: Any) -> Any:
            return self.out(self.lstm(x)[0][:, -2])

    return Last()


def reversed_(of: Any) -> Any:
    """A convolution whose last element is classified, as the first of the reversed sequence; some channels of it."""

    class Reversed(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.out = of.Conv1d(4, 8, 3), of.Linear(4, 3)

        def forward(self, x: Any) -> Any:
            return self.out(self.conv(x).flip(2)[:, ::2, 0])

    return Reversed()


def channels(of: Any) -> Any:
    """A convolution, whose image is larger than its filters, and a layer on few rows. Both compute channels
    that nothing reads."""

    class Channels(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.flat, self.out = of.Conv1d(4, 8, 3), of.Flatten(), of.Linear(30, 7)

        def forward(self, x: Any) -> Any:
            return self.out(self.flat(self.conv(x)[:, 2:5]))[:, 1:4]

    return Channels()


def joined(of: Any) -> Any:
    """Two convolutions whose channels are joined; a third convolution reads some channels of the second."""

    class Joined(of.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = of.Conv1d(4, 5, 3), of.Conv1d(5, 6, 3)
            self.third, self.flat, self.out = of.Conv1d(4, 3, 1), of.Flatten(), of.Linear(24, 3)

        def forward(self, x: Any) -> Any:
            y = self.first(x)
            both = cat([y[:, :, 2:], self.second(y)], 1)
            return self.out(self.flat(self.third(both[:, 6:10])))

    cat = ag.functional.cat if of is nn else importlib.import_module("torch").cat
    return Joined()


CROPPED = {"causal": (causal, (4, 12)), "trimmed": (trimmed, (4, 12))}
NETWORKS = {
    **CROPPED,
    "residual": (residual, (4, 12)),
    "encoder": (encoder, (4, 12)),
    "recurrent": (recurrent, (4, 12)),
    "reversed": (reversed_, (4, 12)),
    "channels": (channels, (4, 12)),
    "joined": (joined, (4, 12)),
}


def model(name: str, batch: int = 2) -> ag.Model:
    network, shape = NETWORKS[name]
    return ag.Model.supervised(network(nn), (batch, *shape), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", NETWORKS)
def test_training_equals_pytorchs(name: str, rng: np.random.Generator) -> None:
    import torch

    network, shape = NETWORKS[name]
    trainer = model(name).on_host(kernels="ref")
    mirror = network(torch.nn)
    mirror.load_state_dict({k: torch.tensor(v) for k, v in trainer.state_dict().items()})
    step = torch.optim.SGD(mirror.parameters(), lr=0.1)
    for _ in range(4):
        x, label = rng.normal(size=(2, *shape)).astype(np.float32), rng.integers(0, 3, 2)
        loss = torch.nn.functional.cross_entropy(mirror(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=1e-5)
    for key, value in mirror.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[key], value, rtol=1e-4, atol=1e-6, err_msg=key)


@pytest.mark.parametrize("name", CROPPED)
def test_nothing_is_computed_that_is_dropped(name: str) -> None:
    (graph,) = (g for g in model(name).entries() if g.name == "predict")
    sliced = [n.operands[0] for n in graph.of(View) if view_kind(n) is ViewKind.WINDOW]
    assert [v for v in sliced if not isinstance(v.node.op.lower, Leaf)] == []


def cropped(name: str) -> Graph:
    return next(g for g in model(name).entries() if g.name == "predict")


def test_of_several_readers_the_range_that_holds_all_is_computed() -> None:
    convolutions = [n.results[0].type.shape[2] for n in cropped("residual").of(KernelOp)]
    assert convolutions == [5, 1], "the reach of the last element's dilated window, and that element"


def test_of_the_last_layer_one_row_of_each_sample_is_computed() -> None:
    products = [n.results[0] for n in cropped("encoder").of(Contraction)]
    rows = [v.type.shape[-2] for v in products if v.type.shape[-1] in (12, 20)]
    assert [repr(r) for r in rows[:3]] == ["4n", "4n", "4n"], "attention's output and both layers after it"
    assert [repr(r) for r in rows[3:]] == ["n", "n", "n"]


def test_a_scan_ends_with_the_last_element_that_is_read() -> None:
    lengths = {n.attrs["reverse"]: n.attrs["length"] for n in cropped("recurrent").of(Scan)}
    assert lengths == {False: 3, True: 2}


def test_a_reversed_sequence_is_read_in_part() -> None:
    assert [n.results[0].type.shape[2] for n in cropped("reversed").of(KernelOp)] == [1]


def test_of_joined_channels_only_those_that_are_read_are_computed() -> None:
    convolutions = [n.results[0].type.shape[3] for n in cropped("joined").of(KernelOp)]
    assert convolutions == [5, 4, 3] and cropped("joined").of(Assemble) == []


def test_masks_have_the_numbers_of_the_whole(rng: np.random.Generator) -> None:
    x, w = ag.Input("x", (2, 6, 5)), ag.Param("w", np.ones((5, 4), np.float32))
    y = ag.functional.dropout(x @ w, 0.5, training=True)[:, 2:4]
    graph = resolve_mode(Graph("f", (x,), outputs={"y": y}, training=True), Context())
    after = demand_propagation(graph, Context())
    assert {n.results[0].type.shape for n in after.of(Elementwise)} == {(2, 2, 4), ()}
    feeds = {x: rng.normal(size=(2, 6, 5)), **{v: np.ones(v.shape) for v in graph.leaves(STATE)}}
    (expected, _), (found, _) = (evaluate(g.roots, feeds) for g in (graph, after))
    np.testing.assert_array_equal(found, expected)
    assert 0 < np.count_nonzero(found) < found.size


def test_what_is_read_as_a_whole_too_is_computed_as_a_whole() -> None:
    x, w = ag.Input("x", (1, 2, 5, 5)), ag.Param("w", np.ones((3, 2, 3, 3), np.float32))
    y = ag.functional.conv2d(x, w, padding=1)
    graph = Graph("f", (x,), outputs={"part": y[:, :, 1:], "whole": y})
    assert demand_propagation(graph, Context()) is graph


def test_a_product_whose_parts_are_all_read_is_computed_as_a_whole() -> None:
    x, w = ag.Input("x", (2, 5, 4)), ag.Param("w", np.ones((4, 6), np.float32))
    y = x @ w
    graph = Graph("f", (x,), outputs={"first": y[:, :, :3] * 2.0, "second": y[:, :, 3:] * 3.0})
    assert demand_propagation(graph, Context()) is graph


def test_a_parameter_that_is_smaller_than_the_result_is_read_in_part() -> None:
    """Otherwise its gradient, which is zero elsewhere, would be stored."""
    products = {}
    for graph in model("channels").entries():
        named = {
            n.results[0].type.shape[-1]
            for n in graph.of(KernelOp, Contraction)
            if n.origin.phase == "forward"
        }
        products[graph.name] = named
    assert products == {"train_step": {3, 7}, "predict": {3}}


def test_ranges_that_two_readers_leave_are_joined_in_the_end() -> None:
    x, w = ag.Input("x", (1, 12, 8)), ag.Param("w", np.ones((4, 12, 1), np.float32))
    y = ag.functional.conv1d(x, w)
    rows, columns = y.reshape(4, 8), y.permute(0, 2, 1).reshape(8, 4)
    (root,) = assign_layouts([(rows @ columns)[3:, 1:]]).roots
    after = demand_propagation(Graph("f", (x,), outputs={"y": root}), Context())
    assert [n.results[0].type.shape for n in after.of(KernelOp)] == [(1, 1, 8, 3)]


def test_of_8_bit_layers_channels_and_pixels_are_computed_in_part(rng: np.random.Generator) -> None:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.Conv2d(2, 8, 3, padding=1), nn.Conv2d(4, 3, 1)

        def forward(self, x: Any) -> Any:
            return self.second(self.first(x)[:, 2:6, 1:, :3])

    images = rng.normal(size=(4, 2, 5, 6)).astype(np.float32)
    x = ag.Input("x", images.shape)
    roots = assign_layouts([ag.quant.quantize(Parts(), images)(x)]).roots
    graph = resolve_mode(Graph("f", (x,), outputs={"y": roots[0]}), Context())
    after = demand_propagation(graph, Context())
    assert [n.results[0].type.shape for n in after.of(KernelOp)] == [(4, 4, 3, 4), (4, 4, 3, 3)]
    feeds = {x: images, **{v: v.node.attrs["state"].init.array() for v in graph.leaves(STATE)}}
    (expected,), (found,) = (evaluate(g.roots, feeds) for g in (graph, after))
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("samples", "first", "rows"), [(3, 1, 24), (3, 6, 6), (1, 1, 7)])
def test_rows_of_samples_are_copied_where_that_takes_less_than_the_rest(
    samples: int, first: int, rows: int
) -> None:
    x, w = ag.Input("x", (samples, 8, 6)), ag.Param("w", np.ones((3, 6), np.float32))
    y = ag.functional.tanh(ag.functional.linear(x, w))[:, first:]
    after = demand_propagation(Graph("f", (x,), outputs={"y": y}), Context())
    assert [n.results[0].type.shape for n in after.of(Contraction)] == [(rows, 3)]
