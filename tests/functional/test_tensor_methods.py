"""Methods of graph values beside torch.Tensor's, and numbers of NumPy where Python's may be given."""

from __future__ import annotations

import numpy as np
import pytest
from against_torch import Row, check_c_together, check_float64
from row_groups import each_row, in_groups

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.errors import GraphError, ShapeError
from autodiff_gen.functional import tensor_methods
from autodiff_gen.ir.node import Value

ROWS: list[Row] = [
    ("view", lambda F, a: a.view(a.size(0), -1).relu().sum(1), [(2, 3, 4)]),
    (
        "permute",
        lambda F, a: a.permute(2, 0, 1).contiguous().reshape(4, -1).softmax(dim=-1).T.permute((1, 0)),
        [(2, 3, 4)],
    ),
    (
        "axes",
        lambda F, a: a.transpose(1, 2).mean(-1, keepdim=True).expand(-1, -1, 5).flatten(1).unsqueeze(0).squeeze(0),
        [(2, 3, 4)],
    ),
    (
        "reductions",
        lambda F, a: a.max(1)[0] + a.min(dim=1)[0] + a.std(1) + a.norm(dim=1) + a.amax(1) + a.logsumexp(1),
        [(2, 3, 4)],
    ),
    ("copies", lambda F, a: a.repeat(2, 1, 1).chunk(2, 0)[1] + a.flip(0, 2) + a.roll(1, 0), [(2, 3, 4)]),
    ("masks", lambda F, a: a.masked_fill((a > 0.5) | (a < -1) & ~(a > 3), -2.0), [(2, 3, 4)]),
    ("masked_fill", lambda F, a, b: F.masked_fill(a, b > 0, 3), [(2, 3, 4), (3, 1)]),
    ("logical_xor", lambda F, a: F.where(F.logical_xor(a > 0, a > 1), a, 0.0), [(4, 5)]),
    ("unflatten", lambda F, a: F.unflatten(a, 1, (2, -1)).mean((0, 2)), [(2, 6, 4)]),
    ("clamp", lambda F, a, b: a.clamp(b, b + 1.0) + a.clamp(max=b) * b + a.clamp(-1, 1), [(2, 3), (3,)]),
    ("abs", lambda F, a: abs(a) + a.exp().tanh(), [(2, 3)]),
    ("conversions", lambda F, a: a * (a > 0).float() + (3 * a).int().long().float() + a.bool().float(), [(2, 3)]),
    ("like", lambda F, a, b: b.expand_as(a) * a + a.T.reshape_as(a) + a.view_as(a[None])[0] + a.data, [(2, 3), (3,)]),
    ("sizes", lambda F, a: a / a.numel() * a.dim() + a.size(1) + a.size()[-1], [(2, 3, 4)]),
    (
        "products",
        lambda F, a: a.narrow(1, 0, 2).matmul(a.transpose(-1, -2)).split([1, 5], -1)[1].unbind(1)[0],
        [(2, 6, 4)],
    ),
]  # fmt: skip


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_methods_in_float64(row: Row) -> None:
    check_float64(row)


@pytest.mark.cc
@pytest.mark.torch
def test_methods_in_c() -> None:
    check_c_together(ROWS)


@pytest.mark.torch
def test_every_method_is_a_function_and_torchs() -> None:
    import torch

    installed = {
        name for name, member in vars(Value).items() if callable(member) and not name.startswith("_")
    }
    assert installed > {"relu", "permute", "view", "contiguous", "size", *tensor_methods._METHODS}
    for name in installed:
        assert hasattr(torch.Tensor, name), name
        assert callable(getattr(ag.Input("x", (2, 2)), name))


def test_shapes_by_numpy() -> None:
    x = ag.Input("x", (2, 3), batch_axis=0)
    assert np.shape(x) == x.shape and np.ndim(x) == 2
    with pytest.raises(GraphError, match=r"^numpy\.sum takes no graph values; use a function of F$"):
        np.sum(x)


def test_numbers_of_numpy() -> None:
    x = ag.Input("x", (2, 3, 4, 4))
    assert F.clamp(x, np.float32(0.5), np.int64(2)).shape == x.shape
    assert F.sum(x, np.int64(1)).shape == F.amax(x, (np.int64(-3),)).shape == (2, 4, 4)
    assert F.leaky_relu(x ** np.float32(2), np.float32(0.1)).shape == x.shape
    assert F.one_hot(ag.Input("i", (2,), dtype="u8"), np.int64(5)).shape == (2, 5)
    assert F.dropout(x, np.float32(0.5)).shape == x.shape
    assert nn.Linear(np.prod((3, 4)), np.int32(2)).in_features == 12
    assert nn.Conv2d(np.int64(4), np.int64(8), 3).out_channels == 8
    assert optim.SGD(lr=np.float32(0.5)).lr == 0.5


REJECTED = [
    (lambda x: x.unflatten(1, (2, 2)), r"^unflatten\(x: f32\[2,3\]\): sizes=\[2, 2\] do not multiply to extent 3"),
    (lambda x: x.unflatten(1, (-1, -1)), r"^unflatten.*one extent may be -1"),
    (lambda x: x.masked_fill(F.reshape(x, (2, 1, 3)) > 0, 0.0), "^masked_fill.*the mask must broadcast to the input"),
    (lambda x: x.add(x, alpha=2), "^add: the argument 'alpha' is not supported$"),
    (lambda x: x.div(2.0, rounding_mode="floor"), "^div: the argument 'rounding_mode' is not supported$"),
]  # fmt: skip


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: object, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        build(ag.Input("x", (2, 3)))  # type: ignore[operator]


X = ag.Input("x", (2, 3))
WRONG_KINDS = [
    (lambda: F.sum(X, "a"), r"^sum\(x: f32\[2,3\]\): dim='a' must be integers$"),
    (lambda: F.sum(X, 1.5), r"^sum.*dim=1.5 must be integers$"),
    (lambda: F.unsqueeze(X, "a"), r"^unsqueeze.*dim='a' must be integers$"),
    (lambda: X.permute("ab"), r"^permute.*dims='ab' must be integers$"),
    (lambda: F.unflatten(X, 1, "ab"), r"^unflatten.*sizes='ab' must be integers$"),
    (lambda: F.pad(X, 1.5), r"^pad.*pad=1.5 must be integers$"),
    (lambda: F.pad(X, 1), r"^pad.*pad=\[1\] must have two numbers for each"),
    (lambda: X.expand("a"), r"^expand.*must be integers$"),
    (lambda: F.tanh([[1.0], [1.0, 2.0]]), r"^\[\[1.0\], \[1.0, 2.0\]\] cannot be an operand; give a graph value"),
    (lambda: F.linear(X, "w"), r"^'w' cannot be an operand; give a graph value"),
    (lambda: F.einsum(X, X), r"^einsum: the equation must come first"),
    (lambda: X[np.array([0.0, 1.0])], r"^getitem.*ndarray cannot be an index; integers can"),
]  # fmt: skip


@pytest.mark.parametrize("build, message", WRONG_KINDS)
def test_arguments_of_the_wrong_kind_are_rejected_in_one_line(build: object, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        build()  # type: ignore[operator]
