"""The two commands of the README, as a stranger types them: a fresh clone of the commit, in a path with a space."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path

import pytest


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Path:
    folder = tmp_path_factory.mktemp("a fresh clone")
    config = folder / "gitconfig"  # a checkout that another user owns may be cloned too
    config.write_text("[safe]\n\tdirectory = *\n")
    env = {**os.environ, "GIT_CONFIG_GLOBAL": str(config)}
    target = folder / "autodiff gen"
    subprocess.run(["git", "clone", "--quiet", str(root), str(target)], env=env, check=True)
    return target


def scons(clone: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k not in ("AUTODIFF_PYTHON", "PYTEST_ADDOPTS")}
    env = {k: v for k, v in env.items() if not k.startswith("PYTEST_XDIST")}
    return subprocess.run(
        [str(clone / "scons"), *words],
        cwd=clone.parent,
        env=env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=800,
    )


@pytest.mark.slow
@pytest.mark.qemu
def test_both_commands(clone: Path) -> None:
    first = scons(clone, "board=stm32", "model=mnist", "run")
    assert first.returncode == 0, first.stdout + first.stderr
    assert 0 < first.stdout.index("digits: ") < first.stdout.index("\n  CC ")  # before what is compiled
    epochs = re.findall(r"^ +(\d) +([\d.]+) +([\d.]+) %", first.stdout, re.MULTILINE)
    assert [e for e, _, _ in epochs] == ["1", "2", "3"]
    assert float(epochs[-1][2]) > 80
    assert re.search(r"^RAM +[\d,]+ of +131,072 bytes", first.stdout, re.MULTILINE)
    again = scons(clone, "board=stm32", "model=mnist")
    assert again.stdout == "scons: `firmware' is up to date.\n"

    command = [str(clone / ".venv/bin/autodiff-gen"), "boards"]
    listed = subprocess.run(command, cwd=clone.parent, capture_output=True, text=True, timeout=60, check=True)
    assert "stm32" in listed.stdout

    (clone.parent / "script.py").write_text("import autodiff_gen; print(autodiff_gen.__file__)")
    script = [str(clone / ".venv/bin/python"), "script.py"]
    said = subprocess.run(script, cwd=clone.parent, capture_output=True, text=True, timeout=60, check=True)
    assert said.stdout == f"{clone}/autodiff_gen/__init__.py\n"

    # The test tools are here already; pip finds them through this file, and downloads nothing.
    site = next((clone / ".venv/lib").glob("python*/site-packages"))
    (site / "tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    tests = scons(clone, "test", "args=-q -k 'resources or board_file or lists' tests/scons/test_scons.py")
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert re.search(r"^\d+ passed", tests.stdout.splitlines()[-1])
    failing = scons(clone, "test", "args=-q -n 0 -k no_such_test")  # all are collected, by one process
    assert failing.returncode == 5  # pytest's own code for "no tests ran"
