"""What reads a padded image and pads images itself reads the image, with the same results."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from small_graphs import feeds_of, inputs_of
from training_comparison import trains_as_the_interpreter

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.op_kinds import Assemble, KernelOp
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.demand.demand_propagation import demand_propagation
from autodiff_gen.passes.layout.layout_assignment import assign_layouts

IMAGE, SERIES = ag.Input("x", (2, 4, 6, 7)), ag.Input("s", (2, 4, 9))
FILTERS = ag.Param("w", np.linspace(-1, 1, 5 * 4 * 3 * 3, dtype=np.float32).reshape(5, 4, 3, 3))
OF_CHANNELS = ag.Param("c", np.linspace(-1, 1, 4 * 3 * 3, dtype=np.float32).reshape(4, 1, 3, 3))
TAPS = ag.Param("t", np.linspace(-1, 1, 5 * 4 * 3, dtype=np.float32).reshape(5, 4, 3))
Q = ag.Input("q", (1, 3, 4, 5))


def quantised() -> Value:
    q, w = F.quantize(Q, 0.1, -7), F.quantized_weight(np.full((2, 3, 3, 3), 3, np.int8), 0.01)
    return F.dequantize(F.quantized_conv2d(F.pad(q, (0, 1, 1, 0), value=-7), w, None, 0.2, 3))


FOLDED: dict[str, tuple[Callable[[], Value], tuple[int, ...]]] = {
    "as TensorFlow pads": (lambda: F.conv2d(F.pad(IMAGE, (0, 1, 0, 1)), FILTERS, stride=2), (0, 1, 0, 1)),
    "added to its own": (lambda: F.conv2d(F.pad(IMAGE, (2, 0)), FILTERS, padding=1), (1, 1, 3, 1)),
    "twice": (lambda: F.conv2d(F.pad(F.pad(IMAGE, (1, 0)), (0, 0, 2, 1)), FILTERS), (2, 1, 1, 0)),
    "depthwise": (lambda: F.conv2d(F.pad(IMAGE, (1, 2, 0, 1)), OF_CHANNELS, groups=4), (0, 1, 1, 2)),
    "causal": (lambda: F.conv1d(F.pad(SERIES, (4, 0)), TAPS, dilation=2), (0, 0, 4, 0)),
    "maximum": (lambda: F.max_pool2d(F.pad(IMAGE, (0, 1), value=-math.inf), 3, 2), (0, 0, 0, 1)),
    "mean": (lambda: F.avg_pool2d(F.pad(IMAGE, (0, 1, 1, 0)), 2), (1, 0, 0, 1)),
    "mean by a divisor": (
        lambda: F.avg_pool2d(F.pad(IMAGE, (1, 1)), 2, count_include_pad=False, divisor_override=3),
        (0, 0, 1, 1),
    ),
    "8-bit": (quantised, (1, 0, 0, 1)),
    "backwards": (lambda: F.conv2d(F.flip(F.pad(IMAGE, (1, 1)), (3,)), FILTERS), (0, 0, 1, 1)),
}
KEPT: dict[str, Callable[[], Value]] = {
    "another number": lambda: F.conv2d(F.pad(IMAGE, (1, 1), value=0.5), FILTERS),
    "zeros in a maximum": lambda: F.max_pool2d(F.pad(IMAGE, (0, 1)), 3, 2),
    "more than half a window": lambda: F.max_pool2d(F.pad(IMAGE, (0, 2), value=-math.inf), 3, 2),
    "a mean of the elements inside": lambda: F.avg_pool2d(
        F.pad(IMAGE, (1, 1)), 2, 1, 1, count_include_pad=False
    ),
    "a window more": lambda: F.avg_pool2d(F.pad(IMAGE, (0, 0, 0, 2)), 2, ceil_mode=True, stride=3),
    "channels": lambda: F.conv2d(F.pad(IMAGE[:, 1:], (0, 0, 0, 0, 1, 0)), FILTERS),
    "two images": lambda: F.conv2d(F.cat([IMAGE, IMAGE], 2), FILTERS),
    "another reader": lambda: (lambda p: F.conv2d(p, FILTERS).sum() + F.exp(p).sum())(F.pad(IMAGE, (1, 1))),
    "backwards, with more on one side": lambda: F.conv2d(F.flip(F.pad(IMAGE, (1, 2)), (3,)), FILTERS),
    "mirrored": lambda: F.conv2d(F.pad(IMAGE, (1, 1), mode="reflect"), FILTERS),
}


def graph_of(y: Value) -> Graph:
    (root,) = assign_layouts([y]).roots
    return Graph("f", inputs_of({"y": root}, {}), outputs={"y": root})


def same(before: Graph, after: Graph) -> None:
    feeds = feeds_of(before)
    (expected,), (found,) = (evaluate(g.roots, feeds) for g in (before, after))
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", FOLDED)
def test_an_op_pads_by_as_much_more(name: str) -> None:
    make, padding = FOLDED[name]
    before = graph_of(make())
    after = demand_propagation(before, Context())
    assert len(before.of(Assemble)) >= 1 and after.of(Assemble) == []
    assert [n.attrs["padding"] for n in after.of(KernelOp)] == [padding]
    same(before, after)


@pytest.mark.parametrize("name", KEPT)
def test_a_padded_image_stays(name: str) -> None:
    before = graph_of(KEPT[name]())
    after = demand_propagation(before, Context())
    assert [n.attrs for n in after.of(KernelOp)] == [n.attrs for n in before.of(KernelOp)]
    same(before, after)


def test_a_border_is_left_only_along_an_axis_where_the_op_cannot_pad() -> None:
    before = graph_of(F.avg_pool2d(F.pad(IMAGE, (0, 1, 0, 2)), 2, ceil_mode=True, stride=3))
    after = demand_propagation(before, Context())
    assert [n.attrs["padding"] for n in after.of(KernelOp)] == [(0, 0, 0, 1)]
    assert [n.results[0].shape for n in after.of(Assemble)] == [(2, 4, 8, 7)]
    same(before, after)


def test_two_convolutions_of_one_padded_image() -> None:
    p = F.pad(IMAGE, (1, 1, 1, 1))
    before = graph_of(F.conv2d(p, FILTERS) + F.conv2d(p, OF_CHANNELS, groups=4).sum())
    after = demand_propagation(before, Context())
    assert after.of(Assemble) == []
    same(before, after)


class Causal(nn.Module):
    def __init__(self, inputs: int, outputs: int, dilation: int) -> None:
        super().__init__()
        self.pad = nn.ConstantPad1d((2 * dilation, 0), 0.0)
        self.conv = nn.Conv1d(inputs, outputs, 3, dilation=dilation)

    def forward(self, x: Value) -> Value:
        return F.relu(self.conv(self.pad(x)))


@pytest.mark.cc
@pytest.mark.parametrize("kernels", ["ref", "fast,ref"])
def test_training_is_that_of_the_interpreter(kernels: str, rng: np.random.Generator) -> None:
    net = nn.Sequential(
        Causal(3, 6, 1), Causal(6, 5, 2), nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(5, 3)
    )
    model = ag.Model.supervised(net, (2, 3, 11), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    trainer = model.on_host(kernels)
    assert sum(text.count("= assemble(") for text in trainer.source.values()) == 0
    batches = (
        {
            "x": rng.normal(size=(2, 3, 11)).astype(np.float32),
            "label": rng.integers(0, 3, 2).astype(np.uint8),
        }
        for _ in range(3)
    )
    trains_as_the_interpreter(trainer, model, batches)
