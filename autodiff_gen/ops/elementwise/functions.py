"""Elementwise functions of one float; in C the functions of ag_math.h, which give the same bits on every core."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...ir.build import apply
from ...ir.node import Value, define
from ...ir.op_kinds import ADD, ATOM, MUL, SELECT, UNARY, Elementwise
from ..support import ONES, PAIRS, floating, simple, within

TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)

exp = define(
    "exp",
    infer=floating,
    ref=np.exp,
    vjp=simple(lambda dy, x, y: dy * y),
    lower=Elementwise("ag_expf({0})", ATOM, calls=True),
    samples=ONES,
    torch="torch.exp(a)",
    non_negative=True,
)

expm1 = define(
    "expm1",  # exp(x) - 1, accurate for small x
    infer=floating,
    ref=np.expm1,
    vjp=simple(lambda dy, x, y: dy * (y + 1.0)),
    lower=Elementwise("ag_expm1f({0})", ATOM, calls=True),
    samples=ONES,
    torch="torch.expm1(a)",
)

log = define(
    "log",
    infer=floating,
    ref=np.log,
    vjp=simple(lambda dy, x, y: dy / x),
    lower=Elementwise("ag_logf({0})", ATOM, calls=True),
    samples=within(0.3, 3.0, ONES),
    torch="torch.log(a)",
)

log1p = define(
    "log1p",  # log(1 + x), accurate for small x
    infer=floating,
    ref=np.log1p,
    vjp=simple(lambda dy, x, y: dy / (x + 1.0)),
    lower=Elementwise("ag_log1pf({0})", ATOM, calls=True),
    samples=within(-0.7, 2.0, ONES),
    torch="torch.log1p(a)",
)

sqrt = define(
    "sqrt",
    infer=floating,
    ref=np.sqrt,
    vjp=simple(lambda dy, x, y: dy * 0.5 / y),
    lower=Elementwise("sqrtf({0})", ATOM),
    samples=within(0.3, 3.0, ONES),
    torch="torch.sqrt(a)",
    exact=True,
    powers=(0.5,),
    non_negative=True,
)

rsqrt = define(
    "rsqrt",
    infer=floating,
    ref=lambda x: 1 / np.sqrt(x),
    vjp=simple(lambda dy, x, y: dy * -0.5 * (apply("square", y) * y)),
    lower=Elementwise("1.0f / sqrtf({0})", MUL),
    samples=within(0.3, 3.0, ONES),
    torch="torch.rsqrt(a)",
    powers=(-0.5,),
)

reciprocal = define(
    "reciprocal",
    infer=floating,
    ref=lambda x: 1 / x,
    vjp=simple(lambda dy, x, y: -(dy * apply("square", y))),
    lower=Elementwise("1.0f / {0}", MUL, UNARY),
    samples=(*within(0.5, 2.0, ONES), *within(-2.0, -0.5, ONES[:1])),
    torch="torch.reciprocal(a)",
    exact=True,
    powers=(-1,),
)

sin = define(
    "sin",
    infer=floating,
    ref=np.sin,
    vjp=simple(lambda dy, x, y: dy * apply("cos", x)),
    lower=Elementwise("ag_sinf({0})", ATOM, calls=True),
    samples=ONES,
    torch="torch.sin(a)",
)

cos = define(
    "cos",
    infer=floating,
    ref=np.cos,
    vjp=simple(lambda dy, x, y: -(dy * apply("sin", x))),
    lower=Elementwise("ag_cosf({0})", ATOM, calls=True),
    samples=ONES,
    torch="torch.cos(a)",
)


def _square_of_radius(a: Value, b: Value) -> Value:
    """a^2 + b^2; 1 at the origin, where the gradients are 0."""
    square = apply("square", a) + apply("square", b)
    return apply("where", apply("eq", square, 0.0), 1.0, square)


atan2 = define(
    "atan2",
    infer=floating,
    ref=np.arctan2,
    vjp=simple(
        lambda dy, a, b, y: dy * b / _square_of_radius(a, b),
        lambda dy, a, b, y: -(dy * a / _square_of_radius(a, b)),
    ),
    lower=Elementwise("ag_atan2f({0}, {1})", ATOM, calls=True),
    samples=PAIRS,
    torch="torch.atan2(a, b)",
)

tanh = define(
    "tanh",
    infer=floating,
    ref=np.tanh,
    vjp=simple(lambda dy, x, y: dy * (1.0 - apply("square", y))),
    lower=Elementwise("ag_tanhf({0})", ATOM, calls=True),
    samples=ONES,
    torch="torch.tanh(a)",
)


def _sigmoid(x: Any) -> Any:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


sigmoid = define(
    "sigmoid",
    infer=floating,
    ref=_sigmoid,
    vjp=simple(lambda dy, x, y: dy * y * (1.0 - y)),
    lower=Elementwise("ag_sigmoidf({0})", ATOM, calls=True),
    samples=ONES,
    torch="torch.sigmoid(a)",
)


def _erf(x: Any) -> Any:
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), dtype=np.asarray(x).dtype)


erf = define(
    "erf",
    infer=floating,
    ref=_erf,
    vjp=simple(lambda dy, x, y: dy * TWO_OVER_ROOT_PI * apply("exp", -apply("square", x))),
    lower=Elementwise("ag_erff({0})", ATOM, calls=True),
    samples=ONES,
    torch="torch.erf(a)",
)

relu = define(
    "relu",  # the gradient at 0 is 0; NaN stays NaN
    infer=floating,
    ref=lambda x: np.maximum(x, 0),
    vjp=simple(lambda dy, x, y: apply("where", y <= 0.0, 0.0, dy)),
    lower=Elementwise("{0} <= 0.0f ? 0.0f : {0}", SELECT, ADD, cheap=True),
    samples=ONES,
    torch="torch.relu(a)",
    bounded_by=(0,),
    non_negative=True,
    monotone=lambda attrs: True,
    limits=lambda attrs: (0.0, math.inf),
)
