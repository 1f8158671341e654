"""F against torch: values and gradients in float64, and as generated C; then shapes and types."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, TorchFunctions, check_c, check_c_together, check_float64
from row_groups import each_row, in_groups

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.types import Dim

# Name, an expression over F (ours, or functions of torch with the same names), operands (see against_torch.prepared).

LABELS = ((4,), "u8", 3)
POSITIVE = np.array([0.5, 1.5, 2.0])
REDUCTIONS = ("mean", "sum", "none")
# Every order of a number and two limits, ties and crossed limits among them.
ORDERS = [
    np.array(c) for c in zip(*itertools.product((0.0, 1.0, 2.0, 3.0), (1.0, 2.0), (1.0, 2.0)), strict=True)
]


def both(F: Any, number: float) -> Any:
    """A number beside a limit that is a tensor, where torch.clamp takes two tensors or two numbers."""
    import torch

    return torch.tensor(number) if isinstance(F, TorchFunctions) else number


ROWS: list[Row] = [
    *((f"pow_{e}", lambda F, a, e=e: a**e, [POSITIVE]) for e in (0, 1, 2, 3, 4, 2.5, 0.5, -1, -2, -0.5)),
    ("pow_function", lambda F, a: F.pow(a, 1.5), [POSITIVE]),
    ("pow_both", lambda F, a, b: F.pow(a, b), [POSITIVE, (2, 3)]),
    ("rpow", lambda F, a: 2.0**a, [(2, 3)]),
    ("operators", lambda F, a, b: (1.0 - a) * b + a / (b * b + 1.0) - 2.0, [(2, 3), (3,)]),
    ("functions", lambda F, a, b: F.add(F.mul(a, b), F.sub(F.neg(a), F.div(b, F.exp(a)))), [(2, 3), (3,)]),
    ("unary", lambda F, a: F.sin(F.tanh(a)) * F.cos(F.sigmoid(F.abs(a))) + F.relu(F.square(a)), [(2, 3)]),
    ("sqrt_log_expm1", lambda F, a: F.sqrt(F.log(1.0 + a)) + F.expm1(a), [POSITIVE]),
    ("minimum_maximum", lambda F, a, b: F.minimum(a, F.maximum(b, 0.5 * a)), [(2, 3), (3,)]),
    ("where", lambda F, a, b: F.where(a > b, a, 0.5 * b), [(2, 3), (3,)]),
    ("where_number", lambda F, a: F.where(F.le(a, 0.5), a * a, 0.0), [(2, 3)]),
    (
        "logic",
        lambda F, a: F.where(
            F.logical_or(F.logical_not(F.gt(a, 0.0)), F.logical_and(a > 0.5, a < 1.0)), a, 0.0
        ),
        [(3, 4)],
    ),
    (
        "comparisons",
        lambda F, a, b: F.logical_and(F.ne(a, b), F.logical_or(F.ge(a, b), F.eq(a, a))),
        [(2, 3), (3,)],
    ),
    ("sum", lambda F, a: F.sum(a), [(2, 3)]),
    ("sum_dim", lambda F, a: F.sum(a, 1), [(2, 3)]),
    ("sum_negative_dim", lambda F, a: F.sum(a, -2, keepdim=True), [(2, 3)]),
    ("sum_dims", lambda F, a: F.sum(a, dim=(0, -1)), [(2, 3, 4)]),
    ("sum_of_ones", lambda F, a: a.sum(1), [(2, 1, 3)]),
    ("mean", lambda F, a: F.mean(a), [(2, 3)]),
    ("mean_dim", lambda F, a: F.mean(a, -1), [(2, 3)]),
    ("mean_dims", lambda F, a: a.mean((0, 2), keepdim=True), [(2, 3, 4)]),
    ("amax", lambda F, a: F.amax(a, (0, 1)), [(2, 3, 4)]),
    ("amin_all", lambda F, a: F.amin(a), [(2, 3)]),
    ("max", lambda F, a: F.max(a), [(2, 3)]),
    ("max_dim", lambda F, a: F.max(a, 1)[0], [(2, 3)]),
    ("max_dim_indices", lambda F, a: F.max(a, -1, keepdim=True)[1], [(2, 3)]),
    ("max_of_two", lambda F, a, b: F.max(a, b), [(2, 3), (3,)]),
    ("min", lambda F, a: F.min(a), [(2, 3)]),
    ("min_dim", lambda F, a: F.min(a, 0)[0], [(2, 3)]),
    ("logarithms", lambda F, a: F.log2(a) * F.log10(a), [POSITIVE]),
    ("functions_of_positive", lambda F, a: F.rsqrt(a) + F.reciprocal(a) * F.log1p(a), [POSITIVE]),
    ("erf", lambda F, a: F.erf(a), [(4, 5)]),
    ("steps", lambda F, a: a * F.floor(a) + F.round(a) * F.sign(a), [(4, 5)]),
    ("clamp", lambda F, a: F.clamp(a, -0.5, 1.0), [(4, 5)]),
    ("clamp_min", lambda F, a: F.clamp(a, min=0.25), [(4, 5)]),
    ("clamp_max", lambda F, a: F.clamp(a, max=0.25), [(4, 5)]),
    ("clamp_at_the_limits", lambda F, a: F.clamp(a, 0.5, 2.0), [POSITIVE]),
    ("clamp_crossed", lambda F, a: F.clamp(a, 1.0, -1.0), [(2, 3)]),
    ("clamp_to_tensors", lambda F, a, b, c: F.clamp(a, b, c) * b + c * a, ORDERS),
    ("clamp_min_tensor", lambda F, a, b: F.clamp(a, min=b) * b, ORDERS[:2]),
    ("clamp_max_tensor", lambda F, a, b: F.clamp(a, max=b) * b, ORDERS[:2]),
    ("clamp_to_a_tensor_and_a_number", lambda F, a, b: F.clamp(a, b, both(F, 1.0)) * b, ORDERS[:2]),
    ("clamp_to_a_number_and_a_tensor", lambda F, a, b: F.clamp(a, both(F, 1.0), b) * b, ORDERS[:2]),
    ("clamp_tensors_broadcast", lambda F, a, b, c: F.clamp(a, b, c) + b, [(2, 3, 4), (2, 1, 4), (1,)]),
    ("clamp_broadcast_to_a_tensor", lambda F, a, b: F.clamp(a, max=b) + b, [(3, 1), (2, 1, 4)]),
    ("clamp_to_one_tensor", lambda F, a, b: F.clamp(F.sin(a), b, b), [(4, 5), (5,)]),
    ("clamp_integers_to_tensors", lambda F, a, b: F.clamp(a, b, 2 * b), [((4,), "s32", 5), ((4,), "s32", 3)]),
    (
        "clamp_integers_to_a_tensor",
        lambda F, a, b: F.clamp(a, both(F, 1), b),
        [((4,), "s32", 5), ((4,), "s32", 3)],
    ),
    ("clamp_integers", lambda F, a: F.clamp(a, 1, 2), [((4,), "s32", 5)]),
    *(
        (name, lambda F, a, name=name: getattr(F, name)(4.0 * a), [(4, 5)])
        for name in (
            *(
                "relu6",
                "hardtanh",
                "leaky_relu",
                "elu",
                "selu",
                "gelu",
                "silu",
                "mish",
                "softplus",
                "softsign",
            ),
            *("hardsigmoid", "hardswish", "logsigmoid"),
        )
    ),
    ("gelu_tanh", lambda F, a: F.gelu(a, approximate="tanh"), [(4, 5)]),
    ("hardtanh_limits", lambda F, a: F.hardtanh(a, -0.25, 1.5), [(4, 5)]),
    ("leaky_relu_slope", lambda F, a: F.leaky_relu(a, 0.3), [(4, 5)]),
    ("leaky_relu_negative_slope", lambda F, a: F.leaky_relu(a, -0.3), [(4, 5)]),
    ("elu_alpha", lambda F, a: F.elu(a, alpha=0.7), [(4, 5)]),
    ("softplus_beta", lambda F, a: F.softplus(a, 3.0, 2.0), [(4, 5)]),
    ("softplus_negative_beta", lambda F, a: F.softplus(a, -2), [(4, 5)]),
    ("layer_norm", lambda F, a: F.layer_norm(a, (8,)), [(4, 8)]),
    ("layer_norm_affine", lambda F, a, b, c: F.layer_norm(a, (3, 4), b, c), [(2, 3, 4), (3, 4), (3, 4)]),
    ("layer_norm_eps", lambda F, a, b: F.layer_norm(a, [4], weight=b, eps=0.1), [(3, 4), (4,)]),
    ("rms_norm", lambda F, a: F.rms_norm(a, (8,)), [(4, 8)]),
    ("rms_norm_affine", lambda F, a, b: F.rms_norm(a, (3, 4), b, 1e-3), [(2, 3, 4), (3, 4)]),
    ("group_norm", lambda F, a: F.group_norm(a, 2), [(3, 4, 8)]),
    ("group_norm_affine", lambda F, a, b, c: F.group_norm(a, 3, b, c), [(2, 6, 2, 3), (6,), (6,)]),
    ("group_norm_of_vectors", lambda F, a, b: F.group_norm(a, 2, b), [(3, 6), (6,)]),
    ("instance_norm", lambda F, a: F.instance_norm(a), [(2, 3, 4)]),
    (
        "instance_norm_affine",
        lambda F, a, b, c: F.instance_norm(a, weight=b, bias=c),
        [(2, 3, 2, 4), (3,), (3,)],
    ),
    *(
        (f"local_response_norm_{k}", lambda F, a, o=o: F.local_response_norm(a, **o), [(2, 5, 2, 3)])
        for k, o in enumerate(({"size": 2}, {"size": 3, "alpha": 0.5, "beta": 1.5, "k": 0.5}, {"size": 7}))
    ),
    ("local_response_norm_of_series", lambda F, a: F.local_response_norm(a, 4, 1.0), [(2, 3, 4)]),
    *((f"glu_{dim}", lambda F, a, dim=dim: F.glu(a, dim) ** 2, [(2, 4, 6)]) for dim in (-1, 0, 1)),
    ("prelu", lambda F, a, b: F.prelu(a, b) * a, [(4, 3), (3,)]),
    ("prelu_one", lambda F, a, b: F.prelu(a, b) * b, [(2, 3, 4), (1,)]),
    ("prelu_images", lambda F, a, b: F.prelu(a, b), [(2, 3, 2, 2), (3,)]),
    ("celu", lambda F, a: F.celu(4.0 * a, 0.5) + F.celu(a), [(4, 5)]),
    ("shrink", lambda F, a: F.hardshrink(a) + F.softshrink(a, 0.8) + F.threshold(a, 0.2, -1.0), [(4, 5)]),
    ("ceil_trunc", lambda F, a: F.ceil(a) * a + F.trunc(a) - F.floor_divide(a.detach(), 0.5), [(4, 5)]),
    ("remainder", lambda F, a, b: F.remainder(a, b) + F.remainder(a, -0.5), [(4, 5), (5,)]),
    ("fmod", lambda F, a, b: F.fmod(a, b) + F.fmod(a, -0.5), [(4, 5), (5,)]),
    ("exp2", lambda F, a: F.exp2(a), [(4, 5)]),
    ("hyperbolic", lambda F, a: F.sinh(a) * F.asinh(a) + F.cosh(a) + F.atanh(0.2 * a), [(4, 5)]),
    ("asinh_at_0", lambda F, a: F.asinh(a * 0.0 + F.relu(a)), [(4, 5)]),
    ("angles", lambda F, a: F.atan(3.0 * a) + F.asin(0.2 * a) * F.acos(0.3 * a), [(4, 5)]),
    ("atan2_at_0", lambda F, a: F.atan2(F.relu(a), F.relu(-a) * 0.0), [(4, 5)]),
    ("atan2", lambda F, a, b: F.atan2(a, b) * b, [(4, 5), (5,)]),
    ("acosh", lambda F, a: F.acosh(a + 1.0), [POSITIVE]),
    ("erfc", lambda F, a: F.erfc(a), [(4, 5)]),
    ("hypot", lambda F, a, b: F.hypot(a, b), [(4, 5), (5,)]),
    ("copysign", lambda F, a, b: F.copysign(a, b) + F.copysign(b, -0.0 * F.abs(a)), [(4, 5), (5,)]),
    ("lgamma", lambda F, a: F.lgamma(a) + F.lgamma(20.0 * a), [POSITIVE]),
    ("lgamma_of_negative", lambda F, a: F.lgamma(0.3 * F.sin(a) - 2.5), [(4, 5)]),
    ("digamma", lambda F, a: F.digamma(a) * a, [POSITIVE]),
    *(
        (
            f"affine_grid_{k}",
            lambda F, a, k=k: (
                F.affine_grid(a, [2, 1, 4 + k, 2], align_corners=bool(k)) * a[:, None, None, 0, :2]
            ),
            [(2, 2, 3)],
        )
        for k in (0, 1)
    ),
    *(
        (
            f"grid_sample_{mode}_{padding}_{k}",
            lambda F, a, b, o=(mode, padding, bool(k)): F.grid_sample(a, b, *o) ** 2,
            [(2, 3, 4, 5), (2, 3, 2, 2)],
        )
        for mode in ("bilinear", "nearest", "bicubic")
        for padding in ("zeros", "border", "reflection")
        for k in (0, 1)
    ),
    ("logaddexp", lambda F, a, b: F.logaddexp(a, 2 * b) + F.logaddexp(a, a), [(4, 5), (5,)]),
    ("lerp", lambda F, a, b, c: F.lerp(a, b, c) + F.lerp(a, b, 0.25), [(4, 5), (5,), (4, 1)]),
    (
        "addc",
        lambda F, a, b, c: F.addcmul(a, b, c, value=0.5) + F.addcdiv(a, b, F.exp(c)),
        [(4, 5), (5,), (4, 1)],
    ),
    ("tan", lambda F, a: F.tan(0.5 * a), [(4, 5)]),
    *(
        (f"{name}_{k}", lambda F, a, name=name, o=o: getattr(F, name)(a * a > 2.5, **o), [(2, 3, 4)])
        for name in ("any", "all")
        for k, o in enumerate(({}, {"dim": 1}, {"dim": (0, 2), "keepdim": True}))
    ),
    ("any_of_integers", lambda F, a: F.logical_and(F.any(a, 1), F.all(a, 1)), [((4, 2), "s32", 2)]),
    (
        "movedim",
        lambda F, a: F.movedim(a, 0, -1) + F.movedim(F.movedim(a, (0, 1), (1, 2)), 0, 1).sum(),
        [(2, 3, 4)],
    ),
    ("swapaxes", lambda F, a: F.swapaxes(a, 0, -1), [(2, 3, 4)]),
    ("softmin", lambda F, a: F.softmin(a, 1) * a, [(4, 5)]),
    ("bilinear", lambda F, a, b, c, d: F.bilinear(a, b, c, d) * a[:, :1], [(4, 3), (4, 2), (5, 3, 2), (5,)]),
    ("bilinear_stack", lambda F, a, b, c: F.bilinear(a, b, c), [(2, 4, 3), (2, 4, 2), (1, 3, 2)]),
    ("addmm", lambda F, a, b, c: F.addmm(a, b, c, beta=0.5, alpha=2), [(4,), (2, 3), (3, 4)]),
    ("baddbmm", lambda F, a, b, c: F.baddbmm(a, b, c), [(5, 2, 4), (5, 2, 3), (5, 3, 4)]),
    ("prod", lambda F, a: F.prod(a), [(2, 3)]),
    ("prod_dim", lambda F, a: F.prod(a, 1), [(2, 3)]),
    ("prod_keepdim", lambda F, a: F.prod(a, 0, keepdim=True), [(2, 3, 4)]),
    ("prod_of_one", lambda F, a: F.prod(a, -1), [(2, 1)]),
    ("prod_of_zeros", lambda F, a: F.prod(F.relu(a), 1), [(4, 3)]),
    *(
        (f"{name}_{k}", lambda F, a, name=name, options=options: getattr(F, name)(a, **options), [(2, 3, 4)])
        for name in ("var", "std")
        for k, options in enumerate(
            (
                {},
                {"dim": 1},
                {"dim": (0, -1), "keepdim": True},
                {"dim": 2, "correction": 0},
                {"dim": (0, 1, 2), "correction": 2},
            )
        )
    ),
    ("std_of_equal", lambda F, a: F.std(0.0 * a, 1), [(2, 3)]),
    ("var_of_one", lambda F, a: F.var(a, 1, correction=0), [(3, 1)]),
    ("norm", lambda F, a: F.norm(a), [(2, 3)]),
    ("norm_dims", lambda F, a: F.norm(a, 2, dim=(0, 2), keepdim=True), [(2, 3, 4)]),
    ("norm_of_zeros", lambda F, a: F.norm(0.0 * a, dim=1), [(2, 3)]),
    ("norm_of_one", lambda F, a: F.norm(a, dim=1), [(3, 1)]),
    ("norm_1", lambda F, a: F.norm(a, 1, dim=0), [(2, 3)]),
    ("norm_1_at_zeros", lambda F, a: F.norm(F.relu(a), p=1), [(2, 3)]),
    ("norm_inf", lambda F, a: F.norm(a, float("inf"), 1), [(2, 3)]),
    ("norm_inf_of_ties", lambda F, a: F.norm(F.sign(a) + 0.0 * a, float("inf"), 1), [(2, 3)]),
    ("logsumexp", lambda F, a: F.logsumexp(a, 1), [(2, 3)]),
    ("logsumexp_dims", lambda F, a: F.logsumexp(a, (0, 2), keepdim=True), [(2, 3, 4)]),
    ("logsumexp_large", lambda F, a: F.logsumexp(a * 1e4, dim=-1), [(2, 3)]),
    ("logsumexp_of_one", lambda F, a: F.logsumexp(a, 1), [(3, 1)]),
    ("argmax", lambda F, a: F.argmax(a), [(2, 3)]),
    ("argmax_dim", lambda F, a: F.argmax(a, 1, keepdim=True), [(2, 3)]),
    ("argmax_keepdim", lambda F, a: F.argmax(a, keepdim=True), [(2, 3)]),
    ("argmin", lambda F, a: F.argmin(a, dim=-2), [(2, 3, 4)]),
    ("argmin_of_ties", lambda F, a: F.argmin(F.floor(a), 1), [(4, 5)]),
    ("matmul", lambda F, a, b: F.matmul(a, b), [(2, 3), (3, 4)]),
    ("matmul_operator", lambda F, a, b: a @ b.T, [(2, 3), (4, 3)]),
    ("matmul_vectors", lambda F, a, b: a @ b, [(3,), (3,)]),
    ("matmul_row_column", lambda F, a, b: F.sum(a @ b), [(1, 3), (3, 1)]),
    ("matmul_vector_left", lambda F, a, b: a @ b, [(3,), (3, 4)]),
    ("matmul_vector_right", lambda F, a, b: a @ b, [(2, 3), (3,)]),
    ("matmul_stack_vector", lambda F, a, b: a @ b, [(5, 2, 3), (3,)]),
    ("matmul_vector_stack", lambda F, a, b: a @ b, [(3,), (5, 3, 2)]),
    ("matmul_stack", lambda F, a, b: a @ b, [(5, 2, 3), (5, 3, 4)]),
    ("matmul_stack_matrix", lambda F, a, b: a @ b, [(5, 2, 3), (3, 4)]),
    ("matmul_matrix_stack", lambda F, a, b: a @ b, [(2, 3), (5, 3, 4)]),
    ("matmul_broadcast", lambda F, a, b: a @ b, [(2, 1, 2, 3), (3, 3, 4)]),
    ("linear", lambda F, a, b, c: F.linear(a, b, c), [(4, 3), (2, 3), (2,)]),
    ("linear_no_bias", lambda F, a, b: F.linear(a, b), [(4, 3), (2, 3)]),
    ("linear_vector", lambda F, a, b, c: F.linear(a, b, c), [(3,), (2, 3), (2,)]),
    ("linear_stack", lambda F, a, b, c: F.linear(a, b, c), [(2, 4, 3), (2, 3), (2,)]),
    ("arange", lambda F, a: a * F.arange(4.0) + F.arange(1.0, 3.0, 0.5), [(2, 4)]),
    (
        "arange_integers",
        lambda F, a: a * F.arange(7, -1, -2) + F.arange(4) - F.arange(2, 6),
        [((4,), "s32", 5)],
    ),
    ("eye", lambda F, a: a * F.eye(3, 4) + F.eye(1), [(3, 4)]),
    ("full", lambda F, a: a * F.full((2, 1), 0.5) + F.zeros(3) + F.ones((2, 3)) + F.full((1,), 2), [(2, 3)]),
    ("like", lambda F, a: F.ones_like(a) * a + F.zeros_like(a) + F.full_like(a, 2), [(2, 3)]),
    ("linspace", lambda F, a: a * F.linspace(-1, 2, 4), [(2, 4)]),
    ("reshape", lambda F, a: F.reshape(a, (3, -1)), [(2, 6)]),
    ("reshape_method", lambda F, a: a.reshape(-1, 4).T, [(2, 6)]),
    ("transpose", lambda F, a: F.transpose(a, 0, -1), [(2, 3, 4)]),
    ("permute", lambda F, a: F.permute(a, (1, -1, 0)), [(2, 3, 4)]),
    ("flatten", lambda F, a: F.flatten(a, 1), [(2, 3, 4)]),
    ("squeeze", lambda F, a: F.squeeze(a), [(1, 3, 1)]),
    ("squeeze_dim", lambda F, a: F.squeeze(a, (0, 1)), [(1, 3, 1)]),
    ("unsqueeze", lambda F, a: F.unsqueeze(a, -2), [(2, 3)]),
    ("broadcast_to", lambda F, a: F.broadcast_to(a, (4, 2, 3)), [(2, 1)]),
    ("softmax", lambda F, a: F.softmax(a, -1), [(2, 3)]),
    ("softmax_columns", lambda F, a: F.softmax(a, 0), [(2, 3)]),
    ("softmax_of_one", lambda F, a: F.softmax(a, 1), [(2, 1)]),
    ("softmax_stack", lambda F, a: F.softmax(a, 1), [(2, 3, 4)]),
    ("softmax_large", lambda F, a: F.softmax(a * 1e4, 1), [(2, 3)]),
    ("log_softmax", lambda F, a: F.log_softmax(a, dim=1), [(2, 3)]),
    ("log_softmax_squared", lambda F, a: F.log_softmax(a, 1) ** 2, [(2, 3)]),
    ("log_softmax_large", lambda F, a: F.log_softmax(a * 1e4, 1), [(2, 3)]),
    ("pick_of_max", lambda F, a: F.nll_loss(F.log_softmax(a, 1), F.max(a, 1)[1]), [(4, 3)]),
    *((f"nll_{r}", lambda F, a, b, r=r: F.nll_loss(a, b, reduction=r), [(4, 3), LABELS]) for r in REDUCTIONS),
    ("nll_one_sample", lambda F, a, b: F.nll_loss(a, b), [(1, 3), ((1,), "s32", 3)]),
    ("nll_no_batch", lambda F, a, b: F.nll_loss(a, b), [(3,), ((), "s32", 3)]),
    *(
        (f"classes_{r}", lambda F, a, b, r=r: F.cross_entropy(a, b, reduction=r), [(4, 3), LABELS])
        for r in REDUCTIONS
    ),
    ("classes_no_batch", lambda F, a, b: F.cross_entropy(a, b), [(3,), ((), "s32", 3)]),
    ("classes_large", lambda F, a, b: F.cross_entropy(a * 1e4, b), [(4, 3), LABELS]),
    (
        "classes_defaults",
        lambda F, a, b: F.cross_entropy(a, b, weight=None, ignore_index=-100),
        [(4, 3), LABELS],
    ),
    *(
        (
            f"probabilities_{r}",
            lambda F, a, b, r=r: F.cross_entropy(a, F.softmax(b, 1), reduction=r),
            [(4, 3), (4, 3)],
        )
        for r in REDUCTIONS
    ),
    ("probabilities_no_batch", lambda F, a, b: F.cross_entropy(a, F.softmax(b, 0)), [(3,), (3,)]),
    *((f"mse_{r}", lambda F, a, b, r=r: F.mse_loss(a, b, reduction=r), [(4, 3), (4, 3)]) for r in REDUCTIONS),
    *(
        (
            f"bce_{r}",
            lambda F, a, b, r=r: F.binary_cross_entropy(F.sigmoid(a), F.sigmoid(b), reduction=r),
            [(4, 3), (4, 3)],
        )
        for r in REDUCTIONS
    ),
    ("bce_no_axes", lambda F, a, b: F.binary_cross_entropy(F.sigmoid(a), F.sigmoid(b)), [(), ()]),
]


# PyTorch in float64 is another function here: hardsigmoid's gradient is 1/6 in float32, rms_norm's eps float64's.
# PyTorch has the derivative of digamma to 1e-9.
UNLIKE_TORCH = {"digamma": 1e-8, "hardsigmoid": 1e-7, "rms_norm": 1e-6}


@pytest.mark.torch
@in_groups(ROWS)
@each_row
def test_against_torch(row: Row) -> None:
    check_float64(row, UNLIKE_TORCH.get(row[0], 1e-10))


@pytest.mark.cc
@pytest.mark.torch
@in_groups(ROWS)
def test_generated_c_against_torch(rows: list[Row]) -> None:
    check_c_together(rows)


ODD_EXTENTS: list[Row] = [
    ("layer_norm", lambda F, a: F.layer_norm(a, (5,)), [(4, 5)]),
    ("rms_norm", lambda F, a: F.rms_norm(a, (5,)), [(4, 5)]),
    ("group_norm", lambda F, a: F.group_norm(a, 2), [(3, 4, 5)]),
]


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("row", ODD_EXTENTS, ids=lambda r: r[0])
def test_normalisation_over_odd_extents(row: Row) -> None:
    check_float64(row, UNLIKE_TORCH.get(row[0], 1e-10))
    check_c(row)


# Saturated probabilities: the logarithms are -100, and no gradient is NaN.
@pytest.mark.torch
@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("t", [0.0, 1.0])
def test_binary_cross_entropy_of_certainty(p: float, t: float) -> None:
    import torch

    x, target = ag.Input("x", (1,)), ag.Input("target", (1,))
    y = F.binary_cross_entropy(x, target)
    value, dx = evaluate([y, grad(y, x)], {x: [p], target: [t]})
    want = torch.nn.functional.binary_cross_entropy(torch.tensor([p]), torch.tensor([t]))
    np.testing.assert_allclose(value, want.numpy(), rtol=1e-6)
    assert np.isfinite(dx).all()


@pytest.mark.parametrize(
    "f",
    [
        lambda x, t: F.cross_entropy(x, t),
        lambda x, t: F.nll_loss(F.log_softmax(x, 1), t),
        lambda x, t: F.mse_loss(x, 0.5 * x),
        lambda x, t: F.mean(F.square(F.mean(x, 0))),
        lambda x, t: F.mean(F.square(F.mean(x, 1))),
        lambda x, t: F.sum(F.var(x, 0, correction=0)),
        lambda x, t: F.norm(x) + F.sum(F.std(x, 1)),
        lambda x, t: F.sum(F.logsumexp(x, 0)),
        lambda x, t: F.sum(F.square(F.prod(x, 1))),
        lambda x, t: F.mean(F.gelu(x) * F.softplus(x, 2.0)),
        lambda x, t: F.mean(F.square(F.linear(x, np.ones((2, 3)), np.ones(2)))),
        lambda x, t: F.mean(F.square(F.matmul(x.T, x))),
        lambda x, t: F.mean(F.flatten(F.reshape(x, (-1, 3, 1)), 1)),
    ],
)
def test_means_over_the_rows_that_are_given(f: Callable[..., Any]) -> None:
    """A graph for up to 4 rows, given fewer, equals the graph for that many."""
    for rows in (1, 3, 4):
        rng = np.random.default_rng(rows)
        arrays = [rng.uniform(-1, 1, (rows, 3)), rng.integers(0, 3, rows)]
        results = []
        for size in (4, rows):
            x = ag.Input("x", (size, 3), batch_axis=0)
            t = ag.Input("t", (size,), dtype="u8", batch_axis=0)
            y = f(x, t)
            results.append(evaluate([y, grad(y, x)], {x: arrays[0], t: arrays[1]}))
        for a, b in zip(*results, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=f"{rows} rows")


X = ag.Input("x", (2, 3))
BATCH = ag.Input("images", (8, 28, 28), batch_axis=0)


def test_arrays_and_numbers_are_constants() -> None:
    a = ag.Input("a", (2, 3))
    y = np.array([1.0, 2.0, 3.0]) * a + np.float64(2) - 1
    assert y.dtype.name == "f32"
    np.testing.assert_array_equal(evaluate([y], {a: np.ones((2, 3))})[0], [[2, 3, 4]] * 2)
    assert F.to(F.to(a > 0.0, "s32") + 1, "f32").dtype.name == "f32"


def test_log_softmax_costs_one_division_per_row() -> None:
    """The gradient of softmax and log-softmax divides once per row, not once per element."""
    from autodiff_gen.ir.node import topological

    for f in (F.softmax, F.log_softmax):
        y = F.sum(F.square(f(X, 1)))
        for node in topological([y, grad(y, X)]):
            if node.op.name == "div":
                assert node.results[0].shape == (2, 1)


def test_dim_follows_the_batch() -> None:
    assert F.flatten(BATCH, 1).shape == (Dim(1, 8), 784)
    assert F.reshape(BATCH, (-1, 784)).shape == (Dim(1, 8), 784)
    assert F.reshape(BATCH, (BATCH.shape[0], -1)).shape == (Dim(1, 8), 784)
    assert F.reshape(BATCH, -1).shape == (Dim(784, 8),)
    for shape in ((8, 28, 28), (-1, 28, 28), (8, -1, 28)):  # the largest batch as a number
        assert F.reshape(BATCH, shape).shape == (Dim(1, 8), 28, 28)
    assert BATCH.view(16, 392).shape == (Dim(2, 8), 392)
    assert F.permute(BATCH, (1, 0, 2)).reshape(28, 1, 8, 28).shape == (28, 1, Dim(1, 8), 28)


@pytest.mark.cc
def test_the_number_of_samples_is_an_operand() -> None:
    x, k = ag.Input("x", (5, 2), batch_axis=0), ag.Input("k", (5,), dtype="s32", batch_axis=0)
    n = x.shape[0]
    f = ag.function(
        [x, k], [F.sum(x, 0) / n, n * F.sum(x) - 2 * n, k + n, F.log(n) * F.matmul(F.eye(n), x)]
    ).on_host()
    for rows in (2, 5):
        ones, indices = np.ones((rows, 2), np.float32), np.arange(rows, dtype=np.int32)
        mean, total, later, scaled = f(ones, indices)
        assert mean.tolist() == [1.0, 1.0] and total == 2 * rows * rows - 2 * rows
        assert later.tolist() == list(range(rows, 2 * rows))
        np.testing.assert_allclose(scaled, np.log(rows) * ones, rtol=1e-6)


def test_an_error_names_an_input_without_a_free_batch() -> None:
    x, fixed = ag.Input("x", (4, 3), batch_axis=0), ag.Input("t", (4,), dtype="s32")
    for make in (lambda: F.cross_entropy(x, fixed), lambda: F.to(x[:, 0], "s32") + fixed):
        with pytest.raises(
            ShapeError, match=r"; give ag.Input\('t', ...\) batch_axis=0, as the others have it"
        ):
            make()
