"""How messages name hooks, and places in the user's code."""

from __future__ import annotations

import copy
import functools
import sys
from pathlib import Path
from typing import Any

OWN = str(Path(__file__).parent)


def described(hook: Any) -> str:
    """`clip (net.py:12)`: the name of a function, and its place if it is one of Python."""
    while isinstance(hook, functools.partial):
        hook = hook.func
    name = getattr(hook, "__name__", type(hook).__name__)
    code = getattr(hook, "__code__", None) or getattr(vars(type(hook)).get("__call__"), "__code__", None)
    name = "lambda" if name == "<lambda>" else name
    return f"{name} ({Path(code.co_filename).name}:{code.co_firstlineno})" if code else name


def caller(torch: Any, outermost: Any = None) -> str:
    """`net.py:12`: the innermost line that is neither PyTorch's nor of this package; empty if `outermost`, the code
    of a function of ours, did not call it."""
    packages = (str(Path(torch.__file__).parent), OWN, copy.__file__)
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(packages):
        if frame.f_code is outermost:
            return ""
        frame = frame.f_back
    return "" if frame is None else f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
