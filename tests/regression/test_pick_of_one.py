"""Picking from an axis of one element, where the picked value is in another loop: it had no place in memory."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F

pytestmark = pytest.mark.cc


def test_a_value_that_is_picked_and_reduced() -> None:
    x = ag.Input("x", (1,))
    y = F.exp(x)
    largest, at = F.max(y, 0)
    (got,) = ag.function([x], [largest + F.pick(y, at)]).on_host()(np.zeros(1, "float32"))
    assert got == 2.0
