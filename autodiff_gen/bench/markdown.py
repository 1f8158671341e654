"""Generated sections of a Markdown document, between `<!-- NAME -->` and `<!-- /NAME -->`. Stdlib only."""

from __future__ import annotations

from pathlib import Path

from ..errors import ToolError


def replace_section(path: Path, name: str, text: str) -> None:
    """Replace the text of section `name`, delimited by its two comments. Raises ToolError where they are missing."""
    head, tail = around_section(path, name)
    path.write_text(f"{head}\n{text.strip()}\n\n{tail}", encoding="utf-8")


def around_section(path: Path, name: str) -> tuple[str, str]:
    """The text before and after a section, with its comments. Raises ToolError where they are missing."""
    try:
        document = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ToolError(f"{path}: cannot be read: {error.strerror}") from None
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->\n"
    head, first, rest = document.partition(begin)
    _, last, tail = rest.partition(end)
    if not first or not last:
        raise ToolError(
            f"{path}: has no section between `{begin.strip()}` and `{end.strip()}`; put both lines in"
        )
    return head + begin, end + tail


def markdown_table(head: tuple[str, ...], rows: list[tuple[str, ...]], right: tuple[int, ...]) -> str:
    """A Markdown table; the columns in `right` are right-aligned."""
    rule = ["---:" if k in right else "---" for k in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, tuple(rule), *rows))
