"""Rules of the table: sums and extremes over axes, products of matrices, losses."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..imported.rules import Arguments, Rule, Unsupported
from .elementwise import operands
from .folding import ConstantTensor


def reduction(function: str) -> Rule:
    """A reduction over axes, which are an input, or in earlier opsets an attribute; without axes over all."""

    def rule(c: Any, a: Arguments) -> Any:
        axes = _axes(c, a)
        if a.get("noop_with_empty_axes") and axes == ():
            return a["data"]
        rank = len(c.shape(a["data"]))
        axes = tuple(x % rank for x in axes) or tuple(range(rank))
        options = {"keepdim": True} if a["keepdims"] else {}
        x = a["data"]
        if c.dtype(x) != "f32" and function == "sum":
            return c.emit("to", c.emit("sum", c.emit("to", x, "f32"), axes, **options), "s32")
        if function == "norm1":
            return c.emit("sum", c.emit("abs", x), axes, **options)
        if function == "norm2":
            return c.emit("sqrt", c.emit("sum", c.emit("square", x), axes, **options))
        if function == "sum_square":
            return c.emit("sum", c.emit("square", x), axes, **options)
        if function == "log_sum":
            return c.emit("log", c.emit("sum", x, axes, **options))
        if function == "prod" and len(axes) > 1:
            for axis in sorted(axes, reverse=True):
                x = c.emit("prod", x, axis, **options)
            return x
        return c.emit(function, x, axes[0] if function == "prod" else axes, **options)

    return rule


def _axes(c: Any, a: Arguments) -> tuple[int, ...]:
    axes = a.get("axes")
    return tuple(axes or ()) if axes is None or isinstance(axes, tuple) else tuple(c.numbers(axes, "axes"))


def _extreme_index(function: str) -> Rule:
    def rule(c: Any, a: Arguments) -> Any:
        x, options = a["data"], {"keepdim": True} if a["keepdims"] else {}
        if not a.get("select_last_index"):
            return c.emit(function, x, a["axis"], **options)
        last = c.shape(x)[a["axis"]] - 1
        return c.emit("{} - {}", last, c.emit(function, c.emit("flip", x, a["axis"]), a["axis"], **options))

    return rule


def _cumsum(c: Any, a: Arguments) -> Any:
    axis = c.number(a["axis"], "axis")
    x = c.emit("flip", a["x"], axis) if a["reverse"] else a["x"]
    y = c.emit("cumsum", x, axis)
    if a["exclusive"]:
        y = c.emit("{} - {}", y, x)
    return c.emit("flip", y, axis) if a["reverse"] else y


def _top_k(c: Any, a: Arguments) -> Any:
    options = {} if a["largest"] else {"largest": False}
    return c.emit_all("topk", c.names(), a["X"], c.number(a["K"], "K"), a["axis"], **options)


def _linear(c: Any, x: Any, weight: ConstantTensor, bias: Any, transposed: bool) -> Any:
    """x @ weight + bias as a linear layer, which stores its weight as [out, in]. transposed: whether `weight` has this
    layout."""
    w = c.weight(weight, "weight", None if transposed else np.transpose)
    given = () if bias is None else (c.weight(bias, "bias", np.ravel if len(c.shape(bias)) > 1 else None),)
    return c.emit("linear", x, w, *given)


def _is_bias(c: Any, bias: Any, outputs: int) -> bool:
    shape = c.shape(bias)
    vector = shape == (outputs,) or (shape == (1, outputs) and isinstance(bias, ConstantTensor))
    return bool(vector and c.is_parameter(bias))


def _matmul(c: Any, a: Arguments) -> Any:
    """A product with an initializer is a linear layer; a sum that is the only reader of the product adds its bias."""
    x, w = a["A"], a["B"]
    if not (isinstance(w, ConstantTensor) and w.initializer and w.array.ndim == 2 and len(c.shape(x)) > 1):
        return c.emit("matmul", c.operand(x, "weight"), c.operand(w, "weight"))
    reader = c.only_reader()
    if reader is not None and reader.op_type == "Add":
        other = [c.known.get(n) for n in reader.input if n not in c.names()]
        if len(other) == 1 and other[0] is not None and _is_bias(c, other[0], w.array.shape[1]):
            ref = _linear(c, x, w, other[0], False)
            c.join(reader, ref)
            return ref
    return _linear(c, x, w, None, False)


def _gemm(c: Any, a: Arguments) -> Any:
    x, w, bias = a["A"], a["B"], a["C"]
    plain = a["alpha"] == 1 and a["beta"] == 1 and not a["transA"]
    layer = w.initializer if isinstance(w, ConstantTensor) else a["transB"] and c.is_parameter(w)
    if plain and layer:
        outputs = c.shape(w)[0 if a["transB"] else 1]
        if bias is None or _is_bias(c, bias, outputs):
            return _linear(c, x, w, bias, bool(a["transB"]))
    x, w = c.operand(x, "weight"), c.operand(w, "weight")
    x = c.emit("transpose", x, 0, 1) if a["transA"] else x
    w = c.emit("transpose", w, 0, 1) if a["transB"] else w
    y = c.emit("matmul", x, w)
    y = y if a["alpha"] == 1 else c.emit("{} * {}", a["alpha"], y)
    if bias is None or a["beta"] == 0:
        return y
    y, bias = operands(c, y, bias, role="bias")
    return c.emit("{} + {}", y, bias if a["beta"] == 1 else c.emit("{} * {}", a["beta"], bias))


def _einsum(c: Any, a: Arguments) -> Any:
    return c.emit("einsum", a["equation"], *(c.operand(x, "weight") for x in a["Inputs"]))


def _loss(function: str) -> Rule:
    def rule(c: Any, a: Arguments) -> Any:
        x, target, *rest = a.values()
        weight = rest[0] if rest else None
        options = {"ignore_index": a["ignore_index"]} if a.get("ignore_index") is not None else {}
        if a["reduction"] != "mean":
            options["reduction"] = a["reduction"]
        if weight is not None:
            options["weight"] = c.operand(weight)
        loss = c.emit(function, x, c.operand(target), **options)
        if function == "cross_entropy" and len(c.names()) > 1:
            return [loss, c.emit_all("log_softmax", (c.names()[1],), x, 1)[0]]
        return [loss]

    return rule


def _lp_norm(c: Any, a: Arguments) -> Any:
    if a["p"] not in (1, 2):
        raise Unsupported(f"has p={a['p']}; use 1 or 2")
    return c.emit("normalize", a["input"], p=float(a["p"]), dim=a["axis"])


def _standardised(c: Any, a: Arguments) -> Any:
    axes = tuple(a.get("axes", (0, 2, 3)))
    x = c.emit("{} - {}", a["X"], c.emit("mean", a["X"], axes, keepdim=True))
    variance = c.emit("mean", c.emit("square", x), axes, keepdim=True)
    return c.emit("{} / ({} + 1e-9)", x, c.emit("sqrt", variance))


REDUCTIONS: dict[str, Rule] = {
    "ArgMax": _extreme_index("argmax"),
    "ArgMin": _extreme_index("argmin"),
    "CumSum": _cumsum,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "LpNormalization": _lp_norm,
    "MatMul": _matmul,
    "MeanVarianceNormalization": _standardised,
    "NegativeLogLikelihoodLoss": _loss("nll_loss"),
    "ReduceL1": reduction("norm1"),
    "ReduceL2": reduction("norm2"),
    "ReduceLogSum": reduction("log_sum"),
    "ReduceLogSumExp": reduction("logsumexp"),
    "ReduceMax": reduction("amax"),
    "ReduceMean": reduction("mean"),
    "ReduceMin": reduction("amin"),
    "ReduceProd": reduction("prod"),
    "ReduceSum": reduction("sum"),
    "ReduceSumSquare": reduction("sum_square"),
    "SoftmaxCrossEntropyLoss": _loss("cross_entropy"),
    "TopK": _top_k,
}
