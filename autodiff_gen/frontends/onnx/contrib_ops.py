"""Rules of the table: contrib ops, which onnxruntime's optimizer writes in place of several ops of ONNX. Its page
ContribOperators.md defines them."""

from __future__ import annotations

from typing import Any

from ...errors import quoted
from ..imported.rules import Arguments, Rule, Unsupported
from .elementwise import ELEMENTWISE, operands
from .normalization import NORMALIZATION
from .reductions import REDUCTIONS
from .windows import WINDOWS

DOMAIN = "com.microsoft"
# Attributes of attention that must be 0.
_MUST_BE_ZERO = ("do_rotary", "past_present_share_buffer", "spatial")


def _inputs(a: Arguments, names: str) -> dict[str, Any]:
    """The inputs by name; the package onnx has no schema for these ops."""
    return {name: a.get(str(k)) for k, name in enumerate(names.split())}


def _rest(a: Arguments, **defaults: Any) -> dict[str, Any]:
    """Attributes with their default values."""
    return {name: a.get(name, value) for name, value in defaults.items()}


def _without(given: Arguments, *names: str) -> None:
    for name in names:
        if given.get(name) is not None:
            raise Unsupported(f"has {name}; leave it out")


def _biased(c: Any, x: Any, bias: Any) -> Any:
    """x + bias; the bias is a parameter."""
    return x if bias is None else c.emit("{} + {}", *operands(c, x, bias, role="bias"))


def _gelu(approximate: str) -> Rule:
    """GELU, with or without a bias that is added before it."""

    def rule(c: Any, a: Arguments) -> Any:
        x = _biased(c, a["0"], a.get("1"))
        options = {} if approximate == "none" else {"approximate": approximate}
        return c.emit("gelu", c.operand(x), **options)

    return rule


def _quick_gelu(c: Any, a: Arguments) -> Any:
    x, alpha = a["0"], a.get("alpha", 1.702)
    return c.emit("{} * {}", x, c.emit("sigmoid", c.emit("{} * {}", x, alpha)))


def _activated(c: Any, a: Arguments, y: Any) -> Any:
    """The activation of a fused op. Its parameters are activation_alpha, activation_beta and activation_gamma in
    FusedGemm, and the list activation_params in other ops."""
    name = a.get("activation")
    given = [a.get(f"activation_{n}") for n in ("alpha", "beta", "gamma")]
    params: list[Any] = [*(a.get("activation_params") or ()), *(g for g in given if g is not None)]
    first, second = (*params, None, None)[:2]
    plain = {"Relu": "relu", "Tanh": "tanh", "Sigmoid": "sigmoid"}
    if name is None or name == "":
        return y
    if name in plain:
        return c.emit(plain[name], y)
    if name == "LeakyRelu":
        return c.emit("leaky_relu", y, 0.01 if first is None else first)
    if name == "Clip":
        return c.emit("clamp", y, first, second)
    if name == "HardSigmoid":
        known = {"X": y, "alpha": 0.2 if first is None else first, "beta": 0.5 if second is None else second}
        return ELEMENTWISE["HardSigmoid"](c, known)
    raise Unsupported(f"has activation={quoted(name)}; save the file without optimisation")


def _fused_conv(c: Any, a: Arguments) -> Any:
    given = _inputs(a, "X W B Z")
    names = dict.fromkeys(("strides", "pads", "dilations", "kernel_shape", "output_padding"))
    y = WINDOWS["Conv"](c, {**given, **_rest(a, auto_pad="NOTSET", group=1, **names)})
    y = y if given["Z"] is None else c.emit("{} + {}", *operands(c, y, given["Z"]))
    return _activated(c, a, y)


def _fused_gemm(c: Any, a: Arguments) -> Any:
    known = {**_inputs(a, "A B C"), **_rest(a, alpha=1.0, beta=1.0, transA=0, transB=0)}
    return _activated(c, a, REDUCTIONS["Gemm"](c, known))


def _fused_matmul(c: Any, a: Arguments) -> Any:
    known = _inputs(a, "A B")
    turned = [a.get("transA", 0), a.get("transB", 0)]
    if a.get("transBatchA") or a.get("transBatchB"):
        raise Unsupported("has transBatchA or transBatchB; save the file without optimisation")
    alpha = a.get("alpha", 1.0)
    if any(turned):
        for name, turn in zip(known, turned, strict=True):
            x = c.operand(known[name], "weight")
            known[name] = c.emit("transpose", x, -2, -1) if turn and len(c.shape(x)) > 1 else x
        y = c.emit("matmul", *known.values())
    else:
        y = REDUCTIONS["MatMul"](c, known)
    return y if alpha == 1 else c.emit("{} * {}", y, alpha)


def _layer_norm(c: Any, x: Any, scale: Any, shift: Any, epsilon: float) -> Any:
    known = {"X": x, "Scale": scale, "B": shift, "axis": -1, "epsilon": epsilon}
    return NORMALIZATION["LayerNormalization"](c, known)[0]


