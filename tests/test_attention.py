"""Attention against PyTorch: the function with all kinds of masks, the layers step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, check_c, check_float64

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.errors import ShapeError

RNG = np.random.default_rng(3)
BOOL = RNG.random((4, 6)) > 0.4
BOOL[:, 0] = True  # every query has a key
HOLES = RNG.random((2, 1, 4, 6)) > 0.5
HOLES[0, 0, 2] = False  # this one has none
ADDED = RNG.normal(size=(4, 6)).astype(np.float32)
INFINITE = np.where(BOOL, ADDED, -np.inf).astype(np.float32)
Q, K, V = (2, 3, 4, 5), (2, 3, 6, 5), (2, 3, 6, 7)


def attend(**options: Any) -> Callable[..., Any]:
    """The function with a mask from `options`, which PyTorch wants as a tensor."""

    def expression(F: Any, *qkv: Any) -> Any:
        given = dict(options)
        if "attn_mask" in given and not isinstance(qkv[0], ag.ir.Value):
            import torch

            given["attn_mask"] = torch.tensor(given["attn_mask"]).to(
                torch.bool if given["attn_mask"].dtype == bool else qkv[0].dtype
            )
        return F.scaled_dot_product_attention(*qkv, **given)

    return expression


ROWS: list[Row] = [
    ("plain", attend(), [Q, K, V]),
    ("one_sequence", attend(), [(4, 5), (6, 5), (6, 7)]),
    ("one_key", attend(), [(4, 5), (1, 5), (1, 7)]),
    ("scale", attend(scale=0.3), [Q, K, V]),
    ("broadcast", attend(), [(2, 1, 4, 5), (3, 6, 5), (6, 7)]),
    ("bool", attend(attn_mask=BOOL), [Q, K, V]),
    ("bool_with_a_query_without_keys", attend(attn_mask=HOLES), [Q, K, V]),
    ("added", attend(attn_mask=ADDED, scale=1.0), [Q, K, V]),
    ("added_with_infinities", attend(attn_mask=INFINITE), [Q, K, V]),
    ("causal", attend(is_causal=True), [Q, K, V]),
    ("causal_fewer_keys", attend(is_causal=True), [(2, 6, 5), (2, 4, 5), (2, 4, 3)]),
    ("shared", lambda F, x: F.scaled_dot_product_attention(x, x, x, is_causal=True), [(2, 4, 5)]),
]
IN_C = ("bool_with_a_query_without_keys", "added_with_infinities", "causal", "shared")


@pytest.mark.torch
@pytest.mark.parametrize("row", ROWS, ids=lambda r: r[0])
def test_attention_is_torchs(row: Row) -> None:
    check_float64(row)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("row", [r for r in ROWS if r[0] in IN_C], ids=lambda r: r[0])
def test_attention_in_c_is_torchs(row: Row) -> None:
    check_c(row)


@pytest.mark.torch
def test_masks_that_are_inputs() -> None:
    """A mask of floats has a gradient; one of bool is made inside from numbers."""

    def of_floats(F: Any, q: Any, mask: Any) -> Any:
        return F.scaled_dot_product_attention(q, q, q, mask)

    check_float64(("floats", of_floats, [(2, 6, 5), (2, 6, 6)]))
    x, lengths = ag.Input("x", (2, 6, 5)), ag.Input("lengths", (2, 1, 1), "s32")
    shown = np.arange(6)[None, None, :] < lengths
    y = F.scaled_dot_product_attention(x, x, x, shown)
    array = RNG.normal(size=(2, 6, 5)).astype(np.float32)
    (got,) = ag.function([x, lengths], [y]).on_host()(array, np.array([4, 0]).reshape(2, 1, 1))
    np.testing.assert_array_equal(got[1], 0.0)
    plain = ag.Input("plain", (4, 5))
    part = ag.function([plain], [F.scaled_dot_product_attention(plain, plain, plain)]).on_host()
    assert not np.allclose(got[0, :4], array[0, :4])
    np.testing.assert_allclose(got[0, :4], part(array[0, :4])[0], rtol=1e-5)


X, WIDE = ag.Input("x", (2, 4, 5)), ag.Input("wide", (2, 4, 6))
REFUSED: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: F.scaled_dot_product_attention(X, WIDE, X),
        r"^scaled_dot_product_attention\(x: f32\[2,4,5\], wide: f32\[2,4,6\], x: f32\[2,4,5\]\): needs query",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, np.ones((3, 4), bool)),
        r"the mask \[3, 4\] does not broadcast to \[2, 4, 4\]$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, np.ones((4, 4), np.int32)),
        r"the mask must be of bool or floats$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, np.ones((4, 4), bool), is_causal=True),
        r"give either attn_mask or is_causal=True$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, dropout_p=0.1),
        r"^scaled_dot_product_attention: dropout_p=0.1 is not supported; it must be 0$",
    ),
    (
        lambda: F.scaled_dot_product_attention(X, X, X, enable_gqa=True),
        r"^scaled_dot_product_attention: the argument 'enable_gqa' is not supported$",
    ),
]


@pytest.mark.parametrize("build, message", REFUSED)
def test_refused_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message) as caught:
        build()
    assert "\n" not in str(caught.value)
