"""Read a kernel table, `kernels/<backend>/kernels.toml`. Stdlib only."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..errors import KernelError
from ..targets.known_cores import features
from ..targets.schema import near
from .contract import CONTRACT, DECLARED, FUNCTIONS
from .predicates import Condition, Number
from .third_party import KEYS, External

TABLE = "kernels.toml"
_LISTS = ("requires", "cflags", "shared", "ldflags", "headers", "packages")
_C_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Kernel:
    """A row of a kernel table: `symbol` implements the contract's `name` if every condition in `when` holds."""

    name: str
    symbol: str
    backend: str
    source: Path
    when: tuple[Condition, ...]
    cflags: tuple[str, ...]
    declared: bool  # in ag_kernels.h; otherwise the generated C has the `declaration`

    def matches(self, facts: Mapping[str, Number]) -> bool:
        """True if all conditions hold; a condition on an attribute that is unknown at generation time does not."""
        return all(condition(facts) for condition in self.when)

    @property
    def needs(self) -> frozenset[str]:
        """Core features in its conditions."""
        return frozenset(c.feature for c in self.when if c.feature is not None)

    @property
    def declaration(self) -> str:
        """The C declaration of the symbol, by the contract's function type."""
        return f"{CONTRACT[self.name].type_name} {self.symbol};"


@dataclass(frozen=True)
class Function:
    """`symbol` of `header` replaces ag_math.h's `name` in generated loops; `error`: its largest relative error."""

    name: str
    symbol: str
    backend: str
    header: str
    error: str

    @property
    def shown(self) -> str:
        """One line for generated headers and reports."""
        return f"{self.name}: {self.symbol} of {self.backend}, relative error at most {self.error}"


@dataclass(frozen=True)
class Source:
    """A file to compile, with its backend's flags; `name`: the relative path of its object, without suffix."""

    backend: str
    path: Path
    cflags: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class Backend:
    """One kernel folder and its table. `requires`: core features of the board, such as "fpu"; `shared`: files that
    several of its kernels use. A library that they need is linked with `ldflags`, has `headers`, and is in Debian's
    `packages`."""

    name: str
    folder: Path
    requires: tuple[str, ...]
    cflags: tuple[str, ...]
    shared: tuple[Path, ...]
    kernels: tuple[Kernel, ...]
    functions: tuple[Function, ...] = ()
    ldflags: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()  # of third parties, and their sources
    external: tuple[Path, ...] = ()
    external_cflags: tuple[str, ...] = ()


def load_backend(folder: Path, root: Path) -> Backend:
    """Read and check the table of a kernel folder; `root` is the tree's `kernels` folder. Raises KernelError."""
    path, name = folder / TABLE, folder.name
    if not _C_NAME.fullmatch(name.replace("-", "_")):
        raise KernelError(f"{path}: the folder's name is the backend's name: use letters, digits, _ and -")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise KernelError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise KernelError(f"{path}: cannot be read: {error.strerror}") from None
    _keys(
        table,
        {
            "schema": int,
            "kernel": list,
            "serves": str,
            "function": list,
            "external": dict,
            **dict.fromkeys(_LISTS, list),
        },
        ("schema",) if "function" in table or "serves" in table else ("schema", "kernel"),
        str(path),
    )
    if table["schema"] != 1:
        raise KernelError(f"{path}: unknown schema {table['schema']}: this version reads schema 1")
    cflags = _strings(table.get("cflags", []), f"{path}: cflags")
    if not any(flag.startswith("-ffp-contract") for flag in cflags):
        cflags = (*cflags, "-ffp-contract=fast")
    declared = folder.parent.resolve() == root.resolve()
    kernels = _all_kernels(table["serves"], path, cflags) if "serves" in table else []
    for number, row in enumerate(table.get("kernel", []), 1):
        kernel = _load_row(row, f"{path}: kernel {number}", folder, cflags, declared)
        for other in kernels:
            if other.name == kernel.name and (not other.when or other.symbol == kernel.symbol):
                why = (
                    "it follows a row without conditions, which matches every call"
                    if not other.when
                    else f"{kernel.symbol} has a row already"
                )
                raise KernelError(f"{path}: kernel {number}: duplicate row for {kernel.name}: {why}")
        kernels.append(kernel)
    shared = tuple(folder / s for s in _strings(table.get("shared", []), f"{path}: shared"))
    for source in shared:
        if not source.is_file():
            raise KernelError(f"{path}: shared: {source.name!r} is not a file in {folder}")
    requires = _strings(table.get("requires", []), f"{path}: requires")
    ldflags, headers, packages = (
        _strings(table.get(key, []), f"{path}: {key}") for key in ("ldflags", "headers", "packages")
    )
    if (ldflags or headers) and not packages:
        raise KernelError(f"{path}: packages is missing: name the Debian packages that contain the library")
    functions = tuple(
        _load_function(row, f"{path}: function {number}", folder)
        for number, row in enumerate(table.get("function", []), 1)
    )
    rows = tuple(kernels)
    backend = Backend(name, folder, requires, cflags, shared, rows, functions, ldflags, headers, packages)
    return _with_external(backend, table, str(path)) if "external" in table else backend


