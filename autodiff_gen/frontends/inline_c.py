"""The reference kernels as text: static functions for self-contained C, without the project's headers.

The result has the top-level items of `kernels/ref` (functions, types, tables, #defines) that the code needs, in file
order. Sources formatted by clang-format can be split at lines: an item starts in the first column and ends at a line
that starts with `}` or, if it has no braces, ends with `;`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..kernels.table import Kernel

_WORD = re.compile(r"[A-Za-z_]\w*")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)
_PART = re.compile(r';\n#include "([^"]+)"')  # a header that needs the definitions before it


@dataclass(frozen=True)
class Item:
    """A top-level item of a C file with the comment above it; `name` is empty for an #if check, which is included with
    any item of its file.
    """

    name: str
    text: str


def header_files(kernels: Path) -> list[Path]:
    """The headers in the folder of kernels whose items may be needed, in dependence order, without headers that are
    parts of the files that include them."""
    ref = kernels / "ref"
    parts = {ref / name for path in ref.glob("*.c") for name in _PART.findall(path.read_text("utf-8"))}
    return [kernels / "ag_shapes.h", *sorted({*ref.glob("*.h")} - parts), kernels / "ag_quantization.h"]


def static_functions(kernels: Iterable[Kernel], headers: Sequence[Path], names: Iterable[str]) -> list[str]:
    """The items of these `names` and the items that they need, helpers included, as static C99; `kernels` are the
    kernels among them.

    headers: files of static inline functions, in dependence order. The result needs <stdint.h>, and <math.h> and
    <string.h> if the items do; ptrdiff_t is replaced by intptr_t, which needs no <stddef.h>.
    """
    files = [items(path) for path in headers]
    files += [_prefixed(items(path), path.stem) for path in dict.fromkeys(k.source for k in kernels)]
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
    """The top-level items of a C file, without #include lines and the include guard, and the items of a header that the
    file includes after its first items."""
    out: list[Item] = []
    comment: list[str] = []
    item: list[str] = []
    inside = ""  # the kind of the current lines: "comment", "item", "check"; empty between items
    for line in path.read_text(encoding="utf-8").splitlines():
        if not inside:
            if not line:
                comment = []
                continue
            part = re.match(r'#include "(.+)"', line) if out else None
            if part:
                out += items(path.with_name(part[1]))
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
        match = re.search(pattern, item[0])
        if match:
            return match[1]
    match = re.search(r"(\w+);$", item[-1])
    assert match, f"{path}: the item has no name: {item[0]}"
    return match[1]


def _prefixed(file: list[Item], stem: str) -> list[Item]:
    """The items of a kernel file, with helpers renamed so that names are unique over files and user code."""
    own = [i.name for i in file if i.name and not i.name.lower().startswith("ag_")]
    if not own:
        return file
    starts = {i.name: i.text.split("*/")[-1].lstrip() for i in file}
    others = [name for name in own if starts[name].startswith(("enum {", "typedef "))]
    called = [name for name in own if name not in others]
    pattern = re.compile("|".join([*(rf"\b{n}\b" for n in others), *(rf"\b{n}\b(?=[(\[])" for n in called)]))
    names = {name: f"ag_{stem}_{name}" for name in own}
    return [Item(names.get(i.name, i.name), pattern.sub(lambda m: names[m[0]], i.text)) for i in file]


def _static(text: str) -> str:
    text = re.sub(r"\bptrdiff_t\b", "intptr_t", text)
    start = re.search(r"^(?:void|float|double|u?int\d+_t) ", text, re.MULTILINE)
    if start is None:
        return text
    head, brace, body = text[start.start() :].partition("{\n")
    return text[: start.start()] + "static " + head.replace("\n", "\n" + " " * len("static ")) + brace + body
