"""Mutations of bytes, of text by tokens, and of JSON."""

from __future__ import annotations

import copy
import json
import random
import re
from typing import Any

from . import hostile

_TOKEN = re.compile(r"[A-Za-z_][\w-]*|\d[\w.]*|\"[^\"\n]*\"|\n|[ \t]+|.", re.DOTALL)
DEEP = "@deep@"


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Bytes cut off, flipped, duplicated, removed, zeroed or replaced."""
    made = bytearray(data)
    for _ in range(rng.choice((1, 1, 1, 2, 5))):
        at, size = rng.randrange(len(made) + 1), rng.choice((1, 2, 4, 8, 64, 1000))
        block = bytes(made[at : at + size])
        kind = rng.randrange(7)
        if kind == 0:
            del made[at:]
        elif kind == 1 and block:
            made[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            made[at:at] = block * rng.choice((1, 1, 2, 100))
        elif kind == 3:
            del made[at : at + size]
        elif kind == 4:
            made[at : at + size] = bytes(len(block))
        elif kind == 5:
            made[at : at + size] = rng.randbytes(len(block))
        else:
            made[at : at + 4] = rng.choice(
                (b"\xff\xff\xff\xff", b"\0\0\0\x80", b"\xff\xff\xff\x7f", b"\1\0\0\0")
            )
    return bytes(made)


def words(data: bytes, rng: random.Random) -> bytes:
    """A text with other tokens and lines, NULs, long lines, or nested brackets."""
    tokens = _TOKEN.findall(data.decode("utf-8", "surrogateescape")) or [""]
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(tokens))
        kind = rng.randrange(12)
        if kind <= 3:
            tokens[at] = _replaced(tokens[at], rng)
        elif kind == 4:
            tokens.insert(at, tokens[rng.randrange(len(tokens))])
        elif kind == 5:
            tokens[at] = tokens[rng.randrange(len(tokens))]
        elif kind == 6 and len(tokens) > 1:
            del tokens[at : at + rng.choice((1, 1, 3, 20))]
            tokens = tokens or [""]
        elif kind == 7:
            lines = "".join(tokens).splitlines(keepends=True) or [""]
            line = rng.randrange(len(lines))
            lines.insert(rng.randrange(len(lines) + 1), lines[line])
            if rng.random() < 0.5:
                del lines[line]
            tokens = _TOKEN.findall("".join(lines)) or [""]
        elif kind == 8:
            tokens.insert(at, rng.choice(("\0", "\x80", "\ufeff", "\r", "\udcff", "\x1b")))
        elif kind == 9:
            tokens.insert(
                at,
                rng.choice(("a", "1", "[", "{", '"', "-", ",", "#", " ", "1e", "a."))
                * rng.choice((10, 5000, 200_000)),
            )
        elif kind == 10:
            depth = rng.choice((10, 500, 5000))
            tokens[at] = rng.choice(
                ("[" * depth + "]" * depth, "{a=" * depth + "1" + "}" * depth, ".".join("a" * depth))
            )
        else:
            tokens.append(
                rng.choice(("\n[a]\n", "\n[[a]]\n", '\n"" = 1\n', "\na = 1\na = 2\n", "\n,,,\n", '\n"'))
            )
    return "".join(tokens).encode("utf-8", "surrogateescape")


def _replaced(token: str, rng: random.Random) -> str:
    """Another token: of the same kind more often."""
    if token[:1] == '"':
        return json.dumps(hostile.string(rng, token[1:-1]))
    if token[:1].isdigit():
        number = (
            hostile.integer(rng, int(token))
            if token.isascii() and token.isdigit() and len(token) < 100
            else rng.choice(hostile.INTEGERS)
        )
        return rng.choice(
            (str(number), str(number), "9" * 5000, repr(rng.choice(hostile.FLOATS)), "1e999", "0x7fffffff")
        )
    if rng.random() < 0.5:
        return rng.choice(
            (
                "true",
                '"x"',
                "[]",
                "{}",
                "1",
                "1.5",
                "",
                "[1, 'a']",
                "nan",
                "inf",
                "-1",
                "2020-01-01",
                "'''a'''",
            )
        )
    return hostile.string(rng, token)


def slots(value: Any) -> list[tuple[Any, Any]]:
    """All (container, key) of a value of JSON."""
    found, stack = [], [value]
    while stack:
        one = stack.pop()
        keys = list(one) if isinstance(one, dict) else range(len(one)) if isinstance(one, list) else ()
        for key in keys:
            found.append((one, key))
            if isinstance(one[key], dict | list):
                stack.append(one[key])
    return found


def json_text(data: bytes, rng: random.Random) -> bytes:
    """A JSON text with changed values, keys and structure."""
    if rng.random() < 0.03:
        return damaged(data, rng)
    try:
        holder = [json.loads(data)]
    except (ValueError, RecursionError):  # changed before
        return damaged(data, rng)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        if places := slots(holder):
            _change(places, rng)
    depth = rng.choice((100, 2000, 100_000))
    text = "".join(json.dumps(value, separators=(",", ":")) for value in holder)
    text = text.replace(
        json.dumps(DEEP), rng.choice(("[" * depth + "]" * depth, '{"a":' * depth + "1" + "}" * depth))
    )
    text = text.replace(json.dumps(DEEP + "digits"), "9" * 5000)
    return text.encode("utf-8", "surrogatepass")


def _change(places: list[tuple[Any, Any]], rng: random.Random) -> None:
    # Half of the places have different keys, so that rare keys are as likely as the keys of every node.
    if rng.random() < 0.5:
        key = rng.choice(sorted({str(k) for _, k in places if isinstance(k, str)}) or [""])
        places = [p for p in places if p[1] == key] or places
    container, key = rng.choice(places)
    old = container[key]
    kind = rng.randrange(12)
    if kind <= 4:
        container[key] = _like(old, rng)
    elif kind == 5:
        container[key] = hostile.value(rng)
    elif kind == 6:
        del container[key]
    elif kind == 7:  # what another place has
        other, k = rng.choice(places)
        container[key] = copy.deepcopy(other[k])
    elif kind == 8 and isinstance(container, list):
        container.insert(key, copy.deepcopy(old))
    elif kind == 8:
        container[hostile.string(rng, str(key)).encode("utf-8", "replace").decode()] = container.pop(key)
    elif kind == 9 and isinstance(old, list):
        rng.shuffle(old)
    elif kind == 10:
        container[key] = DEEP + rng.choice(("", "digits"))
    elif isinstance(old, list):
        container[key] = old * rng.choice((0, 2, 2, 20))
    else:
        container[key] = [old]


def _like(old: Any, rng: random.Random) -> Any:
    """Another value of the same type."""
    if isinstance(old, bool) or old is None:
        return rng.choice((True, False, None, 0, 1, "", "true"))
    if isinstance(old, int):
        return hostile.integer(rng, old)
    if isinstance(old, float):
        return rng.choice((*hostile.FLOATS, -old, old * 1e30))
    if isinstance(old, str):
        return hostile.string(rng, old)
    return hostile.value(rng)
