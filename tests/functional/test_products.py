"""einsum, outer, bmm, mm, mv and dot beside PyTorch's; wrong arguments."""

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
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import ShapeError

EQUATIONS: list[tuple[str, list[tuple[int, ...]]]] = [
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ijk->kj", [(2, 3, 4)]),
    ("ba", [(3, 4)]),
    ("i,i->", [(4,), (4,)]),
    ("i,i->i", [(4,), (4,)]),
    ("i,j->ij", [(3,), (4,)]),
    ("i,j->ji", [(3,), (4,)]),
    ("ij,j->i", [(3, 4), (4,)]),
    ("ij,jk", [(3, 4), (4, 2)]),
    ("ij,kj->ik", [(3, 4), (2, 4)]),
    ("ij,ij->", [(3, 4), (3, 4)]),
    ("ij,ij->j", [(3, 4), (3, 4)]),
    ("ij,jk->ki", [(3, 4), (4, 2)]),
    ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
    ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
    ("bqhd,bkhd->bhqk", [(2, 3, 2, 4), (2, 5, 2, 4)]),
    ("bij,kj->bik", [(2, 3, 4), (5, 4)]),
    ("bij,jb->i", [(2, 3, 4), (4, 2)]),
    ("ijk,jkl->il", [(2, 3, 4), (3, 4, 2)]),
    ("ijk,l->il", [(2, 3, 4), (2,)]),
    ("ij,k->", [(2, 3), (4,)]),
    ("i j , j k -> i k", [(1, 4), (4, 1)]),
    ("aB,Bc->ac", [(1, 1), (1, 1)]),
    ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
    ("bi,oij,bj->bo", [(2, 3), (4, 3, 5), (2, 5)]),
    ("i,j,k,l->lji", [(2,), (3,), (4,), (2,)]),
    ("...ij,...jk->...ik", [(2, 2, 3, 4), (2, 4, 5)]),
    ("...j,kj->...k", [(2, 3, 4), (5, 4)]),
    ("i...->...", [(2, 3, 4)]),
    ("a...,b...", [(2, 3), (4, 3)]),
    ("...ii->...i", [(2, 3, 3)]),
    ("iji,j", [(2, 3, 2), (3,)]),
    ("ii", [(3, 3)]),
]
ROWS: list[Row] = [
    *((e, lambda F, *v, e=e: F.einsum(e, *v), list(shapes)) for e, shapes in EQUATIONS),
    ("outer", lambda F, a, b: F.outer(F.exp(a), b), [(3,), (4,)]),
    ("bmm", lambda F, a, b: F.bmm(a, b), [(2, 3, 4), (2, 4, 1)]),
    ("mm", lambda F, a, b: F.mm(a, b), [(3, 4), (4, 2)]),
    ("mv", lambda F, a, b: F.mv(a, b), [(3, 4), (4,)]),
    ("dot", lambda F, a, b: F.dot(a, b), [(4,), (4,)]),
]


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_against_torch(row: Row) -> None:
    check_float64(row)


@pytest.mark.cc
@pytest.mark.torch
def test_generated_c_against_torch() -> None:
    check_c_together(ROWS)


@pytest.mark.cc
@pytest.mark.parametrize("rows", [1, 3])
def test_the_batch_varies(rows: int) -> None:
    rng = np.random.default_rng(rows)
    arrays = [rng.uniform(-1, 1, s).astype(np.float32) for s in ((rows, 2, 4), (rows, 4), (4, 2))]
    results = []
    for size in (3, rows):
        x, y = ag.Input("x", (size, 2, 4), batch_axis=0), ag.Input("y", (size, 4), batch_axis=0)
        w = ag.Input("w", (4, 2))
        outputs = [
            F.einsum("bij,bj->bi", x, y),
            F.einsum("bij,jk->bik", x, w),
            F.einsum("bij,bk->ijk", x, y),
            F.einsum("bj,jk->bk", y, w),
            F.einsum("bij->ij", x),
        ]
        total = sum((F.sum(F.square(v)) for v in outputs[1:]), F.sum(F.exp(outputs[0])))
        f = ag.function([x, y, w], [*outputs, *grad(total, [x, y, w])])
        results.append(f.on_host(kernels="ref")(*arrays))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


X, Y = ag.Input("x", (2, 3)), ag.Input("y", (3, 4))

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.einsum("..ij->i", X), "^einsum: '..ij->i': axes are named by letters"),
    (lambda: F.einsum("ii->i", X), "axis 'i' has extents"),
    (
        lambda: F.einsum("ij,jk->ik", X),
        r"^einsum\(x: f32\[2,3\]\): 'ij,jk->ik' names 2 operands, but got 1$",
    ),
    (lambda: F.einsum("ij,jk,kl->il", X, Y, Y), "axis 'k' has extents 4 and 3$"),
    (lambda: F.einsum("ij,jk->ik", X, X), "axis 'j' has extents 3 and 2$"),
    (lambda: F.einsum("ijk->i", X), "'ijk' names 3 axes of 2$"),
    (lambda: F.einsum("ij->k", X), "the result's letters must be the operands', each once$"),
    (lambda: F.einsum("ij->ii", X), "the result's letters must be"),
    (lambda: F.einsum("i1->i", X), "axes are named by letters"),
    (lambda: F.outer(X, Y), r"^outer\(x: f32\[2,3\], y: f32\[3,4\]\): needs operands of 1 and 1 axes$"),
    (lambda: F.bmm(X, Y), "needs operands of 3 and 3 axes"),
    (lambda: F.bmm(F.reshape(X, (2, 3, 1)), F.reshape(X, (1, 1, 6))), "batches of 2 and 1 matrices"),
    (lambda: F.mm(X, X), "the inner extents differ"),
    (lambda: F.mv(X, X), "needs operands of 2 and 1 axes"),
    (lambda: F.dot(X, X), "needs operands of 1 and 1 axes"),
]


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, ShapeError)
