"""Convolutions of images with few channels read a copy of their windows, and pooled convolutions of images whose border
cuts windows read a padded image, with the same results."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
from training_comparison import trains_as_the_interpreter

import autodiff_gen as ag
from autodiff_gen import nn, optim, quant
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.node import OPS
from autodiff_gen.ir.windows import CutWindows, Windows
from autodiff_gen.ops.images.convolution import convolving
from autodiff_gen.ops.images.max_pooling import pooling
from autodiff_gen.passes import costs
from autodiff_gen.targets import board

# Channels of the image, and the layer: borders on all sides, strides, gaps, and windows that do not reach the end.
LAYERS: dict[str, tuple[int, Callable[[], nn.Conv2d]]] = {
    "border": (1, lambda: nn.Conv2d(1, 8, 3, padding=1)),
    "strides": (1, lambda: nn.Conv2d(1, 6, (5, 2), stride=(2, 3), padding=(2, 1), bias=False)),
    "gaps": (2, lambda: nn.Conv2d(2, 5, (3, 2), dilation=(2, 3), padding=(0, 2))),
    "inside": (3, lambda: nn.Conv2d(3, 4, 3, stride=2)),
}
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "SGD": lambda: optim.SGD(lr=0.1),
    "momentum": lambda: optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.01),
    "Adam": lambda: optim.Adam(lr=0.01),
}


def head(channels: int) -> list[nn.Module]:
    return [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 3)]


def model(layer: str, optimizer: str) -> ag.Model:
    channels, make = LAYERS[layer]
    first = make()
    net = nn.Sequential(first, nn.ReLU(), *head(first.out_channels))
    return ag.Model.supervised(
        net, input=(2, channels, 10, 8), loss=nn.CrossEntropyLoss(), optimizer=OPTIMIZERS[optimizer]()
    )


@pytest.mark.cc
@pytest.mark.parametrize(
    "layer, optimizer",
    [("border", "SGD"), ("border", "Adam"), ("strides", "momentum"), ("gaps", "SGD"), ("inside", "Adam")],
)
def test_training_is_that_of_the_interpreter(
    layer: str, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autodiff_gen.passes.calls.copy_images.windows_are_copied", lambda *_: True)
    made = model(layer, optimizer)
    trainer = made.on_host("ref")
    assert any("= windows(" in text for text in trainer.source.values())
    rng = np.random.default_rng(4)
    batches = (
        {
            "x": rng.uniform(-1, 1, (2, LAYERS[layer][0], 10, 8)).astype(np.float32),
            "label": np.array([k, 2 - k], np.uint8),
        }
        for k in range(3)
    )
    trains_as_the_interpreter(trainer, made, batches)


def test_images_of_8_bits_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gradient of their weights is computed."""
    monkeypatch.setattr("autodiff_gen.passes.calls.copy_images.windows_are_copied", lambda *_: True)
    x = np.random.default_rng(3).uniform(-0.5, 1, (8, 1, 10, 8)).astype(np.float32)
    backbone = quant.quantize(nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU()), x)
    dict(backbone.named_modules())["0"].weight.requires_grad = True
    made = ag.Model.supervised(
        nn.Sequential(backbone, *head(8)), (2, 1, 10, 8), nn.CrossEntropyLoss(), optim.SGD(lr=0.1)
    )
    assert not any("= windows(" in text for text in emit(compile_model(made, "m")).values())


def steps_with(formula: str, files: Mapping[str, str]) -> int:
    """How many comments of steps have a formula."""
    return sum(len(re.findall(rf"/\* \d[\d.]* .*{re.escape(formula)}", text)) for text in files.values())


def copies(channels: int, outputs: int, name: str, ram: int = 1 << 24) -> int:
    """How many steps of a program for a board copy windows."""
    net = nn.Sequential(nn.Conv2d(channels, outputs, 5), nn.Tanh(), *head(outputs))
    made = ag.Model.supervised(
        net, input=(1, channels, 32, 32), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )
    program = compile_model(made, "m", None, board.load(name), ram, must_fit=False)
    return steps_with("= windows(", emit(program))


