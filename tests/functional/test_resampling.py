"""Interpolation and rearranged pixels beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, check_c_together, check_float64
from rejections import all_rejected
from row_groups import each_row, in_groups

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.errors import ShapeError

SERIES, IMAGES = (2, 3, 5), (2, 2, 4, 3)
RESIZED: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    *(
        (shape, {"mode": mode, **size})
        for shape, modes in (
            (SERIES, ("nearest", "nearest-exact", "linear")),
            (IMAGES, ("nearest", "bilinear", "bicubic")),
        )
        for mode in modes
        for size in ({"size": 7}, {"size": 2}, {"scale_factor": 2}, {"scale_factor": 1.3})
    ),
    (IMAGES, {"mode": "nearest-exact", "size": (8, 9)}),
    (IMAGES, {"mode": "nearest-exact", "scale_factor": 1.3}),
    ((2, 2, 3, 4), {"mode": "nearest", "scale_factor": 2.2}),
    (IMAGES, {"mode": "bilinear", "size": (8, 2), "align_corners": True}),
    (IMAGES, {"mode": "bicubic", "size": (1, 5), "align_corners": True}),
    (SERIES, {"mode": "linear", "size": 1, "align_corners": False}),
    (IMAGES, {"mode": "bilinear", "scale_factor": (1.6, 0.7), "recompute_scale_factor": True}),
    (IMAGES, {"mode": "nearest", "scale_factor": (2.5, 1)}),
    (IMAGES, {"mode": "area", "size": (2, 5)}),
    (SERIES, {"mode": "area", "scale_factor": 0.6}),
    (IMAGES, {"size": (4, 3), "mode": "bilinear"}),
    ((2, 2, 1, 3), {"mode": "bilinear", "size": (4, 5)}),
    ((2, 2, 3, 1), {"mode": "bicubic", "size": (1, 4)}),
]  # fmt: skip

ROWS: list[Row] = [
    *(
        (f"interpolate_{k}", lambda F, a, o=o: F.interpolate(F.exp(a), **o), [shape])
        for k, (shape, o) in enumerate(RESIZED)
    ),
    ("pixel_shuffle", lambda F, a: F.pixel_shuffle(a, 2) ** 2, [(2, 8, 3, 2)]),
    ("pixel_shuffle_one_image", lambda F, a: F.pixel_shuffle(a, 3), [(9, 2, 3)]),
    ("pixel_unshuffle", lambda F, a: F.pixel_unshuffle(F.exp(a), 2), [(2, 3, 4, 6)]),
    ("channel_shuffle", lambda F, a: F.channel_shuffle(a, 3) ** 2, [(2, 6, 3, 2)]),
]


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_against_torch(row: Row) -> None:
    check_float64(row, 1e-6)  # weights are constants in float32


@pytest.mark.cc
@pytest.mark.torch
@in_groups(ROWS, size=24)
def test_generated_c_against_torch(rows: list[Row]) -> None:
    check_c_together(rows)


@pytest.mark.cc
def test_the_batch_is_taken_whole() -> None:
    """Of up to 3 images, given 2, equal to the results of a graph for 2."""
    array = np.random.default_rng(1).uniform(-1, 1, (2, 4, 3, 2)).astype(np.float32)
    results = []
    for size in (3, 2):
        x = ag.Input("x", (size, 4, 3, 2), batch_axis=0)
        y = F.interpolate(F.pixel_shuffle(x, 2), size=(5, 6), mode="bilinear")
        z = F.interpolate(F.channel_shuffle(x, 2), scale_factor=2)
        results.append(ag.function([x], [y, z]).on_host()(array))
    for got, want in zip(*results, strict=True):
        np.testing.assert_array_equal(got, want)


def test_gradients_add_nothing_up_by_index() -> None:
    """Which old elements a new one is made of is known, so each gradient is a sum of known elements, too."""
    net = nn.Sequential(nn.Conv2d(2, 3, 1), nn.Upsample(scale_factor=2, mode="bicubic"), nn.Conv2d(3, 2, 1))
    model = ag.Model.supervised(net, (1, 2, 4, 5), nn.MSELoss(), optim.SGD(lr=0.1))
    (graph,) = (g for g in model.entries() if g.name == "train_step")
    names = {n.op.name for n in graph.nodes}
    assert "resample" in names and names.isdisjoint({"index_sum", "scatter_sum"})


X = ag.Input("x", (2, 4, 3, 2))

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.interpolate(X), r"^interpolate\(x: f32\[2,4,3,2\]\): give either size or scale_factor$"),
    (lambda: F.interpolate(X, 2, 2), "give either size or scale_factor$"),
    (lambda: F.interpolate(X, 2, mode="linear"), "mode='linear'; known: \"nearest\", .*\"bilinear\", \"bicubic\"$"),
    (lambda: F.interpolate(X[0, 0], 2), r"the input must be \[N, C, L\] or \[N, C, H, W\]$"),
    (lambda: F.interpolate(X, 2, align_corners=True), "align_corners is not for mode='nearest'$"),
    (lambda: F.interpolate(X, (1, 2, 3)), r"size=\(1, 2, 3\) must be a number, or 2 of them$"),
    (lambda: F.interpolate(X, scale_factor=0.1), r"the result would have the size \[0, 0\]$"),
    (lambda: F.interpolate(X, scale_factor=-1), "scale_factor=-1 must be a number greater than 0$"),
    (lambda: F.interpolate(X, 2, antialias=True), "^interpolate: the argument 'antialias' is not supported$"),
    (lambda: F.pixel_shuffle(X, 3), r"4 channels cannot be divided by upscale_factor\^2 = 9$"),
    (lambda: F.pixel_unshuffle(X, 2), "3 x 2 pixels cannot be divided by downscale_factor=2$"),
    (lambda: F.channel_shuffle(X, 3), "4 channels cannot be divided into groups=3 groups$"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, ShapeError)
