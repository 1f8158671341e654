"""What holds for every file: formatted, typed, no path of anybody's machine, no test that skips."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# Folders of a person or a build machine; written so that this file does not match itself.
MACHINE_PATH = re.compile(r"(?<![\w./-])/(?:work|root|home|Users|farm)/\w")
SKIPS = re.compile(r"pytest\.(?:skip|importorskip|xfail|mark\.(?:skip|skipif|xfail))\b")
ADDRESS = re.compile(r"https?://|--(?:extra-)?index-url|--find-links")


@pytest.fixture(scope="session")
def files(root: Path) -> list[Path]:
    """All files of the repository, and new ones that git does not ignore."""
    words = ["git", "-c", f"safe.directory={root}", "ls-files", "-z", "-c", "-o", "--exclude-standard"]
    done = subprocess.run(words, cwd=root, check=True, capture_output=True, text=True)
    return [root / name for name in done.stdout.split("\0") if name and (root / name).is_file()]


def check(root: Path, *words: object) -> None:
    done = subprocess.run([str(w) for w in words], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"


def module(name: str) -> list[str]:
    return [sys.executable, "-m", name]


def test_ruff_check(root: Path) -> None:
    check(root, *module("ruff"), "check", "--no-cache", ".")


def test_ruff_format(root: Path) -> None:
    check(root, *module("ruff"), "format", "--no-cache", "--check", ".")


def test_mypy_strict(root: Path, tmp_path: Path) -> None:
    """The compiler, and the programs of the documents, which read its types as a user's do."""
    documents = [root / "README.md", *sorted(root.glob("docs/*.md")), *sorted(root.glob("docs/learn/*.md"))]
    for document in documents:
        for k, text in enumerate(re.findall(r"^```python\n(.*?)^```$", document.read_text(), re.M | re.S)):
            if "import autodiff_gen as ag" in text:
                (tmp_path / f"{document.stem}_{k}.py").write_text(text)
    programs = sorted(tmp_path.glob("*.py"))
    assert len(programs) >= 5
    check(root, *module("mypy"), "autodiff_gen", *programs)


def test_clang_format(root: Path, files: list[Path]) -> None:
    # Generated files are not formatted: their layout is part of the promise.
    sources = [f for f in files if f.suffix in (".c", ".h") and "golden" not in f.parts]
    assert len(sources) > 10
    program = Path(sys.executable).with_name("clang-format")
    check(root, program, "--dry-run", "-Werror", *sources)


def offenders(root: Path, files: list[Path], pattern: re.Pattern[str]) -> list[str]:
    found = []
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError:
            continue
        found += [f"{file.relative_to(root)}:{n}: {x}" for n, x in enumerate(lines, 1) if pattern.search(x)]
    return found


def test_no_machine_paths(root: Path, files: list[Path]) -> None:
    assert offenders(root, files, MACHINE_PATH) == []


def test_no_test_skips(root: Path, files: list[Path]) -> None:
    tests = [f for f in files if "tests" in f.relative_to(root).parts and f.name != Path(__file__).name]
    assert offenders(root, tests, SKIPS) == []


def test_requirements_are_pinned_and_name_no_index(root: Path) -> None:
    for name in ("runtime", "test", "docs"):
        text = (root / "requirements" / f"{name}.txt").read_text()
        pins = re.findall(r"^([\w.-]+)==([\w.]+) \\$", text, re.MULTILINE)
        assert len(pins) >= 5
        assert len(pins) == len(re.findall(r"^[^\s#]", text, re.MULTILINE)), (
            f"{name}.txt: a line that is no pin"
        )
        wanted = (root / "requirements" / f"{name}.in").read_text()
        assert set(re.findall(r"^[\w-]+", wanted, re.MULTILINE)) - {"-c"} <= {p for p, _ in pins}
    files = sorted((root / "requirements").iterdir())
    assert offenders(root, files, ADDRESS) == []


def test_executables(root: Path) -> None:
    assert [f for f in ("scons", ".ci/run") if not os.access(root / f, os.X_OK)] == []
