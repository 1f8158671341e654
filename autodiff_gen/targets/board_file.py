"""Read the TOML file of a board merged over the files that it inherits. Stdlib only."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import BoardError, shortened
from . import installation
from .allowed import check_allowed, check_folder, check_inside
from .known_cores import check_known
from .schema import SCHEMA, check, near
from .toml_file import check_texts, read_toml, shown

MOST_FILES = 16  # that a board inherits, one from the other


def read_chain(path: Path, trusted: bool = False) -> tuple[dict[str, Any], list[Path]]:
    """The file merged over the files that it inherits: tables merge, lists are replaced. Files that are not trusted may
    choose compilers and options only. Raises BoardError."""
    chain: list[dict[str, Any]] = []
    files: list[Path] = []
    while True:
        files.append(path)
        data = _read(path, trusted)
        chain.append(data)
        if "inherits" not in data:
            break
        parent = _parent(path, data["inherits"])
        if parent in files:
            circle = " -> ".join(p.stem for p in (*files[files.index(parent) :], parent))
            raise BoardError(f"{path}: inherits goes in a circle: {shortened(circle)}")
        if len(files) > MOST_FILES:
            raise BoardError(
                f"{path}: inherits {shown(data['inherits'])}: a board has at most {MOST_FILES} files below"
            )
        path = parent
    merged: dict[str, Any] = {}
    for data in reversed(chain):
        merged = _merge(merged, data)
    return merged, files


def _read(path: Path, trusted: bool) -> dict[str, Any]:
    data = read_toml(path, BoardError)
    if "schema" not in data:
        raise BoardError(f"{path}: schema is missing: write schema = {SCHEMA}")
    check(data, path)
    check_texts(data, path, BoardError)
    check_known(data.get("target", {}), path)
    if not trusted:
        check_allowed(data, path)
    support = data.get("target", {}).get("support", "")
    if "/" in support:  # a user's folder, relative to the file that names it
        folder = (path.parent / support).resolve()
        if not trusted:
            check_inside(folder, path.parent, path, "target.support", BoardError)
        check_folder(folder, path, "target.support", BoardError, trusted)
        data["target"]["support"] = str(folder)
    kernels = data.get("kernels", {})
    if "backends" in kernels:
        kernels["backends"] = [_relative_to(path, name) for name in kernels["backends"]]
    for kernel, names in kernels.get("use", {}).items():
        kernels["use"][kernel] = [
            _relative_to(path, n) for n in ([names] if isinstance(names, str) else names)
        ]
    return data


def _relative_to(path: Path, name: str) -> str:
    """The path of a user's kernel folder is relative to the folder of the file that names it."""
    return str((path.parent / os.path.expanduser(name)).resolve()) if "/" in name else name


def _parent(path: Path, name: str) -> Path:
    """The file that `inherits` names, without .toml: in the same folder, otherwise in the tree's boards. The file
    itself only if there is no other: a user's stm32.toml may inherit "stm32"."""
    tree = installation.boards()
    candidates = [(folder / f"{name.removesuffix('.toml')}.toml").resolve() for folder in (path.parent, tree)]
    found = [c for c in candidates if c.is_file()]
    if found:
        return next((c for c in found if c != path), path)
    known = [p.relative_to(tree).with_suffix("").as_posix() for p in tree.rglob("*.toml")]
    raise BoardError(
        f"{path}: inherits {shown(name)}, which is neither in its folder nor in the tree{near(name, known)}"
    )


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result
