"""TrainFirmware with several models, a program in C++, and a folder whose name needs quotes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from exported_projects import CPP, two
from scons_object_cache import environment

SCONSTRUCT = """\
tool = {"tools": ["train"], "toolpath": ["%s/site_scons/site_tools"], "AUTODIFF_BOARD": "host"}
Environment(**tool).TrainFirmware("build/both", ["net.py", ARGUMENTS.get("second", "test.py")], ["main.cpp"])
"""


@pytest.mark.cc
@pytest.mark.slow
def test_two_models_in_one_program(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "it's (2) & more for $x"
    folder.mkdir()
    two(folder)
    (folder / "main.cpp").write_text(CPP)
    (folder / "SConstruct").write_text(SCONSTRUCT % root)

    def scons(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "SCons", "-Q", *words],
            cwd=folder, env=environment(), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
        )  # fmt: skip

    for target in ("link", "hil", "report", "bench"):
        done = scons(target)
        assert f"{target}: it serves one model, and this program has net and test; declare one" in done.stderr
    assert "two models in one program are called 'net' and 'net'" in scons("second=net.py").stderr
    assert not (folder / "build").exists()
    done = scons("run")
    assert "both trained" in done.stdout, done.stdout + done.stderr
    assert "is up to date" in scons().stdout  # the files of the models are found in such a folder
