"""Pooled convolutions of images whose border cuts windows are computed of padded images, with the same results."""

from __future__ import annotations

import numpy as np
import pytest
from training_comparison import trains_as_the_interpreter

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.op_kinds import Call, CutWindows
from autodiff_gen.ops.images.convolution import convolving
from autodiff_gen.ops.images.max_pooling import pooling
from autodiff_gen.passes import costs
from autodiff_gen.targets import board

PADDED = "= assemble("


def model(first: nn.Module, pool: nn.Module, channels: int = 1) -> ag.Model:
    net = nn.Sequential(
        *(first, nn.ReLU(), pool, nn.Conv2d(6, 5, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3)),
    )
    return ag.Model.supervised(
        net, input=(2, channels, 13, 10), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )


@pytest.mark.cc
@pytest.mark.parametrize(
    "channels, first, pool",
    [
        (1, nn.Conv2d(1, 6, 3, padding=1), nn.MaxPool2d(2)),
        (3, nn.Conv2d(3, 6, (5, 2), stride=(2, 1), padding=(2, 1), bias=False), nn.MaxPool2d((2, 3))),
        (2, nn.Conv2d(2, 6, 3, dilation=2, padding=(0, 2)), nn.MaxPool2d(2, ceil_mode=True)),
        (2, nn.Conv2d(2, 6, 3, stride=3, padding=2), nn.MaxPool2d(2)),
    ],
    ids=["border", "strides", "gaps", "windows that do not reach the end"],
)
def test_training_is_that_of_the_interpreter(
    channels: int, first: nn.Module, pool: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autodiff_gen.passes.calls.pad_images.image_is_padded", lambda *_: True)
    made = model(first, pool, channels)
    trainer = made.on_host("fast,ref")
    assert sum(text.count(PADDED) for text in trainer.source.values()) == 3  # forward, gradient, prediction
    rng = np.random.default_rng(5)
    batches = (
        {
            "x": rng.uniform(-1, 1, (2, channels, 13, 10)).astype(np.float32),
            "label": np.array([k, 2 - k], np.uint8),
        }
        for k in range(3)
    )
    trains_as_the_interpreter(trainer, made, batches)


def copies(name: str, ram: int = 1 << 24, kernels: list[str] | None = None, padding: int = 1) -> int:
    """How many steps of a program for a board pad an image."""
    made = model(nn.Conv2d(1, 6, 3, padding=padding), nn.MaxPool2d(2))
    program = compile_model(made, "m", kernels, board.load(name), ram, must_fit=False)
    return sum(text.count(PADDED) for text in emit(program).values())


def test_images_are_padded_where_tuned_kernels_compute_cut_windows_one_by_one() -> None:
    assert copies("mps2_an386") == 3
    assert copies("mps2_an386", padding=0) == 0


def test_images_are_not_padded_for_reference_kernels() -> None:
    assert copies("mps2_an386", kernels=["ref"]) == 0


def test_images_are_not_padded_for_a_budget() -> None:
    assert copies("mps2_an386", 2000) == 0


def test_windows_that_are_cut() -> None:
    """Of 6 x 6 windows of 3 x 3 in 6 x 6 pixels, all but 4 x 4 are cut, and all pooled pixels but the middle one."""
    attrs = {
        **convolving(padding=(1, 1, 1, 1)),
        **{f"pool_{k}": v for k, v in pooling((2, 2), (2, 2)).items()},
    }
    inside = (3 * 6 - 2) ** 2  # taps
    forward, gradient = OPS["conv2d_pool"].lower, OPS["conv2d_pool_dw"].lower
    assert isinstance(forward, Call) and isinstance(gradient, Call)
    found = forward.cut([(1, 6, 6, 2), (8, 3, 3, 2), (8,)], attrs)
    assert found == CutWindows(0, (3, 3), 8 * 4 * 3, (36 * 9 - inside) * 2 * 8)
    found = gradient.cut([(1, 6, 6, 2), (1, 3, 3, 8), (1, 3, 3, 8)], {**attrs, "kernel": (3, 3)})
    assert found == CutWindows(0, (3, 3), 8 * 8, (36 * 9 - inside) * 2 * 8 // 4)


def test_decision() -> None:
    cost = board.load("mps2_an386").cost
    assert costs.image_is_padded(cost, 900, 600, 1000)
    assert not costs.image_is_padded(cost, 90000, 600, 1000)
    assert not costs.image_is_padded(cost, 900, 600, 100000)