def _rms_norm(c: Any, x: Any, scale: Any, epsilon: float) -> Any:
    known = {"X": x, "scale": scale, "axis": -1, "epsilon": epsilon}
    return NORMALIZATION["RMSNormalization"](c, known)


def _skip_norm(names: str) -> Rule:
    """The normalised sum, and as the fourth result the sum."""

    def rule(c: Any, a: Arguments) -> Any:
        given, epsilon = _inputs(a, names), a.get("epsilon", 1e-12 if "beta" in names else 1e-5)
        total = c.emit("{} + {}", *operands(c, given["input"], given["skip"]))
        total = _biased(c, total, given["bias"])
        if "beta" in given:
            y = _layer_norm(c, total, given["gamma"], given["beta"], epsilon)
        else:
            y = _rms_norm(c, total, given["gamma"], epsilon)
        if any(map(c.is_read, c.names()[1:3])):
            raise Unsupported("returns its statistics; save the file without optimisation")
        return [y, *([None, None, total][: len(c.names()) - 1])]

    return rule


def _simplified(c: Any, a: Arguments) -> Any:
    a.get("stash_type")
    known = {"X": a["0"], "scale": a["1"], "axis": a.get("axis", -1), "epsilon": a.get("epsilon", 1e-5)}
    return NORMALIZATION["RMSNormalization"](c, known)


def _attention(c: Any, a: Arguments) -> Any:
    """Queries, keys and values are one product, of [n, length, width] with [width, 3 * hidden]."""
    given = _inputs(a, "input weights bias mask_index past attention_bias past_sequence_length")
    _without(given, "mask_index", "past", "past_sequence_length")
    x = _biased(c, REDUCTIONS["MatMul"](c, {"A": given["input"], "B": given["weights"]}), given["bias"])
    width = c.shape(x)[-1]
    sizes = tuple(a.get("qkv_hidden_sizes") or (width // 3,) * 3)
    names = [f"{c.names()[0]}.{k}" for k in "qkv"]
    return _heads(c, a, c.emit_all("split", names, x, sizes, -1), given["attention_bias"])


def _multi_head(c: Any, a: Arguments) -> Any:
    names = "query key value bias key_padding_mask attention_bias past_key past_value"
    given = _inputs(a, names)
    _without(given, "key_padding_mask", "past_key", "past_value")
    parts = [given[k] for k in ("query", "key", "value")]
    if any(p is None or len(c.shape(p)) != 3 for p in parts):
        raise Unsupported("has packed queries, keys or values; save the file without optimisation")
    if given["bias"] is not None:
        sizes = tuple(c.shape(p)[-1] for p in parts)
        names_of = [f"{c.names()[0]}.b{k}" for k in "qkv"]
        rows = c.emit_all("split", names_of, c.weight(given["bias"], "bias"), sizes, 0)
        parts = [c.emit("{} + {}", p, r) for p, r in zip(parts, rows, strict=True)]
    return _heads(c, a, parts, given["attention_bias"])


def _heads(c: Any, a: Arguments, parts: Any, mask: Any) -> Any:
    """The op Attention of ONNX on these parts."""
    heads = a["num_heads"]
    for name in _MUST_BE_ZERO:
        if a.get(name):
            raise Unsupported(f"has {name}; save the file without optimisation")
    a.get("mask_filter_value")
    known = dict(zip("QKV", parts, strict=True)) | {"q_num_heads": heads, "kv_num_heads": heads}
    known |= {"attn_mask": mask, "is_causal": a.get("unidirectional", 0), "scale": a.get("scale") or None}
    return NORMALIZATION["Attention"](c, known)


RULES: dict[str, Rule] = {
    "Attention": _attention,
    "BiasGelu": _gelu("none"),
    "FastGelu": _gelu("tanh"),
    "FusedConv": _fused_conv,
    "FusedGemm": _fused_gemm,
    "FusedMatMul": _fused_matmul,
    "Gelu": _gelu("none"),
    "MultiHeadAttention": _multi_head,
    "QuickGelu": _quick_gelu,
    "SkipLayerNormalization": _skip_norm("input skip gamma beta bias"),
    "SkipSimplifiedLayerNormalization": _skip_norm("input skip gamma bias"),
    "TransposeMatMul": _fused_matmul,
}


def _of_one_processor(c: Any, a: Arguments) -> Any:
    raise Unsupported(
        "has the layout of one processor; save the file with ORT_ENABLE_EXTENDED, not ORT_ENABLE_ALL"
    )


BLOCKED = "AveragePool Conv GlobalAveragePool GlobalMaxPool MaxPool ReorderInput ReorderOutput Upsample"
OPTIMIZED: dict[str, Rule] = {f"{DOMAIN}.{op}": rule for op, rule in RULES.items()} | {
    "SimplifiedLayerNormalization": _simplified,
    **{f"{DOMAIN}.nchwc.{op}": _of_one_processor for op in BLOCKED.split()},
}
