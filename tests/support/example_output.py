"""What the READMEs of the examples show."""

from __future__ import annotations

import re

from checkout import ROOT

MEMORY = re.compile(r"^(flash|RAM|stack) .*\n?", re.MULTILINE)


def shown(example: str) -> str:
    """The block of the README that begins with "<example> on <board>", without the board and the sizes of memory."""
    text = (ROOT / "examples" / example / "README.md").read_text()
    found = re.search(rf"^    {example} on \w+(: .*\n(?:(?:    .*)?\n)*)", text, re.MULTILINE)
    assert found is not None, f"{example}/README.md shows no output"
    return MEMORY.sub("", re.sub(r"^    ", "", found.group(1), flags=re.MULTILINE)).rstrip()
