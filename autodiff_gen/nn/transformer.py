"""Transformer blocks, with the names, arguments, defaults and initialisation of torch.nn."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import functional as F
from ..errors import ModelError
from ..functional import torch_lacks
from ..functional.arguments import TensorLike, as_value
from ..ir.names import with_role
from ..ir.node import Value
from .attention import MultiheadAttention
from .containers import ModuleList
from .dropout import Dropout
from .init import xavier_uniform_
from .layers import Linear
from .module import Module
from .normalization import LayerNorm


def _activation(name: str, given: str | Callable[[Value], Value]) -> Callable[..., Value]:
    known: dict[str, Callable[..., Value]] = {"relu": F.relu, "gelu": F.gelu}
    if callable(given):
        return given
    if given not in known:
        raise ModelError(f'{name}: activation={given!r}; known: "relu", "gelu", or a function')
    return known[given]


def _copies(name: str, layer: Module, num_layers: int) -> ModuleList:
    if isinstance(num_layers, bool) or not isinstance(num_layers, int) or num_layers < 1:
        raise ModelError(f"{name}: num_layers={num_layers!r} must be an integer of at least 1")
    return ModuleList(copy.deepcopy(layer) for _ in range(num_layers))


class _Layer(Module):
    """Base of the layers of encoders and decoders. attends: whether the layer also attends to the output of an
    encoder."""

    attends = False

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
        self.activation = _activation(type(self).__name__, activation)
        self.norm_first = norm_first
        self.self_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        if self.attends:
            self.multihead_attn = MultiheadAttention(d_model, nhead, dropout, bias, batch_first=batch_first)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias)
        self.dropout = Dropout(dropout)
        for k in range(1, 4 if self.attends else 3):
            setattr(self, f"norm{k}", LayerNorm(d_model, layer_norm_eps, bias=bias))
            setattr(self, f"dropout{k}", Dropout(dropout))

    def _feed_forward(self, x: Value) -> Value:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))  # type: ignore[no-any-return]


class TransformerEncoderLayer(_Layer):
    """Self-attention, then two linear layers with an activation between them, both with residual connections followed
    by layer normalisation (norm_first: preceded by it). src [L, N, E], N first with batch_first.

    Dropout is applied to the attention weights, after the activation, and to the residual branches."""

    def forward(
        self,
        src: TensorLike,
        src_mask: TensorLike | None = None,
        src_key_padding_mask: TensorLike | None = None,
        is_causal: bool = False,
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
            return self.dropout2(self._feed_forward(v))  # type: ignore[no-any-return]

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
        self.layers = _copies("TransformerEncoder", encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        src: TensorLike,
        mask: TensorLike | None = None,
        src_key_padding_mask: TensorLike | None = None,
        is_causal: bool | None = None,
    ) -> Value:
        """Masks as in MultiheadAttention, for every layer."""
        x = as_value(src)
        for layer in self.layers:
            x = layer(x, mask, src_key_padding_mask, bool(is_causal))
        return x if self.norm is None else self.norm(x)


class TransformerDecoderLayer(_Layer):
    """Self-attention of tgt, its attention to `memory` (an encoder's output), then two linear layers with an activation
    between them, all with residual connections followed by layer normalisation (norm_first: preceded by it). tgt [L, N,
    E] and memory [S, N, E], N first with batch_first. Dropout as in TransformerEncoderLayer."""

    attends = True

    def forward(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        tgt_key_padding_mask: TensorLike | None = None,
        memory_key_padding_mask: TensorLike | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Value:
        """Masks as in MultiheadAttention."""
        x, m = as_value(tgt), as_value(memory)

        def attend(v: Value) -> Value:
            options = (tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal)
            return self.dropout1(self.self_attn(v, v, v, *options)[0])  # type: ignore[no-any-return]

        def recall(v: Value) -> Value:
            options = (memory_key_padding_mask, False, memory_mask, True, memory_is_causal)
            return self.dropout2(self.multihead_attn(v, m, m, *options)[0])  # type: ignore[no-any-return]

        def feed_forward(v: Value) -> Value:
            return self.dropout3(self._feed_forward(v))  # type: ignore[no-any-return]

        if self.norm_first:
            x = with_role(x + attend(self.norm1(x)), "residual")
            x = with_role(x + recall(self.norm2(x)), "residual")
            return x + feed_forward(self.norm3(x))
        x = self.norm1(x + attend(x))
        x = self.norm2(x + recall(x))
        return self.norm3(x + feed_forward(x))  # type: ignore[no-any-return]


class TransformerDecoder(Module):
    """num_layers copies of `decoder_layer`, applied in order to tgt with the same memory, then `norm`. As in
    TransformerEncoder, `decoder_layer` itself is not used, and the copies have different initial weights."""

    def __init__(
        self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None
    ) -> None:
        super().__init__()
        self.layers = _copies("TransformerDecoder", decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: TensorLike,
        memory: TensorLike,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        tgt_key_padding_mask: TensorLike | None = None,
        memory_key_padding_mask: TensorLike | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Value:
        """Masks as in MultiheadAttention, for every layer."""
        x = as_value(tgt)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        for layer in self.layers:
            x = layer(x, memory, *masks, bool(tgt_is_causal), memory_is_causal)
        return x if self.norm is None else self.norm(x)


class Transformer(Module):
    """An encoder of src and a decoder of tgt that attends to the encoder's output, each with a layer normalisation
    after its layers; matrices start from init.xavier_uniform. src [S, N, E] and tgt [T, N, E], N first with
    batch_first."""

    @torch_lacks(device=None, dtype=None)
    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Value], Value] = "relu",
        custom_encoder: Module | None = None,
        custom_decoder: Module | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        sizes = d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps
        options: Any = (*sizes, batch_first, norm_first, bias)
        self.encoder: Module = custom_encoder or TransformerEncoder(
            TransformerEncoderLayer(*options),
            num_encoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias),
        )
        self.decoder: Module = custom_decoder or TransformerDecoder(
            TransformerDecoderLayer(*options),
            num_decoder_layers,
            LayerNorm(d_model, layer_norm_eps, bias=bias),
        )
        for parameter in self.parameters():
            if parameter.ndim > 1:
                xavier_uniform_(parameter)
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: TensorLike,
        tgt: TensorLike,
        src_mask: TensorLike | None = None,
        tgt_mask: TensorLike | None = None,
        memory_mask: TensorLike | None = None,
        src_key_padding_mask: TensorLike | None = None,
        tgt_key_padding_mask: TensorLike | None = None,
        memory_key_padding_mask: TensorLike | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Value:
        """Masks as in MultiheadAttention, for every layer."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)  # type: ignore[no-any-return]

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> Any:
        """f32[sz, sz], a NumPy array: 0 where the key is not after the query, -inf elsewhere."""
        return np.triu(np.full((sz, sz), -np.inf, np.float32), 1)
