"""The environment of a reader of docs/learn: the commands of an installed checkout, and in one page the checkout."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from checkout import NOT_COPIED, ROOT
from scons_object_cache import environment as with_object_cache

PARTS = ("SConstruct", "autodiff_gen", "boards", "examples/xor", "kernels", "runtime", "site_scons")
PROGRAMS = {
    "autodiff-gen": '-P -m autodiff_gen "$@"',
    "python": '"$@"',
    "scons": '-m SCons "$@"',
}


def environment(folder: Path) -> dict[str, str]:
    """The environment in which `folder` has the commands; objects that other tests compiled are not compiled again."""
    folder.mkdir(parents=True)
    for name, words in PROGRAMS.items():
        path = folder / name
        path.write_text(f"#!/bin/sh\nexec '{sys.executable}' {words}\n")
        path.chmod(0o755)
    env = with_object_cache()
    env["SCONSFLAGS"] = env.get("SCONSFLAGS", "")
    return {**env, "PATH": f"{folder}:{env['PATH']}", "PYTHONPATH": str(ROOT)}


def checkout_copy(folder: Path) -> None:
    """A copy of the checkout in which builds may write, set up already."""
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=NOT_COPIED)
        else:
            folder.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / part, folder / part)
    command = folder / "scons"
    command.write_text(f"#!/bin/sh\nexec env -u PYTHONPATH '{sys.executable}' -P -m SCons -Q \"$@\"\n")
    command.chmod(0o755)