def _with_external(backend: Backend, table: Mapping[str, Any], where: str) -> Backend:
    external = external_of(backend.name, table, where)
    home = external.folder()
    return replace(
        backend,
        include=tuple(home / name for name in external.include),
        external=tuple(home / name for name in external.sources),
        external_cflags=(*external.cflags, "-ffp-contract=fast"),
    )


def external_of(backend: str, table: Mapping[str, Any], where: str) -> External:
    """The section [external] of a table. Raises KernelError."""
    section = table["external"]
    _keys(section, KEYS, tuple(KEYS), f"{where}: external")
    for key in (k for k, kind in KEYS.items() if kind is list):
        _strings(section[key], f"{where}: external.{key}")
    return External.of(backend, section)


def _load_function(row: Any, where: str, folder: Path) -> Function:
    if not isinstance(row, dict):
        raise KernelError(f"{where}: must be a [[function]] table")
    keys = ("name", "symbol", "header", "error")
    _keys(row, dict.fromkeys(keys, str), keys, where)
    if row["name"] not in FUNCTIONS:
        raise KernelError(f"{where}: no function {row['name']!r} in ag_math.h{near(row['name'], FUNCTIONS)}")
    header = folder / row["header"]
    if not header.is_file():
        raise KernelError(f"{where}: header {row['header']!r} is not a file in {folder}")
    if not re.search(
        rf"\b{re.escape(row['symbol'])}\b", header.read_text(encoding="utf-8", errors="replace")
    ):
        raise KernelError(f"{where}: header {row['header']!r} does not name the symbol {row['symbol']!r}")
    return Function(row["name"], row["symbol"], folder.name, row["header"], row["error"])


def _all_kernels(which: str, path: Path, cflags: tuple[str, ...]) -> list[Kernel]:
    """`serves = "all"`: every kernel of the contract without conditions, each found by its symbol."""
    folder = path.parent
    if which != "all":
        raise KernelError(f'{path}: serves = {which!r}: write "all", or a [[kernel]] for each')
    texts = {source: source.read_text(encoding="utf-8") for source in sorted(folder.glob("*.c"))}
    kernels = []
    for name in CONTRACT:
        symbol = f"ag_{name}_{folder.name}"
        source = next((p for p, text in texts.items() if f"\nvoid {symbol}(" in text), None)
        if source is None:
            raise KernelError(f'{path}: serves = "all", but no file in {folder} defines void {symbol}(...)')
        kernels.append(Kernel(name, symbol, folder.name, source, (), cflags, symbol in DECLARED))
    return kernels


def _load_row(row: Any, where: str, folder: Path, cflags: tuple[str, ...], declared: bool) -> Kernel:
    if not isinstance(row, dict):
        raise KernelError(f"{where}: must be a [[kernel]] table")
    _keys(row, {"name": str, "symbol": str, "source": str, "when": list}, ("name", "symbol", "source"), where)
    name, symbol = row["name"], row["symbol"]
    if name not in CONTRACT:
        raise KernelError(f"{where}: no kernel {name!r} in the contract{near(name, CONTRACT)}")
    if not _C_NAME.fullmatch(symbol):
        raise KernelError(f"{where}: symbol {symbol!r} is not a C identifier")
    source = folder / row["source"]
    if not source.is_file():
        raise KernelError(f"{where}: source {row['source']!r} is not a file in {folder}")
    if not re.search(rf"\b{symbol}\b", source.read_text(encoding="utf-8", errors="replace")):
        raise KernelError(f"{where}: source {row['source']!r} does not name the symbol {symbol!r}")
    conditions = _strings(row.get("when", []), f"{where}: when")
    known = features() if any(text.strip().isidentifier() for text in conditions) else ()
    when = tuple(Condition.parse(text, CONTRACT[name].facts, f"{where}: when", known) for text in conditions)
    return Kernel(name, symbol, folder.name, source, when, cflags, declared and symbol in DECLARED)


def _keys(table: Mapping[str, Any], types: Mapping[str, type], required: Sequence[str], where: str) -> None:
    for key, value in table.items():
        if key not in types:
            raise KernelError(f"{where}: unknown key {key!r}{near(key, types)}")
        if not isinstance(value, types[key]) or isinstance(value, bool):
            names = {int: "an integer", str: "a string", list: "a list", dict: "a section"}
            raise KernelError(f"{where}: {key} must be {names[types[key]]}, got {value!r}")
    for key in required:
        if key not in table:
            raise KernelError(f"{where}: {key} is missing")


def _strings(values: list[Any], where: str) -> tuple[str, ...]:
    for value in values:
        if not isinstance(value, str):
            raise KernelError(f"{where}: must be a list of strings, got {value!r}")
    return tuple(values)
