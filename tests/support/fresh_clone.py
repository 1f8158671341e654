"""A fresh clone of the commit in a path with a space, in which the first command of the README has run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from checkout import ROOT
from firmware_build import once

FIRST = ("board=stm32", "model=mnist", "run")


def fresh_clone(factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The clone, made once per test session, and what its first command printed."""

    def make(folder: Path) -> None:
        config = folder / "gitconfig"  # a checkout that another user owns may be cloned too
        config.write_text("[safe]\n\tdirectory = *\n")
        env = {**os.environ, "GIT_CONFIG_GLOBAL": str(config)}
        target = folder / "autodiff gen"
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(target)], env=env, check=True)

    def run_first(folder: Path) -> None:
        done = scons(clone, *FIRST)
        assert done.returncode == 0, done.stdout + done.stderr
        (folder / "said").write_text(done.stdout)

    clone = once(factory, "a fresh clone", make) / "autodiff gen"
    return clone, (once(factory, "first command", run_first) / "said").read_text()


def scons(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run ./scons of the clone from another folder."""
    return call([str(clone / "scons"), *words], clone.parent)


def call(command: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in a folder as a stranger does, with nothing of the tests' own environment for Python."""
    hidden = ("AUTODIFF_PYTHON", "PYTEST_ADDOPTS", "PYTHONPATH")
    env = {k: v for k, v in os.environ.items() if k not in hidden and not k.startswith("PYTEST_XDIST")}
    return subprocess.run(
        command, cwd=folder, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=800
    )
