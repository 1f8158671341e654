"""Optimizers whose rule reads a gradient train convolutions without storing that gradient, as the interpreter does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from int8_networks import random_network
from training_comparison import trains_as_the_interpreter

import autodiff_gen as ag
from autodiff_gen import nn, optim, quant
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.ir.op_kinds import RowContraction
from autodiff_gen.lowering import left_out_stages
from autodiff_gen.passes.calls.whole_gradients import whole_gradients
from autodiff_gen.targets import board

# Windows with borders, strides and gaps; one pixel; channels in groups, which one call computes; a window for each
# channel.
LAYERS: tuple[Callable[[], nn.Module], ...] = (
    lambda: nn.Conv2d(3, 8, 3, stride=2, padding=1),
    lambda: nn.Conv2d(8, 12, 1),
    lambda: nn.Conv2d(12, 6, (2, 3), dilation=(2, 1), padding=(1, 0)),
    lambda: nn.Conv2d(6, 24, 3, padding=1, groups=3),
    lambda: nn.Conv2d(24, 24, 3, padding=1, groups=24),
    lambda: nn.Conv2d(24, 10, 3),
)
LARGEST = 4  # the only one whose gradient would make the arena larger
BY_ROWS = (0, 1, 2, LARGEST, 5)
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "Adam": lambda: optim.Adam(lr=0.01),
    "AdamW": lambda: optim.AdamW(lr=0.01, weight_decay=0.1),
    "RMSprop": lambda: optim.RMSprop(lr=0.01, momentum=0.5, weight_decay=0.01),
    "momentum": lambda: optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.01, nesterov=True),
}


def model(optimizer: Any) -> ag.Model:
    layers: list[nn.Module] = []
    for make in LAYERS:
        layers += [make(), nn.Tanh()]
    net = nn.Sequential(*layers, nn.Flatten(), nn.Linear(40, 4))
    return ag.Model.supervised(net, input=(2, 3, 12, 10), loss=nn.CrossEntropyLoss(), optimizer=optimizer)


def by_rows(made: ag.Model, name: str) -> set[str]:
    """The layers whose gradients are completed by rows on a board."""
    program = compile_model(made, "m", ["ref"], board.load(name), 1 << 24)
    steps = [s for _, s in program.entries[0].plan.all_steps() if s.nest is not None]
    nodes = [n for s in steps for n in s.node.regions[0].nodes if isinstance(n.op.lower, RowContraction)]
    return {n.origin.scope for n in nodes if n.op.lower.call is not None}  # type: ignore[union-attr]


@pytest.mark.cc
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_training_is_that_of_the_interpreter(name: str) -> None:
    made = model(OPTIMIZERS[name]())
    trainer = made.on_host("ref")
    lines = [line for text in trainer.source.values() for line in text.splitlines()]
    for kernel in ("conv2d_dw_f32", "depthwise2d_dw_f32"):
        assert any(kernel in line and "_row" in line for line in lines)
    rng = np.random.default_rng(3)
    batches = (
        {
            "x": rng.uniform(-1, 1, (2, 3, 12, 10)).astype(np.float32),
            "label": np.array([k, 3 - k], np.uint8),
        }
        for k in range(3)
    )
    trains_as_the_interpreter(trainer, made, batches)


def test_gradients_of_convolutions_are_completed_by_rows_where_that_takes_less_memory() -> None:
    assert by_rows(model(optim.Adam()), "mps2_an386") == {str(2 * LARGEST)}
    with left_out_stages.without([whole_gradients.__name__]):
        assert by_rows(model(optim.Adam()), "mps2_an386") == {str(2 * k) for k in BY_ROWS}


def test_gradients_of_8_bit_weights_are_completed_by_rows() -> None:
    backbone = quant.load(random_network(np.random.default_rng(5)))
    names = [f"blocks.1.{name}" for name in ("pointwise1", "depthwise", "pointwise2")]
    for name, layer in backbone.named_modules():
        if name in names:
            layer.weight.requires_grad = True
    net = nn.Sequential(backbone, nn.Flatten(), nn.Linear(10, 4))
    made = ag.Model.supervised(
        net, input=(1, 3, 16, 16), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )
    with left_out_stages.without([whole_gradients.__name__]):
        assert by_rows(made, "mps2_an386") == {f"0.{name}" for name in names}


def test_plain_gradient_descent_needs_no_rows() -> None:
    assert by_rows(model(optim.SGD(lr=0.1)), "mps2_an386") == set()


def test_gradients_that_are_clipped_together_are_stored() -> None:
    layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(32, 4))
    made = ag.Model.supervised(
        layers, input=(1, 3, 4, 4), loss=nn.CrossEntropyLoss(), optimizer=optim.Adam(), clip_grad_norm=1.0
    )
    assert by_rows(made, "mps2_an386") == set()


def test_blocks_are_served_by_the_backend_of_the_whole() -> None:
    """Tuned kernels of depthwise convolutions are for 8 channels or more."""
    for name in ("mps2_an386", "mps3_an547"):
        program = compile_model(model(optim.Adam()), "m", None, board.load(name), 1 << 24)
        calls = [c for _, s in program.entries[0].plan.all_steps() for c in s.calls.values()]
        channels = {k.backend: c.shape["c"] for c, k in calls if c.kernel == "depthwise2d_dw_f32"}
        assert channels == {board.load(name).kernels.backends[0]: 8}
