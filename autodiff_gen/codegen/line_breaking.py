"""Long lines of C, cut where the penalties are least."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

WIDTH = 110  # columns of a line of C

# Penalties of a cut after an operator; the penalty of each parenthesis around it is added.
_CUT = {",": 0, ";": 0, "=": 1, "+=": 1, "-=": 1, "||": 2, "&&": 2, "?": 2, ":": 2}
_CUT |= {"==": 2, "!=": 2, "<": 2, "<=": 2, ">": 2, ">=": 2, "+": 3, "-": 3, "*": 20, "/": 20, ".": 20}
_NESTED = 18
_BETWEEN_WORDS = 24
_IN_SUBSCRIPT = 100
_LINE = 12  # the penalty of each line: less than a cut in parentheses or in a product


def folded(text: str, width: int = WIDTH - 4, indent: str = " " * 8) -> list[str]:
    """A text cut at its blanks where the penalties are least; \\0 is a blank at which it is not cut."""
    if 0 < len(text) <= width:
        return [text.replace("\0", " ")]
    words = text.split()
    margin = " " * (len(text) - len(text.lstrip()))
    penalties = _penalties(words)
    best: list[tuple[int, int]] = [
        (0, 0)
    ]  # of the last words: their penalty, and minus the number of words on the first line
    for k in reversed(range(len(words))):
        length = len(indent if k else margin) - 1
        found: list[tuple[int, int]] = []
        for count, word in enumerate(words[k:], 1):
            length += 1 + len(word)
            if length > width and found:
                break
            penalty = penalties[k + count - 1]
            if penalty is not None:
                found.append((_LINE + penalty + best[len(words) - k - count][0], -count))
        best.append(min(found))
    out: list[str] = []
    while words:
        count = -best[len(words)][1]
        out.append((indent if out else margin) + " ".join(words[:count]))
        words = words[count:]
    return [line.replace("\0", " ") for line in out]


def _penalties(words: Sequence[str]) -> list[int | None]:
    """The penalty of a cut after each word; None where no cut is allowed because an operator or a brace follows."""
    out: list[int | None] = []
    nested = subscripts = 0
    for word, following in itertools.pairwise([*words, ""]):
        nested += sum(map(word.count, "({")) - sum(map(word.count, ")}"))
        subscripts += word.count("[") - word.count("]")
        after = _CUT.get(word[-1] if word[-1] in ",;" else word)
        if not following:
            out.append(0)
        elif following in _CUT or following == "{":
            out.append(None)
        elif subscripts > 0:
            out.append(_IN_SUBSCRIPT)
        else:
            out.append(_NESTED * max(nested, 0) + (_BETWEEN_WORDS if after is None else after))
    return out
