"""Numbers as they are written in generated C."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_gen.lowering.c.c_syntax import float_literal

SPELLED = [
    (0.01, "0.01f"),
    (200.0, "200.0f"),
    (1e-5, "1e-05f"),
    (-0.0, "-0.0f"),
    (1 / 3, "0.33333334f"),
    (3.4028234663852886e38, "3.4028235e+38f"),
    (1e-45, "1e-45f"),
    (1e39, "INFINITY"),
    (float("-inf"), "-INFINITY"),
    (float("nan"), "NAN"),
]


@pytest.mark.parametrize("value, text", SPELLED)
def test_spelling(value: float, text: str) -> None:
    assert float_literal(value) == text


def test_every_literal_reads_back() -> None:
    drawn = np.random.default_rng(0).integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    for x in drawn[np.isfinite(drawn)]:
        assert np.float32(float(float_literal(float(x)).removesuffix("f"))) == x
