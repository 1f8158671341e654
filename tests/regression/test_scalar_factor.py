"""A scalar argument, or a constant of one element, as a factor of a product: kernels take pointers, these have none."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F

pytestmark = pytest.mark.cc


def test_scalars_as_factors() -> None:
    s, x = ag.Input("s", ()), ag.Input("x", (3, 1))
    one = F.reshape(s, (1, 1))
    y = F.matmul(F.matmul(x, one), np.full((1, 1), 2.0, "float32"))
    column = np.arange(3, dtype="float32").reshape(3, 1)
    (got,) = ag.function([s, x], [F.matmul(y, one)]).on_host()(0.5, column)
    assert np.array_equal(got, column / 2)
