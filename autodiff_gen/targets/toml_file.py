"""Read a user's TOML file. Stdlib only."""

from __future__ import annotations

import datetime
import re
import tomllib
from pathlib import Path
from typing import Any

from ..errors import AutodiffError, shortened
from ..reading import regular
from ..reading.limits import Limit

SIZE = Limit("bytes of TOML", 1 << 18)
_MOST_PARTS = 8  # of a dotted key; tomllib stores all parts before each part
_DIGITS = 4300  # of an integer that Python prints
_TOKEN = re.compile(
    r'''"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[\w-]+|\#[^\n]*|[ \t]+|(\.)|.''',
    re.DOTALL,
)


def read_toml(path: Path, error_type: type[AutodiffError]) -> dict[str, Any]:
    """The content of a file, without the byte order mark that Windows editors write at its start. Raises an error of
    this kind for a file that cannot be read, or is no TOML."""
    text = regular.read_text(path, error_type, SIZE)
    if _parts(text) > _MOST_PARTS:
        raise error_type(
            f"{path}: not valid TOML: a key has more than {_MOST_PARTS} parts with dots between them"
        )
    try:
        data = tomllib.loads(text)
        repr(data)  # as messages quote values: ValueError for a number that is too long to print
    except RecursionError:
        raise error_type(f"{path}: not valid TOML: brackets are nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        raise error_type(f"{path}: not valid TOML: {_readable(str(error))}") from None
    except ValueError:
        raise error_type(
            f"{path}: not valid TOML: Exceeds the limit of {_DIGITS:,} digits for an integer"
        ) from None
    return data


def check_texts(data: dict[str, Any], path: Path, error_type: type[AutodiffError]) -> None:
    """Raise an error of this kind if a key or a string has control characters, such as the end of a line."""
    waiting: list[Any] = [data]
    while waiting:
        part = waiting.pop()
        for said in (part,) if isinstance(part, str) else part if isinstance(part, dict) else ():
            if not said.isprintable():
                raise error_type(f"{path}: the text {shown(said)} has a control character: remove it")
        waiting += part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()


def shown(value: Any) -> str:
    """A value in a message: as the file writes it, without its end if it is long."""
    match value:
        case bool():
            text = "true" if value else "false"
        case datetime.date() | datetime.time():
            text = value.isoformat()
        case dict():
            text = "a section"
        case list():
            text = f"[{', '.join(map(shown, value[:8]))}{', ...' if len(value) > 8 else ''}]"
        case _:
            text = repr(value)
    return shortened(text)


def _parts(text: str) -> int:
    """The most words with dots between them, outside of strings and comments."""
    most = parts = 0
    dotted = False
    for token in _TOKEN.finditer(text):
        if token[1]:
            parts += 1
        elif not token[0].isspace() or "\n" in token[0]:
            parts = parts if dotted and token[0][0] not in "#\n" else 0
        else:
            continue
        dotted = bool(token[1])
        most = max(most, parts)
    return most + 1


def _readable(said: str) -> str:
    """tomllib's message; it writes the parts of a key as a tuple."""
    said = re.sub(r"\((('[^']*',? ?)+)\)", lambda m: ".".join(re.findall("'([^']*)'", m[1])), said)
    return shortened(said, 160)
