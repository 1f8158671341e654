"""The gamma function near its poles."""

import math

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F

pytestmark = pytest.mark.cc


def test_lgamma_and_digamma_near_zero_and_negative_integers():
    x = np.float32([-1e-6, 1e-6, -2e-20, -1.001, -2.9995, -5.0005269])
    given = ag.Input("x", x.shape)
    value, derivative = ag.function([given], [F.lgamma(given), F.digamma(given)]).on_host()(x)
    np.testing.assert_allclose(value, [math.lgamma(v) for v in x], rtol=1e-6, atol=4e-6)  # terms up to 36
    np.testing.assert_allclose(derivative, [digamma(float(v)) for v in x], rtol=1e-6)


def digamma(x: float) -> float:
    """By digamma(x) = digamma(x + 1) - 1 / x, up to where lgamma's difference quotient is exact."""
    if x < 8.0:
        return digamma(x + 1.0) - 1.0 / x
    return (math.lgamma(x + 1e-4) - math.lgamma(x - 1e-4)) / 2e-4
