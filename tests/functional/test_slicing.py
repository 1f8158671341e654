"""Slices, joined and repeated values beside PyTorch's; their C; wrong arguments."""

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
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.interpreter import evaluate

A = (4, 6)
B = (2, 3, 5)

KEYS: list[tuple[str, Any, tuple[int, ...]]] = [
    ("int", 2, A),
    ("negative", -1, A),
    ("ints", (1, -2), A),
    ("slice", slice(1, 3), A),
    ("step", (slice(None), slice(1, None, 2)), A),
    ("negative_ends", (slice(-3, -1), slice(None, -2)), A),
    ("beyond_the_end", (slice(0, 99), slice(-99, 2)), A),
    ("mixed", (slice(None, None, 3), 2), A),
    ("none", (None, slice(None), None, 1), A),
    ("ellipsis", (..., 2), B),
    ("ellipsis_in_the_middle", (1, ..., slice(1, 4)), B),
    ("ellipsis_for_nothing", (0, 1, 2, ...), B),
    ("everything", (slice(None), ...), B),
    ("size_1", (0, slice(0, 1)), (1, 1)),
]

ROWS: list[Row] = [
    *((f"getitem_{name}", lambda F, a, key=key: a[key], [shape]) for name, key, shape in KEYS),
    ("backwards", lambda F, a: a[::-1, 4:0:-2] if F is F_ else a.flip(0)[:, [4, 2]], [A]),
    ("narrow", lambda F, a: F.narrow(a, 1, 2, 3), [A]),
    ("narrow_negative", lambda F, a: F.narrow(a, -2, -3, 2), [A]),
    ("narrow_size_1", lambda F, a: F.narrow(a, 0, 0, 1), [(1, 2)]),
    ("select", lambda F, a: F.select(a, 1, -2), [B]),
    ("split", lambda F, a: F.split(a, 4, 1)[1] * F.split(a, 4, 1)[0][:, 2:], [A]),
    ("split_sections", lambda F, a: F.split(a, [1, 2, 3], -1)[2], [A]),
    ("chunk", lambda F, a: F.exp(F.chunk(a, 3, 1)[0]) * F.chunk(a, 3, 1)[2], [A]),
    ("chunk_uneven", lambda F, a: F.chunk(a, 4, 1)[2], [(*B[:2], 7)]),
    ("chunk_of_all", lambda F, a: F.chunk(a, 1)[0], [A]),
    ("unbind", lambda F, a: F.unbind(a, 1)[0] * F.unbind(a, 1)[2] + F.unbind(a, -2)[1], [B]),
    ("flip", lambda F, a: F.flip(a, (1,)), [A]),
    ("flip_all", lambda F, a: F.flip(F.exp(a), (0, -1)), [B]),
    ("flip_none", lambda F, a: F.flip(a, ()), [A]),
    ("slices_that_overlap", lambda F, a: a[:, :4] * a[:, 2:] + a[:, ::3][:, 1:], [A]),
    ("slice_of_a_flip_of_a_slice", lambda F, a: F.flip(a[1:, ::2], (0, 1))[1:, :2], [A]),
    ("reshaped_slice", lambda F, a: F.reshape(a[:, 1:5], (8, 2)), [A]),
    ("matmul_of_slices", lambda F, a, b: F.matmul(a[:, 1:4], b[::2, 1:]), [A, (6, 4)]),
    ("matmul_of_flips", lambda F, a, b: F.matmul(F.flip(a, (1,)), F.flip(b, (0,))), [(3, 4), (4, 2)]),
    ("sum_of_a_slice", lambda F, a: F.sum(F.exp(a)[:, 1:3], 1), [A]),
    ("cat", lambda F, a, b: F.cat([a, b, F.exp(a)], 1), [A, (4, 2)]),
    ("cat_first_axis", lambda F, a, b: F.cat([a, F.tanh(b)]), [A, (1, 6)]),
    ("cat_negative", lambda F, a, b: F.exp(F.cat((a, b), -2)), [B, (2, 1, 5)]),
    ("cat_of_one", lambda F, a: F.cat([a], 1), [A]),
    ("cat_of_cats", lambda F, a, b: F.cat([F.cat([a, b], 0), F.cat([b, a], 0)], 1), [(2, 3), (1, 3)]),
    ("cat_integers", lambda F, a: F.cat([a, a[1:]], 0), [((4,), "s32", 9)]),
    ("cat_bytes", lambda F, a: F.cat([a, a[1:]], 0), [((4,), "u8", 9)]),
    ("stack", lambda F, a, b: F.stack([a, F.exp(b)], 1), [A, A]),
    ("stack_last", lambda F, a, b: F.stack([a, b, a], -1), [A, A]),
    ("stack_scalars", lambda F, a, b: F.stack([a, b]), [(), ()]),
    ("split_of_cat", lambda F, a, b: F.split(F.cat([a, b], 1), [6, 2], 1)[0] * 2.0, [A, (4, 2)]),
    ("pad", lambda F, a: F.pad(a, (1, 2)), [A]),
    ("pad_two_axes", lambda F, a: F.pad(F.exp(a), (1, 0, 2, 3), value=-0.5), [B]),
    ("pad_negative", lambda F, a: F.pad(a, (-1, 2, 1, -2), "constant", 1.5), [A]),
    ("pad_nothing", lambda F, a: F.pad(a, (0, 0)), [A]),
    ("pad_scalar_axis", lambda F, a: F.pad(a, (2, 2)), [(1,)]),
    *(
        (f"pad_{mode}{dims}", lambda F, a, mode=mode, p=p: F.pad(a, p, mode=mode), [shape])
        for mode in ("reflect", "replicate", "circular")
        for dims, p, shape in ((1, (2, 1), (2, 3, 5)), (2, (1, 3, 2, 0), (2, 1, 3, 4)), (3, (0, 2), (2, 3)))
    ),
    ("replicate_far", lambda F, a: F.pad(a, (4, 5), mode="replicate"), [(1, 2)]),
    ("roll", lambda F, a: F.roll(a, 2, 1), [A]),
    ("roll_negative", lambda F, a: F.roll(a, (-1, 8), (0, 1)), [A]),
    ("roll_flat", lambda F, a: F.roll(a, 5), [A]),
    ("roll_by_nothing", lambda F, a: F.roll(a, 6, -1), [A]),
    ("repeat", lambda F, a: F.repeat(a, (2, 1, 3)) if F is F_ else a.repeat(2, 1, 3), [A]),
    ("tile", lambda F, a: F.tile(F.exp(a), (2,)), [A]),
    ("tile_more", lambda F, a: F.tile(a, (2, 1, 2)), [A]),
    ("repeat_interleave", lambda F, a: F.repeat_interleave(a, 2, 1), [A]),
    ("repeat_interleave_flat", lambda F, a: F.repeat_interleave(a, 3), [A]),
    ("expand", lambda F, a: F.expand(a, (2, -1, 3)) if F is F_ else a.expand(2, -1, 3), [(4, 1)]),
]  # fmt: skip
F_ = F


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_against_torch(row: Row) -> None:
    check_float64(row)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("block", range(3))