def test_windows_of_few_channels_are_copied_for_many_outputs() -> None:
    assert copies(1, 64, "mps2_an386") == 3  # forward pass, gradient, prediction
    assert copies(1, 8, "mps2_an386") == 0
    assert copies(16, 64, "mps2_an386") == 0


def test_windows_are_not_copied_where_kernels_have_no_tiles() -> None:
    assert copies(1, 64, "mps2_an385") == 0


def test_windows_are_not_copied_for_a_budget() -> None:
    assert copies(1, 64, "mps2_an386", 200_000) == 0


def test_decision_to_copy_windows() -> None:
    cost = board.load("mps2_an386").cost
    assert costs.windows_are_copied(cost, 5000, 64, 4, 40)
    assert not costs.windows_are_copied(cost, 5000, 64, 40, 40)


PADDED = "= assemble("


def pooled_model(first: nn.Module, pool: nn.Module, channels: int = 1) -> ag.Model:
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
def test_training_of_padded_images_is_that_of_the_interpreter(
    channels: int, first: nn.Module, pool: nn.Module, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autodiff_gen.passes.calls.copy_images.image_is_padded", lambda *_: True)
    made = pooled_model(first, pool, channels)
    trainer = made.on_host("fast,ref")
    assert steps_with(PADDED, trainer.source) == 3  # forward, gradient, prediction
    rng = np.random.default_rng(5)
    batches = (
        {
            "x": rng.uniform(-1, 1, (2, channels, 13, 10)).astype(np.float32),
            "label": np.array([k, 2 - k], np.uint8),
        }
        for k in range(3)
    )
    trains_as_the_interpreter(trainer, made, batches)


def padded(name: str, ram: int = 1 << 24, kernels: list[str] | None = None, padding: int = 1) -> int:
    """How many steps of a program for a board pad an image."""
    made = pooled_model(nn.Conv2d(1, 6, 3, padding=padding), nn.MaxPool2d(2))
    program = compile_model(made, "m", kernels, board.load(name), ram, must_fit=False)
    return steps_with(PADDED, emit(program))


def test_images_are_padded_where_tuned_kernels_compute_cut_windows_one_by_one() -> None:
    assert padded("mps2_an386") == 3
    assert padded("mps2_an386", padding=0) == 0


def test_images_are_not_padded_for_reference_kernels() -> None:
    assert padded("mps2_an386", kernels=["ref"]) == 0


def test_images_are_not_padded_for_a_budget() -> None:
    assert padded("mps2_an386", 2000) == 0


def test_windows_that_are_cut() -> None:
    """Of 6 x 6 windows of 3 x 3 in 6 x 6 pixels, all but 4 x 4 are cut, and all pooled pixels but the middle one."""
    attrs = {
        **convolving(padding=(1, 1, 1, 1)),
        **{f"pool_{k}": v for k, v in pooling((2, 2), (2, 2)).items()},
    }
    inside = (3 * 6 - 2) ** 2  # taps
    forward, gradient = OPS["conv2d_pool"].windows, OPS["conv2d_pool_dw"].windows
    found = forward([(1, 6, 6, 2), (8, 3, 3, 2), (8,)], attrs)
    assert found == Windows(0, (3, 3), cut=CutWindows(8 * 4 * 3, (36 * 9 - inside) * 2 * 8))
    found = gradient([(1, 6, 6, 2), (1, 3, 3, 8), (1, 3, 3, 8)], {**attrs, "kernel": (3, 3)})
    assert found == Windows(0, (3, 3), cut=CutWindows(8 * 8, (36 * 9 - inside) * 2 * 8 // 4))


def test_decision_to_pad() -> None:
    cost = board.load("mps2_an386").cost
    assert costs.image_is_padded(cost, 900, 600, 1000)
    assert not costs.image_is_padded(cost, 90000, 600, 1000)
    assert not costs.image_is_padded(cost, 900, 600, 100000)
