"""The templates of a project's files."""

from __future__ import annotations

import functools
import re
import shlex
from typing import Any

import jinja2

from ...targets.installation import __version__


@functools.cache
def _templates() -> jinja2.Environment:
    made = jinja2.Environment(
        loader=jinja2.PackageLoader("autodiff_gen.model.project"),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.filters |= {
        "make": for_make,
        "cmake": for_cmake,
        "cmake_text": cmake_text,
        "cmake_string": cmake_string,
    }
    return made


def for_make(word: str) -> str:
    """Quote a word for a variable or recipe of make, which gives it to a shell."""
    return shlex.quote(word).replace("$", "$$").replace("#", "\\#")


def for_cmake(word: str) -> str:
    """A word for a command of CMake, in quotes if it needs them."""
    return word if re.fullmatch(r"[\w.,=+:/%-]+", word, re.ASCII) else cmake_string(word)


def cmake_string(word: str) -> str:
    """A word for a command of CMake, in quotes."""
    return f'"{cmake_text(word)}"'


def cmake_text(word: str) -> str:
    """A word with escapes, for use inside a quoted string of CMake."""
    return re.sub(r'([\\"$])', r"\\\1", word)


def render(template: str, **values: Any) -> str:
    """The text of a file; an undefined name is an error."""
    return _templates().get_template(f"{template}.j2").render(version=__version__, **values)
