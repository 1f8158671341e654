"""Chains of views of one element, which a group of loops could not label: a broadcast that a reshape divides."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F

pytestmark = pytest.mark.cc


def test_the_gradient_of_a_mean_over_a_free_batch() -> None:
    x = ag.Input("x", (6, 4), batch_axis=0)
    w = ag.Param("w", np.ones(4, "float32"))
    mean = F.mean(F.reshape(F.reshape(x * w, (-1, 2, 2)), (-1, 4)))
    (d_w,) = ag.function([x, w], ag.grad(mean, [w])).on_host()(
        np.ones((6, 4), "float32"), np.ones(4, "float32")
    )
    assert np.array_equal(d_w, np.full(4, 0.25))


def test_the_gradient_of_a_mean_over_groups() -> None:
    scores, index = ag.Input("scores", (9, 3)), np.arange(3).repeat(3).reshape(3, 3, 1)
    loss = F.mean(F.reshape(F.gather(F.reshape(scores, (3, 3, 3)), 2, index.astype("int32")), (-1,)))
    (d_scores,) = ag.function([scores], ag.grad(loss, [scores])).on_host()(np.zeros((9, 3), "float32"))
    np.testing.assert_allclose(d_scores, np.eye(3).repeat(3, 0) / 9, rtol=1e-6)
