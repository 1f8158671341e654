"""The site of the documentation, built once per test session."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from checkout import ROOT
from firmware_build import once


def site(factory: pytest.TempPathFactory) -> Path:
    """The folder of the built site, whichever worker builds it. A warning of MkDocs is an error."""

    def build(folder: Path) -> None:
        words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
        env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
        done = subprocess.run(words, cwd=ROOT, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    return Path(once(factory, "site", build))
