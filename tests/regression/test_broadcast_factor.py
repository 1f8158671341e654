"""A factor of a product that is one number, broadcast along the batch: a kernel would have read past its end."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F

pytestmark = pytest.mark.cc


def test_the_gradient_of_a_sum_of_products() -> None:
    x = ag.Input("x", (3, 4), batch_axis=0)
    w = ag.Param("w", np.arange(4, dtype="float32").reshape(1, 4))
    dx = ag.grad(F.tanh(F.sum(F.matmul(w, x.T))), x)
    (got,) = ag.function([x, w], [dx]).on_host()(np.zeros((3, 4), "float32"), np.arange(4.0).reshape(1, 4))
    assert np.array_equal(got, np.tile(np.arange(4, dtype="float32"), (3, 1)))
