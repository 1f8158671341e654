"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, constant
from ..ir.interpreter import evaluate
from ..ir.node import CONST, Value, base
from ..ir.op_kinds import Elementwise, Iota
from ..ir.types import broadcast
from .arguments import as_value, refusal, torch_lacks
from .dropout import dropout
from .elementwise import exp, where
from .products import matmul
from .reductions import amax, sum
from .shapes import reshape, transpose
from .softmax import softmax

LOW = -1e30  # takes the place of the scores that a mask hides; finite, so that no gradient becomes NaN


@torch_lacks(enable_gqa=False)
def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Value:
    """softmax(query . key' * scale + mask) . value: [..., L, E], [..., S, E], [..., S, Ev] -> [..., L, Ev].

    Leading axes broadcast. attn_mask [..., L, S]: of bool, True where a key takes part; of floats, added to the scores,
    -inf where a key does not. is_causal: key j takes part for query i where j <= i. A query without any key gives
    zeros. scale: 1 / sqrt(E) by default. dropout_p: F.dropout of the weights; unlike PyTorch's, not in evaluation.
    """
    q, k, v = as_value(query), as_value(key), as_value(value)
    name = "scaled_dot_product_attention"
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise refusal(name, [q, k, v], "needs query [..., L, E], key [..., S, E] and value [..., S, Ev]")
    if is_causal and attn_mask is not None:
        raise refusal(name, [q, k, v], "give either attn_mask or is_causal=True")
    allowed, added = None, None
    if is_causal:
        allowed = causal(q.shape[-2], k.shape[-2])
    elif attn_mask is not None:
        allowed, added = split_mask(name, as_value(attn_mask))
    return matmul(dropout(weights(name, q, k, allowed, added, scale), dropout_p), v)


def causal(queries: Any, keys: Any) -> Value:
    """The mask bool[queries, keys] that holds where key <= query; computed in the loop, not stored."""
    rows = reshape(apply("iota", size=queries), (queries, 1))
    return rows >= reshape(apply("iota", size=keys), (1, keys))


def split_mask(name: str, mask: Value) -> tuple[Value | None, Value | None]:
    """(where keys take part, what is added to the scores) of a mask of bool or floats; a mask that is a constant is
    looked at now."""
    if mask.dtype.kind == "b":
        return mask, None
    if mask.dtype.kind != "f":
        raise refusal(name, [mask], "the mask must be of bool or floats")
    if mask.node.op is not CONST:
        return mask > LOW, mask
    array = mask.node.attrs["value"]
    hidden = np.isneginf(array)
    shown = np.where(hidden, np.float32(0.0), array)
    return constant(~hidden) if hidden.any() else None, constant(shown) if shown.any() else None


def weights(
    name: str, q: Value, k: Value, allowed: Value | None, added: Value | None, scale: float | None
) -> Value:
    """softmax(q . k' * scale + added) over the keys that are allowed, [..., L, S]."""
    width = q.shape[-1]
    assert isinstance(width, int)
    factor = 1.0 / math.sqrt(width) if scale is None else float(scale)
    scores = matmul(q, transpose(k, -2, -1))
    for mask in (allowed, added):
        try:
            fits = mask is None or broadcast(mask.shape, scores.shape) == scores.shape
        except ShapeError:
            fits = False
        if not fits:
            assert mask is not None
            raise refusal(
                name, [q, k], f"the mask {list(mask.shape)} does not broadcast to {list(scores.shape)}"
            )
    if factor != 1.0:
        scores = scores * factor
    if added is not None:
        scores = scores + added
    if allowed is None:
        return softmax(scores, -1)
    if _shows_every_row(allowed):
        return softmax(where(allowed, scores, LOW), -1)
    # Rows without a key: all exponentials are 0, and so is what is divided by.
    seen = where(allowed, scores, LOW)
    e = where(allowed, exp(seen - apply("detach", amax(seen, -1, keepdim=True))), 0.0)
    total = sum(e, -1, keepdim=True)
    return e * (1.0 / where(total > 0.0, total, 1.0))


def _shows_every_row(allowed: Value) -> bool:
    """Whether each query surely has a key."""
    if allowed.node.op is CONST:
        return bool(allowed.node.attrs["value"].any(axis=-1).all())
    if not isinstance(allowed.node.op.lower, Elementwise) or not all(
        _is_index(v) for v in allowed.node.operands
    ):
        return False
    return bool(evaluate([allowed], {})[0].any(axis=-1).all())


def _is_index(v: Value) -> bool:
    return isinstance(base(v).node.op.lower, Iota)
