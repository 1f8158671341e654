"""The trees of these tests: a checkout of the shell script, one that SCons builds, and one that is built."""

from __future__ import annotations

import filecmp
import shutil
from pathlib import Path

import pytest
from firmware_build import once
from scons_tree import Tree
from wrapper_checkout import Checkout, make_checkout


@pytest.fixture
def checkout(tmp_path: Path, root: Path) -> Checkout:
    return make_checkout(tmp_path, root, "checkout")


@pytest.fixture
def tree(tmp_path: Path, root: Path) -> Tree:
    return Tree.of(root, tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, root: Path) -> tuple[Path, Path]:
    """A folder with a tree that is built for the host, and its copy. What SCons has stored names the folder."""
    folder, copy = (tmp_path_factory.mktemp(name) for name in ("built", "built copy"))
    first = once(tmp_path_factory, "built tree", lambda f: Tree.of(root, f).build())
    shutil.copytree(first, folder, dirs_exist_ok=True)
    Tree(folder).build()
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    return folder, copy


@pytest.fixture
def built_tree(built: tuple[Path, Path]) -> Tree:
    """A tree after a build for the host."""
    folder, copy = built
    restore(filecmp.dircmp(copy, folder, ignore=[], hide=[]))
    return Tree(folder)


def restore(trees: filecmp.dircmp[str]) -> None:
    """Make the right folder equal to the left folder. Files of the same size and time are not copied."""
    for name in trees.right_only:
        path = Path(trees.right, name)
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in (*trees.left_only, *trees.diff_files, *trees.common_funny):
        path, target = Path(trees.left, name), Path(trees.right, name)
        shutil.copytree(path, target) if path.is_dir() else shutil.copy2(path, target)
    assert not trees.funny_files
    for below in trees.subdirs.values():
        restore(below)
