"""Rules of the table: random numbers, new ones in every training step."""

from __future__ import annotations

from typing import Any

from ..imported.program import ValueRef, WeightRef
from .rules import Arguments, Converter, Rule, Unsupported


def _drawn(function: str) -> Rule:
    """Random numbers of a given size, or of the shape of a tensor."""

    def rule(c: Converter, a: Arguments) -> Any:
        if a.get("dtype") not in (None, "float32"):
            raise Unsupported(f"has dtype={a['dtype']}; use float32")
        return c.emit(function, a["size"]) if "size" in a else c.emit(f"{function}_like", a["self"])

    return rule


def _uniform(c: Converter, a: Arguments) -> Any:
    low, high = a.get("from", 0.0), a.get("to", 1.0)
    return _moved(c, c.emit("rand_like", a["self"]), high - low, low)


def _normal(c: Converter, a: Arguments) -> Any:
    """x.normal_(mean, std), and torch.normal of numbers with a size, or of tensors."""
    mean, std = (a.get(name, k) for name, k in (("mean", 0.0), ("std", 1.0)))
    like = a.get("self", mean if isinstance(mean, ValueRef | WeightRef) else std)
    drawn = c.emit("randn", a["size"]) if "size" in a else c.emit("randn_like", like)
    return _moved(c, drawn, std, mean)


def _rrelu(c: Converter, a: Arguments) -> Any:
    """A random slope for each negative element; in evaluation mode the mean of its limits."""
    low, high = a.get("lower", 1 / 8), a.get("upper", 1 / 3)
    if not a.get("training", False):
        return c.emit("leaky_relu", a["self"], (low + high) / 2)
    slope = _moved(c, c.emit("rand_like", a["self"]), high - low, low)
    return c.emit("where", c.emit("{} >= {}", a["self"], 0.0), a["self"], c.emit("{} * {}", a["self"], slope))


def _moved(c: Converter, drawn: Any, scale: Any, offset: Any) -> Any:
    drawn = drawn if scale == 1 else c.emit("{} * {}", drawn, scale)
    return drawn if offset == 0 else c.emit("{} + {}", drawn, offset)


def _exponential(c: Converter, a: Arguments) -> Any:
    drawn = c.emit("log", c.emit("{} - {}", 1.0, c.emit("rand_like", a["self"])))
    return c.emit("{} / {}", drawn, -a.get("lambd", 1.0))


def _bernoulli(c: Converter, a: Arguments) -> Any:
    """1 with a probability: one for each element of a tensor, or one for all that empty(...).bernoulli_(p) fills, as
    stochastic depth draws. In the second case evaluation mode gives p itself, since the network divides by p."""
    p = a.get("p")
    if isinstance(p, ValueRef) or a["self"] not in c.empty:
        probabilities = p if isinstance(p, ValueRef) else a["self"]
        return c.emit("to", c.emit("{} < {}", c.emit("rand_like", a["self"]), probabilities), "f32")
    return c.emit("{} * {}", c.emit("dropout", a["self"], 1.0 - a.get("p", 0.5)), a.get("p", 0.5))


RANDOM: dict[str, Rule] = {
    "aten.rand": _drawn("rand"),
    "aten.rand_like": _drawn("rand"),
    "aten.randn": _drawn("randn"),
    "aten.randn_like": _drawn("randn"),
    "aten.uniform": _uniform,
    "aten.normal": _normal,
    "aten.exponential": _exponential,
    "aten.rrelu": _rrelu,
    "aten.bernoulli": _bernoulli,
}
