"""The generated C of each entry, line by line, with the step to which a line belongs."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from ..codegen.files import emit
from ..codegen.program import Program

_STEP = re.compile(r"\s*/\* (\d+(?:\.\d+)*) ")
_TOKEN = re.compile(
    r"(?P<comment>/\*.*?(?:\*/|$))|(?P<keyword>\b(?:const|else|float|for|if|int|return|static|switch|case|break|do|while"
    r"|default|u?int(?:8|16|32)_t)\b)|(?P<call>\bag_\w+(?=\())"
)


@dataclass(frozen=True)
class Line:
    """A line of NAME.c: its number, the step that it belongs to ("" before the first and for headings), and its text as
    (class, text), class one of comment, keyword, call and "".
    """

    number: int
    step: str
    parts: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        return "".join(text for _, text in self.parts)


def listings(program: Program) -> dict[str, tuple[Line, ...]]:
    """The lines of the function that computes each entry, by the entry's name."""
    lines = emit(program)[f"{program.name}.c"].splitlines()
    out = {}
    for entry in program.entries:
        in_parts = program.split and entry.name == "train_step"
        name = f"{program.name}_train_part" if in_parts else entry.c_name
        steps = {number for number, _ in entry.plan.all_steps()}
        first = next(k for k, line in enumerate(lines) if line.startswith(f"int {name}("))
        last = lines.index("}", first)
        out[entry.name] = tuple(_lines(lines[first : last + 1], first + 1, steps))
    return out


def _lines(texts: Collection[str], first: int, steps: Collection[str]) -> Iterator[Line]:
    step, open_comment = "", False
    for number, text in enumerate(texts, first):
        found = _STEP.match(text)
        if found and found[1] in steps:
            step = found[1]
        elif text.lstrip().startswith("/* ---- ") or not text.startswith("    "):
            step = ""
        parts, open_comment = _parts(text, open_comment)
        yield Line(number, step, tuple(parts))


def _parts(text: str, open_comment: bool) -> tuple[list[tuple[str, str]], bool]:
    """The text in parts, and whether a comment continues on the next line."""
    parts, at = [], 0
    if open_comment:
        end = text.find("*/")
        if end < 0:
            return [("comment", text)], True
        parts, at = [("comment", text[: end + 2])], end + 2
    for m in _TOKEN.finditer(text, at):
        parts += [("", text[at : m.start()])] if m.start() > at else []
        parts.append((m.lastgroup or "", m[0]))
        at = m.end()
    parts += [("", text[at:])] if at < len(text) else []
    last = parts[-1] if parts else ("", "")
    return parts, last[0] == "comment" and not last[1].endswith("*/")
