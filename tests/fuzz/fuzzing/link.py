"""Frames that libFuzzer makes for the C of the board link, tests/c/link_fuzz.c."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from c_build import LINK, compile_c
from checkout import C

from .cases import Tally
from .process import FAILURE, RIGHT

FLAGS = ("-g", "-O1", "-fsanitize=fuzzer,address,undefined", "-fno-sanitize-recover=all")


def fuzz(seed: int, seconds: float, failures: Path) -> Tally:
    """Run it; an input at which it stops is kept."""
    found = Tally()
    failures.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        program = compile_c("clang", [*LINK, C / "link_fuzz.c"], Path(folder) / "link_fuzz", FLAGS)
        (Path(folder) / "corpus").mkdir()
        words = [f"-max_total_time={max(1, round(seconds))}", "-max_len=2048", f"-seed={seed}", "corpus"]
        words += ["-print_final_stats=1", f"-artifact_prefix={failures / 'link-'}"]
        done = subprocess.run([program, *words], cwd=folder, capture_output=True, text=True, check=False)
    runs = re.search(r"number_of_executed_units: (\d+)", done.stderr)
    found.outcomes[RIGHT] = int(runs[1]) if runs else 0
    if done.returncode or not runs:
        found.outcomes[FAILURE], found.places["link_fuzz stops"] = 1, 1
        print(f"link frames: {done.stderr[-2000:]}", flush=True)
    return found
