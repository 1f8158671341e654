"""The additions that CONTRIBUTING.md shows, applied to a copy of the project."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import scons_object_cache
from checkout import NOT_COPIED, ROOT

PARTS = ("autodiff_gen", "bench", "boards", "examples", "kernels", "runtime", "site_scons", "tests")
FILES = ("SConstruct", "pyproject.toml")
BLOCK = re.compile(
    r"^`([^`\n]+)`(?:, (at the end)|, after `([^\n]+)`)?:\n\n```\w+\n(.*?)^```$", re.DOTALL | re.MULTILINE
)


@dataclass(frozen=True)
class Edit:
    """Text for a file: a new one, or added to the end, or after a line."""

    path: str
    text: str
    at_the_end: bool = False
    after: str = ""

    @property
    def is_test(self) -> bool:
        return self.path.startswith(("tests/", "kernels/compare/"))

    def apply(self, root: Path) -> None:
        file = root / self.path
        if not self.at_the_end and not self.after:
            assert not file.exists(), f"{self.path} exists"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.text)
        elif self.at_the_end:
            gap = "\n\n" if file.suffix == ".py" else ""
            file.write_text(file.read_text() + gap + self.text)
        else:
            lines = file.read_text().splitlines(keepends=True)
            (number,) = (i for i, line in enumerate(lines) if line.strip() == self.after)
            file.write_text("".join([*lines[: number + 1], self.text, *lines[number + 1 :]]))


def sections() -> list[str]:
    """What CONTRIBUTING.md shows how to add."""
    return re.findall(r"^### Add (.*)$", (ROOT / "CONTRIBUTING.md").read_text(), re.MULTILINE)


def edits(section: str) -> list[Edit]:
    """The blocks of the section "### Add <section>" of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text().split(f"\n### Add {section}\n")[1]
    text = re.split(r"^##+ ", text, maxsplit=1, flags=re.MULTILINE)[0]
    return [Edit(path, code, bool(end), after) for path, end, after, code in BLOCK.findall(text)]


@dataclass(frozen=True)
class Copy:
    """A copy of the project; commands in it import its own package."""

    root: Path

    @classmethod
    def made(cls, folder: Path) -> Copy:
        for part in PARTS:
            shutil.copytree(ROOT / part, folder / part, ignore=NOT_COPIED)
        for name in FILES:
            shutil.copy2(ROOT / name, folder / name)
        return cls(folder)

    def python(self, *words: str, timeout: int = 600) -> str:
        """The output of a Python command; it must succeed."""
        env = {**scons_object_cache.environment(), "PYTHONPATH": str(self.root)}
        for name in ("PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER"):
            env.pop(name, None)
        done = subprocess.run(
            [sys.executable, *words],
            cwd=self.root,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=timeout,
        )
        assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def tests(self, chosen: Collection[tuple[str, str]]) -> list[str]:
        """Run the tests whose names have words that -k joins, in files; names of those that passed, with the file. A
        test that fails is an error."""
        words = " or ".join(sorted({f"({words})" for words, _ in chosen}))
        files = sorted({file for _, file in chosen})
        quiet = ("-p", "no:cacheprovider", "-p", "no:xdist", "-rp", "-q", "--no-header")
        out = self.python("-m", "pytest", *quiet, "-k", words, *files)
        return re.findall(r"^PASSED (\S+)", out, re.MULTILINE)

    def use(self, addition: str) -> str:
        """Run tests/support/use_of_extensions.py in the copy."""
        return self.python("tests/support/use_of_extensions.py", addition, str(self.root))
