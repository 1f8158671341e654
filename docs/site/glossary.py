"""The glossary: an anchor for each of its terms, and links to it from the first use of a term on other pages."""

from __future__ import annotations

import re

PAGE = "glossary.md"
ROW = re.compile(r"^\| (?!term \|)([^|]+?) \|", re.MULTILINE)
# Not inside code, a link, a picture, or HTML; the passes of training are no passes of the compiler.
APART = re.compile(r"(`[^`]*`|!?\[[^\]]*\]\([^)]*\)|<[^>]*>|(?:forward|backward) pass)")


def anchor(term: str) -> str:
    """The anchor of a term: `term-live-set-bound`."""
    return "term-" + re.sub(r"\W+", "-", term.lower()).strip("-")


def terms(glossary: str) -> dict[str, str]:
    """Each term with the anchor of its row, long ones first; a row `op, op record` has two, a term with two meanings
    none."""
    rows = [row for row in ROW.findall(glossary) if not row.startswith("`")]
    found = [(word, anchor(row)) for row in rows for word in re.sub(r" \(.*?\)", "", row).split(", ")]
    words = [word for word, _ in found]
    return dict(sorted((f for f in found if words.count(f[0]) == 1), key=lambda f: -len(f[0])))


def with_anchors(glossary: str) -> str:
    """The glossary, each row with its anchor."""
    return ROW.sub(lambda row: f'| <span id="{anchor(row[1])}"></span>{row[1]} |', glossary)


def linked(text: str, left: dict[str, str], glossary: str) -> str:
    """Prose in which the first use of each term, also in the plural, is a link; it is taken from `left`. `glossary`:
    the address of its page."""
    lines = text.split("\n")
    for k, line in enumerate(lines):
        if line[:1] in ("#", "|", "<", "!") or line.startswith(("    ", "```")):
            continue
        parts = APART.split(line)
        for i in range(0, len(parts), 2):
            parts[i] = _linked(parts[i], left, glossary)
        lines[k] = "".join(parts)
    return "\n".join(lines)


def _linked(prose: str, left: dict[str, str], glossary: str) -> str:
    """A piece of prose; the terms that it uses are taken from `left`."""
    for term in list(left):
        found = re.search(rf"(?<![\w-]){re.escape(term)}s?(?![\w-])", prose)
        if found:
            link = f"[{found[0]}]({glossary}#{left.pop(term)}){{ .term }}"
            before, after = prose[: found.start()], prose[found.end() :]
            return _linked(before, left, glossary) + link + _linked(after, left, glossary)
    return prose
