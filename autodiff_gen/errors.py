"""Exceptions for the user's mistakes: each message is one line that names the mistake, its place and the fix."""

from __future__ import annotations

import difflib
import re
import shlex
import sys
from collections.abc import Iterable, Mapping

LINE = 400  # characters of an error on the command line
LONGEST = LINE - len("error: ")  # of a message
VALUE = 60  # characters of a value of a file in a message
_WORD = re.compile(r"""(?<![(\[{=])[(\[{=]*(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\S*|(?<!\S)[^\s/]+(?!\S)""")
_PATH = re.compile(r"\S+")


class AutodiffError(Exception):
    """Base of all errors that are printed to the user without a traceback. The text is one line of at most LONGEST
    characters, although quotes from a user's file may be longer or have several lines."""

    def __str__(self) -> str:
        return fitted(super().__str__())


def fitted(text: str) -> str:
    """A message as one line of at most LONGEST characters: long words and quoted values lose their middle, then paths,
    and if that is not enough, the whole message does."""
    text = shortened(text, 10 * LONGEST)
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    for word in (_WORD, _PATH):
        for room in (4 * VALUE, 2 * VALUE, VALUE, VALUE // 2):
            if len(text) > LONGEST:
                text = word.sub(lambda found, room=room: shortened(found[0], room), text)  # type: ignore[misc]
    if len(text) > LONGEST:  # a path with spaces
        path, colon, rest = text.partition(": ")
        folder, slash, name = path.rpartition("/")
        text = f"{shortened(folder)}{slash}{name}{colon}{rest}"
    return shortened(text, LONGEST)


def shortened(text: str, room: int = VALUE) -> str:
    """A text without its middle if it has more characters than `room`; the name of a file stays as far as it can."""
    name = len(text) - text.rfind("/") if "/" in text and " " not in text else 0
    tail = min(max((room - 3) // 2, name), room - 3 - VALUE // 6)
    return text if len(text) <= room else f"{text[: room - 3 - tail]}...{text[-tail:]}"


def quoted(value: object) -> str:
    """A value of a file in a message, as Python writes it, without its middle if it is long."""
    return shortened(repr(shortened(value, 1000) if isinstance(value, str) else value))


class ShapeError(AutodiffError):
    """Shapes, dtypes or arguments that an op does not accept."""


class ModelError(AutodiffError):
    """A model file or an `ag.Model` that cannot be built."""


class GraphError(AutodiffError):
    """A graph that violates a rule of the IR (two parameters with one name, an op without a gradient)."""


class BoardError(AutodiffError):
    """A board profile that is unknown, malformed, or contradicts itself."""


class KernelError(AutodiffError):
    """A kernel backend or kernel table that is unknown or malformed."""


class PlanError(AutodiffError):
    """A memory plan that does not fit the board."""


class DataError(AutodiffError):
    """A data set that is missing, truncated or damaged."""


class ToolError(AutodiffError):
    """A compiler, emulator or probe that is missing or failed."""


class AttributeModelError(ModelError, AttributeError):
    """A method of PyTorch that an object does not have, as hasattr finds."""


# The packages that only parts of the compiler import: the extra of pyproject.toml that has each, and its requirement.
# The project is on no index, so pip finds none of its extras by name.
EXTRAS = {
    "flwr": ("fleet", "flwr>=1.42,<1.43"),
    "onnx": ("onnx", "onnx>=1.20"),
    "pygments": ("report", "pygments>=2.17"),
    "pyserial": ("device", "pyserial>=3.5"),
    "tensorboardX": ("tensorboard", "tensorboardX>=2.6"),
    "torch": ("torch", "torch>=2.4"),
}


def pip_install(package: str) -> str:
    """The command that installs one of EXTRAS for the Python that runs the compiler, with the extra in a comment."""
    extra, requirement = EXTRAS[package]
    return f"{shlex.join([sys.executable, '-m', 'pip', 'install', requirement])}  # the extra [{extra}]"


def counted(number: int, noun: str) -> str:
    """A number of things in a message: `1 step`, `1,200 steps`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Iterable[str], room: int = 100, between: str = ", ") -> str:
    """Names in a message: as many as about `room` characters hold, and how many more there are."""
    named = list(names)
    given = [shortened(name, room if len(named) == 1 else max(room // 2, VALUE)) for name in named]
    count = 1
    while count < len(given) and len(between.join(given[: count + 1])) <= room:
        count += 1
    more = f" and {len(given) - count:,} more" if count < len(given) else ""
    return f"{between.join(given[:count])}{more}"


def unknown_name(
    module: str,
    name: str,
    instead: Mapping[str, str],
    known: Iterable[str],
    error_type: type[ModelError] = ModelError,
) -> Exception:
    """The error of a name that a module or an object does not have. `instead`: what to use in place of names that
    PyTorch has; their errors are of this kind. Others are AttributeErrors, with the most similar known name,
    unless they are private: tools look for many of these.

    A module's must not be AttributeErrors: `from module import name` would replace the message by Python's own."""
    if name in instead:
        return error_type(f"{module}.{name} is not supported; {instead[name]}")
    similar = [] if name.startswith("_") else difflib.get_close_matches(name, list(known), 1)
    hint = f"did you mean {similar[0]!r}?" if similar else "docs/operations.md lists what there is"
    return AttributeError(f"{module} has no {name!r}; {hint}")