def test_generated_c_against_torch(block: int) -> None:
    check_c_together(ROWS[block::3])


@pytest.mark.torch
@pytest.mark.parametrize(
    "f",
    [
        lambda F, a: F.exp(a)[:, 1::2],
        lambda F, a: F.cat([a, F.sin(a)], 1) ** 2,
        lambda F, a: F.pad(a, (2, 1), mode="reflect") ** 3,
        lambda F, a: F.roll(a, 1, 1) * F.flip(a, (0,)),
        lambda F, a: F.tanh(F.repeat_interleave(a, 2, 0)),
    ],
)
def test_second_derivatives(f: Callable[..., Any]) -> None:
    import torch

    array = np.random.default_rng(1).uniform(-1, 1, (3, 4)).astype(np.float32)
    t = torch.tensor(array.astype(np.float64), requires_grad=True)
    v = np.cos(np.arange(12.0)).reshape(3, 4).astype(np.float32)
    (first,) = torch.autograd.grad((f(TorchFunctions(), t) ** 2).sum(), t, create_graph=True)
    (second,) = torch.autograd.grad((first * torch.tensor(v.astype(np.float64))).sum(), t)
    x = ag.Input("x", array.shape)
    g = grad(F.sum(F.square(f(F, x))), x)
    got = evaluate([g, grad(F.sum(g * v), x)], {x: array}, float_dtype="float64")
    np.testing.assert_allclose(got[0], first.detach().numpy(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(got[1], second.numpy(), rtol=1e-9, atol=1e-9)


@pytest.mark.cc
@pytest.mark.parametrize("rows", [1, 3])
def test_the_batch_is_taken_whole(rows: int) -> None:
    """Parts of rows, for up to 3 rows, equal the graph's for that many."""
    array = np.random.default_rng(rows).uniform(-1, 1, (rows, 4)).astype(np.float32)
    results = []
    for size in (3, rows):
        x = ag.Input("x", (size, 4), batch_axis=0)
        a, b = F.chunk(x, 2, 1)
        y = F.cat([F.exp(b), a * b, F.flip(x, 1)[..., 1:], F.pad(x, (1, 1), value=2.0)], -1)
        z = F.stack([F.roll(x, 1, 1), F.repeat_interleave(a, 2, 1)], 1)
        outputs = [y, z, grad(F.sum(F.square(y)) + F.sum(F.exp(z)), x)]
        results.append(ag.function([x], outputs).on_host(kernels="ref")(array))
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


X = ag.Input("x", (2, 3))
N = ag.Input("rows", (4, 3), batch_axis=0)

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: X[2], r"^getitem\(x: f32\[2,3\]\): index 2 is out of range for axis 0 of extent 2$"),
    (lambda: X[0, 1, 2], "3 indices for 2 axes"),
    (lambda: X[..., ...], "only one Ellipsis"),
    (lambda: X[:, 3:], "the slice of axis 1 of extent 3 is empty"),
    (lambda: X[:, 0.5], "float cannot be an index"),
    (lambda: X[[0, 2]], r"^getitem\(x: f32\[2,3\]\): an index is out of range for axis 0 of extent 2$"),
    (lambda: X[:, [True, False]], "a mask of axis 1 must have 3 elements, some of them True$"),
    (lambda: X[[]], "list cannot be an index"),
    (lambda: X[[0.5]], "list cannot be an index"),
    (lambda: X[None][[0], :, [0, 0]], "indices in arrays must be for successive axes$"),
    (lambda: N[[0, 0]], "axis 0 is the batch axis"),
    (lambda: X[X > 0.0], "Value cannot be an index; .*masks of values .* F.where"),
    (lambda: X[True], "bool cannot be an index"),
    (lambda: X[:, 0.5:], "start=0.5 must be an integer"),
    (lambda: N[0], r"^getitem\(rows: f32\[n,3\]\): axis 0 is the batch axis, which can only be taken whole; "),
    (lambda: N[1:], "axis 0 is the batch axis"),
    (lambda: F.flip(N, 0), "^flip.*axis 0 is the batch axis"),
    (lambda: F.cat([N, X]), "^cat.*axis 0 is the batch axis"),
    (lambda: F.pad(N, (0, 0, 1, 0)), "^pad.*axis 0 is the batch axis"),
    (lambda: F.repeat(N, (2, 1)), "^repeat.*axis 0 is the batch axis, which cannot be repeated"),
    (lambda: F.narrow(X, 1, 2, 2), r"^narrow\(x: .*\): start=2 and length=2 exceed an axis of extent 3$"),
    (lambda: F.narrow(X, 1, 0, 0), "length=0 exceed"),
    (lambda: F.narrow(X, 2, 0, 1), "dim=2: axis 2 is out of range"),
    (lambda: F.select(X, 0, -3), "index=-3 is out of range for axis 0 of extent 2"),
    (lambda: F.split(X, 0, 1), "split_size=0 must be at least 1"),
    (lambda: F.split(X, [1, 1], 1), r"the sections \[1, 1\] must be at least 1 and add up to 3"),
    (lambda: F.chunk(X, 0), "chunks=0 must be at least 1"),
    (lambda: F.flip(X, (0, 0)), "an axis is named twice"),
    (lambda: F.cat(X), "^cat: needs a list of values$"),
    (lambda: F.cat([]), "^cat: needs a list of values$"),
    (lambda: F.cat([X, N], 1), r"^cat\(x: f32\[2,3\], rows: f32\[n,3\]\): all extents except along axis 1"),
    (lambda: F.cat([X, F.sum(X, 1)], 1), "all extents except along axis 1"),
    (lambda: F.cat([X, F.argmax(X, 0, keepdim=True)]), "dtypes differ"),
    (lambda: F.stack([X, X[:, :2]]), r"^stack\(x: f32\[2,3\], f32\[2,2\]\): all shapes must be the same$"),
    (lambda: F.stack([X, X], 3), "dim=3 is out of range"),
    (lambda: F.pad(X, (1,)), "must have two numbers for each"),
    (lambda: F.pad(X, (1, 1), "mirror"), '^pad: mode=\'mirror\'; known: "constant"'),
    (lambda: F.pad(X, (-2, -1)), "removes all of axis 1 of extent 3"),
    (lambda: F.pad(X, (3, 0), "reflect"), "mode='reflect' adds at most 2 to extent 3"),
    (lambda: F.pad(X, (0, 4), "circular"), "mode='circular' adds at most 3 to extent 3"),
    (lambda: F.pad(X, (-1, 0), "replicate"), 'only mode="constant" can crop'),
    (lambda: F.pad(X, (1, 0), "replicate", 1.0), 'value=1.0 is for mode="constant" only'),
    (lambda: F.roll(X, (1, 2), 0), "2 shifts for 1 dims"),
    (lambda: F.repeat(X, (2,)), r"\[2\] must have a number of at least 1 for each axis"),
    (lambda: F.tile(X, (0,)), "must have a number of at least 1"),
    (lambda: F.repeat_interleave(X, 0), "repeats=0 must be one integer"),
    (lambda: F.repeat_interleave(X, [1, 2, 3], 1), "must be one integer"),
    (lambda: F.expand(X, (3,)), r"sizes=\[3\] must name all 2 axes"),
    (lambda: F.expand(X, (4, 3)), "do not broadcast"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, ShapeError)


def test_gradients_of_parts_are_written_side_by_side() -> None:
    """No zeros are stored, and nothing is added up."""
    z = ag.Input("z", (2, 16))
    i, f, g, o = F.chunk(z, 4, 1)
    text = c_of([z], [grad(F.sum(F.sigmoid(i) * F.tanh(g) + F.sigmoid(f) * F.sigmoid(o)), z)])
    assert "= 0.0f" not in text and "+=" not in text
    assert text.count("out0[i") == 4 and "arena" not in text


def test_parts_are_computed_in_place() -> None:
    """Operands of a concatenation are computed where it is stored."""
    a, b = ag.Input("a", (2, 3)), ag.Input("b", (2, 1))
    text = c_of([a, b], [F.cat([F.exp(a), F.tanh(b)], 1)])
    assert "arena" not in text
    assert "out0[i * 4 + j] = ag_expf(a[i * 3 + j]);" in text
    assert "out0[i * 4 + 3] = ag_tanhf(b[i]);" in text


def test_parts_of_a_sum_are_computed_where_they_are_used() -> None:
    """The gates of a cell need no array; a value that is also read whole keeps one."""
    x, b = ag.Input("x", (3, 8), batch_axis=0), ag.Input("b", (8,))
    i, g = F.chunk(F.tanh(x + b), 2, 1)
    text = c_of([x, b], [i * g])
    assert "arena" not in text and "out0[i * 4 + j] = ag_tanhf(x[i * 8 + j] + b[j]) * " in text
    z = F.tanh(x + b)
    assert c_of([x, b], [z[:, :4] * z[:, 4:], z]).count("ag_tanhf(") == 1
    assert c_of([x, b], [z[:, :5] * z[:, 3:]]).count("ag_tanhf(") == 1
