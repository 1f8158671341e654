"""The schema of a board's TOML file: every key with its type and range. Stdlib only."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import BoardError, shortened
from .toml_file import shown

SCHEMA = 1
HOST = "host"
DEFAULT_BOARD = "stm32"  # of ./scons, autodiff-gen and the SCons tools, where none is named
KINDS = ("ram", "flash")
_KEY = re.compile(r"[\w.+-]{1,100}", re.ASCII)
_TITLE = re.compile(r"^[\w .,:;&'+/()=@-]{1,100}$")
_LONGEST_LIST = 200  # characters of the known words in a message
_LONGEST_PATH = 200  # characters of a name or a path; the name of a file has at most 255
PROFILES = ("speed", "size")  # goals of optimisation


def check(data: dict[str, Any], path: Path) -> None:
    """Raise BoardError for the first key that is unknown or whose value has the wrong type or range."""
    _check(data, _TREE, path, "")


def known_keys() -> list[str]:
    """The dotted paths of all keys; "*" is any name."""

    def below(schema: dict[str, Any], path: str) -> Iterator[str]:
        for key, part in schema.items():
            if isinstance(part, dict):
                yield from below(part, f"{path}{key}.")
            else:
                yield f"{path}{key}"

    return list(below(_TREE, ""))


def json_schema() -> dict[str, Any]:
    """The same as a JSON Schema (draft 2020-12), for editors of board files."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "board", **_as_json(_TREE)}


def _as_json(part: Any) -> dict[str, Any]:
    match part:
        case dict():
            named = {key: _as_json(inner) for key, inner in part.items() if key != "*"}
            others = _as_json(part["*"]) if "*" in part else False
            return {"type": "object", "properties": named, "additionalProperties": others}
        case Integer():
            return {"type": "integer", "minimum": part.low, "maximum": part.high}
        case OneOf():
            return {"type": "string", "enum": list(part.known)}
    strings = {"type": "array", "items": {"type": "string"}}
    filled = {"type": "string", "minLength": 1}
    leaves: dict[Any, dict[str, Any]] = {
        _string: filled,
        _title: {**filled, "maxLength": 100, "pattern": _TITLE.pattern},
        _path: {**filled, "maxLength": _LONGEST_PATH},
        _paths: {"type": "array", "items": {**filled, "maxLength": _LONGEST_PATH}},
        _text: {"type": "string"},
        _bool: {"type": "boolean"},
        _strings: strings,
        _names: {"anyOf": [filled, {**strings, "minItems": 1}]},
        _commands: {"type": "array", "items": {**strings, "minItems": 1}},
        _cost: {"type": "number", "minimum": 0, "maximum": 1_000_000},
        _anything: {},
    }
    return leaves[part]


def near(word: str, known: Iterable[str]) -> str:
    """The suffix of an error about an unknown word: the closest known word, and the list of all, or of the closest."""
    known = sorted(known)
    match = difflib.get_close_matches(word, known, n=1)
    hint = f"; did you mean {match[0]!r}?" if match else ""
    if len(listed := ", ".join(known)) > _LONGEST_LIST:
        closest = sorted(difflib.get_close_matches(word, known, n=6, cutoff=0.0))
        listed = f"{', '.join(closest)} and {len(known) - len(closest)} more"
    return f"{hint} (known: {listed})"


# A leaf of the schema is a function that returns the error of a value, or None; "*" is any name.


def _string(value: Any) -> str | None:
    return None if isinstance(value, str) and value else "must be a string that is not empty"


def _title(value: Any) -> str | None:
    """The name of a board, which appears in comments of generated C and Makefiles, and in pages and projects."""
    if _string(value) is not None or _TITLE.fullmatch(value):
        return _string(value)
    return "must be at most 100 letters, digits, spaces and . , : ; & ' + - / _ ( ) = @"


def _path(value: Any) -> str | None:
    if _string(value) is not None or len(value) <= _LONGEST_PATH:
        return _string(value)
    return f"must have at most {_LONGEST_PATH} characters"


def _paths(value: Any) -> str | None:
    return _strings(value) or next((wrong for v in value if (wrong := _path(v)) is not None), None)


def _text(value: Any) -> str | None:
    return None if isinstance(value, str) else "must be a string"


