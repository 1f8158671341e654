"""Elementwise operators of PyTorch: arithmetic, activations, comparisons, integers and numbers that are not finite."""

import numpy as np
import torch
from torch.nn import functional as F


def integers(k, x):
    """Integers stay integers in operators that PyTorch has for them, and are floats in others."""
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
    """A region that asks for other numbers than a CPU gives, and no gradient of outer values."""
    with torch.autocast("cuda", enabled=False):
        y = x.type_as(x).exp()
    with torch.enable_grad():
        z = x.sin()
    return y * z


# The arguments: test_aten.py.
ELEMENTWISE = {
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
    "quotients": lambda x, y, p, i, s, k, m: (
        torch.addcdiv(x, y, p, value=0.3)
        + torch.log10(p)
        + torch.floor_divide(p.detach(), 0.4)
        + torch.where(torch.isnan(x), y, x * y)
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
    "types": lambda x, y, p, i, s, k, m: (
        k.float() * x + k.to(torch.float32) * y + k.type_as(x) + (x > 0).float()
    ),
    "bits": lambda x, y, p, i, s, k, m: torch.where(
        torch.bitwise_and(x > 0, y > 0) ^ torch.bitwise_or(x > 1, y > 1)
        | torch.bitwise_xor(x > 0.5, y > 0.5),
        x,
        y,
    ),
    "copies": lambda x, y, p, i, s, k, m: (
        x.clone().add_(1).mul_(y).relu_() + y.detach() + torch.ops.aten.alias(x)
    ),
    "gamma functions": lambda x, y, p, i, s, k, m: torch.lgamma(p) * torch.digamma(p + 1.0),
    "signs": lambda x, y, p, i, s, k, m: torch.copysign(x, y) + F.rrelu(y, 0.1, 0.3, training=True),
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
    "numbers of float64": lambda x, y, p, i, s, k, m: x * torch.tensor(np.pi) + k.type_as(m.row) * m.pi,
    "half precision elsewhere": lambda x, y, p, i, s, k, m: elsewhere(x * m.row),
    "integers": lambda x, y, p, i, s, k, m: integers(3 * k - torch.arange(6), x),
    "infinities": lambda x, y, p, i, s, k, m: y * torch.isposinf(x / 0.0),
}
