"""A factor for each channel of a product multiplies the weights, where these are fewer, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_graphs import feeds_of, inputs_of
from training_comparison import trains_as_the_interpreter

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.ir.graph import Graph, State
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import STATE, Value
from autodiff_gen.ir.types import planned_size
from autodiff_gen.passes.layout.layout_assignment import assign_layouts
from autodiff_gen.passes.simplify.scale_weights import scale_entry


def param(name: str, *shape: int) -> Value:
    count = int(np.prod(shape))
    return ag.Param(name, np.linspace(0.5, 1.5, count, dtype=np.float32).reshape(shape))


IMAGE, SERIES, ROWS = ag.Input("x", (2, 4, 9, 7)), ag.Input("s", (2, 4, 40)), ag.Input("r", (30, 6))
FEW_COLUMNS = ag.Input("q", (5, 2))
FILTERS, OF_CHANNELS, TAPS, MATRIX = (
    param("w", 5, 4, 3, 3),
    param("c", 4, 1, 3, 3),
    param("t", 5, 4, 3),
    param("m", 5, 6),
)
FACTOR, OTHER, BIAS, SHIFT = (param(name, 5) for name in "fobh")
OF_FOUR, MEAN, VARIANCE = param("g", 4), param("mean", 5), param("variance", 5)


def by_channel(v: Value) -> Value:
    return F.reshape(v, (-1, 1, 1))


def by_row(v: Value) -> Value:
    return F.reshape(v, (-1, 1))


def image(stride: int = 1) -> Value:
    return F.conv2d(IMAGE, FILTERS, BIAS, stride=stride)


# The computed expression, and how often a value as large as an image is added to or multiplied.
MOVED: dict[str, tuple[Callable[[], Value], int]] = {
    "a convolution": (lambda: F.conv2d(IMAGE, FILTERS) * by_channel(FACTOR), 0),
    "the factor first": (lambda: by_channel(FACTOR) * F.conv2d(IMAGE, FILTERS), 0),
    "a divisor": (lambda: image() / by_channel(FACTOR), 1),
    "two factors": (lambda: image() * by_channel(FACTOR) * by_channel(OTHER), 1),
    "BatchNorm": (lambda: F.batch_norm(image(), MEAN, VARIANCE, FACTOR, SHIFT), 1),
    "BatchNorm without biases": (
        lambda: F.batch_norm(F.conv2d(IMAGE, FILTERS), MEAN, VARIANCE, FACTOR, SHIFT),
        1,
    ),
    "a mean that is subtracted": (
        lambda: (image() - by_channel(MEAN)) * by_channel(FACTOR) + by_channel(SHIFT),
        1,
    ),
    "a subtracted image": (lambda: (by_channel(MEAN) - image()) * by_channel(FACTOR), 2),
    "depthwise": (lambda: F.conv2d(IMAGE, OF_CHANNELS, groups=4) * by_channel(OF_FOUR), 0),
    "one dimension": (lambda: F.conv1d(SERIES, TAPS) * F.reshape(FACTOR, (5, 1)), 0),
    "a matrix": (lambda: F.linear(ROWS, MATRIX, BIAS) * FACTOR + SHIFT, 1),
    "a bias along another axis than the first, after a view": (
        lambda: F.linear(FEW_COLUMNS, param("d", 5, 2), BIAS).permute(1, 0) * by_row(FACTOR) + SHIFT,
        2,
    ),
    "rows of a product": (lambda: F.matmul(ROWS, param("v", 6, 50)) * param("n", 30, 1), 0),
}
KEPT: dict[str, Callable[[], Value]] = {
    "more weights": lambda: image(4) * by_channel(FACTOR),
    "a number": lambda: image() * 3.0,
    "rows of an image": lambda: F.conv2d(IMAGE, FILTERS, padding=1) * param("rows", 9, 1),
    "another reader": lambda: (lambda y: (y * by_channel(FACTOR)).sum() + F.exp(y).sum())(image()),
    "statistics": lambda: F.batch_norm(image(), None, None, FACTOR, SHIFT, training=True),
    "after a function": lambda: F.relu(image()) * by_channel(FACTOR),
    "half of the channels": lambda: image()[:, :4] * by_channel(OF_FOUR),
    "a factor for each element": lambda: F.linear(ROWS, MATRIX) * param("all", 30, 5),
}


def graph_of(y: Value) -> Graph:
    (root,) = assign_layouts([y]).roots
    return Graph("f", inputs_of({"y": root}, {}), outputs={"y": root})


def states_of(graph: Graph) -> set[State]:
    return {v.node.attrs["state"] for v in graph.leaves(STATE)}


def steps_of_images(graph: Graph) -> int:
    """How many sums and products with an operand as large as the result of a product there are."""
    products = [n.results[0] for n in graph.nodes if n.op.factors]
    size = max(planned_size(v.type.shape) for v in products)
    steps = (n for n in graph.nodes if n.op.signs or n.op.powers)
    return sum(any(planned_size(v.type.shape) == size for v in n.operands) for n in steps)


def same(before: Graph, after: Graph) -> None:
    feeds = feeds_of(before)
    for v in feeds:
        feeds[v] = np.abs(feeds[v]) + np.float32(0.1) if "var" in v.name else feeds[v]
    (expected,), (found,) = (evaluate(g.roots, feeds) for g in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", MOVED)
def test_weights_are_multiplied(name: str) -> None:
    make, left = MOVED[name]
    before = graph_of(make())
    after = scale_entry(before, states_of(before))
    assert steps_of_images(after) == left < steps_of_images(before)
    same(before, after)


WIDE = ag.Input("few", (2, 6))
FIXED: dict[str, tuple[Callable[[], Value], bool]] = {
    "a constant": (lambda: F.linear(WIDE, MATRIX) * FACTOR, True),
    "two constants": (lambda: F.linear(WIDE, MATRIX) * FACTOR * OTHER, True),
    "a quotient of a root": (lambda: F.linear(WIDE, MATRIX) * (FACTOR / F.sqrt(VARIANCE)), True),
    "a factor that the device computes": (lambda: F.linear(WIDE, MATRIX) * F.exp(FACTOR), False),
    "weights that another product reads": (
        lambda: F.linear(WIDE, MATRIX) * FACTOR + F.linear(F.tanh(WIDE), MATRIX),
        False,
    ),
}


@pytest.mark.parametrize("name", FIXED)
def test_weights_as_large_as_the_result_are_multiplied_at_build_time_only(name: str) -> None:
    make, is_moved = FIXED[name]
    before = graph_of(make())
    after = scale_entry(before)
    assert (after.roots != before.roots) == is_moved
    same(before, after)


@pytest.mark.parametrize(
    ("trained", "is_moved"), [("", True), ("w", True), ("f", False), ("wf", True)], ids=repr
)
def test_factors_are_moved_unless_only_they_need_the_gradient_of_the_weights(
    trained: str, is_moved: bool
) -> None:
    before = graph_of(MOVED["a convolution"][0]())
    states = states_of(before)
    after = scale_entry(before, states, {s for s in states if s.name in trained})
    assert (after.roots != before.roots) == is_moved


def test_a_factor_after_many_biases() -> None:
    y = F.linear(ROWS, MATRIX)
    for k in range(1000):
        y = y + param(f"b{k}", 5)
    before = graph_of(y * FACTOR)
    assert steps_of_images(scale_entry(before, states_of(before))) == 1


@pytest.mark.parametrize("name", KEPT)
def test_images_are_multiplied(name: str) -> None:
    before = graph_of(KEPT[name]())
    assert scale_entry(before, states_of(before)).roots == before.roots


class Net(nn.Module):
    """Convolutions with BatchNorm in evaluation mode: its factors and shifts train."""

    def __init__(self, trains: bool = True) -> None:
        super().__init__()
        self.body = nn.Sequential(
            *(nn.Conv2d(2, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(6, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU()),
        )
        for m in self.body.modules():
            if isinstance(m, nn.BatchNorm2d):
                m.eval()
        rng, values = np.random.default_rng(3), self.body.state_dict()
        self.body.load_state_dict(
            {
                k: np.asarray(rng.uniform(0.5, 2, v.shape), np.float32) if "running" in k else v
                for k, v in values.items()
            }
        )
        self.body.requires_grad_(trains)
        self.head = nn.Linear(4, 3)

    def forward(self, x: Value) -> Value:
        return self.head(F.mean(self.body(x), (2, 3)))


@pytest.mark.cc
@pytest.mark.parametrize("trains", [True, False], ids=["all layers", "the last layer"])
@pytest.mark.parametrize("kernels", ["ref", "fast,ref"])
def test_training_is_that_of_the_interpreter(kernels: str, trains: bool, rng: np.random.Generator) -> None:
    model = ag.Model.supervised(Net(trains), (2, 2, 8, 8), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    trainer = model.on_host(kernels)
    batches: list[dict[str, Any]] = [
        {
            "x": rng.normal(size=(2, 2, 8, 8)).astype(np.float32),
            "label": rng.integers(0, 3, 2).astype(np.uint8),
        }
        for _ in range(3)
    ]
    trains_as_the_interpreter(trainer, model, batches)