def _bool(value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _strings(value: Any) -> str | None:
    good = isinstance(value, list) and all(isinstance(v, str) for v in value)
    return None if good else "must be a list of strings"


def _names(value: Any) -> str | None:
    good = _path(value) is None or (value and _strings(value) is None and _paths(value) is None)
    return None if good else "must be a backend or a list of them"


def _commands(value: Any) -> str | None:
    good = isinstance(value, list) and all(v and _strings(v) is None for v in value)
    return None if good else "must be a list of commands, each a list of strings"


@dataclass(frozen=True)
class Integer:
    """An integer from `low` to `high`, both included; `form`: how the error writes them."""

    low: int
    high: int
    form: str = "d"

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, int) or isinstance(value, bool):
            return "must be an integer"
        if self.low <= value <= self.high:
            return None
        first, last = format(self.low, self.form), format(self.high, self.form)
        return f"must be {first}" if first == last else f"must be from {first} to {last}"


@dataclass(frozen=True)
class OneOf:
    """One of the strings `known`; `what` they are, for the error."""

    known: tuple[str, ...]
    what: str

    def __call__(self, value: Any) -> str | None:
        if not isinstance(value, str):
            return "must be a string"
        return None if value in self.known else f"is not a known {self.what}{near(value, self.known)}"


def _anything(value: Any) -> str | None:
    return None


def _cost(value: Any) -> str | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return "must be a number"
    return None if 0 <= value <= 1_000_000 else "must be from 0 to 1000000"


_ADDRESS = Integer(0, 0xFFFFFFFF, "#x")
_COSTS = (
    "load",
    "store",
    "arithmetic",
    "loop",
    "mac",
    "code",
    "arena",
    "memory",
    "cycles",
    "finish",
    "limit",
)
_KERNEL = {**dict.fromkeys(("call", "result", "term", "edge"), _cost), "tile": Integer(1, 64)}
_TREE: dict[str, Any] = {
    "schema": Integer(SCHEMA, SCHEMA),
    "name": _title,
    "inherits": _path,
    "profile": OneOf(PROFILES, "profile"),
    "stack_bytes": Integer(256, 0x7FFFFFFF),
    "ram_budget": Integer(1, 0x7FFFFFFF),
    "memory": {
        "*": {
            "kind": OneOf(KINDS, "kind"),
            "origin": _ADDRESS,
            "bytes": Integer(32, 0xFFFFFFFF),
            "cost": _cost,
            "states": _strings,
        }
    },
    "target": {
        "core": _string,
        "clock_hz": Integer(1, 10_000_000_000),
        **dict.fromkeys(("ua_per_mhz", "volts"), _cost),
        "features": _strings,
        "cflags": _strings,
        "ldflags": _strings,
        "startup": _path,
        "support": _path,
    },
    "kernels": {"backends": _paths, "use": {"*": _names}},
    "cost": {
        **dict.fromkeys(_COSTS, _cost),
        "registers": Integer(1, 1024),
        "vector": Integer(1, 1024),
        "vector_loop": Integer(0, 1024),
        "block_moves": _bool,
        "cache": {"bytes": Integer(1, 0x7FFFFFFF), **dict.fromkeys(("miss", "packing", "load"), _cost)},
        **dict.fromkeys(("gemm", "gemv", "column_sums", "axpby"), _KERNEL),
        "kernels": {"*": _KERNEL},
        "calls": {"*": {"*": _cost}},
    },
    "toolchain": {"prefix": _text, "packages": _strings, "probes": _commands},
    "qemu": {"binary": _string, "machine": _string, "cpu": _string, "args": _strings},
    "upload": {"address": _ADDRESS, "openocd": _strings, "st_flash": _bool},
    "store": {"origin": _ADDRESS, "slots": Integer(2, 1024), "slot_bytes": Integer(512, 0x7FFFFFFF)},
    "platformio": {"*": _anything},
}


def _check(value: Any, schema: Any, path: Path, dotted: str) -> None:
    if callable(schema):
        wrong = schema(value)
        if wrong is not None:
            raise BoardError(f"{path}: wrong value: {shortened(dotted)} {wrong}, got {shown(value)}")
        return
    if not isinstance(value, dict):
        name = shortened(dotted)
        raise BoardError(f"{path}: {name} must be a section [{name}], got {shown(value)}")
    for key, part in value.items():
        inner = schema.get(key, schema.get("*"))
        where = f"{dotted}.{key}" if dotted else key
        if inner is None:
            raise BoardError(f"{path}: unknown key {shown(where)}{near(key, schema)}")
        _check(part, inner, path, where)
        if not _KEY.fullmatch(key):
            raise BoardError(f"{path}: the name {shown(where)} must be letters, digits and . _ + -")
