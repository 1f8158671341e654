"""Scaled dot-product attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..errors import ShapeError
from ..ir.build import apply, constant
from ..ir.interpreter import evaluate
from ..ir.names import with_role
from ..ir.node import CONST, Value, base
from ..ir.op_kinds import Elementwise, Iota
from ..ir.types import broadcast
from .arguments import TensorLike, as_value, shape_error, torch_lacks
from .dropout import dropout
from .elementwise import exp, where
from .products import matmul
from .reductions import amax, sum
from .shapes import reshape, transpose
from .softmax import softmax

__all__ = ["scaled_dot_product_attention"]

LOW = -1e30  # replaces masked scores; finite, so that no gradient becomes NaN


@torch_lacks(enable_gqa=False)
def scaled_dot_product_attention(
    query: TensorLike,
    key: TensorLike,
    value: TensorLike,
    attn_mask: TensorLike | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Value:
    """softmax(query . key' * scale + mask) . value: [..., L, E], [..., S, E], [..., S, Ev] -> [..., L, Ev]. Vaswani et
    al. 2017.

    Leading axes broadcast. attn_mask [..., L, S]: a bool mask is True for keys that participate; a float mask is added
    to the scores, and is -inf for keys that do not participate. is_causal: key j participates for query i if j <= i. A
    query without participating keys gives zeros. scale: 1 / sqrt(E) by default. dropout_p: F.dropout of the weights,
    which, unlike PyTorch's, is the identity in evaluation mode.
    """
    q, k, v = as_value(query), as_value(key), as_value(value)
    name = "scaled_dot_product_attention"
    if min(q.ndim, k.ndim, v.ndim) < 2 or q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise shape_error(name, [q, k, v], "needs query [..., L, E], key [..., S, E] and value [..., S, Ev]")
    if is_causal and attn_mask is not None:
        raise shape_error(name, [q, k, v], "give either attn_mask or is_causal=True")
    allowed, added = None, None
    if is_causal:
        allowed = causal(q.shape[-2], k.shape[-2])
    elif attn_mask is not None:
        allowed, added = split_mask(name, as_value(attn_mask))
    return matmul(dropout(weights(name, q, k, allowed, added, scale), dropout_p), v)


def causal(queries: Any, keys: Any) -> Value:
    """The mask bool[queries, keys], True where key <= query; computed in the loop, not stored."""
    rows = reshape(apply("iota", size=queries), (queries, 1))
    return rows >= reshape(apply("iota", size=keys), (1, keys))


def split_mask(name: str, mask: Value) -> tuple[Value | None, Value | None]:
    """(bool mask of participating keys, term that is added to the scores) of a bool or float mask. Either is None if it
    is known to have no effect. A constant float mask is split at build time."""
    if mask.dtype.kind == "b":
        return mask, None
    if mask.dtype.kind != "f":
        raise shape_error(name, [mask], "the mask must be bool or float")
    if mask.node.op is not CONST:
        return mask > LOW, mask
    array = mask.node.attrs["value"]
    masked = np.isneginf(array)
    finite = np.where(masked, np.float32(0.0), array)
    return constant(~masked) if masked.any() else None, constant(finite) if finite.any() else None


def weights(
    name: str, q: Value, k: Value, allowed: Value | None, added: Value | None, scale: float | None
) -> Value:
    """softmax(q . k' * scale + added) over the allowed keys, [..., L, S]."""
    width = q.shape[-1]
    assert isinstance(width, int)
    factor = 1.0 / math.sqrt(width) if scale is None else float(scale)
    scores = with_role(matmul(q, transpose(k, -2, -1)), "scores" if factor == 1.0 else "qk")
    for mask in (allowed, added):
        try:
            fits = mask is None or broadcast(mask.shape, scores.shape) == scores.shape
        except ShapeError:
            fits = False
        if not fits:
            assert mask is not None
            raise shape_error(
                name, [q, k], f"the mask {list(mask.shape)} does not broadcast to {list(scores.shape)}"
            )
    if factor != 1.0:
        scores = with_role(scores * factor, "scores")
    if added is not None:
        scores = scores + added
    if allowed is None:
        return with_role(softmax(scores, -1), "weights")
    if _every_row_has_a_key(allowed):
        return with_role(softmax(where(allowed, scores, LOW), -1), "weights")
    # In a row without allowed keys all exponentials are 0, and so is their sum.
    masked = where(allowed, scores, LOW)
    e = where(allowed, exp(masked - apply("detach", amax(masked, -1, keepdim=True))), 0.0)
    total = sum(e, -1, keepdim=True)
    return with_role(e * (1.0 / where(total > 0.0, total, 1.0)), "weights")


def _every_row_has_a_key(allowed: Value) -> bool:
    """Whether it is known at build time that each query has an allowed key."""
    if allowed.node.op is CONST:
        return bool(allowed.node.attrs["value"].any(axis=-1).all())
    if not isinstance(allowed.node.op.lower, Elementwise) or not all(
        _is_index(v) for v in allowed.node.operands
    ):
        return False
    return bool(evaluate([allowed], {})[0].any(axis=-1).all())


def _is_index(v: Value) -> bool:
    return isinstance(base(v).node.op.lower, Iota)
