"""Indexing and cumulative sums beside PyTorch's; indices out of range; wrong arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, TorchFunctions, check_c_together, check_float64
from generated_c import c_of
from rejections import all_rejected
from row_groups import each_row, in_groups

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import topological
from autodiff_gen.ir.types import Dim

A, B = (4, 6), (2, 3, 5)
PLACES = np.array([[5, 0, 2], [1, 2, 3], [4, 5, 0], [3, 0, 1]], dtype=np.int32)
CORNER = np.array([[[1, 0]], [[0, 1]]], dtype=np.int32)
PAIRS = np.array([[5, 5, 2], [1, 1, 1], [4, 5, 0], [3, 0, 1]], dtype=np.int32)
TWICE = np.array([2, 0, 2, 2, 1], dtype=np.int32)
VECTORS: list[Any] = [(5,), TWICE, (5,)]


def index(shape: tuple[int, ...], high: int, kind: str = "s32") -> tuple[Any, ...]:
    return shape, kind, high


ROWS: list[Row] = [
    ("gather", lambda F, a, i: F.gather(a, 1, i), [A, index((4, 3), 6)]),
    ("gather_bytes", lambda F, a, i: F.gather(a, 1, i), [A, index((4, 3), 6, "u8")]),
    ("gather_first_axis", lambda F, a, i: F.gather(F.exp(a), 0, i), [A, index((7, 6), 4)]),
    ("gather_negative_dim", lambda F, a, i: F.gather(a, -2, i), [B, index((2, 4, 5), 3)]),
    ("gather_of_a_corner", lambda F, a, i: F.gather(a, 1, i), [B, index((1, 4, 2), 3)]),
    ("gather_size_1", lambda F, a, i: F.gather(a, 0, i), [(1, 1), index((3, 1), 1)]),
    ("gather_vector", lambda F, a, i: F.gather(a, 0, i), [(5,), TWICE]),
    ("gather_sum", lambda F, a, i: F.sum(F.gather(a, 1, i) * F.gather(a, 1, i), 1), [A, index((4, 3), 6)]),
    ("take_along_dim", lambda F, a, i: F.take_along_dim(a, i, 1), [A, index((1, 3), 6)]),
    ("take_along_dim_both", lambda F, a, i: F.take_along_dim(a, i, 1), [(1, 3, 5), index((2, 4, 1), 3)]),
    ("take_along_dim_flat", lambda F, a, i: F.take_along_dim(a, i), [A, index((3, 2), 24)]),
    ("index_select", lambda F, a, i: F.index_select(a, 1, i), [B, TWICE]),
    ("index_select_rows", lambda F, a, i: F.tanh(F.index_select(a, 0, i)), [A, TWICE]),
    ("index_select_last", lambda F, a, i: F.index_select(F.exp(a), -1, i), [A, TWICE]),
    ("index_select_one", lambda F, a, i: F.index_select(a, 0, i), [A, index((1,), 4)]),
    ("embedding", lambda F, i, w: F.embedding(i, w), [index((2, 7), 5), (5, 3)]),
    ("embedding_bytes", lambda F, i, w: F.embedding(i, w), [index((6,), 5, "u8"), (5, 20)]),
    ("embedding_scalar", lambda F, i, w: F.embedding(i, w), [index((), 5), (5, 3)]),
    ("embedding_padding", lambda F, i, w: F.embedding(i, w, padding_idx=2) * w[0], [TWICE, (5, 3)]),
    ("embedding_padding_negative", lambda F, i, w: F.embedding(i, w, -3), [TWICE, (5, 3)]),
    ("embedding_one_row", lambda F, i, w: F.embedding(i, w), [index((4,), 1), (1, 3)]),
    ("embedding_of_a_product", lambda F, i, w, v: F.embedding(i, F.matmul(w, v)), [TWICE, (5, 3), (3, 2)]),
    ("one_hot", lambda F, i: F.one_hot(i, 5), [TWICE]),
    ("one_hot_scalar", lambda F, i: F.one_hot(i, 3), [index((), 3)]),
    ("one_hot_matrix", lambda F, i: F.one_hot(i, 4), [index((2, 3), 4, "u8")]),
    ("scatter_add", lambda F, a, i, s: F.scatter_add(a, 1, i, s), [A, index((4, 5), 6), (4, 5)]),
    ("scatter_add_rows", lambda F, a, i, s: F.scatter_add(a, 0, i, s) * a, [A, index((3, 6), 4), (3, 6)]),
    ("scatter_add_corner", lambda F, a, i, s: F.scatter_add(a, 1, i, s), [B, index((1, 4, 2), 3), (1, 4, 2)]),
    ("scatter_add_vector", lambda F, a, i, s: F.scatter_add(a, -1, i, s), [(5,), TWICE, (5,)]),
    ("index_add", lambda F, a, i, s: F.index_add(a, 1, i, s), [B, TWICE, (2, 5, 5)]),
    ("index_add_scaled", lambda F, a, i, s: F.index_add(a, 0, i, s, alpha=-0.5), [A, TWICE, (5, 6)]),
    ("scatter", lambda F, a, i, s: F.scatter(a, 1, i, s), [A, PLACES, (4, 3)]),
    ("scatter_corner", lambda F, a, i, s: F.scatter(a, 0, i, s), [B, CORNER, (2, 1, 2)]),
    ("scatter_number", lambda F, a, i: F.scatter(a, -1, i, 2.5), [A, PLACES]),
    ("reduce_sum", lambda F, a, i, s: F.scatter_reduce(a, 0, i, s, "sum"), [A, index((3, 6), 4), (3, 6)]),
    ("reduce_mean", lambda F, a, i, s: F.scatter_reduce(a, 1, i, s, "mean"), [A, index((4, 5), 6), (4, 5)]),
    ("reduce_prod", lambda F, a, i, s: F.scatter_reduce(a, 1, i, s, "prod"), [B, index((2, 4, 5), 3), (2, 4, 5)]),
    ("reduce_amax", lambda F, a, i, s: F.scatter_reduce(a, 1, i, s, "amax"), [A, index((3, 4), 6), (3, 4)]),
    ("reduce_amin", lambda F, a, i, s: F.scatter_reduce(a, 0, i, s, "amin"), [(5,), TWICE, (5,)]),
    *(
        (f"reduce_{r}_of_new", lambda F, a, i, s, r=r: F.scatter_reduce(a, 0, i, s, r, include_self=False), VECTORS)
        for r in ("mean", "prod", "amax")
    ),
    ("scatter_number_once", lambda F, a, i: F.scatter(a, 1, i, 2.5) * a, [B, index((2, 1, 5), 3)]),
    ("scatter_number_twice", lambda F, a, i: F.scatter(a, 1, i, 2.5) * a, [A, PAIRS]),
    ("gates", lambda F, a: F.softmax(F.scatter(F.full_like(a, float("-inf")), 1, *F.topk(a, 2)[::-1]), 1), [A]),
    ("put", lambda F, a, i, v: F.index_put(a, (i,), v) * a, [A, np.array([3, 0], dtype=np.int32), (2, 6)]),
    ("put_sums", lambda F, a, i, j, v: F.index_put(a, (i, j), v, True), [B, index((3, 1), 2), index((4,), 3), (5,)]),
    ("put_by_mask", lambda F, a, v: F.index_put(a, (a[:, 0] > 0,), v), [A, ()]),
    ("diagonal", lambda F, a: F.diagonal(F.exp(a)), [(4, 4)]),
    ("diagonal_above", lambda F, a: F.diagonal(a, 2, 1, 0) * a[0, :3], [(5, 4)]),
    ("diagonal_below", lambda F, a: F.diagonal(a, -1, dim1=-2, dim2=-1), [B]),
    ("indices", lambda F, a, i: a[:, i] * a[0, 0, 0], [B, TWICE]),
    ("indices_first", lambda F, a, i: F.exp(a)[i], [A, index((2, 3), 4)]),
    ("indices_last", lambda F, a, i: a[..., i], [A, index((), 6, "u8")]),
    ("indices_of_two_axes", lambda F, a, i, j: a[i, j] * 2.0, [(4, 6, 2), TWICE, index((5,), 6)]),
    ("indices_that_broadcast", lambda F, a, i, j: a[:, i, j], [B, index((3, 1), 3), index((4,), 5, "u8")]),
    ("one_of_each_row", lambda F, a, i: a[F.arange(4), i], [A, index((4,), 6)]),
    ("one_of_each_row_by_a_mask", lambda F, a, b: a[F.arange(4), (b > 0).long()], [A, (4,)]),
    ("a_part_of_each_row", lambda F, a, i: F.tanh(a)[F.arange(2), i], [B, index((2,), 3)]),
    ("constant_indices", lambda F, a: a[:, [0, 2, 3, 2]] * a[[1, 3, 0, 2], :4], [A]),
    ("a_list", lambda F, a: a[[0, 2]] + a[:, [5, 3, 1, 0, 1, 2]][[1, 1]] + a[:2, [-1, 0, 3, 2, 1, 4]], [A]),
    ("a_constant_mask", lambda F, a: a[:, np.array([True, False, True, True, False, True])], [A]),
    ("constant_indices_of_two_axes", lambda F, a: a[[0, 3, 3], [5, -1, 0]], [A]),
    ("argsort", lambda F, a: F.argsort(a), [A]),
    ("argsort_of_ties", lambda F, a: F.argsort(F.floor(a), dim=0, stable=True), [(6, 5)]),
    ("argsort_descending", lambda F, a: F.argsort(a, dim=-2, descending=True), [B]),
    ("sort", lambda F, a: F.sort(F.sin(a), 0)[0], [A]),
    ("sort_descending", lambda F, a: a.sort(descending=True)[0] * a, [B]),
    ("sort_of_one", lambda F, a: F.sort(a, 1)[0], [(3, 1)]),
    ("topk", lambda F, a: F.topk(a, 2)[0] ** 2, [A]),
    ("topk_indices", lambda F, a: a.topk(3, dim=0, largest=False)[1], [A]),
    ("topk_middle", lambda F, a: F.topk(F.exp(a), 2, 1, largest=False)[0], [B]),
    ("cumsum", lambda F, a: F.cumsum(a, 1), [A]),
    ("cumsum_first_axis", lambda F, a: F.exp(F.cumsum(a, 0)), [(3, 4)]),
    ("cumsum_middle", lambda F, a: F.cumsum(F.sin(a), -2), [B]),
    ("cumsum_of_a_slice", lambda F, a: F.cumsum(a[:, 1::2], 1), [A]),
    ("cumsum_of_one", lambda F, a: F.cumsum(a, 0), [(1,)]),
    ("tril", lambda F, a: F.tril(a), [A]),
    ("tril_below", lambda F, a: F.tril(F.exp(a), -1), [B]),
    ("triu", lambda F, a: F.triu(a, diagonal=2), [A]),
    ("triu_nothing", lambda F, a: F.triu(a, 9), [A]),
]  # fmt: skip


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_against_torch(row: Row) -> None:
    check_float64(row)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("block", range(2))
def test_generated_c_against_torch(block: int) -> None:
    check_c_together(ROWS[block::2])


@pytest.mark.torch
@pytest.mark.parametrize(
    "f",
    [
        lambda F, a, i: F.gather(a, 0, i) ** 3,
        lambda F, a, i: F.exp(F.embedding(i[0], a)),
        lambda F, a, i: F.scatter_add(a, 0, i, a[:2] ** 2) ** 2,
        lambda F, a, i: F.cumsum(a, 1) ** 2,
    ],
)
def test_second_derivatives(f: Callable[..., Any]) -> None:
    import torch

    array = np.random.default_rng(1).uniform(-1, 1, (3, 4)).astype(np.float32)
    places = np.array([[0, 2, 2, 1], [2, 2, 0, 1]], dtype=np.int32)
    t = torch.tensor(array.astype(np.float64), requires_grad=True)
    v = np.cos(np.arange(12.0)).reshape(3, 4).astype(np.float32)
    y = f(TorchFunctions(), t, torch.tensor(places.astype(np.int64)))
    (first,) = torch.autograd.grad((y**2).sum(), t, create_graph=True)
    (second,) = torch.autograd.grad((first * torch.tensor(v.astype(np.float64))).sum(), t)
    x, i = ag.Input("x", array.shape), ag.Input("i", places.shape, dtype="s32")
    g = grad(F.sum(F.square(f(F, x, i))), x)
    got = evaluate([g, grad(F.sum(g * v), x)], {x: array, i: places}, float_dtype="float64")
    np.testing.assert_allclose(got[0], first.detach().numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got[1], second.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.cc
@pytest.mark.parametrize("rows", [1, 3])
def test_the_batch_varies(rows: int) -> None:
    """A graph for up to 3 rows, given fewer, equals the graph for that many."""
    rng = np.random.default_rng(rows)
    arrays = [
        rng.uniform(-1, 1, (rows, 4)).astype(np.float32),
        rng.integers(0, 4, (rows, 5)).astype(np.int32),
        rng.uniform(-1, 1, (4, 2)).astype(np.float32),
    ]
    results = []
    for size in (3, rows):
        x = ag.Input("x", (size, 4), batch_axis=0)
        i = ag.Input("i", (size, 5), dtype="s32", batch_axis=0)
        w = ag.Input("w", (4, 2))
        y = F.embedding(i, w, padding_idx=1)
        z = F.scatter_add(F.cumsum(x, 1), 1, i, F.gather(x, 1, i)) + F.tril(x)[:, ::1]
        down = F.cumsum(x, 0)
        cost = F.sum(F.exp(y)) + F.sum(F.square(z)) + F.sum(F.square(down))
        outputs = [y, z, down, F.to(F.one_hot(i, 4), "f32"), *grad(cost, [x, w])]
        results.append(ag.function([x, i, w], outputs).on_host(kernels="ref")(*arrays))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.cc
def test_columns_of_an_input_have_limits_of_their_own() -> None:
    """... such as categories of a table; an index of the whole limits all of them, and one column is free."""
    i = ag.Input("i", (4, 4), dtype="s32", batch_axis=0)
    tables = [ag.Input(f"w{k}", (rows, 2)) for k, rows in enumerate((5, 7, 3))]
    columns = [F.embedding(i[:, k], w) for k, w in enumerate(tables)]
    arrays = [np.ones(w.shape, np.float32) for w in tables]
    f = ag.function([i, *tables], columns).on_host()
    f(np.array([[4, 6, 2, 6], [0, 0, 0, 0]]), *arrays)
    for wrong, message in (
        ([5, 0, 0, 0], r"i\[0, 0\] is 5, outside 0 to 4"),
        ([0, 7, 0, 0], "0 to 6"),
        ([0, 0, 3, 0], "0 to 2"),
    ):
        with pytest.raises(ShapeError, match=message):
            f(np.array([wrong]), *arrays)
    text = c_of([i, *tables], columns)
    assert "if (i_2[i * 4 + 2] < 0 || i_2[i * 4 + 2] >= 3) {" in text
    whole = ag.function([i, *tables], [*columns, F.one_hot(i, 6)]).on_host()
    with pytest.raises(ShapeError, match=r"i\[0, 1\] is 6, outside 0 to 5"):
        whole(np.array([[0, 6, 0, 0]]), *arrays)


@pytest.mark.cc
def test_indices_are_checked_before_anything_is_written() -> None:
    """The smallest of all extents that an input indexes is the bound; the error names it."""
    i = ag.Input("i", (3,), dtype="s32")
    w, v = ag.Input("w", (5, 2)), ag.Input("v", (4, 3))
    f = ag.function([i, w, v], [F.embedding(i, w), F.index_select(v, 0, i)]).on_host(kernels="ref")
    arrays = [np.ones((5, 2), np.float32), np.ones((4, 3), np.float32)]
    assert len(f([0, 3, 1], *arrays)) == 2
    for wrong in ([0, 4, 1], [0, -1, 1]):
        with pytest.raises(ShapeError, match=r"i\[1\] is -?\d, outside 0 to 3"):
            f(wrong, *arrays)
    text = c_of([i, w, v], [F.embedding(i, w), F.index_select(v, 0, i)])
    check = "if (i_2[i] < 0 || i_2[i] >= 4) {"
    assert check in text and text.index(check) < text.index("/* 1 ")


@pytest.mark.cc
def test_computed_indices_are_brought_into_range() -> None:
    x, w = ag.Input("x", (6,)), ag.Input("w", (4, 2))
    array = np.array([-7.0, -1.0, 0.0, 3.0, 4.0, 1e6], np.float32)
    rows = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    y = F.embedding(F.to(F.matmul(x, np.eye(6)), "s32"), w)  # no check before the call computes a product
    want = rows[[0, 0, 0, 3, 3, 3]]
    np.testing.assert_array_equal(evaluate([y], {x: array, w: rows})[0], want)
    np.testing.assert_array_equal(ag.function([x, w], [y]).on_host(kernels="ref")(array, rows)[0], want)


def test_indices_in_range_are_not_compared() -> None:
    x = ag.Input("x", (3, 4))
    best = F.argmax(x, 1, keepdim=True)
    for y in (F.gather(x, 1, best), F.gather(x, 1, np.array([[0], [3], [1]]))):
        assert not {n.op.name for n in topological([y])} & {"where", "lt", "ge"}


def test_a_one_hot_vector_is_compared() -> None:
    """zeros.scatter_(1, label[:, None], 1): nothing is added up at places."""
    x, i = ag.Input("x", (4, 3)), ag.Input("i", (4, 1), "s32")
    ops = {n.op.name for n in topological([F.scatter(x, 1, i, 1.0)])}
    assert "eq" in ops and "scatter_sum" not in ops


def test_an_embedding_never_iterates_over_its_table() -> None:
    """Neither the value nor the gradient compares indices with all rows."""
    i, w = ag.Input("i", (2,), dtype="s32"), ag.Input("w", (1000, 2))
    y = F.embedding(i, w, padding_idx=0)
    text = c_of([i, w], [y, grad(F.sum(F.exp(y)), w)])
    assert "1000;" not in text and text.count("ag_index_sum_f32_ref(") == 1


X, K = ag.Input("x", (2, 3)), ag.Input("i", (2, 3), dtype="s32")
V = ag.Input("v", (3,), dtype="s32")
N = ag.Input("rows", (4, 3), batch_axis=0)

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.gather(X, 2, K), r"^gather\(x: f32\[2,3\]\): dim=2: axis 2 is out of range"),
    (
        lambda: F.gather(X, 1, X),
        r"^gather\(x: .*, x: .*\): the index must be of an integer dtype, not f32; ag.Input\(..., "
        r"dtype='s32'\) has one$",
    ),
    (lambda: F.gather(X, 1, V), "the index must have as many axes as the input"),
    (lambda: F.gather(X[:1], 1, K), "axis 0 of the index has extent 2, more than the input; only axis dim=1"),
    (lambda: F.gather(N, 0, K), "axis 0 is the batch axis"),
    (lambda: F.gather(N, 1, K), "axis 0 of the index has extent 2"),
    (lambda: F.gather(X, 1, [[0, 3], [0, 0]]), r"^gather\(x: .*, s32\[2,2\]\): an index is outside 0 to 2$"),
    (lambda: F.gather(X, 1, [[0, -1], [0, 0]]), "an index is outside 0 to 2"),
    (lambda: F.gather(X, 1, K, sparse_grad=True), "^gather: the argument 'sparse_grad' is not supported$"),
    (lambda: F.take_along_dim(X, V, 1), "the indices must have as many axes as the input"),
    (lambda: F.take_along_dim(F.cat([X, X]), K, 1), "axis 0: 4 and 2 do not broadcast"),
    (lambda: F.index_select(X, 0, K), "the index must have one axis"),
    (lambda: F.index_select(X, 0, [2]), "an index is outside 0 to 1"),
    (lambda: F.embedding(K, V), r"^embedding\(v: s32\[3\]\): the weight must have the shape \[rows, columns\]$"),
    (lambda: F.embedding(X, X), "the index must be of an integer dtype, not f32"),
    (lambda: F.embedding(K, X, 2), "padding_idx=2 is outside 0 to 1"),
    (lambda: F.embedding(K, X, max_norm=1.0), "^embedding: the argument 'max_norm' is not supported$"),
    (lambda: F.embedding(K, X, sparse=True), "^embedding: the argument 'sparse' is not supported$"),
    (lambda: F.one_hot(K), r"^one_hot\(i: s32\[2,3\]\): num_classes=-1 must be an integer of at least 1$"),
    (lambda: F.one_hot(X, 3), "the index must be of an integer dtype, not f32"),
    (lambda: F.one_hot([0, 3], 3), "an index is outside 0 to 2"),
    (lambda: F.scatter_add(X, 1, V, X), "input, index and src must have as many axes"),
    (lambda: F.scatter_add(X, 1, K, X[:, :2]), "axis 1 of the index has extent 3, more than the input"),
    (lambda: F.scatter_add(X[:1], 1, K, X), "axis 0 of the index has extent 2, more than the input"),
    (lambda: F.scatter_reduce(X, 1, K, X, "max"), "reduce='max'; known: sum, mean, prod, amax, amin"),
    (lambda: F.scatter_reduce(X, 1, V, X, "amax"), "input, index and src must have as many axes"),
    (lambda: F.index_put(X, (K, K, K), 1.0), "3 indices for 2 axes"),
    (lambda: F.diagonal(X, 3), "offset=3 is outside the axes of extents 2 and 3"),
    (lambda: F.diagonal(X, 0, 1, -1), "dim1=1 and dim2=-1 are the same axis"),
    (lambda: F.index_add(X, 0, V, X), "source must have the input's shape, except along axis 0"),
    (lambda: F.cumsum(X, 2), r"^cumsum\(x: f32\[2,3\]\): dim=2: axis 2 is out of range"),
    (lambda: F.cumsum(K, 0), r"^cumsum\(i: s32\[2,3\]\): needs a float, not s32"),
    (lambda: F.cumsum(X, 0, dtype="f32"), "^cumsum: the argument 'dtype' is not supported$"),
    (lambda: F.cumsum(N.T, 0), r"^cumsum\(f32\[3,n\]\): the batch axis must come first; use F.permute$"),
    (lambda: F.tril(V), r"^tril\(v: s32\[3\]\): needs at least two axes$"),
    (lambda: F.triu(X, 0.5), "diagonal=0.5 must be an integer"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, ShapeError)


def test_shapes_follow_the_batch() -> None:
    i = ag.Input("i", (4, 2), dtype="s32", batch_axis=0)
    assert F.embedding(i, ag.Input("w", (5, 3))).shape == (Dim(1, 4), 2, 3)
    assert F.one_hot(i, 5).shape == (Dim(1, 4), 2, 5)


def test_the_table_of_embeddings_starts_as_in_torch() -> None:
    """Normal with variance 1, and a row of zeros for the padding."""
    layer = nn.Embedding(50, 40, padding_idx=-2)
    assert layer.padding_idx == 48
    (value,) = (v for _, v in layer.named_parameters())
    table = value.node.attrs["state"].init.array()
    assert not table[48].any() and np.abs(np.delete(table, 48, 0)).min() > 0
    assert abs(table.mean()) < 0.1 and abs(np.delete(table, 48, 0).std() - 1.0) < 0.1


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("seed", [0, 9])
def test_an_embedding_trains_as_in_torch(seed: int) -> None:
    """Drawn on the device as on the host; three steps of SGD, tokens that repeat, fewer rows than the batch."""
    import torch

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(7, 5, padding_idx=3)
            self.head = nn.Linear(5, 2)

        def forward(self, tokens: Any) -> Any:
            return self.head(F.mean(F.tanh(self.table(tokens)), 1))

    tokens, label = ag.Input("tokens", (4, 6), dtype="u8", batch_axis=0), ag.Input("y", (4,), "u8", 0)
    net = Net()
    scores = net(tokens)
    model = ag.Model([tokens], [label], {"scores": scores}, F.cross_entropy(scores, label), optim.SGD(lr=0.5))
    trainer = model.on_host(kernels="ref")
    trainer.init(seed)
    start = trainer.state_dict()
    want = next(v for n, v in net.named_parameters() if n == "table.weight").node.attrs["state"].init
    np.testing.assert_array_equal(start["table.weight"], want.array(seed))

    twin = torch.nn.ModuleDict(
        {"table": torch.nn.Embedding(7, 5, padding_idx=3), "head": torch.nn.Linear(5, 2)}
    )
    twin.load_state_dict({k: torch.tensor(v) for k, v in start.items()})
    sgd = torch.optim.SGD(twin.parameters(), lr=0.5)
    rng = np.random.default_rng(seed)
    for rows in (4, 2, 4):
        x, t = rng.integers(0, 7, (rows, 6)), rng.integers(0, 2, rows)
        sgd.zero_grad()
        y = twin["head"](torch.tanh(twin["table"](torch.tensor(x))).mean(1))
        loss = torch.nn.functional.cross_entropy(y, torch.tensor(t))
        loss.backward()
        sgd.step()
        assert trainer.train_step(x, t) == pytest.approx(loss.item(), rel=1e-5)
    for name, value in trainer.state_dict().items():
        np.testing.assert_allclose(value, twin.state_dict()[name].numpy(), rtol=1e-5, atol=1e-6)


def test_plain_sgd_writes_the_rows_that_are_named() -> None:
    """No gradient of the table is stored, and no other row is touched."""
    from autodiff_gen.codegen.compiler import compile_model
    from autodiff_gen.codegen.files import emit

    tokens, target = ag.Input("tokens", (6,), dtype="s32"), ag.Input("target", (6, 3))
    table = ag.Param("table", np.ones((1000, 3)))
    y = F.embedding(tokens, table)
    model = ag.Model([tokens], [target], {"y": y}, F.mse_loss(y, target), optim.SGD(lr=0.1))
    program = compile_model(model, "m")
    assert program.arena_words < 100
    text = emit(program)["m.c"]
    assert "t->table, 1, 1000, 6, 3, -lr, 1.0f);" in text
