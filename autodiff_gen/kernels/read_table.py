"""Read a kernel table, `kernels/<backend>/kernels.toml`. Stdlib only."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..errors import KernelError, quoted
from ..targets.allowed import check_folder, compiler_options, header_names, linker_options, reject
from ..targets.schema import near
from ..targets.toml_file import check_texts, read_toml, shown
from .contract import FUNCTIONS
from .rows import C_NAME, TILES, TableRows, check_keys, own_or_tiles, strings, suffix, text_of
from .table import Backend, MathFunction
from .third_party import KEYS, REQUIRED, External

TABLE = "kernels.toml"
_FILE, _ERROR = re.compile(r"\w[\w.+-]*", re.ASCII), re.compile(r"[\w.,+^ -]{1,40}", re.ASCII)
_LISTS = ("requires", "cflags", "shared", "ldflags", "headers", "packages")


def load_backend(folder: Path, root: Path, trusted: bool = False) -> Backend:
    """Read and check the table of a kernel folder; `root` is the tree's `kernels` folder. A table that is not `trusted`
    may only have options that targets/allowed.py lists. Raises KernelError."""
    path, name = folder / TABLE, folder.name
    if not C_NAME.fullmatch(suffix(folder)):
        raise KernelError(f"{path}: the folder's name is the backend's name: use letters, digits, _ and -")
    table = read_toml(path, KernelError)
    check_folder(folder, path, "its files", KernelError, trusted)
    check_keys(
        table,
        {
            "schema": int,
            "kernel": list,
            "serves": (str, dict),
            "tiles": (str, list),
            "function": list,
            "external": dict,
            **dict.fromkeys(_LISTS, list),
        },
        ("schema",) if table.keys() & {"function", "serves", "tiles"} else ("schema", "kernel"),
        str(path),
    )
    if table["schema"] != 1:
        raise KernelError(f"{path}: unknown schema {shown(table['schema'])}: this version reads schema 1")
    check_texts(table, path, KernelError)
    cflags = strings(table.get("cflags", []), f"{path}: cflags")
    if not any(flag.startswith("-ffp-contract") for flag in cflags):
        cflags = (*cflags, "-ffp-contract=fast")
    tables: tuple[Path, ...] = (path,)
    if table.get("tiles"):
        tables, cflags = (path, root / TILES), (*cflags, f"-DAG_BACKEND={suffix(folder)}")
    rows = TableRows(path, root, cflags).load(table)
    shared = tuple(
        own_or_tiles(folder / s, root) for s in strings(table.get("shared", []), f"{path}: shared")
    )
    for source in shared:
        if not source.is_file():
            raise KernelError(
                f"{path}: shared: {quoted(source.name)} is a file neither in {folder} nor in tiles/"
            )
    requires = strings(table.get("requires", []), f"{path}: requires")
    ldflags, headers, packages = (
        strings(table.get(key, []), f"{path}: {key}") for key in ("ldflags", "headers", "packages")
    )
    if (ldflags or headers) and not packages:
        raise KernelError(f"{path}: packages is missing: name the Debian packages that contain the library")
    if not trusted:
        reject(compiler_options(cflags), path, "cflags", KernelError)
        reject(linker_options(ldflags), path, "ldflags", KernelError)
        reject(header_names(headers), path, "headers", KernelError)
        foreign = "external" in table and folder.parent.resolve() != root.resolve()
        reject(table["external"] if foreign else None, path, "external", KernelError)
    functions = tuple(
        _load_function(row, f"{path}: function {number}", folder)
        for number, row in enumerate(table.get("function", []), 1)
    )
    backend = Backend(
        name, folder, requires, cflags, shared, rows, tables, functions, ldflags, headers, packages
    )
    return _with_external(backend, table, str(path)) if "external" in table else backend


def _with_external(backend: Backend, table: Mapping[str, Any], where: str) -> Backend:
    external = external_of(backend.name, table, where)
    home = external.folder()
    return replace(
        backend,
        include=tuple(home / name for name in external.include),
        external=external.files(home),
        external_cflags=(*external.cflags, "-ffp-contract=fast"),
    )


def external_of(backend: str, table: Mapping[str, Any], where: str) -> External:
    """The section [external] of a table. Raises KernelError."""
    section = table["external"]
    check_keys(section, KEYS, REQUIRED, f"{where}: external")
    for key in (k for k, kind in KEYS.items() if kind is list and k in section):
        strings(section[key], f"{where}: external.{key}")
    names = [*section["include"], *section["sources"], *section.get("optional", []), *section["version"][:1]]
    wrong = next((n for n in names if not Path(n).parts or Path(n).is_absolute()), None)
    if wrong is not None or len(section["version"]) != 2:
        raise KernelError(
            f"{where}: external: paths must be relative, and version a file and a pattern, got "
            f"{section['version'] if wrong is None else wrong!r}"
        )
    return External.of(backend, section)


def _load_function(row: Any, where: str, folder: Path) -> MathFunction:
    if not isinstance(row, dict):
        raise KernelError(f"{where}: must be a [[function]] table")
    keys = ("name", "symbol", "header", "error")
    check_keys(row, dict.fromkeys(keys, str), keys, where)
    for key, rule in (("symbol", C_NAME), ("header", _FILE), ("error", _ERROR)):
        if not rule.fullmatch(row[key]):
            raise KernelError(f"{where}: {key} must be of the form {rule.pattern}, got {shown(row[key])}")
    if row["name"] not in FUNCTIONS:
        raise KernelError(
            f"{where}: no function {quoted(row['name'])} in ag_math.h{near(row['name'], FUNCTIONS)}"
        )
    header = folder / row["header"]
    if not header.is_file():
        raise KernelError(f"{where}: header {quoted(row['header'])} is not a file in {folder}")
    if not re.search(rf"\b{re.escape(row['symbol'])}\b", text_of(header)):
        raise KernelError(
            f"{where}: header {quoted(row['header'])} does not name the symbol {quoted(row['symbol'])}"
        )
    return MathFunction(row["name"], row["symbol"], folder.name, row["header"], row["error"])
