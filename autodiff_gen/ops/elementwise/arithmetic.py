"""Elementwise arithmetic with NumPy's broadcasting."""

from __future__ import annotations

import numpy as np

from ...ir.build import apply, filled
from ...ir.node import Value, define
from ...ir.op_kinds import ADD, ATOM, MUL, SELECT, UNARY, Elementwise
from ..support import ONES, PAIRS, arithmetic, by_operand, floating, number, simple, sum_to, within

add = define(
    "add",
    infer=arithmetic,
    ref=lambda a, b: a + b,
    vjp=simple(lambda dy, a, b, y: dy, lambda dy, a, b, y: dy),
    lower=Elementwise("{0} + {1}", ADD, (ADD, MUL), cheap=True),
    samples=PAIRS,
    torch="a + b",
    exact=True,
    signs=(1, 1),
)


sub = define(
    "sub",
    infer=arithmetic,
    ref=lambda a, b: a - b,
    vjp=by_operand(  # the sum over broadcast axes is negated, not each element
        lambda dy, a, b, y, attrs: sum_to(dy, a.type.shape),
        lambda dy, a, b, y, attrs: apply("neg", sum_to(dy, b.type.shape)),
    ),
    lower=Elementwise("{0} - {1}", ADD, (ADD, MUL), cheap=True),
    samples=PAIRS,
    torch="a - b",
    exact=True,
    signs=(1, -1),
)

mul = define(
    "mul",
    infer=arithmetic,
    ref=lambda a, b: a * b,
    vjp=simple(lambda dy, a, b, y: dy * b, lambda dy, a, b, y: dy * a),
    lower=Elementwise("{0} * {1}", MUL, (MUL, UNARY), cheap=True),
    samples=PAIRS,
    torch="a * b",
    exact=True,
    powers=(1, 1),
)

div = define(
    "div",
    infer=floating,
    ref=lambda a, b: a / b,
    vjp=simple(lambda dy, a, b, y: dy / b, lambda dy, a, b, y: -(dy * (y / b))),
    lower=Elementwise("{0} / {1}", MUL, (MUL, UNARY)),
    samples=(*within(0.5, 2.0, PAIRS), *within(-2.0, -0.5, PAIRS[:1])),
    torch="a / b",
    exact=True,
    powers=(1, -1),
)

neg = define(
    "neg",
    infer=arithmetic,
    ref=np.negative,
    vjp=simple(lambda dy, x, y: -dy),
    lower=Elementwise("-{0}", UNARY, ATOM, cheap=True),
    samples=ONES,
    torch="-a",
    exact=True,
    signs=(-1,),
)

square = define(
    "square",
    infer=arithmetic,
    ref=lambda x: x * x,
    vjp=simple(lambda dy, x, y: dy * 2.0 * x),
    lower=Elementwise("{0} * {0}", MUL, UNARY, cheap=True),
    samples=ONES,
    torch="torch.square(a)",
    exact=True,
    powers=(2,),
    non_negative=True,
)


def power(a: Value, exponent: float) -> Value:
    """a to a constant power, by the cheapest ops that round as PyTorch's pow with a number does."""
    if exponent == 0:
        return filled(1.0, a.type)
    if exponent == 1:
        return a
    if exponent == 2:
        return apply("square", a)
    if exponent == 3:
        return apply("square", a) * a
    if exponent == 0.5:
        return apply("sqrt", a)
    if exponent == -1:
        return 1.0 / a
    if exponent == -2:
        return 1.0 / apply("square", a)
    if exponent == -0.5:
        return 1.0 / apply("sqrt", a)
    return apply("pow", a, exponent)


def _pow_base_gradient(dy: Value, a: Value, b: Value) -> Value:
    exponent = number(b)
    if exponent is not None:
        return dy * 0.0 if exponent == 0 else dy * exponent * power(a, exponent - 1)
    return apply("where", apply("eq", b, 0.0), 0.0, dy * b * apply("pow", a, b - 1.0))


def _pow_exponent_gradient(dy: Value, a: Value, b: Value, y: Value) -> Value:
    """dy y log(a), and 0 where a = 0 and b >= 0; the argument of log is 1 there, so that second derivatives are
    finite."""
    zero = apply("logical_and", apply("eq", a, 0.0), apply("ge", b, 0.0))
    return dy * y * apply("log", apply("where", zero, 1.0, a))


pow_ = define(
    "pow",
    infer=floating,
    ref=np.power,
    vjp=simple(lambda dy, a, b, y: _pow_base_gradient(dy, a, b), _pow_exponent_gradient),
    lower=Elementwise("ag_powf({0}, {1})", ATOM),
    samples=within(0.5, 2.0, PAIRS),
    torch="torch.pow(a, b)",
)

abs_ = define(
    "abs",
    infer=floating,
    ref=np.abs,
    vjp=simple(lambda dy, x, y: apply("where", x > 0.0, dy, apply("where", x < 0.0, -dy, 0.0))),
    lower=Elementwise("fabsf({0})", ATOM, cheap=True),
    samples=ONES,
    torch="torch.abs(a)",
    exact=True,
    bounded_by=(0,),
    non_negative=True,
)


def _share(dy: Value, a: Value, b: Value, compare: str) -> Value:
    """The gradient of a in maximum(a, b) or minimum(a, b): 0 where `compare` is true, half of dy where a = b."""
    return apply("where", apply(compare, a, b), 0.0, apply("where", apply("eq", a, b), dy * 0.5, dy))


maximum = define(
    "maximum",  # NaN if either operand is
    infer=floating,
    ref=np.maximum,
    vjp=simple(lambda dy, a, b, y: _share(dy, a, b, "lt"), lambda dy, a, b, y: _share(dy, b, a, "lt")),
    lower=Elementwise("({0} > {1} || {0} != {0}) ? {0} : {1}", SELECT, ADD, cheap=True),
    samples=PAIRS,
    torch="torch.maximum(a, b)",
    chooses=(0, 1),
)

minimum = define(
    "minimum",  # NaN if either operand is
    infer=floating,
    ref=np.minimum,
    vjp=simple(lambda dy, a, b, y: _share(dy, a, b, "gt"), lambda dy, a, b, y: _share(dy, b, a, "gt")),
    lower=Elementwise("({0} < {1} || {0} != {0}) ? {0} : {1}", SELECT, ADD, cheap=True),
    samples=PAIRS,
    torch="torch.minimum(a, b)",
    chooses=(0, 1),
)
