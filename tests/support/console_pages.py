"""Pages that a reader follows command by command: their files are written, their commands run, their output compared.

A block with a title is a file. A block `console` has commands after `$ ` and what each prints; `...` stands for any
text, on a separate line for any lines. A command fails if its first line has `error:` or `WRONG:`, others must not.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
MARK = "== a command ends here: "


@dataclass(frozen=True)
class File:
    """A file that the reader writes."""

    name: str
    text: str


@dataclass(frozen=True)
class Command:
    """The reader's command, and the output that the page shows."""

    line: str
    shown: str

    @property
    def fails(self) -> bool:
        first, _, _ = self.shown.partition("\n")
        return "error: " in first or "WRONG: " in first


def steps(text: str) -> list[File | Command]:
    """The files and commands of a page, in order."""
    found: list[File | Command] = []
    for language, title, body in BLOCK.findall(text):
        if title:
            found.append(File(title, body))
        elif language == "console":
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                found.append(Command(line, shown))
    return found


def script(page: list[File | Command]) -> str:
    """One shell for the whole page, so that `cd` holds for what follows."""
    lines = []
    for step in page:
        if isinstance(step, Command):
            lines += [f"{{ {step.line}\n}} 2>&1 </dev/null", f'echo "{MARK}$?"']
        else:
            lines += [
                f"mkdir -p \"$(dirname '{step.name}')\"",
                f"cat >'{step.name}' <<'END OF FILE'\n{step.text}END OF FILE",
            ]
    return "\n".join(lines) + "\n"


def run(
    page: list[File | Command], folder: Path, environment: Mapping[str, str]
) -> list[tuple[Command, str, int]]:
    """Follow the page in a folder: each command, its output, and its exit code."""
    words = ["bash", "-c", script(page)]
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=600)
    outputs = re.split(rf"^{MARK}(\d+)\n", done.stdout, flags=re.MULTILINE)
    commands = [step for step in page if isinstance(step, Command)]
    assert len(outputs) == 2 * len(commands) + 1, done.stdout + done.stderr
    return [(c, outputs[2 * k], int(outputs[2 * k + 1])) for k, c in enumerate(commands)]


def matches(shown: str, printed: str) -> bool:
    """Whether a command printed the output on the page; a page without output allows any."""
    if not shown.strip():
        return True
    lines = [".*?" if line.strip() == "..." else _line(line) for line in shown.rstrip("\n").split("\n")]
    pattern = ""
    for line in lines:  # any lines, also none, where a line is `...`
        pattern += r"(?:[^\n]*\n)*?" if line == ".*?" else line + r" *\n"
    return re.fullmatch(pattern, printed.rstrip("\n") + "\n") is not None


def _line(line: str) -> str:
    return r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("..."))
