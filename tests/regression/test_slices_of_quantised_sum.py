"""Slices of a sum of quantised tensors: the parts lost its scale and zero point, and the compiler stopped."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F

pytestmark = pytest.mark.cc


def test_halves_of_a_sum() -> None:
    x = ag.Input("x", (2, 4))
    total = F.quantized_add(F.quantize(x, 0.05, 3), F.quantize(x * 0.5, 0.05, 3), 0.1, -2)
    halves = [F.dequantize(total[:, :2]), F.dequantize(total[:, 2:])]
    given = np.linspace(-1, 1, 8, dtype="float32").reshape(2, 4)
    left, right = ag.function([x], [F.exp(halves[0]), halves[1]]).on_host()(given)
    np.testing.assert_allclose(left, np.exp(1.5 * given[:, :2]), atol=0.25)
    np.testing.assert_allclose(right, 1.5 * given[:, 2:], atol=0.11)
