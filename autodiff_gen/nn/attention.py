"""Multi-head attention, with the names, arguments, defaults and initialisation of torch.nn."""

from __future__ import annotations

from typing import Any

from .. import functional as F
from .. import init
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike, as_value, shape_error
from ..functional.attention import split_mask, weights
from ..ir.names import with_role
from ..ir.node import Value
from .dropout import probability
from .layers import Linear
from .module import Module
from .parameter import Parameter


class MultiheadAttention(Module):
    """Vaswani et al. 2017: query, key and value are projected and divided into num_heads heads; the outputs of the
    heads are concatenated and projected. query [L, N, E], key [S, N, kdim], value [S, N, vdim] -> output [L, N, E] and
    weights [N, L, S]; N comes first with batch_first, and is absent for a single sequence. E is embed_dim."""

    @torch_lacks(add_bias_kv=False, add_zero_attn=False, device=None, dtype=None)
    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
    ) -> None:
        super().__init__()
        for name, n in (("embed_dim", embed_dim), ("num_heads", num_heads)):
            if isinstance(n, bool) or not isinstance(n, int) or n < 1:
                raise ModelError(f"MultiheadAttention: {name}={n!r} must be an integer of at least 1")
        if embed_dim % num_heads:
            raise ModelError(
                f"MultiheadAttention: embed_dim={embed_dim} cannot be divided into num_heads={num_heads} heads"
            )
        self.embed_dim, self.num_heads, self.batch_first = embed_dim, num_heads, batch_first
        self.dropout = probability("MultiheadAttention", dropout)
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.packed = self.kdim == self.vdim == embed_dim
        names = ("in_proj_weight",) if self.packed else ("q_proj_weight", "k_proj_weight", "v_proj_weight")
        for name, width in zip(names, (embed_dim, self.kdim, self.vdim), strict=False):
            rows = 3 * embed_dim if self.packed else embed_dim
            setattr(self, name, Parameter(init.xavier_uniform((rows, width))))
        self.register_parameter("in_proj_bias", Parameter(init.zeros(3 * embed_dim)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias)
        if bias:
            self.out_proj.bias = Parameter(init.zeros(embed_dim))

    def forward(
        self,
        query: TensorLike,
        key: TensorLike,
        value: TensorLike,
        key_padding_mask: TensorLike | None = None,
        need_weights: bool = True,
        attn_mask: TensorLike | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Value, Value | None]:
        """Output and weights. The weights are averages over the heads; with average_attn_weights=False they are those
        of each head, [N, num_heads, L, S]; without need_weights they are None.

        Bool masks are True for keys that do NOT participate, float masks are added to the scores: key_padding_mask
        [N, S], attn_mask [L, S] or [N * num_heads, L, S]. is_causal says that attn_mask is causal, and has no effect.
        A query without participating keys gives zeros; with need_weights, PyTorch gives NaN.
        """
        given = [as_value(v) for v in (query, key, value)]
        if is_causal and attn_mask is None:
            raise shape_error("MultiheadAttention", given, "is_causal=True needs a causal attn_mask")
        unbatched = given[0].ndim == 2
        q, k, v = self._batch_first(given)
        allowed, added = self._masks(q, k, key_padding_mask, attn_mask)
        projected = zip("qkv", self._project(q, k, v), strict=True)
        heads = [self._heads(with_role(x, role)) for role, x in projected]
        p = weights("MultiheadAttention", heads[0], heads[1], allowed, added, None)
        p = F.dropout(p, self.dropout, self.training)
        context = F.permute(with_role(F.matmul(p, heads[2]), "context"), (0, 2, 1, 3))
        output = self.out_proj(F.reshape(context, q.shape))
        if unbatched:
            output = F.squeeze(output, 0)
        elif not self.batch_first:
            output = F.transpose(output, 0, 1)
        if not need_weights:
            return output, None
        attention = F.mean(p, 1) if average_attn_weights else p
        return output, F.squeeze(attention, 0) if unbatched else attention

    def _batch_first(self, given: list[Value]) -> list[Value]:
        """query, key and value with N first. Equal values stay equal, so that they share a projection."""
        q, k, v = given
        extents = (self.embed_dim, self.kdim, self.vdim)
        ranks = {x.ndim for x in given}
        if ranks not in ({2}, {3}) or any(x.shape[-1] != d for x, d in zip(given, extents, strict=True)):
            layout = "[N, length, width]" if self.batch_first else "[length, N, width]"
            raise shape_error(
                "MultiheadAttention", given, f"needs {layout}, or [length, width], of widths {list(extents)}"
            )
        converted: dict[Value, Value] = {}
        for x in given:
            if x not in converted:
                converted[x] = (
                    F.unsqueeze(x, 0) if x.ndim == 2 else x if self.batch_first else F.transpose(x, 0, 1)
                )
        q, k, v = (converted[x] for x in given)
        if k.shape[:2] != v.shape[:2] or q.shape[0] != k.shape[0]:
            raise shape_error(
                "MultiheadAttention",
                given,
                "key and value must have the same length, and all the same batch size",
            )
        return [q, k, v]

    def _project(self, q: Value, k: Value, v: Value) -> list[Value]:
        """The projections of query, key and value; equal values are projected by one product."""
        width, bias = self.embed_dim, self.in_proj_bias
        if not self.packed:
            ws = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
            bs = F.chunk(bias, 3) if bias is not None else (None, None, None)
            return [F.linear(x, w, b) for x, w, b in zip((q, k, v), ws, bs, strict=True)]
        groups = [[q, k, v]] if q is k is v else [[q], [k, v]] if k is v else [[q], [k], [v]]
        out: list[Value] = []
        for group in groups:
            start, rows = len(out) * width, len(group) * width
            w = F.narrow(self.in_proj_weight, 0, start, rows)
            b = F.narrow(bias, 0, start, rows) if bias is not None else None
            names = "qkv"[len(out) : len(out) + len(group)]
            out += F.chunk(with_role(F.linear(group[0], w, b), names), len(group), -1)
        return out

    def _heads(self, x: Value) -> Value:
        """[N, L, E] -> [N, num_heads, L, E / num_heads]; a view."""
        split = F.reshape(x, (*x.shape[:2], self.num_heads, self.embed_dim // self.num_heads))
        return F.permute(split, (0, 2, 1, 3))

    def _masks(self, q: Value, k: Value, padding: Any, mask: Any) -> tuple[Value | None, Value | None]:
        """(bool mask of participating keys, term of the scores), each broadcastable to [N, num_heads, L, S]."""
        length, keys = q.shape[1], k.shape[1]
        masks: list[tuple[Value | None, Value | None]] = []
        for name, given, shapes in (
            ("key_padding_mask", padding, [(k.shape[0], keys)]),
            ("attn_mask", mask, [(length, keys), (q.shape[0] * self.num_heads, length, keys)]),
        ):
            if given is None:
                continue
            m = as_value(given)
            if m.ndim == len(shapes[0]) - 1 and name == "key_padding_mask":
                m = F.unsqueeze(m, 0)
            if m.shape not in shapes:
                known = " or ".join(str(list(s)) for s in shapes)
                raise shape_error("MultiheadAttention", [m], f"{name} must have the shape {known}")
            if name == "key_padding_mask":
                m = F.reshape(m, (k.shape[0], 1, 1, keys))
            elif m.ndim == 3:
                m = F.reshape(m, (q.shape[0], self.num_heads, length, keys))
            masks.append(split_mask("MultiheadAttention", F.logical_not(m) if m.dtype.kind == "b" else m))
        alloweds = [a for a, _ in masks if a is not None]
        addeds = [a for _, a in masks if a is not None]
        allowed = F.logical_and(*alloweds) if len(alloweds) == 2 else alloweds[0] if alloweds else None
        added = addeds[0] + addeds[1] if len(addeds) == 2 else addeds[0] if addeds else None
        return allowed, added
