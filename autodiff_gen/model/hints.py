"""How to fix errors that Python raises in a model file, if the call that raised them shows it."""

from __future__ import annotations

import ast
import builtins
import difflib
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from ..errors import EXTRAS, pip_install
from ..ir.node import Value
from ..ir.types import Dim
from ..nn import Module
from ..targets import installation
from .model import Model

# Names of arguments in NumPy -> in PyTorch.
OF_NUMPY = {"axis": "dim", "keepdims": "keepdim"}

_WRONG_ARGUMENTS = re.compile(
    r"(?P<function>[\w.<>]+)\(\) (got an unexpected keyword argument '(?P<unknown>\w+)'"
    r"|missing \d+ required .*: (?P<missing>.*)|takes .* given)"
)
_PACKAGE = __name__.partition(".")[0]


def nearest(name: str, known: Iterable[str]) -> str:
    """The end of a message, with the most similar of the known names; empty if none is similar."""
    near = difflib.get_close_matches(name, list(known), n=1)
    return f", did you mean {near[0]!r}?" if near else ""


def hint(error: BaseException) -> str:
    """The end of a message, with the fix for an error of Python; empty if no fix is known."""
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        return f"; run: {pip_install(error.name)}"
    if isinstance(error, FileNotFoundError) and _is_left_out(error.filename):
        return "; the installed package leaves this file out, a checkout of autodiff_gen has it"
    if not isinstance(error, TypeError | AttributeError):
        return ""
    if _is_of(error, Value, "operand '{}' does not support ufuncs"):
        return "; a function of NumPy takes no graph values; use a function of F, such as F.tanh"
    if any(_is_of(error, Value, text) for text in ("must be Tensor, not {}", "but got {}")):
        return "; a function of PyTorch takes no graph values; use a function of ag.functional"
    if _is_of(error, Dim, "'{}'"):
        return (
            "; Dim is the number of samples, known when the model runs; compute with the whole batch, or fix its "
            "size"
        )
    found = _WRONG_ARGUMENTS.fullmatch(str(error))
    return "" if found is None else _of_arguments(error, found)


def _is_left_out(file: object) -> bool:
    """Whether a missing file belongs to an example and is not in the installed package (pyproject.toml: exclude)."""
    root = installation.root()
    return (
        isinstance(file, str)
        and not installation.is_checkout(root)
        and Path(file).is_relative_to(root / "examples")
    )


def _is_of(error: BaseException, cls: type, text: str) -> bool:
    """Whether the message of an error contains `text` with the class's name, and no frame has another class of that
    name."""
    named = ({**f.f_globals, **f.f_locals}.get(cls.__name__, cls) for f, _ in _frames(error))
    return text.format(cls.__name__) in str(error) and all(found is cls for found in named)


def _of_arguments(error: BaseException, found: re.Match[str]) -> str:
    """The hint for a call whose arguments do not fit its function."""
    unknown, missing = found["unknown"], found["missing"]
    if unknown is None and (own := _of_supervised(error)):
        return own
    function = _called(error, found["function"])
    if function is None:
        return ""
    try:
        known = list(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # a function in C may have no signature
        known = []
    if missing == "'dim'" and _is_own(function):
        return "; dim is the axis along which it is computed, such as dim=-1"
    if OF_NUMPY.get(unknown) in known and _is_own(function):
        return f"; it is called {OF_NUMPY[unknown]}, as in PyTorch"
    return "" if unknown is None else nearest(unknown, known)


def _of_supervised(error: BaseException) -> str:
    """The hint for a network or a loss that takes other arguments than Model.supervised gives it."""
    frames = [f for f, _ in _frames(error)]
    while frames and frames[-1].f_code is Module.__call__.__code__:
        frames.pop()
    if not frames or frames[-1].f_code is not Model.supervised.__func__.__code__:  # type: ignore[attr-defined]
        return ""
    if "scores" in frames[-1].f_locals:
        return "; Model.supervised gives the loss the scores and the target"
    return "; Model.supervised gives the network its `input`, which may be a list of several ag.Input"


def _is_own(function: Any) -> bool:
    """Whether a function is one of this package."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] == _PACKAGE


def _frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """The frames of an error, the innermost one last, with the instruction that each was at."""
    at: TracebackType | None = error.__traceback__
    while at is not None:
        yield at.tb_frame, at.tb_lasti
        at = at.tb_next


def _called(error: BaseException, name: str) -> Any:
    """The function that the innermost frame called, if messages give it this name; None if the source does not tell
    it."""
    *_, (frame, instruction) = _frames(error)
    _, line, _, column = list(frame.f_code.co_positions())[instruction // 2]
    try:
        tree = ast.parse(Path(frame.f_code.co_filename).read_bytes())
    except (OSError, SyntaxError):
        return None
    calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call))
    call = next((n for n in calls if (n.end_lineno, n.end_col_offset) == (line, column)), None)
    found = None if call is None else _value(call.func, frame)
    return found if found is not None and _name_of(found) == name else None


def _value(expression: ast.expr, frame: FrameType) -> Any:
    """The value of a name or an attribute in a frame. The result of another expression is assumed to be a graph value,
    since it is not computed again."""
    if isinstance(expression, ast.Name):
        names = {**vars(builtins), **frame.f_globals, **frame.f_locals}
        return names.get(expression.id)
    if isinstance(expression, ast.Attribute):
        try:
            return getattr(_value(expression.value, frame), expression.attr)
        except Exception:  # a property may raise any error
            return None
    return Value


def _name_of(function: Any) -> str | None:
    """The name in messages: of a function, or of the method that runs when a class or an object is called."""
    if isinstance(function, type):
        function = inspect.getattr_static(function, "__init__")
    elif not hasattr(function, "__qualname__"):
        function = type(function).__call__
    return getattr(function, "__qualname__", None)
