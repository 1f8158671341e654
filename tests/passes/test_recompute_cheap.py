"""Loops of the backward pass compute cheap values again, from arrays in memory and from rows that are stored for it."""

from __future__ import annotations

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.targets import board


def test_masks_of_a_normalised_image_are_computed_again_of_its_scale_and_shift() -> None:
    """The shift is of the bias, which the step updates: it is stored, a number for each channel."""
    network = nn.Sequential(
        *(nn.Conv2d(3, 8, 3, bias=False), nn.BatchNorm2d(8), nn.Hardswish()),
        *(nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(288, 4)),
    )
    model = ag.Model.supervised(network, (1, 3, 10, 10), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    target = board.load("host_avx2")
    assert target.cost.memory == 0  # nothing is computed again for a smaller arena
    text = emit(compile_model(model, "m", ["ref"], target))["m.c"]
    assert "layer1_shift[i] = " in text and "uint8_t *const" not in text and "mask" not in text
