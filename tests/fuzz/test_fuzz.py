"""Mutated files of each format are read, or rejected in one line that names the file; `./scons fuzz` reads more."""

from __future__ import annotations

import subprocess
import sys

import pytest
from fuzzing.formats import FORMATS

CASES = 60  # of a format, times its weight


@pytest.mark.torch
@pytest.mark.parametrize("name", FORMATS)
def test_mutated_files(name, root, tmp_path):
    count = CASES * FORMATS[name].weight
    words = [f"formats={name}", f"cases={count}", "seed=1", "jobs=1", f"failures={tmp_path}"]
    run = [sys.executable, root / "tests" / "fuzz" / "run.py", *words]
    done = subprocess.run(run, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-3000:]
    print(done.stdout)
