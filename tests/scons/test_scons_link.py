"""`./scons ... link` and `hil`: the firmware of the link, and the checks of a board against the host."""

from __future__ import annotations

from pathlib import Path

import pytest
from scons_tree import Tree

pytestmark = pytest.mark.cc


def test_link_and_hil_on_the_host(tmp_path: Path, root: Path) -> None:
    tree = Tree.of(root, tmp_path)
    words = (f"model={tree.model}", "board=host")
    done = tree.scons(*words, "link")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tree.out() / "link.elf").is_file() and (tree.out() / "net_link.c").is_file()
    assert not (tree.out() / "firmware.elf").exists()
    again = tree.scons(*words, "link")
    assert "CC" not in again.stdout and "GEN" not in again.stdout, again.stdout
    checked = tree.scons(*words, "hil")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "net on host, exec:" in checked.stdout and "7 checks, 0 failed" in checked.stdout
    silent = tree.scons(*words, "hil", "port=/dev/no-such-port")
    assert silent.returncode != 0
    assert "port /dev/no-such-port: cannot be opened: No such file or directory" in silent.stderr
