"""`autodiff-gen help-error`: the entry of docs/errors/*.md about a message, found by the text of the message.

An entry is a heading, a block of messages, in which `{}` is a part that varies, and their meaning, with an example and
the fix. A test holds that every message of the program has an entry.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from ..targets import installation
from .arguments import Command

_ENTRY = re.compile(
    r"^## (?P<title>[^\n]+)\n\n```message\n(?P<messages>.*?)^```\n(?P<text>.*?)(?=^## |\Z)",
    re.MULTILINE | re.DOTALL,
)
_NEAREST = 3  # entries that are listed when none matches
_LEAST = 16  # characters of a message by which its beginning is recognised


@dataclass(frozen=True)
class Message:
    """A message of an entry; `{}` is a part that varies."""

    text: str

    @cached_property
    def parts(self) -> list[str]:
        """The parts that do not vary, in order."""
        return [part for part in self.text.split("{}") if part]

    @property
    def length(self) -> int:
        """Characters that do not vary: of several messages that match a text, the one with most is meant."""
        return sum(map(len, self.parts))

    def matches(self, text: str) -> bool:
        """Whether the text has all parts, one after the other."""
        at = 0
        for part in self.parts:
            found = text.find(part, at)
            if found < 0:
                return False
            at = found + len(part)
        return True

    def matched_prefix(self, text: str) -> int:
        """How many characters of the first parts the text has, in order. The text may end inside the last of them."""
        at = count = 0
        for part in self.parts:
            found = text.find(part, at)
            if found < 0:
                cut = (k for k in range(min(len(part), len(text) - at), 0, -1) if text.endswith(part[:k]))
                return count + next(cut, 0)
            at = found + len(part)
            count += len(part)
        return count


@dataclass(frozen=True)
class ErrorEntry:
    """An entry of docs/errors. `page`: its file; `text`: Markdown."""

    page: Path
    title: str
    messages: tuple[Message, ...]
    text: str


def entries() -> list[ErrorEntry]:
    """All entries, page by page."""
    found = []
    for page in sorted(installation.error_pages().glob("*.md")):
        for match in _ENTRY.finditer(page.read_text(encoding="utf-8")):
            messages = tuple(Message(normalised(line)) for line in match["messages"].splitlines())
            found.append(ErrorEntry(page, match["title"], messages, match["text"].strip()))
    return found


def normalised(text: str) -> str:
    """The text on one line, with single spaces."""
    return " ".join(text.split())


def matching(text: str, among: Sequence[ErrorEntry]) -> list[tuple[Message, ErrorEntry]]:
    """The messages that the text contains, the longest first."""
    line = normalised(text)
    found = [(m, entry) for entry in among for m in entry.messages if m.matches(line)]
    return sorted(found, key=lambda item: -item[0].length)


def containing(text: str, among: Sequence[ErrorEntry]) -> list[ErrorEntry]:
    """The entries with a message that contains the text: the message has all words and pairs of words of the text,
    apart from suggestions, names and values, which no message has."""
    text = re.sub(r"did you mean [^?]*\?|'[^']*'", "", text)
    own = [[_words(m.text) for m in entry.messages] for entry in among]
    given = _words(text) & set().union(*(words for messages in own for words in messages))
    if not given:
        return []
    return [e for e, messages in zip(among, own, strict=True) if any(given <= words for words in messages)]


def starting_with(text: str, among: Sequence[ErrorEntry]) -> list[ErrorEntry]:
    """The entries with the message that most probably begins with the text."""
    line = normalised(text)
    counts = [max(m.matched_prefix(line) for m in entry.messages) for entry in among]
    most = max(counts, default=0)
    return [e for e, count in zip(among, counts, strict=True) if count == most >= _LEAST]


def nearest(text: str, among: Sequence[ErrorEntry]) -> list[ErrorEntry]:
    """The entries with a message that shares most words and pairs of words with the text, best first; a word that few
    entries have counts more. Entries without a word in common are left out."""
    own = [[_words(m.text) for m in entry.messages] for entry in among]
    count = Counter(word for messages in own for word in set().union(*messages))
    given = _words(text)
    scores = [max(sum(1 / count[word] for word in words & given) for words in messages) for messages in own]
    best = sorted(range(len(among)), key=lambda k: -scores[k])[:_NEAREST]
    return [among[k] for k in best if scores[k] > 0]


def _words(text: str) -> set[str]:
    """Words, and pairs of words in their order."""
    words = re.findall(r"[a-z_]{3,}", text.lower())
    return {*words, *map(" ".join, itertools.pairwise(words))}


def add_commands(command: Command) -> None:
    """Add `help-error`."""
    helper = command("help-error", "Explain an error message: its meaning, an example, and the fix.")
    helper.add_argument(
        "text", metavar="TEXT", nargs="*", help="the message, or a part of it (default: standard input)"
    )
    helper.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Print the entry of a message; exit code 1 if there is none."""
    if not args.text and sys.stdin.isatty():
        print("paste the message, then press Ctrl-D", file=sys.stderr)
    text = " ".join(args.text) or sys.stdin.read()
    known = entries()
    found = (
        [entry for _, entry in matching(text, known)[:1]]
        or containing(text, known)
        or starting_with(text, known)
    )
    if len(found) == 1:
        (entry,) = found
        print(f"{entry.title}\n\n{entry.text}\n\n({entry.page})")
        return 0
    if found:
        print("several entries have a message with this text; give more of it:")
        print(*(f"    {entry.title} ({entry.page.name})" for entry in found), sep="\n")
        return 1
    near = nearest(text, known)
    print("no entry for this message" + ("; the nearest are:" if near else "; docs/errors has all messages"))
    for entry in near:
        print(f"\n{entry.title} ({entry.page.name})", *(f"    {m.text}" for m in entry.messages), sep="\n")
    return 1
