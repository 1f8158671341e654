"""Every operator of the importer's table beside PyTorch: values and gradients of one network that returns them all."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from autodiff_gen.check.original import comparisons
from autodiff_gen.frontends.pytorch.aten import TABLE
from autodiff_gen.frontends.pytorch.convert import convert
from autodiff_gen.frontends.pytorch.export import saved
from autodiff_gen.frontends.pytorch.pt2 import read

pytestmark = [pytest.mark.torch, pytest.mark.slow]  # all of it, so that the network is exported once


def complex_numbers(z, a):
    quotient = (z / (z * z + torch.complex(torch.full((6,), 20.0), torch.zeros(6))) - z / 2.0).imag
    products = (z @ torch.complex(a, -a)).real + torch.einsum("nk,kj->nj", z, torch.complex(a, a)).imag
    moved = torch.cat([z[:, 3:], z[:, :3].flip(1)], 1).unsqueeze(1).transpose(1, 2).sum(2)
    return (
        z.abs()
        + z.angle()
        + quotient
        + products
        + torch.exp(0.1 * z).real * torch.real(moved)
        + torch.imag(-z)
    )


def whole_numbers(k, x):
    """Integers stay integers in what PyTorch has for them, and are floats in what it has for floats alone."""
    indices = [
        (k.abs() + 1) // 2,
        torch.minimum(k.square(), torch.tensor(5)),
        torch.max(k, k.flip(1)).sign(),
        k.cummax(1)[0],
        k.cumprod(1).clamp(-5, 5),
        k.div(2, rounding_mode="trunc"),
        torch.fmod(k, 3),
        k.amax(1, keepdim=True).expand(-1, 6) + k.argmin(1, keepdim=True),
        (k - k.new_zeros(1)).prod(1, keepdim=True).clamp(-5, 5).expand(-1, 6),
        (k > 0)[:, None].expand(-1, 6, -1).tril(-1).sum(2),
        (k > 0).diff(append=k[:, :1] > 1) + (k > 0) * True,
    ]
    drawn = sum(x.gather(1, index % 6) * (j + 1) for j, index in enumerate(indices))
    return drawn + (k / 2 + k.exp() * 0.1 + (k > 0).sum(1, keepdim=True, dtype=torch.float32) / 4)


def elsewhere(x):
    """A region that asks for other numbers than those of a CPU, and no gradient of what comes from outside."""
    with torch.autocast("cuda", enabled=False):
        y = x.type_as(x).exp()
    with torch.enable_grad():
        z = x.sin()
    return y * z


def gradients(x, y):
    return sum(torch.autograd.grad((torch.sin(x) * y * y).sum(), (x, y), create_graph=True))


# x, y: [n, 6]; p: x * x + 0.5; i: images [n, 4, 8, 8]; s: [n, 4, 9]; k: whole numbers [n, 6], 0 or 1; m: the network.
EXPRESSIONS = {
    "abs": lambda x, y, p, i, s, k, m: x.abs() + torch.sign(y),
    "exponentials": lambda x, y, p, i, s, k, m: x.exp() + x.expm1() + p.log() + p.log1p() + torch.erf(x),
    "roots": lambda x, y, p, i, s, k, m: (
        p.sqrt() + p.rsqrt() + p.reciprocal() + x.square() + p**1.5 + x**2 + 2**x
    ),
    "angles": lambda x, y, p, i, s, k, m: x.sin() * x.cos() - x.tanh() + (-x),
    "rounding": lambda x, y, p, i, s, k, m: (
        x.floor()
        + x.round()
        + x.ceil()
        + x.trunc()
        + p.log2()
        + (0.5 * x).tan()
        + x.div(0.3, rounding_mode="floor")
        + y.div(0.3, rounding_mode="trunc")
    ),
    "activations": lambda x, y, p, i, s, k, m: (
        F.relu(x)
        + F.relu6(4 * x)
        + F.selu(x)
        + F.silu(x)
        + F.mish(x)
        + F.elu(x, 0.5)
        + F.gelu(x)
        + F.softplus(x, 2)
    ),
    "more activations": lambda x, y, p, i, s, k, m: (
        F.hardsigmoid(2 * x)
        + F.hardswish(2 * x)
        + F.hardtanh(x, -0.5, 0.7)
        + F.leaky_relu(x, 0.2)
        + F.logsigmoid(x)
        + F.gelu(x, approximate="tanh")
        + torch.sigmoid(x)
    ),
    "functions of two": lambda x, y, p, i, s, k, m: (
        torch.celu(x, 0.5)
        + F.threshold(x, 0.2, -1.0)
        + torch.addcmul(x, y, p, value=0.5)
        + torch.lerp(x, y, 0.3)
    ),
    "gates": lambda x, y, p, i, s, k, m: F.glu(x) + m.normed(y),
    "shrinking": lambda x, y, p, i, s, k, m: (
        F.softshrink(x) + F.hardshrink(y, 0.3) + m.prelu(x) + torch.logaddexp(x, y) + torch.remainder(y, 0.7)
    ),
    "hyperbolic": lambda x, y, p, i, s, k, m: (
        torch.sinh(x) * torch.asinh(y) + torch.cosh(x) + torch.atanh(0.2 * x) + torch.acosh(p + 1.0)
    ),
    "inverses of sines": lambda x, y, p, i, s, k, m: (
        torch.atan(x) + torch.asin(0.2 * y) * torch.acos(0.3 * y) + torch.atan2(x, y)
    ),
    "remainders": lambda x, y, p, i, s, k, m: (
        torch.fmod(x, 0.7) + torch.fmod(x, p) + torch.hypot(x, p) + torch.exp2(x) + torch.erfc(y)
    ),
    "moments": lambda x, y, p, i, s, k, m: (
        torch.std_mean(x, 1, keepdim=True)[0] * torch.var_mean(s, 2, unbiased=False)[1].sum(1, keepdim=True)
        + torch.var_mean(x)[0]
    ),
    "similarity": lambda x, y, p, i, s, k, m: F.cosine_similarity(x, y) + F.normalize(x).sum(1),
    "distance": lambda x, y, p, i, s, k, m: (
        F.pairwise_distance(x, y, eps=0.01)
        + torch.norm(x, dim=1)
        + F.bilinear(x, y, torch.stack([m.square, m.square * 2])).sum(1)
    ),
    "quotients": lambda x, y, p, i, s, k, m: (
        torch.addcdiv(x, y, p, value=0.3)
        + torch.log10(p)
        + torch.floor_divide(p.detach(), 0.4)
        + torch.where(torch.isnan(x), y, x * y)
    ),
    "order": lambda x, y, p, i, s, k, m: y.gather(1, torch.argsort(x, 1, True)),
    "sorting": lambda x, y, p, i, s, k, m: x.topk(3)[0] * s.sort(2, descending=True)[0][:, 0, :3],
    "images": lambda x, y, p, i, s, k, m: (
        F.pixel_unshuffle(F.pixel_shuffle(i, 2), 4)[:, :4].mean((2, 3), keepdim=True)
        + F.channel_shuffle(i, 2)[:, :, :1, :1]
        + F.interpolate(i, scale_factor=2)
        + F.interpolate(i, (16, 16), mode="bilinear", align_corners=True)
    ),
    "arithmetic": lambda x, y, p, i, s, k, m: (
        torch.add(x, y, alpha=2) - torch.sub(x, 1, alpha=3) * y / p + (1 - x)
    ),
    "reflected": lambda x, y, p, i, s, k, m: torch.rsub(x, y, alpha=2) + torch.true_divide(x, p),
    "limits": lambda x, y, p, i, s, k, m: (
        x.clamp(-0.5, 0.6)
        + x.clip(0, 1)
        + x.clamp_min(0.1)
        + x.clamp_max(0.2)
        + torch.maximum(x, y)
        + torch.minimum(x, 2 * y)
    ),
    "comparisons": lambda x, y, p, i, s, k, m: torch.where(
        (x > y) | (x < -1) & (y <= 1) & (y >= -1) & ~(k == 1), x, y.masked_fill(k != 0, 3.0)
    ),
    "logic": lambda x, y, p, i, s, k, m: torch.where(
        torch.logical_or(torch.logical_and(x > 0, y > 0), torch.logical_xor(x > 1, torch.logical_not(y > 1))),
        x,
        y,
    ),
    "sums": lambda x, y, p, i, s, k, m: (
        x.sum() + i.sum((1, 3)).mean() + s.mean(-1, keepdim=True).sum(1) + i.prod(3).sum()
    ),
    "extremes": lambda x, y, p, i, s, k, m: (
        i.amax((2, 3))
        + s.amin(-1)
        + s.max(2)[0]
        + s.min(dim=2)[0]
        + torch.max(s[:, :, 0], 2 * s[:, :, 1])
        + x.max() * x.min()
    ),
    "indices of extremes": lambda x, y, p, i, s, k, m: (
        s.argmax(2).float() * s[:, :, 1] + s.argmin(2) * s[:, :, 2]
    ),
    "statistics": lambda x, y, p, i, s, k, m: (
        s.var(2)
        + s.std(2, unbiased=False)
        + s.logsumexp(2)
        + s.norm(dim=2)
        + torch.linalg.vector_norm(s, 1, dim=2)
    ),
    "truths": lambda x, y, p, i, s, k, m: (
        x * (s > 1).any(2)[:, :1] + y * (s > -1).all(dim=2, keepdim=True)[:, 0]
    ),
    "softmax": lambda x, y, p, i, s, k, m: x.softmax(-1) * y.log_softmax(1) + x.cumsum(1),
    "products": lambda x, y, p, i, s, k, m: (
        (s @ s.mT)
        + s.bmm(s.transpose(1, 2))
        + torch.einsum("nct,ndt->ncd", s, s)
        + torch.baddbmm(s[:, :, :4], s, s.mT)
    ),
    "matrices": lambda x, y, p, i, s, k, m: (
        torch.mm(x, m.square)
        + torch.addmm(y, x, m.square)
        + F.linear(x, m.square, m.row)
        + x.mv(m.row)[:, None]
    ),
    "vectors": lambda x, y, p, i, s, k, m: (
        x
        + torch.outer(m.row, m.row.dot(m.square[0]) * m.row)[0]
        + m.square.t()[1]
        + x @ m.square.H
        + torch.vdot(m.row, m.row)
    ),
    "shapes": lambda x, y, p, i, s, k, m: (
        x.view(-1, 2, 3).flatten(1)
        + x.reshape(x.shape[0], 6)
        + x.unflatten(1, (3, 2)).reshape(-1, 6)
        + x.view_as(y)
    ),
    "axes": lambda x, y, p, i, s, k, m: (
        x.unsqueeze(1).squeeze(1)
        + i.permute(0, 2, 3, 1)[:, 0, :6, 0]
        + torch.movedim(s, 1, 2)[:, :6, 0]
        + s.swapaxes(1, 2).contiguous()[:, 1:7, 1]
        + m.square.T[0]
        + x.reshape_as(y).squeeze()
    ),
    "repetition": lambda x, y, p, i, s, k, m: (
        x[:, :1].expand(-1, 6)
        + x[:, 1:2].expand_as(y)
        + m.row.broadcast_to(x.shape[0], 6)
        + x[:, :3].repeat(1, 2)
        + x[:, :2].tile(3)
        + m.row[None, :3].repeat(x.shape[0], 2)
        + x[:, 3:].repeat_interleave(2, 1)
    ),
    "parts": lambda x, y, p, i, s, k, m: (
        sum(x.chunk(3, 1))
        + x.split(2, 1)[1]
        + x.split((2, 4), 1)[0]
        + x.narrow(1, 3, 2)
        + x[:, ::3]
        + x.select(1, -1)[:, None]
        + torch.stack(s.unbind(1)[:2], 1)[:, :, 0]
    ),
    "differences": lambda x, y, p, i, s, k, m: (
        x.diff()
        + x.diff(2, 1, prepend=y[:, :1])
        + i.mean(3).diff(dim=1, append=y[:, :1, None].expand(-1, 1, 8)).sum((1, 2))[:, None]
        + torch.cdist(s, s[:, :1] + 1).sum((1, 2))[:, None]
        + torch.meshgrid(m.row, m.row[:5], indexing="xy")[1][0, :5]
    ),
    "joins": lambda x, y, p, i, s, k, m: (
        torch.cat([x, y], 1).flip(1).roll(2, 1)
        + torch.concat([y, x], 1)
        + torch.concatenate([x.new_zeros(6, 6), m.square], 1)[:1]
    ),
    "padding": lambda x, y, p, i, s, k, m: (
        F.pad(i, (1, 1, 2, 2), value=2.0)
        + F.pad(i, (1, 1, 2, 2), mode="reflect")
        + F.pad(i, (1, 1, 2, 2), mode="replicate")
    ),
    "padding of signals": lambda x, y, p, i, s, k, m: (
        F.pad(s, (2, 1), "reflect") + F.pad(s, (2, 1), "replicate") + F.pad(s, (2, 1))
    ),
    "indices": lambda x, y, p, i, s, k, m: (
        x.index_select(1, m.order)
        + x[:, m.order]
        + x[:, m.order.view(2, 3)].flatten(1)
        + x.gather(1, k)
        + x.scatter_add(1, k, y)
        + x.index_add(1, m.order, y)
        + F.one_hot(k, 3).sum(2).float()
    ),
    "indices that replace": lambda x, y, p, i, s, k, m: (
        x.scatter(1, m.order[None, :3].expand(x.shape[0], 3), y[:, :3])
        + x.scatter(1, m.order[None, 1:4].expand(x.shape[0], 3), 0.5)
        + x.scatter_reduce(1, k, y, "amax")
        + s.diagonal(0, 1, 2).sum(1, keepdim=True)
        + torch.index_put(y, (y > 1,), m.row[0])
    ),
    "several indices": lambda x, y, p, i, s, k, m: (
        m.square[m.order, m.order[:1]]
        + torch.index_put(m.square, (m.order[:3], m.order[1:4]), m.row[:3], accumulate=True)[0]
        + i[:, m.order[:2], m.order[:2]].flatten(1)[:, :6]
        + i[:, m.order[:2], :, m.order[:2]].sum((0, 2)).sum()
        + s[torch.arange(x.shape[0]), k[:, 0], :6]
        + torch.cat([x, y])[x.shape[0] :]
        - torch.cat([x, y])[: x.shape[0]]
    ),
    "triangles": lambda x, y, p, i, s, k, m: x @ m.square.tril() + y @ torch.triu(m.square, 1),
    "types": lambda x, y, p, i, s, k, m: (
        k.float() * x + k.to(torch.float32) * y + k.type_as(x) + (x > 0).float()
    ),
    "constants": lambda x, y, p, i, s, k, m: (
        x @ torch.eye(6)
        + torch.linspace(0, 1, 6)
        + x * torch.ones(6)
        + torch.full((6,), 0.5)
        + torch.zeros(6)
        + torch.arange(6) * y
        + x.new_ones(6)
        + x.new_zeros(6)
    ),
    "constants of the batch": lambda x, y, p, i, s, k, m: (
        x
        + torch.zeros_like(x)
        + torch.ones_like(x) * y
        + torch.full_like(x, 2.0)
        + torch.full((x.shape[0], 6), 0.25)
        + x.new_full((x.shape[0], 6), 3.0)
        + torch.tensor(1.5)
    ),
    "bits": lambda x, y, p, i, s, k, m: torch.where(
        torch.bitwise_and(x > 0, y > 0) ^ torch.bitwise_or(x > 1, y > 1)
        | torch.bitwise_xor(x > 0.5, y > 0.5),
        x,
        y,
    ),
    "sizes": lambda x, y, p, i, s, k, m: (
        i.reshape(x.shape[0] * 4 // 2, 128).reshape(x.shape[0], -1)[:, :6]
        + i.view(2 * x.shape[0], -1).reshape(x.shape[0], 256)[:, 6:12]
    ),
    "copies": lambda x, y, p, i, s, k, m: x.clone().add_(1).mul_(y).relu_() + y.detach(),
    "convolutions": lambda x, y, p, i, s, k, m: (
        F.conv2d(i, m.kernel, stride=2, padding=1)[:, :, :3, :3]
        + F.conv2d(i, m.kernel[:, :2], padding="same", groups=2, dilation=2)[:, :, :3, :3]
        + F.conv_transpose2d(i, m.kernel, stride=2, padding=1, output_padding=1)[:, :, :3, :3]
        + F.conv1d(s, m.kernel[:, :, 0], stride=2)[:, :, None, :3]
        + F.conv_transpose1d(s, m.kernel[:, :, 0], stride=2, padding=1)[:, :, None, :3]
    ),
    "pooling": lambda x, y, p, i, s, k, m: (
        F.max_pool2d(i, 2)
        + F.avg_pool2d(i, 3, 2, 1, count_include_pad=False)
        + F.adaptive_avg_pool2d(i, (4, 4))
        + F.adaptive_max_pool2d(i, 4)
    ),
    "pooling of signals": lambda x, y, p, i, s, k, m: (
        F.max_pool1d(s, 3) + F.avg_pool1d(s, 3) + F.adaptive_avg_pool1d(s, 3) + F.adaptive_max_pool1d(s, 3)
    ),
    "normalisation": lambda x, y, p, i, s, k, m: (
        F.layer_norm(i, (8, 8))
        + F.group_norm(i, 2)
        + F.instance_norm(i, eps=0.01)
        + F.rms_norm(i, (8,), eps=0.1)
        + m.norm(i)
        + F.local_response_norm(i, 3, 0.5)
        + F.local_response_norm(i.flatten(2), 2, 0.5).view_as(i)
    ),
    "embedding": lambda x, y, p, i, s, k, m: (
        F.embedding(k, m.square, padding_idx=1).sum(1) + m.words(k).sum(1)
    ),
    "attention": lambda x, y, p, i, s, k, m: F.scaled_dot_product_attention(
        i, i, i, attn_mask=m.square[:1, :1] * torch.ones(8, 8), scale=0.4
    ),
    "dropout": lambda x, y, p, i, s, k, m: m.dropouts(i) + F.dropout(i, 0.3),
    "compositions": lambda x, y, p, i, s, k, m: (
        torch.addmm(y, x, m.square, beta=0.5, alpha=2)
        + torch.addmv(m.row, m.square, m.row, alpha=0.5)
        + torch.logaddexp2(x, y) * torch.dist(x, y)
        + x.cumprod(1)
        + s.cumprod(1).flatten(1)[:, :6]
        + torch.linalg.cross(x.view(-1, 2, 3), y.view(-1, 2, 3)).flatten(1)
        + torch.linalg.cross(s[:, :3], s[:, 1:], dim=1).flatten(1)[:, :6]
        + torch.cross(i[:, :3, 0, :6], i[:, :3, 1, :6], dim=1).sum(1)
        + s.kthvalue(2, 2, keepdim=True)[0].sum(1)
        + s.median(1)[0][:, :6]
        + m.square.median()
        + x.gather(1, x.median(1, keepdim=True)[1])
    ),
    "losses": lambda x, y, p, i, s, k, m: (
        x * F.cross_entropy(x, k[:, 0], label_smoothing=0.1)
        + y * F.cross_entropy(i, k[:, :1, None].expand(k.shape[0], 8, 8), reduction="sum")
        + F.nll_loss(F.log_softmax(x, 1), k[:, 1], m.row.detach().abs(), ignore_index=1, reduction="none")[
            :, None
        ]
        + F.mse_loss(x, y) * F.l1_loss(x, y, reduction="none")
        + F.smooth_l1_loss(x, y, beta=0.5, reduction="sum") * F.huber_loss(x, y, delta=0.5)
        + F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y), reduction="none")
        + F.binary_cross_entropy_with_logits(x, torch.sigmoid(y), pos_weight=m.row.detach().abs())
        + F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean")
        + F.kl_div(x, y, log_target=True, reduction="none")
    ),
    "margins": lambda x, y, p, i, s, k, m: (
        x * F.soft_margin_loss(x, y)
        + F.hinge_embedding_loss(x, torch.ones_like(x), reduction="none")
        + F.cosine_embedding_loss(x, y, torch.ones(x.shape[0]), 0.1)
        + F.margin_ranking_loss(x, y, torch.ones_like(x), 0.1, reduction="none")
        + F.triplet_margin_loss(x, y, p, swap=True, reduction="sum")
        + F.poisson_nll_loss(x, p, full=True)
        + F.multi_margin_loss(x, k[:, 0])
    ),
    "samples": lambda x, y, p, i, s, k, m: (
        x / x.shape[0]
        + (y.sum(0) - x.shape[0]) * (2 * x.shape[0])
        + x * (1.0 / x.shape[0])
        - y / (x.shape[0] - 0.5)
        + x * (x.shape[0] + 1) ** -0.5
        + (k + x.shape[0])
        + torch.zeros(x.shape[0], 6, dtype=torch.long)
        + torch.ones(x.shape[0], 1, dtype=torch.bool)
        + torch.matmul(torch.eye(x.shape[0]), x)
        + torch.broadcast_tensors(x, y[:, :1])[1]
    ),
    "windows": lambda x, y, p, i, s, k, m: (
        s.unfold(2, 4, 2).sum(1).flatten(1) * s.unfold(2, 3, 3).flatten(1)[:, :12]
        + s.unfold(1, 2, 1).sum(2).mean()
    ),
    "random": lambda x, y, p, i, s, k, m: (
        x * torch.randn_like(y)
        + (x + torch.rand_like(x)) * torch.floor(torch.rand(x.shape[0], 1) + 0.8)
        + (torch.bernoulli(torch.sigmoid(x)) + torch.randn(6) - torch.normal(y, p)) * y
        + F.gumbel_softmax(x, 0.5)
    ),
    "random_in_place": lambda x, y, p, i, s, k, m: (
        x.new_empty(x.shape[0], 1).bernoulli_(0.8) * torch.empty_like(y).normal_(1.0, 0.1)
        + torch.empty_like(y).uniform_(-1.0, 2.0) * y
        + torch.normal(1.0, 0.5, (6,))
    ),
    "gamma functions": lambda x, y, p, i, s, k, m: torch.lgamma(p) * torch.digamma(p + 1.0),
    "signs": lambda x, y, p, i, s, k, m: torch.copysign(x, y) + F.rrelu(y, 0.1, 0.3, training=True),
    "extremes so far": lambda x, y, p, i, s, k, m: (
        s.cummax(2)[0].mean(2).sum(1, keepdim=True)
        + x.cummin(1)[0] * k.cumsum(1).clamp(max=1).float().cummax(1)[1]
    ),
    "masks": lambda x, y, p, i, s, k, m: (
        x * ((x > 0) * (y > 0) + (p > 2)) + (x > y) * k + ((x > y) * k + (k > 0) * (x > 0)) * p
    ),
    "other names": lambda x, y, p, i, s, k, m: (
        torch.subtract(x, y).absolute().multiply(p).negative().divide(2.0)
        + (torch.greater(x, y) | torch.less_equal(x, -1.0) | torch.not_equal(k, 1)).float()
        + torch.less(x, y) * torch.greater_equal(y, 0.5)
        + torch.arctan(x) * torch.arctan2(x, p)
        + torch.arcsinh(x)
        + torch.arcsin(0.5 * x.tanh()) * torch.arccos(0.5 * y.tanh())
        + torch.arccosh(p + 1.0) * torch.arctanh(0.5 * y.tanh())
        + torch.fix(3.0 * x)
        + x.round(decimals=1)
        + (30.0 * y).round(decimals=-1)
        + s.moveaxis(1, 2).swapdims(1, 2)[:, 0, :6]
    ),
    "not finite": lambda x, y, p, i, s, k, m: (
        torch.nan_to_num(torch.where(x > 0.5, y, torch.nan))
        + torch.nan_to_num(k, 3.0) * y
        + torch.nan_to_num(
            torch.where(y > 0.5, torch.inf, torch.where(y < -0.5, -torch.inf, x)), 1.0, 2.0, -3.0
        )
    ),
    "what is left of an axis": lambda x, y, p, i, s, k, m: (
        torch.cat([x[:, :6] * 2.0, x[:, 6:]], 1) * torch.split(x, [0, 4, 2], 1)[2][:, :1]
        + torch.split(x, [0, 6], 1)[1] * x.chunk(1, 1)[0] * x[:, None].unbind(1)[0]
    ),
    "numbers of float64": lambda x, y, p, i, s, k, m: x * torch.tensor(np.pi) + k.type_as(m.row) * m.pi,
    "half precision elsewhere": lambda x, y, p, i, s, k, m: elsewhere(x * m.row),
    "integers": lambda x, y, p, i, s, k, m: whole_numbers(3 * k - torch.arange(6), x),
    "grids": lambda x, y, p, i, s, k, m: F.grid_sample(
        i, F.affine_grid(x.view(-1, 2, 3), i.shape, align_corners=False) / 2, align_corners=False
    ).sum((2, 3)),
    "spectra": lambda x, y, p, i, s, k, m: (
        (torch.fft.fft(x) * torch.conj_physical(torch.fft.ifft(y)).conj().resolve_conj().conj()).real
        + torch.fft.irfft(y, n=6)
        + torch.fft.irfft(torch.fft.rfft(x, norm="ortho"), n=6) * torch.fft.rfft(y, n=10, norm="forward").imag
        + torch.fft.ifft(torch.fft.fft(s, dim=1), norm="ortho").real.sum((1, 2), keepdim=True)[:, 0]
    ),
    "spectra along several axes": lambda x, y, p, i, s, k, m: (
        torch.fft.ifft2(torch.fft.fft2(i) * torch.fft.fftn(i.flip(3), dim=(1, 2, 3), norm="ortho")).real
        + torch.fft.irfft2(torch.fft.rfft2(i, (6, 7), norm="forward"), (8, 8)).square()
        + torch.fft.irfftn(torch.fft.rfftn(i, (3, 5)) * torch.fft.ifftn(i, (3, 3)), (8, 8), (3, 2))
    ),
    "short-time spectra": lambda x, y, p, i, s, k, m: (
        torch.stft(i.flatten(1)[:, :20], 8, 4, window=torch.hann_window(8), return_complex=True)
        .abs()
        .sum(2)[:, :1]
        + torch.stft(
            y,
            4,
            1,
            window=torch.hamming_window(4, periodic=False),
            center=False,
            normalized=True,
            onesided=False,
            return_complex=True,
        ).imag.sum((1, 2))[:, None]
    ),
    "rotations": lambda x, y, p, i, s, k, m: torch.view_as_real(
        torch.view_as_complex(x.reshape(-1, 3, 2)) * torch.polar(p[:, :3], y[:, :3])
    ).flatten(1),
    "complex numbers": lambda x, y, p, i, s, k, m: complex_numbers(torch.complex(x, y), m.square),
    "infinities": lambda x, y, p, i, s, k, m: y * torch.isposinf(x / 0.0),
    "triangle": lambda x, y, p, i, s, k, m: (
        x * m.square[torch.tril_indices(6, 6)[0], torch.tril_indices(6, 6)[1]].sum()
    ),
    "gradients": lambda x, y, p, i, s, k, m: gradients(x.clone(), m.prelu(y)),
    "alignments": lambda x, y, p, i, s, k, m: F.ctc_loss(
        s.permute(2, 0, 1).log_softmax(2),
        k[:, :3] + 1,
        torch.full((x.shape[0],), 9),
        torch.full((x.shape[0],), 3),
        reduction="none",
    ),
    "recurrent": lambda x, y, p, i, s, k, m: (
        m.gru(s)[0] + m.lstm(s)[0] + m.rnn(s)[0] + m.relu_rnn(s, torch.zeros(1, s.shape[0], 3) + 0.5)[0]
    ),
    "cells": lambda x, y, p, i, s, k, m: (
        m.gru_cell(x, y) + m.lstm_cell(x, (y, x))[0] + m.rnn_cell(x, y) + m.relu_cell(x, y)
    ),
}
# Operators that only programs after run_decompositions have.
DECOMPOSED = (
    "_log_softmax _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _softmax _to_copy "
    "_unsafe_view alias_copy constant_pad_nd convolution copy detach_copy diagonal_scatter empty_permuted "
    "fill grid_sampler_2d lift lift_fresh max_pool2d_with_indices native_dropout native_layer_norm nll_loss "
    "nll_loss2d_forward nll_loss_forward norm reflection_pad1d reflection_pad2d replication_pad1d "
    "replication_pad2d scalar_tensor select_scatter slice_scatter"
)
# Those of tests/support/torch_networks.py, test_from_torch.py, test_torch_programs.py and test_torch_states.py.
ELSEWHERE = "batch_norm fill_diagonal isfinite isinf isneginf take_along_dim triu_indices"
OURS = "batch_norm custom_gradient gradient_of"


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.square, self.row = nn.Parameter(torch.randn(6, 6) / 2), nn.Parameter(torch.randn(6) / 2)
        self.kernel, self.words = nn.Parameter(torch.randn(4, 4, 3, 3) / 4), nn.Embedding(3, 6)
        self.norm = nn.InstanceNorm2d(4, affine=True)
        self.dropouts = nn.Sequential(nn.Dropout(0.1), nn.Dropout2d(0.2))
        self.register_buffer("order", torch.tensor([2, 0, 1, 5, 4, 3]), persistent=False)
        self.register_buffer("pi", torch.tensor(np.pi, dtype=torch.float64), persistent=False)
        self.gru, self.lstm = nn.GRU(9, 3, batch_first=True), nn.LSTM(9, 3, batch_first=True)
        self.rnn = nn.RNN(9, 3, batch_first=True)
        self.relu_rnn = nn.RNN(9, 3, batch_first=True, nonlinearity="relu")
        self.gru_cell, self.lstm_cell, self.rnn_cell = nn.GRUCell(6, 6), nn.LSTMCell(6, 6), nn.RNNCell(6, 6)
        self.prelu = nn.PReLU(6)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(6, 3))
        self.relu_cell = nn.RNNCell(6, 6, nonlinearity="relu")

    def forward(self, x, y, i, s, k):
        return tuple(f(x, y, x * x + 0.5, i, s, k, self) for f in EXPRESSIONS.values())


@pytest.fixture(scope="module")
def everything():
    torch.manual_seed(1)
    examples = torch.randn(2, 6), torch.randn(2, 6), torch.randn(2, 4, 8, 8), torch.randn(2, 4, 9)
    file = saved(Everything(), (*examples, torch.randint(0, 2, (2, 6))))
    return read(file, "Everything"), file


def test_values_and_gradients(everything):
    exported, file = everything
    program = convert(exported, "Everything")
    rows = comparisons(program, file, "Everything")
    names = dict(zip([r.tensor for r in rows if r.what == "outputs"], EXPRESSIONS, strict=True))
    wrong = [(row.what, names.get(row.tensor, row.tensor), row.error) for row in rows if not row.good]
    assert not wrong and np.isfinite([row.error for row in rows]).all(), wrong


def test_every_operator_is_there(everything):
    exported, _ = everything
    seen = {".".join(node.target.split(".")[:2]) for node in exported.nodes}
    seen |= {name.removesuffix("_") for name in seen}
    rest = {f"aten.{name}" for name in f"{DECOMPOSED} {ELSEWHERE}".split()}
    assert TABLE.keys() - seen == rest | {f"autodiff_gen.{name}" for name in OURS.split()}
