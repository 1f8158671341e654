"""The two commands of the README, as a stranger types them: a fresh clone of the commit, in a path with a space."""

from __future__ import annotations

import re
import sysconfig

import pytest
from fresh_clone import call, fresh_clone, scons


@pytest.mark.slow
@pytest.mark.qemu
def test_both_commands(tmp_path_factory: pytest.TempPathFactory) -> None:
    clone, first = fresh_clone(tmp_path_factory)
    assert 0 < first.index("digits: ") < first.index("\n  CC ")  # before the first compilation
    epochs = re.findall(r"^ +(\d) +([\d.]+) +([\d.]+) %", first, re.MULTILINE)
    assert [e for e, _, _ in epochs] == ["1", "2", "3"]
    assert float(epochs[-1][2]) > 80
    assert re.search(r"^RAM +[\d,]+ of +131,072 bytes", first, re.MULTILINE)
    again = scons(clone, "board=stm32", "model=mnist")
    assert again.stdout == "scons: `firmware' is up to date.\n"

    listed = call([str(clone / ".venv/bin/autodiff-gen"), "boards"], clone.parent)
    assert "stm32" in listed.stdout, listed.stderr

    (clone.parent / "script.py").write_text("import autodiff_gen; print(autodiff_gen.__file__)")
    said = call([str(clone / ".venv/bin/python"), "script.py"], clone.parent)
    assert said.stdout == f"{clone}/autodiff_gen/__init__.py\n"

    # The test tools are here already; pip finds them through this file, and downloads nothing.
    site = next((clone / ".venv/lib").glob("python*/site-packages"))
    (site / "tests.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    tests = scons(
        clone, "test", "args=-q -k 'resources or board_file or lists' tests/scons/test_scons_words.py"
    )
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert re.search(r"^\d+ passed", tests.stdout.splitlines()[-1])
    failing = scons(clone, "test", "args=-q -n 0 -k no_such_test tests/scons")
    assert failing.returncode == 5  # pytest's own code for "no tests ran"
