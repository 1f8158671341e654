"""Rules of the table: random numbers, new ones in every training step."""

from __future__ import annotations

from typing import Any

from ..imported.rules import Arguments, Rule


def _drawn(function: str, of_two: Any) -> Rule:
    """Random numbers of a given shape, or of the shape of a tensor; of_two: gives offset and scale from attributes."""

    def rule(c: Any, a: Arguments) -> Any:
        drawn = (
            c.emit(f"{function}_like", c.operand(a["input"]))
            if "input" in a
            else c.emit(function, a["shape"])
        )
        offset, scale = of_two(a)
        drawn = drawn if scale == 1 else c.emit("{} * {}", drawn, scale)
        return drawn if offset == 0 else c.emit("{} + {}", drawn, offset)

    return rule


_NORMAL = _drawn("randn", lambda a: (a["mean"], a["scale"]))
_UNIFORM = _drawn("rand", lambda a: (a["low"], a["high"] - a["low"]))
RANDOM: dict[str, Rule] = {
    "RandomNormal": _NORMAL,
    "RandomNormalLike": _NORMAL,
    "RandomUniform": _UNIFORM,
    "RandomUniformLike": _UNIFORM,
}
