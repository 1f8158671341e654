"""Ops for the reference implementation of ONNX: ops that it lacks, and ops that it computes in training mode or not as
ONNX specifies. Ops of onnxruntime's optimizer are computed by the ops of ONNX that they replace."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ..frontends.onnx.contrib_ops import DOMAIN
from ..frontends.onnx.folding import reference


def operators() -> list[Any]:
    """The classes for ReferenceEvaluator(new_ops=...)."""
    of_onnx: dict[str, Callable[..., Any]] = {
        "BatchNormalization": _batch_norm,
        "Dropout": _dropout,
        # tf2onnx writes Erfc and Expm1, which ONNX does not have.
        "Erfc": lambda x: np.asarray(np.vectorize(math.erfc)(x), x.dtype),
        "Expm1": np.expm1,
        "LayerNormalization": _layer_norm,
        "SimplifiedLayerNormalization": _rms_norm,
    }
    return [
        _loop(),
        _class("ZipMap", "ai.onnx.ml", lambda x, **labels: x),  # probabilities in the order of the labels
        *(_class(name, "", function) for name, function in of_onnx.items()),
        *(_class(name, DOMAIN, function) for name, function in CONTRIB.items()),
    ]


def _class(name: str, domain: str, function: Callable[..., Any]) -> Any:
    from onnx.reference.op_run import OpRun

    def run(self: Any, *operands: Any, **attributes: Any) -> tuple[Any, ...]:
        count = len(self.onnx_node.output)
        given = {a.name for a in self.onnx_node.attribute}
        results = function(*operands, **{k: v for k, v in attributes.items() if k in given})
        found = results if isinstance(results, tuple) else (results,)
        return found[:count]

    return type(name, (OpRun,), {"op_domain": domain, "_run": run})


def _of(op: str, *operands: Any, **attributes: Any) -> Any:
    """The first result of an op of ONNX."""
    from onnx import defs, helper

    names = ["" if x is None else f"x{k}" for k, x in enumerate(operands)]
    given = {n: x for n, x in zip(names, operands, strict=True) if n}
    known = {k: v for k, v in attributes.items() if v is not None}
    results = reference(helper.make_node(op, names, ["y"], **known), given, defs.onnx_opset_version())
    assert results is not None
    return results[0]


def _batch_norm(x: Any, scale: Any, shift: Any, mean: Any, variance: Any, **a: Any) -> tuple[Any, ...]:
    """BatchNorm in evaluation mode; the results after the first are the new statistics."""
    epsilon, momentum = a.get("epsilon", 1e-5), a.get("momentum", 0.9)
    y = _of("BatchNormalization", x, scale, shift, mean, variance, epsilon=epsilon)
    axes = tuple(k for k in range(x.ndim) if k != 1)
    now = x.mean(axes), x.var(axes)
    return y, *(
        (o * momentum + n * (1 - momentum)).astype(x.dtype)
        for o, n in zip((mean, variance), now, strict=True)
    )


def _dropout(x: Any, *_: Any, **options: Any) -> tuple[Any, ...]:
    return x, np.ones(x.shape, bool)


def _layer_norm(
    x: Any, scale: Any, shift: Any = None, axis: int = -1, epsilon: float = 1e-5, **_: Any
) -> Any:
    axes = tuple(range(axis % x.ndim, x.ndim))
    mean = x.mean(axes, keepdims=True)
    factor = 1 / np.sqrt(np.square(x - mean).mean(axes, keepdims=True) + epsilon)
    y = (x - mean) * factor * scale + (0 if shift is None else shift)
    return tuple(r.astype(x.dtype) for r in (y, mean, factor))


def _rms_norm(x: Any, scale: Any, axis: int = -1, epsilon: float = 1e-5, **_: Any) -> Any:
    return _of("RMSNormalization", x, scale, axis=axis, epsilon=epsilon)


def _gelu(x: Any, bias: Any = None) -> Any:
    x = x if bias is None else x + bias
    return (x * (1 + _of("Erf", x / np.sqrt(np.float32(2)))) / 2).astype(x.dtype)


def _fast_gelu(x: Any, bias: Any = None) -> Any:
    x = x if bias is None else x + bias
    return (x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2).astype(x.dtype)


def _quick_gelu(x: Any, alpha: float = 1.702) -> Any:
    return x * _of("Sigmoid", (x * np.float32(alpha)).astype(x.dtype))


def _activated(y: Any, activation: str = "", params: Any = ()) -> Any:
    if activation == "Clip":
        return np.clip(y, *params)
    names = ("alpha", "beta")
    return _of(activation, y, **dict(zip(names, params, strict=False))) if activation else y


def _fused_conv(
    x: Any, w: Any, b: Any = None, z: Any = None, activation: str = "", activation_params: Any = (), **a: Any
) -> Any:
    y = _of("Conv", x, w, b, **a)
    return _activated(y if z is None else y + z, activation, activation_params)


def _fused_gemm(*operands: Any, activation: str = "", **a: Any) -> Any:
    params = [a.pop(f"activation_{n}") for n in ("alpha", "beta", "gamma") if f"activation_{n}" in a]
    return _activated(_of("Gemm", *operands, **a), activation, params)


def _fused_matmul(x: Any, y: Any, alpha: float = 1.0, transA: int = 0, transB: int = 0, **_: Any) -> Any:
    x, y = (np.swapaxes(m, -2, -1) if t and m.ndim > 1 else m for m, t in ((x, transA), (y, transB)))
    return (np.float32(alpha) * np.matmul(x, y)).astype(x.dtype)


def _skip_layer_norm(
    x: Any, skip: Any, scale: Any, shift: Any = None, bias: Any = None, epsilon: float = 1e-12
) -> Any:
    total = x + skip if bias is None else x + skip + bias
    return *_layer_norm(total, scale, shift, epsilon=epsilon), total


def _skip_rms_norm(x: Any, skip: Any, scale: Any, bias: Any = None, epsilon: float = 1e-5) -> Any:
    total = x + skip if bias is None else x + skip + bias
    return _rms_norm(total, scale, epsilon=epsilon), total, total, total


def _attention(
    x: Any, w: Any, bias: Any = None, *rest: Any, num_heads: int, qkv_hidden_sizes: Any = None, **a: Any
) -> Any:
    y = x @ w if bias is None else x @ w + bias
    sizes = qkv_hidden_sizes or [y.shape[-1] // 3] * 3
    return _heads(np.split(y, np.cumsum(sizes)[:2], -1), num_heads, (*rest, *[None] * 3)[2], **a)


def _multi_head(
    q: Any, k: Any, v: Any, bias: Any = None, padding: Any = None, mask: Any = None, *_: Any, **a: Any
) -> Any:
    parts = [q, k, v]
    if bias is not None:
        rows = np.split(bias, np.cumsum([p.shape[-1] for p in parts])[:2])
        parts = [p + r for p, r in zip(parts, rows, strict=True)]
    return _heads(parts, a.pop("num_heads"), mask, **a)


def _heads(parts: Any, count: int, mask: Any, unidirectional: int = 0, scale: float = 0.0, **_: Any) -> Any:
    heads = {"q_num_heads": count, "kv_num_heads": count}
    return _of("Attention", *parts, mask, is_causal=unidirectional, scale=scale or None, **heads)


CONTRIB: dict[str, Callable[..., Any]] = {
    "Attention": _attention,
    "BiasGelu": _gelu,
    "FastGelu": _fast_gelu,
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "Gelu": _gelu,
    "MultiHeadAttention": _multi_head,
    "QuickGelu": _quick_gelu,
    "SkipLayerNormalization": _skip_layer_norm,
    "SkipSimplifiedLayerNormalization": _skip_rms_norm,
    "TransposeMatMul": _fused_matmul,
}


def _loop() -> Any:
    """Loop. The reference implementation joins the scan outputs of iterations along their first axis; ONNX specifies a
    new axis."""
    from onnx.reference.ops import op_loop

    reference: Any = op_loop.Loop

    class Loop(reference):  # type: ignore[misc]
        def _run(self, *operands: Any, **options: Any) -> Any:
            run = self._run_body  # type: ignore[has-type]

            def with_axis(*given: Any, **inside: Any) -> list[Any]:
                results = list(run(*given, **inside))
                first = len(results) - self.K
                return [*results[:first], *(np.asarray(r)[None] for r in results[first:])]

            self._run_body = with_axis
            try:
                return super()._run(*operands, **options)
            finally:
                self._run_body = run

    return Loop
