"""The reference kernels as text: static functions for C that must stand in one file, without our headers.

What is taken are the top-level items of `kernels/ref` (functions, types, tables, #defines) that the code
needs, in the order of their files. clang-format keeps the sources in a form that can be cut at lines: an item
begins in the first column and ends at a line that begins with `}` or, when it has no braces, ends with `;`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..kernels.table import Kernel

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class Item:
    """One top-level item of a C file with the comment above it; `name` is empty for a check that is always
    wanted.
    """

    name: str
    text: str


def header_files(kernels: Path) -> list[Path]:
    """The headers in the folder of kernels whose items may be needed, in the order of their dependence."""
    return [kernels / "ag_shapes.h", *sorted((kernels / "ref").glob("*.h"))]


def static_functions(kernels: Iterable[Kernel], headers: Sequence[Path], names: Iterable[str]) -> list[str]:
    """The items of these `names` and what they need, helpers included, as static C99; `kernels` are those among them.

    headers: files of static inline functions, in the order of their dependence. The result needs <stdint.h>,
    and <math.h> and <string.h> as far as the items do; ptrdiff_t becomes intptr_t, which needs no <stddef.h>.
    """
    files = [items(path) for path in headers]
    files += [_apart(items(path), path.stem) for path in dict.fromkeys(k.source for k in kernels)]
    known = {item.name: item for file in files for item in file if item.name}
    needed: set[str] = set()
    pending = [name for name in names if name in known]
    while pending:
        name = pending.pop()
        if name not in needed:
            needed.add(name)
            pending += [w for w in _WORD.findall(_COMMENT.sub("", known[name].text)) if w in known]
    out: list[str] = []
    for file in files:
        if any(item.name in needed for item in file):
            out += [_static(item.text) for item in file if not item.name or item.name in needed]
    return out


def items(path: Path) -> list[Item]:
    """The top-level items of a C file, without #include lines and the include guard."""
    out: list[Item] = []
    comment: list[str] = []
    item: list[str] = []
    inside = ""  # what the lines belong to: "comment", "item", "check"
    for line in path.read_text(encoding="utf-8").splitlines():
        if not inside:
            if not line:
                comment = []
                continue
            if line.startswith("#") and not re.match(r"#if |#define \w+ ", line):
                continue
            inside = "comment" if line.startswith("/*") else "check" if line.startswith("#if") else "item"
        (comment if inside == "comment" else item).append(line)
        if inside == "comment":
            inside = "" if line.endswith("*/") else inside
        elif _ends(inside, line, item):
            name = "" if inside == "check" else _name(path, item)
            out.append(Item(name, "\n".join([*comment, *item])))
            comment, item, inside = [], [], ""
    assert not item, f"{path}: the last item has no end: {item[0]}"
    return out


def _ends(inside: str, line: str, item: Sequence[str]) -> bool:
    if inside == "check":
        return line == "#endif"
    if item[0].startswith("#define"):
        return not line.endswith("\\")
    return line.startswith("}") or (line.endswith(";") and not any("{" in part for part in item[:-1]))


def _name(path: Path, item: Sequence[str]) -> str:
    patterns = (r"#define (\w+)",) if item[0].startswith("#") else (r"(\w+)\(", r"(\w+)(?:\[[^=]*\])? =")
    for pattern in patterns:
        found = re.search(pattern, item[0])
        if found:
            return found[1]
    found = re.search(r"(\w+);$", item[-1])
    assert found, f"{path}: what does this define? {item[0]}"
    return found[1]


def _apart(file: list[Item], stem: str) -> list[Item]:
    """Helpers of one kernel file under names that no other file and no user has."""
    own = [i.name for i in file if i.name and not i.name.lower().startswith("ag_")]
    if not own:
        return file
    numbers = [i.name for i in file if i.text.split("*/")[-1].lstrip().startswith("enum {")]
    called = [name for name in own if name not in numbers]
    pattern = re.compile("|".join([*(rf"\b{n}\b" for n in numbers), *(rf"\b{n}\b(?=[(\[])" for n in called)]))
    names = {name: f"ag_{stem}_{name}" for name in own}
    return [Item(names.get(i.name, i.name), pattern.sub(lambda m: names[m[0]], i.text)) for i in file]


def _static(text: str) -> str:
    text = re.sub(r"\bptrdiff_t\b", "intptr_t", text)
    start = re.search(r"^(?:void|float|double|u?int\d+_t) ", text, re.MULTILINE)
    if start is None:
        return text
    head, brace, body = text[start.start() :].partition("{\n")
    return text[: start.start()] + "static " + head.replace("\n", "\n" + " " * len("static ")) + brace + body
