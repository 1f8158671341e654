"""Grids, and the gamma function: an error is one line."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.errors import ShapeError

X, GRID, THETA = ag.Input("x", (2, 3, 4, 4)), ag.Input("g", (2, 3, 3, 2)), ag.Input("theta", (2, 2, 3))
REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.grid_sample(X, THETA), "needs images [N, C, H, W] and a grid [N, Ho, Wo, 2]"),
    (lambda: F.grid_sample(X, ag.Input("h", (3, 3, 3, 2))), "needs images [N, C, H, W] and a grid"),
    (
        lambda: F.grid_sample(X, GRID, "cubic"),
        "mode='cubic', padding_mode='zeros'; known: 'bilinear', 'nearest'",
    ),
    (lambda: F.grid_sample(X, GRID, padding_mode="wrap"), "padding_mode='wrap'; known: "),
    (lambda: F.affine_grid(X, (2, 3, 4, 4)), "needs theta [N, 2, 3] and size (N, C, H, W)"),
    (lambda: F.affine_grid(THETA, (2, 3, 4)), "needs theta [N, 2, 3] and size (N, C, H, W)"),
    (lambda: F.affine_grid(THETA, (2, 3, 0, 4)), "size=(2, 3, 0, 4) has no pixels"),
    (lambda: F.affine_grid(THETA, (2, 3, 4.5, 4)), "size=(2, 3, 4.5, 4) must be integers"),  # type: ignore[arg-type]
    (lambda: F.lgamma(ag.Input("i", (3,), "s32")), "lgamma(i: s32[3]): the input must be a float, not s32"),
    (lambda: F.digamma(ag.Input("i", (3,), "s32")), "lgamma(i: s32[3]): the input must be a float, not s32"),
]


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=re.escape(message)) as e:
        build()
    assert "\n" not in str(e.value)
