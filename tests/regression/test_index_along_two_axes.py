"""One index that runs along two axes, as by the mask of a triangle: the build failed."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen.ir.build import apply

pytestmark = pytest.mark.cc


def test_mask_of_a_triangle() -> None:
    x = ag.Input("x", (4, 4))
    index = apply("iota", size=4)
    lower = apply("le", apply("reshape", index, shape=(1, 4)), apply("reshape", index, shape=(4, 1)))
    array = np.arange(16, dtype=np.float32).reshape(4, 4)
    (got,) = ag.function([x], [apply("where", lower, x, 0.0)]).on_host(kernels="ref")(array)
    np.testing.assert_array_equal(got, np.tril(array))
