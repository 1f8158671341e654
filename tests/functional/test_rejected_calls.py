"""What F rejects: one line that names the function, the operands and the rule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rejections import all_rejected

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.types import Type, dtype

X, W = make_input("x", Type(dtype("f32"), (2, 3))), make_input("w", Type(dtype("f32"), (4, 5)))
BATCH = ag.Input("images", (8, 28, 28), batch_axis=0)
Y = ag.Input("y", (2,), dtype="s32")

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.layer_norm(X, (4,)), r"layer_norm.*normalized_shape=\[4\] must be the last extents"),
    (lambda: F.layer_norm(X, 3, np.ones(2)), r"layer_norm.*weight must have the shape \[3\], not \[2\]"),
    (lambda: F.group_norm(X, 2), r"group_norm.*3 channels cannot be divided into num_groups=2"),
    (lambda: F.instance_norm(X), r"instance_norm.*at least one spatial axis"),
    (lambda: F.matmul(X, W), r"^matmul\(x: f32\[2,3\], w: f32\[4,5\]\): the inner extents differ: 3 .* 4 rows$"),
    (lambda: F.matmul(X, 2.0), r"^matmul\(x: f32\[2,3\], f32\[\]\): needs vectors or matrices, not a scalar$"),
    (lambda: F.linear(X, W), r"^linear\(x: f32\[2,3\], w: f32\[4,5\]\): the input's last extent"),
    (lambda: F.linear(X, np.ones((4, 3)), np.ones(3)), r"the bias must have shape \[4\]$"),
    (lambda: X + W, r"^add\(x: f32\[2,3\], w: f32\[4,5\]\): shapes \[2, 3\] and \[4, 5\] do not broadcast"),
    (lambda: F.sum(X, 2), r"^sum\(x: f32\[2,3\]\): dim=2: axis 2 is out of range for 2 axes$"),
    (lambda: F.sum(X, (0, 0)), r"^sum\(x: f32\[2,3\]\): dim=\(0, 0\): an axis is named twice"),
    (lambda: F.softmax(X, -3), r"^softmax\(x: f32\[2,3\]\): dim=-3: axis -3 is out of range"),
    (lambda: F.softmax(X, None), r"^softmax\(x: f32\[2,3\]\): dim must be one integer, not None$"),
    (lambda: F.max(X, (0, 1)), r"^max\(x: f32\[2,3\]\): dim must be one integer"),
    (lambda: F.reshape(X, (4, -1)), r"^reshape\(x: f32\[2,3\]\): 6 elements do not fill the shape \[4, -1\]$"),
    (lambda: F.reshape(X, (-1, -1)), "only one extent"),
    (lambda: BATCH.shape[0] + 1, r"^extent n \+ 1 is not a multiple of the batch size n; add a float where"),
    (lambda: 1 + BATCH.shape[0], r"^extent n \+ 1 is not a multiple of the batch size n; add a float where"),
    (lambda: F.reshape(X, (2, None)), r"^reshape\(x: f32\[2,3\]\): the shape \[2, None\] must be made of integers"),
    (lambda: F.embedding("a", W), "^'a' cannot be an operand; give a graph value, a NumPy array or a number$"),
    (lambda: F.reshape(BATCH, (7, 784)), r"^reshape\(.*\): 784n elements do not fill the shape \[7, 784\]$"),
    (lambda: F.reshape(BATCH, (2, -1, 784)), "splits or merges axes around the batch axis n|do not fill"),
    (lambda: F.unsqueeze(X, 4), "dim=4 is out of range"),
    (lambda: F.nll_loss(X, X), r"^nll_loss\(x: .*, x: .*\): the target must be class indices"),
    (lambda: F.nll_loss(X, ag.Input("t", (3,), dtype="s32")), r"^nll_loss\(x: f32\[2,3\], t: s32\[3\]\): scores"),
    (lambda: F.cross_entropy(X[:, :1], Y), r"^cross_entropy\(.*f32\[2,1\], .*\): of one class the loss is always 0"),
    (lambda: F.cross_entropy(X[:, :1], X[:, 1:2]), "of one class the loss is always 0; for yes or no of one score"),
    (lambda: F.add(X, X, alpha=F.sum(X)), "^add: the argument 'alpha' is not supported$"),
    (lambda: F.cross_entropy(X, W), r"^cross_entropy\(x: .*, w: .*\): probabilities must have the shape"),
    (lambda: F.mse_loss(X, W), r"^mse_loss\(x: .*, w: .*\): input and target must have the same shape$"),
    (lambda: F.mse_loss(X, X, reduction="avg"), r'^mse_loss: reduction=\'avg\'; known: "mean", "sum", "none"$'),
    (lambda: F.cross_entropy(X, Y, reduce=False), "^cross_entropy: the argument 'reduce' is not supported$"),
    (lambda: F.mse_loss(X, X, weight=np.ones(3)), "^mse_loss: the argument 'weight' is not supported$"),
    (lambda: F.pick(X, [0, 3]), r"^pick\(x: f32\[2,3\], s32\[2\]\): an index is outside 0 to 2$"),
    (lambda: F.pick(X, F.to(F.sum(X @ np.ones((3, 3)), 1), "s32")), r"the index depends on .* F.clamp\(index, 0, 2\)$"),
    (lambda: F.pick(X, F.max(F.matmul(X, np.ones((3, 5))), 1)[1]), "the index depends on parameters, products or"),
    (lambda: F.to(X, "f16"), "unknown dtype 'f16'"),
    (lambda: X + "1", "cannot be an operand"),
    (lambda: F.embedding(X, W), r"not f32; ag.Input\(..., dtype='s32'\) has one$"),
    (lambda: F.tanh((X, X)), "^a tuple of 2 cannot be an operand; take one graph value of it, as in `y, state = lstm"),
    (lambda: F.tanh([X, 1.0, X]), "^a list of 3 cannot be an operand; take one graph value of it"),
    (lambda: F.clamp(X), r"^clamp\(x: f32\[2,3\]\): min or max must be given$"),
    (lambda: F.clamp(X, "a"), r"^clamp\(x: f32\[2,3\]\): min='a' must be a number or a tensor$"),
    (lambda: F.clamp(X, max=True), r"^clamp\(x: f32\[2,3\]\): max=True must be a number or a tensor$"),
    (lambda: F.clamp(X, W), r"^clamp\(x: f32\[2,3\], w: f32\[4,5\]\): shapes \[2, 3\] and \[4, 5\] do not broadcast"),
    (lambda: F.clamp(X, 0.0, Y), r"^clamp\(x: f32\[2,3\], y: s32\[2\]\): dtypes differ; convert with F.to first$"),
    (lambda: F.round(X, decimals=2), "^round: the argument 'decimals' is not supported$"),
    (lambda: F.gelu(X, "erf"), r'^gelu: approximate=\'erf\'; known: "none", "tanh"$'),
    (lambda: F.hardtanh(X, 2, 1), "^hardtanh: min_val=2 is greater than max_val=1$"),
    (lambda: F.leaky_relu(X, X), "^leaky_relu: negative_slope=.* must be a number$"),
    (lambda: F.elu(X, alpha="1"), "^elu: alpha='1' must be a number$"),
    (lambda: F.softplus(X, beta=0), "^softplus: beta must not be 0$"),
    (lambda: F.silu(Y), r"^silu\(y: s32\[2\]\): needs a float, not s32"),
    (lambda: F.prod(X, 2), r"^prod\(x: f32\[2,3\]\): dim=2: axis 2 is out of range for 2 axes$"),
    (lambda: F.prod(Y), r"^prod\(y: s32\[2\]\): needs a float, not s32"),
    (lambda: F.var(X, unbiased=False), "^var: the argument 'unbiased' is not supported$"),
    (lambda: F.std(X, False), r"^std\(x: .*\): the argument 'unbiased' is not supported; use correction=0 or 1$"),
    (lambda: F.var(X, 1, correction=3), r"^var\(x: f32\[2,3\]\): 3 elements with correction=3 give the divisor 0"),
    (lambda: F.var(X, 1, correction=True), "^var.*: correction=True must be a number$"),
    (lambda: F.norm(X, 0), r'^norm\(x: f32\[2,3\]\): p=0; known: "fro", numbers greater than 0$'),
    (lambda: F.movedim(X, (0, 1), 0), r"^movedim\(x: .*\): source=\(0, 1\) and destination=0 do not match$"),
    (lambda: F.movedim(X, 0, 2), r"source=0 or destination=2 is out of range$"),
    (lambda: F.glu(X), r"^glu\(x: f32\[2,3\]\): the extent of dim=-1 must be even$"),
    (lambda: F.prelu(X, np.ones(2)), r"^prelu\(.*\): the weight must have the shape \[1\] or \[3\]$"),
    (lambda: F.celu(X, 0), "^celu: alpha must not be 0$"),
    (lambda: F.bilinear(X, X, W), r"^bilinear\(.*\): needs \[..., I\], \[..., J\] and a weight \[O, I, J\]$"),
    (lambda: F.local_response_norm(X, 2), r"^local_response_norm\(.*\): the input must be \[N, C, ...\]"),
    (lambda: F.norm(X, dtype="f32"), "^norm: the argument 'dtype' is not supported$"),
    (lambda: F.logsumexp(X, 5), r"^logsumexp\(x: f32\[2,3\]\): dim=5: axis 5 is out of range"),
    (lambda: F.argmax(X, (0, 1)), r"^argmax\(x: f32\[2,3\]\): dim must be one integer"),
    (lambda: F.argmin(Y), "needs a float, not s32"),
    (lambda: F.exp(Y), r"^exp\(y: s32\[2\]\): needs a float, not s32"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, ShapeError)
