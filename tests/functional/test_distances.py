"""Similarities, distances and vectors of length 1 beside PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, check_c_together, check_float64
from row_groups import each_row, in_groups

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.errors import ShapeError

INF = float("inf")
A, B = (4, 6), (3, 6)
WITH_ZEROS = np.float32([[1, -2, 0.5], [0, 0, 0], [2, 0, -1]])

ROWS: list[Row] = [
    ("normalize", lambda F, a: F.normalize(a) * a, [A]),
    *((f"normalize_{p}", lambda F, a, p=p: F.normalize(a, p, dim=-2), [(2, 3, 4)]) for p in (1, 3.0, INF)),
    ("normalize_zeros", lambda F, a: F.normalize(a) * F.exp(a), [WITH_ZEROS]),
    ("normalize_small", lambda F, a: F.normalize(a, eps=1.5), [WITH_ZEROS]),
    ("cosine_similarity", lambda F, a, b: F.cosine_similarity(a, b) * a[:, 0], [A, A]),
    ("cosine_similarity_all", lambda F, a, b: F.cosine_similarity(a[:, None], b[None], dim=-1), [A, B]),
    ("cosine_similarity_small", lambda F, a, b: F.cosine_similarity(a, b, 0, eps=3.0), [WITH_ZEROS, (3, 3)]),
    *(
        (f"pairwise_distance_{p}", lambda F, a, b, p=p: F.pairwise_distance(a, b, p), [A, A])
        for p in (1, 2, 2.5, INF)
    ),
    ("pairwise_distance_kept", lambda F, a, b: F.pairwise_distance(a, b, eps=0.1, keepdim=True), [A, (6,)]),
    *((f"cdist_{p}", lambda F, a, b, p=p: F.cdist(a, b, p) * F.exp(a)[:, :1], [A, B]) for p in (1.0, 2.0, 3.0)),
    ("cdist_of_itself", lambda F, a: F.cdist(a, a, 2.0), [(3, 4)]),
    ("cdist_batches", lambda F, a, b: F.cdist(a, b), [(2, 3, 4), (2, 5, 4)]),
    ("norm_3", lambda F, a: F.norm(a, 3, dim=1), [WITH_ZEROS]),
    ("norm_half", lambda F, a: F.norm(a, 0.5, dim=(0, 2), keepdim=True), [(2, 3, 4)]),
]  # fmt: skip


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_against_torch(row: Row) -> None:
    check_float64(row, 1e-6)  # 1 / p and eps are constants in float32


@pytest.mark.cc
@pytest.mark.torch
@in_groups(ROWS, size=20)
def test_generated_c_against_torch(rows: list[Row]) -> None:
    check_c_together(rows)


X = ag.Input("x", (2, 3))

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.normalize(X, "nuc"), r"^norm\(x: f32\[2,3\]\): p='nuc'; known: \"fro\", numbers greater than 0$"),
    (lambda: F.normalize(X, eps=-1), "^normalize: eps=-1 must be a number of at least 0$"),
    (lambda: F.cosine_similarity(X, np.ones((2, 4))), r"^cosine_similarity\(x: .*\): shapes .* do not broadcast"),
    (lambda: F.cdist(X, np.ones((2, 4))), r"^cdist\(.*\): needs \[..., P, D\] and \[..., R, D\] with the same D$"),
]  # fmt: skip


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        build()
