"""`./scons diff-generated` prints nothing for the same compiler, and a changed comment wherever it is generated."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PARTS = (
    "SConstruct",
    "autodiff_gen",
    "boards/arch",
    "boards/host.toml",
    "boards/support",
    "examples/scalar",
    "examples/xor",
    "kernels",
    "runtime",
    "site_scons",
    "tests/diff_generated.py",
)
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(("GIT_", "AUTODIFF_", "PYTHONPATH"))}


def git(folder: Path, *words: str) -> str:
    identity = ["-c", "user.name=T", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false"]
    command = ["git", *identity, *words]
    return subprocess.run(
        command, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True, text=True
    ).stdout


def diff_generated(folder: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr."""
    command = [sys.executable, "-P", "-m", "SCons", "-Q", "diff-generated", *words]
    done = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture(scope="module")
def checkout(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with one board and two models."""
    folder = tmp_path_factory.mktemp("a checkout")
    for part in PARTS:
        target = folder / part
        target.parent.mkdir(parents=True, exist_ok=True)
        if (root / part).is_dir():
            shutil.copytree(root / part, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy2(root / part, target)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "first")
    return folder


def test_the_same_compiler_prints_nothing(checkout: Path) -> None:
    code, printed, said = diff_generated(checkout)
    assert (code, printed) == (0, ""), said
    assert said.splitlines()[-1] == "2 builds: no difference"
    assert git(checkout, "worktree", "list").count("\n") == 1


def test_a_changed_comment_is_printed_for_every_model(checkout: Path) -> None:
    template = checkout / "autodiff_gen" / "codegen" / "templates" / "source.c.j2"
    text = template.read_text()
    template.write_text(text + "/* the end */\n")
    try:
        code, printed, said = diff_generated(checkout, "base=main")
    finally:
        template.write_text(text)
    assert code == 1 and said.splitlines()[-1] == "2 builds: 2 files differ"
    for name in ("scalar", "xor"):
        assert f"--- base/host/{name}/{name}.c\n+++ head/host/{name}/{name}.c\n" in printed
    changed = [line for line in printed.splitlines() if line[:1] in "+-" and line[:3] not in ("+++", "---")]
    assert [line for line in changed if line != "+"] == 2 * ["+/* the end */"]


def test_an_unknown_revision_is_told(checkout: Path) -> None:
    code, printed, said = diff_generated(checkout, "base=mian")
    assert (code, printed) == (2, "") and "mian" in said
