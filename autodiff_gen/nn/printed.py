"""The arguments of a layer as PyTorch prints them: `Linear(in_features=4, out_features=8, bias=True)`."""

from __future__ import annotations

import inspect
from typing import Any


def printed_arguments(layer: Any) -> str:
    """The arguments that the class of the layer lists in `printed`, a word for each: `p` prints the value of the
    attribute p, `p=` its name as well, `p=?` both unless p has its default, and `p=False` is printed as it is."""
    parameters = inspect.signature(type(layer).__init__).parameters
    words = []
    for word in type(layer).printed.split():
        name, equals, rule = word.partition("=")
        value = _value(layer, name) if rule in ("", "?") else rule
        if rule == "?":
            if not _is_default(value, parameters[name].default):
                words.append(f"{name}={value}")
        else:
            words.append(word if rule else f"{name}={value!r}" if equals else str(value))
    return ", ".join(words)


def _value(layer: Any, name: str) -> Any:
    """The attribute; of a parameter, whether the layer has it."""
    held = layer._members()[0]
    return held[name] is not None if name in held else getattr(layer, name)


def _is_default(value: Any, default: Any) -> bool:
    return bool(value == default) or (isinstance(value, tuple) and all(v == default for v in value))
