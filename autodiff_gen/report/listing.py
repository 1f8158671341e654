"""The generated C of each entry, line by line, with the step to which a line belongs."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from ..codegen.files import emit
from ..codegen.program import Program
from ..errors import ToolError, pip_install


@dataclass(frozen=True)
class Line:
    """A line of NAME.c: its number, the step that it belongs to ("" before the first and for headings), and its text as
    (class, text), class one of comment, keyword, call (a name of the library) and "".
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
        out[entry.name] = tuple(_lines("\n".join(lines[first : last + 1]), first + 1, steps))
    return out


def _lines(code: str, first: int, steps: Collection[str]) -> Iterator[Line]:
    step = ""
    for number, parts in enumerate(highlighted(code), first):
        line = Line(number, step, tuple(parts))
        opening, *words = line.text.split()[:2] or [""]
        if opening == "/*" and words and words[0] in steps:
            step = words[0]
        elif line.text.lstrip().startswith("/* ---- ") or not line.text.startswith("    "):
            step = ""
        yield replace(line, step=step)


def highlighted(code: str) -> list[list[tuple[str, str]]]:
    """The parts of each line of C, as (class, text). Raises ToolError without the package pygments."""
    try:
        from pygments.lexers.c_cpp import CLexer
        from pygments.token import Comment, Keyword, Name
    except ImportError:
        raise ToolError(
            f"the report needs pygments, which is not installed; run: {pip_install('pygments')}"
        ) from None
    lines: list[list[tuple[str, str]]] = [[]]
    for token, text in CLexer(stripnl=False, ensurenl=False).get_tokens(code):
        kind = "comment" if token in Comment else "keyword" if token in Keyword else ""
        if token in Name and text.startswith("ag_"):
            kind = "call"
        for k, part in enumerate(text.split("\n")):
            lines += [[]] if k else []
            line = lines[-1]
            if line and line[-1][0] == kind == "" and line[-1][1].strip():
                line[-1] = ("", line[-1][1] + part)
            elif part:
                line.append((kind, part))
    return lines
