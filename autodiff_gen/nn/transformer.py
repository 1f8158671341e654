"""Transformer blocks, with the names, arguments, defaults and initialisation of torch.nn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import as_value
from ..ir.names import with_role
from ..ir.node import Value
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .layers import Linear
from .module import Module
from .normalization import LayerNorm


class TransformerEncoderLayer(Module):
    """Self-attention, then two linear layers with an activation between them, both with residual connections followed
    by layer normalisation (norm_first: preceded by it). src [L, N, E], N first with batch_first.

    Dropout is applied to the attention weights, after the activation, and to the residual branches."""

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Value], Value] = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        known: dict[str, Callable[..., Value]] = {"relu": F.relu, "gelu": F.gelu}
        if not callable(activation) and activation not in known:
            raise ModelError(
                f'TransformerEncoderLayer: activation={activation!r}; known: "relu", "gelu", or a function'
            )
        self.activation = activation if callable(activation) else known[activation]
        self.norm_first = norm_first
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias)
        self.norm1 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.norm2 = LayerNorm(d_model, layer_norm_eps, bias=bias)
        self.dropout, self.dropout1, self.dropout2 = (Dropout(dropout) for _ in range(3))

    def forward(
        self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False
    ) -> Value:
        """Masks as in MultiheadAttention."""
        x = as_value(src)

        def attend(v: Value) -> Value:
            options = {
                "key_padding_mask": src_key_padding_mask,
                "attn_mask": src_mask,
                "is_causal": is_causal,
            }
            return self.dropout1(self.self_attn(v, v, v, need_weights=False, **options)[0])  # type: ignore[no-any-return]

        def feed_forward(v: Value) -> Value:
            return self.dropout2(self.linear2(self.dropout(self.activation(self.linear1(v)))))  # type: ignore[no-any-return]

        if self.norm_first:
            x = with_role(x + attend(self.norm1(x)), "residual")
            return x + feed_forward(self.norm2(x))
        x = self.norm1(x + attend(x))
        return self.norm2(x + feed_forward(x))  # type: ignore[no-any-return]


class TransformerEncoder(Module):
    """num_layers copies of `encoder_layer`, applied in order, then `norm`.

    As in PyTorch, `encoder_layer` itself is not used; unlike in PyTorch, the copies have different initial weights.
    enable_nested_tensor and mask_check are ignored.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        if isinstance(num_layers, bool) or not isinstance(num_layers, int) or num_layers < 1:
            raise ModelError(
                f"TransformerEncoder: num_layers={num_layers!r} must be a whole number of at least 1"
            )
        self.layers = ModuleList(copy.deepcopy(encoder_layer) for _ in range(num_layers))
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Value:
        """Masks as in MultiheadAttention, for every layer."""
        x = as_value(src)
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)
