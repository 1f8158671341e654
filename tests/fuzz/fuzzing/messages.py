"""Faults in the message of a rejected file."""

from __future__ import annotations

import re
from collections.abc import Iterable

LONGEST = 400  # characters of the line on a terminal
INTERNALS = re.compile(
    r"\b[A-Z][A-Za-z]*(Error|Exception|Warning)\b|<class|object at 0x|Traceback|NoneType|<built-in|<function|<module"
    r"|' object |has no attribute|not subscriptable|not iterable|unhashable|unexpected keyword|positional argument"
    r"|invalid literal for|list index out|to unpack|dtype\(|ndarray|np\.\w+\(|google\.protobuf|torch\._|_pickle"
    r"|zipfile|pickle(?!d)|Errno|codec can't|\bctypes|maximum recursion|allow_pickle|site-packages"
)


def fault(text: str, names: Iterable[str]) -> str:
    """The fault of a message in a few words, empty without one. names: the files; the message must name one of them."""
    if not text.strip() or "\n" in text:
        return "not one line"
    if found := INTERNALS.search(re.sub(r"'[^']*'", "''", text)):  # in quotes are values of files
        return f"internals {found[0].strip()!r}"
    if not any(name in text for name in names):
        return "no file's name"
    if len(f"error: {text}") > LONGEST:
        return "long"
    return ""
