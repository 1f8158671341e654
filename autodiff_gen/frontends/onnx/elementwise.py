"""Rules of the table: elementwise ops, comparisons and types."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..imported.program import ValueRef, WeightRef
from ..imported.rules import Arguments, Rule
from .folding import ConstantTensor
from .graph import dtype_named


def unary(function: str, *names: str) -> Rule:
    """A call of our function on the first input. names: attributes that are its next arguments."""

    def rule(c: Any, a: Arguments) -> Any:
        from ..imported.rules import same

        (first, x), *_ = a.items()
        for name in names:
            a.get(name)
        return same(function, " ".join([first, *names]))(c, {**a, first: c.operand(x)})

    return rule


def itself(c: Any, a: Arguments) -> Any:
    return next(iter(a.values()))


def binary(text: str, role: str | None = None) -> Rule:
    """An operator of Python, or a function of ours, on two operands. role: the role of an operand that is a weight."""

    def rule(c: Any, a: Arguments) -> Any:
        x, y, *_ = a.values()
        return c.emit(text, *operands(c, x, y, role=role))

    return rule


def operands(c: Any, *given: Any, role: str | None = None) -> list[Any]:
    """Tensors as arguments; a constant of one element becomes a number if another operand has at least as many axes."""
    ranks = [len(c.shape(g)) for g in given]
    found = []
    for k, g in enumerate(given):
        rest = [r for i, r in enumerate(ranks) if i != k]
        one = isinstance(g, ConstantTensor) and g.array.size == 1 and ranks[k] <= max(rest, default=0)
        weight = role is not None and isinstance(g, ConstantTensor) and g.initializer and ranks[k] > 0
        found.append(
            c.element(g.array) if one and not weight and isinstance(g, ConstantTensor) else c.operand(g, role)
        )
    if all(not isinstance(f, ValueRef | WeightRef) for f in found):
        found[0] = c.constant(given[0].array)
    return found


def several(text: str) -> Rule:
    """An operator on any number of operands, from left to right."""

    def rule(c: Any, a: Arguments) -> Any:
        (given,) = (v for v in a.values() if isinstance(v, tuple))
        result = given[0]
        for other in given[1:]:
            result = c.emit(text, *operands(c, result, other))
        return result

    return rule


def _extreme(function: str, sign: str) -> Rule:
    """The largest or smallest operand."""

    def rule(c: Any, a: Arguments) -> Any:
        result = a["data_0"][0]
        for other in a["data_0"][1:]:
            x, y = operands(c, result, other)
            floats = all(c.dtype(g) == "f32" for g in (result, other))
            result = (
                c.emit(function, x, y) if floats else c.emit("where", c.emit(f"{{}} {sign} {{}}", x, y), x, y)
            )
        return result

    return rule


def _mean(c: Any, a: Arguments) -> Any:
    total, count = several("{} + {}")(c, a), len(a["data_0"])
    return total if count == 1 else c.emit("{} / {}", total, count)


def _div(c: Any, a: Arguments) -> Any:
    if c.dtype(a["A"]) == "f32":
        return binary("{} / {}")(c, a)
    quotient = c.emit("{} / {}", *(c.emit("to", x, "f32") for x in operands(c, a["A"], a["B"])))
    return c.emit("to", quotient, "s32")


def _mod(c: Any, a: Arguments) -> Any:
    return binary("fmod" if a["fmod"] else "remainder")(c, a)


def _pow(c: Any, a: Arguments) -> Any:
    x, y = operands(c, a["X"], a["Y"])
    x, y = (
        c.emit("to", v, "f32") if isinstance(v, ValueRef | WeightRef) and c.dtype(v) != "f32" else v
        for v in (x, y)
    )
    square = not isinstance(y, ValueRef | WeightRef) and y == 2
    z = c.emit("square", x) if square else c.emit("{} ** {}", x, y)
    return z if c.dtype(a["X"]) == "f32" else c.emit("to", z, "s32")


def _clip(c: Any, a: Arguments) -> Any:
    low, high = (a[k] if isinstance(a[k], ValueRef) else _limit(c, a[k], k) for k in ("min", "max"))
    if isinstance(low, ValueRef) or isinstance(high, ValueRef):
        y = a["input"] if low is None else c.emit("clamp", a["input"], min=low)
        return y if high is None else c.emit("clamp", y, max=high)
    if (low, high) == (0, 6):
        return c.emit("relu6", a["input"])
    if (low, high) == (0, None):
        return c.emit("relu", a["input"])
    limits = {"min": low, "max": high}
    given = {k: v for k, v in limits.items() if v is not None}
    if low is not None and high is not None and low > high:
        return c.emit("clamp", c.emit("clamp", a["input"], min=low), max=high)
    return c.emit("clamp", a["input"], **given) if given else a["input"]


def _limit(c: Any, given: Any, name: str) -> Any:
    return None if given is None else c.number(given, name)


def _selu(c: Any, a: Arguments) -> Any:
    if abs(a["alpha"] - 1.6732632) < 1e-6 and abs(a["gamma"] - 1.0507010) < 1e-6:
        return c.emit("selu", a["X"])
    return c.emit("{} * {}", a["gamma"], c.emit("elu", a["X"], a["alpha"]))


def _hard_sigmoid(c: Any, a: Arguments) -> Any:
    if abs(a["alpha"] - 1 / 6) < 1e-6 and a["beta"] == 0.5:
        return c.emit("hardsigmoid", a["X"])
    return c.emit("clamp", c.emit("{} * {} + {}", a["X"], a["alpha"], a["beta"]), 0.0, 1.0)


def _swish(c: Any, a: Arguments) -> Any:
    if a.get("alpha", 1.0) == 1:
        return c.emit("silu", a["X"])
    return c.emit("{} * {}", a["X"], c.emit("sigmoid", c.emit("{} * {}", a["X"], a["alpha"])))


def _shrink(c: Any, a: Arguments) -> Any:
    x, limit, bias = a["input"], a["lambd"], a["bias"]
    high = c.emit("where", c.emit("{} > {}", x, limit), c.emit("{} - {}", x, bias), 0.0)
    return c.emit("where", c.emit("{} < {}", x, -limit), c.emit("{} + {}", x, bias), high)


def _prelu(c: Any, a: Arguments) -> Any:
    shape, rank = c.shape(a["slope"]), len(c.shape(a["X"]))
    channels = len(shape) == rank - 1 and rank > 1 and all(d == 1 for d in shape[1:])
    if isinstance(a["slope"], ConstantTensor) and (channels or a["slope"].array.size == 1):
        weight = c.weight(a["slope"], "weight", lambda array: array.reshape(-1))
        return c.emit("prelu", a["X"], weight)
    slope = c.operand(a["slope"], "weight")
    return c.emit("where", c.emit("{} < {}", a["X"], 0.0), c.emit("{} * {}", slope, a["X"]), a["X"])


def _where(c: Any, a: Arguments) -> Any:
    condition, x, y = (a[k] for k in ("condition", "X", "Y"))
    return c.emit("where", *operands(c, condition, x, y))


def _is_inf(c: Any, a: Arguments) -> Any:
    above = c.emit("{} > {}", a["X"], LARGEST) if a["detect_positive"] else None
    below = c.emit("{} < {}", a["X"], -LARGEST) if a["detect_negative"] else None
    if above is None or below is None:
        return above or below or c.emit("zeros_like", a["X"], dtype="bool")
    return c.emit("logical_or", above, below)


LARGEST = float(np.finfo(np.float32).max)
KINDS = {"f32": np.float32, "bool": np.bool_}


def _cast(c: Any, a: Arguments) -> Any:
    if "target_type" in a:
        if isinstance(a["input"], ConstantTensor):
            kind = KINDS.get(c.dtype(a["target_type"]), np.int64)
            return replace(a["input"], array=a["input"].array.astype(kind))
        return _converted(c, a["input"], c.dtype(a["target_type"]))
    return _converted(c, a["input"], dtype_named(a["to"]))


def _converted(c: Any, x: Any, wanted: str) -> Any:
    return x if c.dtype(x) == wanted else c.emit("to", x, wanted)


def _dropout(c: Any, a: Arguments) -> Any:
    """Dropout as a layer. It is in evaluation mode unless the file says otherwise; train() turns it on."""
    ratio = 0.5 if a["ratio"] is None else float(np.float64(f"{c.number(a['ratio'], 'ratio'):.7g}"))
    training = a["training_mode"] is not None and bool(c.number(a["training_mode"], "training_mode"))
    if ratio == 0 or (not training and len(c.names()) > 1):
        mask = [c.emit("ones_like", a["data"], dtype="bool")] if len(c.names()) > 1 else []
        return [a["data"], *mask]
    return [c.emit_module("dropout", a["data"], ratio, training=training)]


UNARY = {
    "Abs": "abs",
    "Acos": "acos",
    "Acosh": "acosh",
    "Asin": "asin",
    "Asinh": "asinh",
    "Atan": "atan",
    "Atanh": "atanh",
    "Ceil": "ceil",
    "Cos": "cos",
    "Cosh": "cosh",
    "Erf": "erf",
    "Exp": "exp",
    "Floor": "floor",
    "HardSwish": "hardswish",
    "Log": "log",
    "Mish": "mish",
    "Neg": "neg",
    "Not": "logical_not",
    "Reciprocal": "reciprocal",
    "Relu": "relu",
    "Round": "round",
    "Sigmoid": "sigmoid",
    "Sign": "sign",
    "Sin": "sin",
    "Sinh": "sinh",
    "Softplus": "softplus",
    "Softsign": "softsign",
    "Sqrt": "sqrt",
    "Tan": "tan",
    "Tanh": "tanh",
}

ELEMENTWISE: dict[str, Rule] = {
    **{op: unary(function) for op, function in UNARY.items()},
    "Add": binary("{} + {}", "bias"),
    "And": binary("logical_and"),
    "Cast": _cast,
    "CastLike": _cast,
    "Celu": unary("celu", "alpha"),
    "Clip": _clip,
    "Div": _div,
    "Dropout": _dropout,
    "Elu": unary("elu", "alpha"),
    "Equal": binary("eq"),
    # Two that tf2onnx writes though ONNX does not have them:
    "Erfc": lambda c, a: c.emit("erfc", a["0"]),
    "Expm1": lambda c, a: c.emit("expm1", a["0"]),
    "Gelu": unary("gelu", "approximate"),
    "Greater": binary("{} > {}"),
    "GreaterOrEqual": binary("{} >= {}"),
    "HardSigmoid": _hard_sigmoid,
    "Identity": itself,
    "IsInf": _is_inf,
    "IsNaN": lambda c, a: c.emit("ne", a["X"], a["X"]),
    "LeakyRelu": unary("leaky_relu", "alpha"),
    "Less": binary("{} < {}"),
    "LessOrEqual": binary("{} <= {}"),
    "LogSoftmax": unary("log_softmax", "axis"),
    "Max": _extreme("maximum", ">"),
    "Mean": _mean,
    "Min": _extreme("minimum", "<"),
    "Mod": _mod,
    "Mul": binary("{} * {}", "weight"),
    "Or": binary("logical_or"),
    "PRelu": _prelu,
    "Pow": _pow,
    "Selu": _selu,
    "Shrink": _shrink,
    "Softmax": unary("softmax", "axis"),
    "Sub": binary("{} - {}"),
    "Sum": several("{} + {}"),
    "Swish": _swish,
    "ThresholdedRelu": lambda c, a: c.emit("threshold", a["X"], a["alpha"], 0.0),
    "Where": _where,
    "Xor": binary("logical_xor"),
}
