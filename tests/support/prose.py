"""The prose of the repository: Markdown without code, comments, docstrings and messages, as pairs of line and text."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

COMMENT = {
    **dict.fromkeys((".c", ".h", ".j2", ".S", ".ld"), re.compile(r"/\*.*?\*/|//[^\n]*|\{#.*?#\}", re.DOTALL)),
    **dict.fromkeys((".toml", ".ini", ".sh", ".in", ""), re.compile(r"(?:^|(?<=\s))#[^\n]*", re.MULTILINE)),
}
CODE = re.compile(
    r"^(?P<fence>```|~~~).*?^(?P=fence)$|^(?: {4}|\t)[^\n]*$|`[^`\n]+`|\]\([^)\n]*\)",
    re.DOTALL | re.MULTILINE,
)


def prose(path: Path, literals: bool = True) -> Iterator[tuple[int, str]]:
    """Line numbers and texts, in Python also of string literals that are no docstrings, if `literals`."""
    if path.suffix not in (".py", ".md", *COMMENT):
        return
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".py" or path.name == "SConstruct":
        yield from _python(text, literals)
    elif path.suffix == ".md":
        yield from enumerate(CODE.sub(_blank, text).splitlines(), 1)
    elif path.suffix in COMMENT:
        for match in COMMENT[path.suffix].finditer(text):
            first = text.count("\n", 0, match.start()) + 1
            yield from enumerate(match[0].splitlines(), first)


def _blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match[0])


def _python(text: str, literals: bool) -> Iterator[tuple[int, str]]:
    """Comments, docstrings, and literals with more than one word; names in backticks are left out."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], re.sub(r"`[^`]+`", "", token.string)
    nodes = list(ast.walk(ast.parse(text)))
    if not literals:
        nodes = [node.value for node in nodes if isinstance(node, ast.Expr)]
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            for line, part in enumerate(node.value.splitlines()):
                yield node.lineno + line, re.sub(r"`[^`]+`", "", part)
