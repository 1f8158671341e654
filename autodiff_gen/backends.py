"""Kernel tables (`kernels/<backend>/kernels.toml`) and the choice of a kernel per call, `ref` last. Stdlib only."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .board_schema import FEATURES
from .conditions import Condition, Number
from .errors import KernelError
from .external import KEYS, External
from .kernel_contract import CONTRACT, FUNCTIONS

if TYPE_CHECKING:
    from .board import Board

REF = "ref"
TABLE = "kernels.toml"
_LISTS = ("requires", "cflags", "shared", "ldflags", "headers", "packages")
_C_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True)
class Kernel:
    """A row of a kernel table: `symbol` serves the contract's `name` where every condition in `when` holds."""

    name: str
    symbol: str
    backend: str
    source: Path
    when: tuple[Condition, ...]
    cflags: tuple[str, ...]
    declared: bool  # ag_kernels.h declares the symbol; otherwise the generated C must (see `declaration`)

    def matches(self, facts: Mapping[str, Number]) -> bool:
        """True where all conditions hold; a fact that is not known at generation time holds for none."""
        return all(condition(facts) for condition in self.when)

    @property
    def needs(self) -> frozenset[str]:
        """Core features that its conditions name."""
        return frozenset(c.feature for c in self.when if c.feature is not None)

    @property
    def declaration(self) -> str:
        """C that declares the symbol by the contract's function type."""
        return f"{CONTRACT[self.name].type_name} {self.symbol};"


@dataclass(frozen=True)
class Function:
    """`symbol` of `header` takes the place of ag_math.h's `name` in generated loops; `error`: at most, relative."""

    name: str
    symbol: str
    backend: str
    header: str
    error: str

    @property
    def shown(self) -> str:
        """For headers and reports."""
        return f"{self.name}: {self.symbol} of {self.backend}, relative error at most {self.error}"


@dataclass(frozen=True)
class Source:
    """One file to compile, with its backend's flags; `name` is that of its object, relative, without ending."""

    backend: str
    path: Path
    cflags: tuple[str, ...]
    name: str


@dataclass(frozen=True)
class Backend:
    """One kernel folder and its table. `requires` names core features of the board, such as "fpu"; `shared` are
    the files that several of its kernels call. A library that they need is linked by `ldflags`, has `headers`, and
    comes with Debian's `packages`."""

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


@dataclass(frozen=True)
class Backends:
    """The backends of a build, `ref` last, which serves all; `asked` are the names of those that are asked for every
    kernel, in order, `use` those that are asked for some kernels instead, by kernel; `features` are the core's."""

    root: Path
    backends: tuple[Backend, ...]
    asked: tuple[str, ...]
    use: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        return self.asked

    @property
    def only_ref(self) -> bool:
        """True when no tuned backend is listed: then the generated C too is built without contraction."""
        return all(b.name == REF for b in self.backends)

    @property
    def ldflags(self) -> tuple[str, ...]:
        """What the linker is told of libraries, to stand after all objects."""
        return tuple(dict.fromkeys(flag for b in self.backends for flag in b.ldflags))

    def candidates(self, name: str) -> tuple[Kernel, ...]:
        """All rows for the contract's kernel `name`, in the order in which they are asked."""
        return tuple(k for b in self._order(name) for k in b.kernels if k.name == name)

    def select(self, name: str, facts: Mapping[str, Number]) -> Kernel:
        """The first row that matches. `facts`: the call's numbers by parameter name (m, n, k, lda, beta, ...), as
        far as they are known when the C is generated."""
        known = self._with_features(facts)
        for kernel in self.candidates(name):
            if kernel.matches(known):
                return kernel
        raise KernelError(
            f"no kernel serves {name} with {dict(facts)}: the ref table lacks an unconditional row"
        )

    def passed_over(self, name: str, facts: Mapping[str, Number]) -> tuple[str, ...]:
        """Why what is asked before the kernel that serves a call does not serve it, in the order of asking."""
        chosen, known = self.select(name, facts), self._with_features(facts)
        said = []
        if name in self.use:
            left = [n for n in self.asked if n not in (*self.use[name], REF)]
            said = [f"{n}, as the board's [kernels.use] asks {', '.join(self.use[name])}" for n in left]
        for backend in self._order(name):
            rows = [k for k in backend.kernels if k.name == name]
            if chosen in rows:
                rows = rows[: rows.index(chosen)]
            elif not rows:
                said.append(f"{backend.name}, which has no {name}")
            for row in rows:
                why = next(c.why_not(known) for c in row.when if not c(known))
                said.append(f"{row.symbol}, as {why}")
            if backend.name == chosen.backend:
                break
        return tuple(said)

    @property
    def functions(self) -> dict[str, Function]:
        """What stands for functions of ag_math.h, by name: of the first backend asked that has one."""
        found: dict[str, Function] = {}
        home = {b.name: b for b in self.backends}
        for name in self.asked:
            for function in home[name].functions:
                found.setdefault(function.name, function)
        return found

    def _order(self, name: str) -> list[Backend]:
        if name not in CONTRACT:
            raise KernelError(f"no kernel {name!r} in the contract{_near(name, CONTRACT)}")
        home = {b.name: b for b in self.backends}
        return [home[n] for n in dict.fromkeys((*self.use.get(name, self.asked), REF))]

    def _with_features(self, facts: Mapping[str, Number]) -> dict[str, Number]:
        return {**facts, **dict.fromkeys(self.features, 1)}

    def sources(self) -> tuple[Source, ...]:
        """Every file of every backend, each once, in table order: the linker takes what is called. Files all of whose
        kernels need a feature that the core lacks are left out."""
        found: dict[Path, Source] = {}
        for b in self.backends:
            kernels = [k for k in b.kernels if k.needs <= self.features]
            for path in (*(k.source for k in kernels), *(b.shared if kernels else ())):
                name = path.relative_to(b.folder).with_suffix("").as_posix()
                found.setdefault(path, Source(b.name, path, b.cflags, name))
            for path in b.external:
                found.setdefault(path, Source(b.name, path, b.external_cflags, f"external/{path.stem}"))
        return tuple(found.values())

    def include_dirs(self) -> tuple[Path, ...]:
        """Where ag_kernels.h, ag_math.h and the backends' own headers lie."""
        external = (path for b in self.backends for path in b.include)
        return tuple(dict.fromkeys((self.root, *(b.folder for b in reversed(self.backends)), *external)))


def available(root: Path | None = None) -> list[str]:
    """Names of the backends in the tree that need nothing from elsewhere, sorted."""
    tables = sorted(_root(root).glob(f"*/{TABLE}"))
    return [t.parent.name for t in tables if "\n[external]\n" not in t.read_text(encoding="utf-8")]


def external(name: str, root: Path | None = None) -> External:
    """What a backend of the tree takes from elsewhere. Raises KernelError."""
    root = _root(root)
    path = _find(name, root, Path()) / TABLE
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if "external" not in table:
        raise KernelError(f"backend {name!r} needs nothing from elsewhere: there is nothing to fetch")
    return external_of(name, table, str(path))


def load(
    names: Iterable[str],
    *,
    use: Mapping[str, Sequence[str]] | None = None,
    features: Collection[str] | None = None,
    root: Path | None = None,
    relative_to: Path | None = None,
) -> Backends:
    """Read the tables of `names`: backends in the tree, or paths of folders that hold a `kernels.toml`.

    `use`: by kernel, the backends to ask for it instead. `features` are the board's core features; None skips that
    check. `root` is the tree's `kernels` folder. Relative paths start at `relative_to`, by default the current folder.
    Raises KernelError.
    """
    root = _root(root)
    base = relative_to or Path()
    found: dict[str, Backend] = {}

    def listed(words: Iterable[str], what: str) -> tuple[str, ...]:
        chosen: list[str] = []
        for word in words:
            if chosen and chosen[-1] == REF:
                raise KernelError(
                    f"{what}backend {word!r} stands after 'ref', which serves every call: put 'ref' last"
                )
            backend = _load_backend(_find(word, root, base), root)
            if backend.name in chosen:
                raise KernelError(f"{what}backend {backend.name!r} is listed twice: name it once")
            _check_features(backend, features)
            if found.setdefault(backend.name, backend).folder != backend.folder:
                raise KernelError(f"{what}two folders are called {backend.name!r}: rename one")
            chosen.append(backend.name)
        return tuple(chosen)

    asked = listed(names, "")
    instead = {}
    for kernel, words in (use or {}).items():
        instead[kernel] = listed(words, f"[kernels.use] {kernel}: ")
        for name in instead[kernel]:
            if all(k.name != kernel for k in found[name].kernels):
                raise KernelError(f"[kernels.use] {kernel}: backend {name!r} has no {kernel}")
    ref = found.pop(REF, None) or _load_backend(_find(REF, root, Path()), root)
    result = Backends(
        root,
        (*found.values(), ref),
        asked if REF in asked else (*asked, REF),
        instead,
        frozenset(features or ()),
    )
    _check_symbols(result)
    return result


def for_board(board: Board, kernels: Iterable[str] | None = None) -> Backends:
    """The backends of a board's profile, or those of a list that takes the place of all that it says."""
    if kernels is not None:
        return load(kernels, features=board.target.features)
    return load(board.kernels.backends, use=board.kernels.use, features=board.target.features)


def parse_list(text: str) -> list[str]:
    """Split the value of `kernels=` / `--kernels`: names or folders with commas between them."""
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise KernelError(f"kernels={text}: an empty name in the list; write kernels=fast,ref")
    return names


def _root(root: Path | None) -> Path:
    if root is not None:
        return root
    # only here: a given root needs no search for the package's data
    from . import resources

    return resources.kernels()


def _near(word: str, known: Iterable[str]) -> str:
    known = sorted(known)
    match = difflib.get_close_matches(word, known, n=1)
    hint = f"; did you mean {match[0]!r}?" if match else ""
    return f"{hint} (known: {', '.join(known)})"


def _find(name: str, root: Path, base: Path) -> Path:
    """The folder of a backend. A bare name is in the tree; anything with a slash is a path."""
    if "/" in name or "\\" in name:
        folder = base / Path(name).expanduser()
        if not (folder / TABLE).is_file():
            raise KernelError(f"kernel folder {name}: no {TABLE} in it")
        folder = folder.resolve()
        if folder.name in available(root) and folder.parent != root.resolve():
            raise KernelError(
                f"kernel folder {name}: {folder.name!r} is a backend of the tree: rename the folder"
            )
        return folder
    if not (root / name / TABLE).is_file() or name in ("", ".", ".."):
        raise KernelError(
            f"unknown kernel backend {name!r}{_near(name, available(root))}; "
            "a folder of your own is given as a path with a /"
        )
    return root / name


def _load_backend(folder: Path, root: Path) -> Backend:
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
        {"schema": int, "kernel": list, "function": list, "external": dict, **dict.fromkeys(_LISTS, list)},
        ("schema",) if "function" in table else ("schema", "kernel"),
        str(path),
    )
    if table["schema"] != 1:
        raise KernelError(f"{path}: schema {table['schema']} is not known: this version reads schema 1")
    cflags = _strings(table.get("cflags", []), f"{path}: cflags")
    if not any(flag.startswith("-ffp-contract") for flag in cflags):
        cflags = (*cflags, "-ffp-contract=fast")
    declared = folder.parent.resolve() == root.resolve()
    kernels: list[Kernel] = []
    for number, row in enumerate(table.get("kernel", []), 1):
        kernel = _load_row(row, f"{path}: kernel {number}", folder, cflags, declared)
        for other in kernels:
            if other.name == kernel.name and (not other.when or other.symbol == kernel.symbol):
                why = (
                    "a row without conditions stands before it"
                    if not other.when
                    else f"{kernel.symbol} is there already"
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
        raise KernelError(f"{path}: packages is missing: name the Debian packages that bring the library")
    functions = tuple(
        _load_function(row, f"{path}: function {number}", folder)
        for number, row in enumerate(table.get("function", []), 1)
    )
    made = tuple(kernels)
    backend = Backend(name, folder, requires, cflags, shared, made, functions, ldflags, headers, packages)
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
        raise KernelError(f"{where}: no function {row['name']!r} in ag_math.h{_near(row['name'], FUNCTIONS)}")
    header = folder / row["header"]
    if not header.is_file():
        raise KernelError(f"{where}: header {row['header']!r} is not a file in {folder}")
    if not re.search(
        rf"\b{re.escape(row['symbol'])}\b", header.read_text(encoding="utf-8", errors="replace")
    ):
        raise KernelError(f"{where}: header {row['header']!r} does not name the symbol {row['symbol']!r}")
    return Function(row["name"], row["symbol"], folder.name, row["header"], row["error"])


def _load_row(row: Any, where: str, folder: Path, cflags: tuple[str, ...], declared: bool) -> Kernel:
    if not isinstance(row, dict):
        raise KernelError(f"{where}: must be a [[kernel]] table")
    _keys(row, {"name": str, "symbol": str, "source": str, "when": list}, ("name", "symbol", "source"), where)
    name, symbol = row["name"], row["symbol"]
    if name not in CONTRACT:
        raise KernelError(f"{where}: no kernel {name!r} in the contract{_near(name, CONTRACT)}")
    if not _C_NAME.fullmatch(symbol):
        raise KernelError(f"{where}: symbol {symbol!r} is not a C identifier")
    source = folder / row["source"]
    if not source.is_file():
        raise KernelError(f"{where}: source {row['source']!r} is not a file in {folder}")
    if not re.search(rf"\b{symbol}\b", source.read_text(encoding="utf-8", errors="replace")):
        raise KernelError(f"{where}: source {row['source']!r} does not name the symbol {symbol!r}")
    conditions = _strings(row.get("when", []), f"{where}: when")
    when = tuple(
        Condition.parse(text, CONTRACT[name].facts, f"{where}: when", FEATURES) for text in conditions
    )
    return Kernel(name, symbol, folder.name, source, when, cflags, declared)


def _keys(table: Mapping[str, Any], types: Mapping[str, type], required: Sequence[str], where: str) -> None:
    for key, value in table.items():
        if key not in types:
            raise KernelError(f"{where}: unknown key {key!r}{_near(key, types)}")
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


def _check_features(backend: Backend, features: Collection[str] | None) -> None:
    missing = [f for f in backend.requires if features is not None and f not in features]
    if missing:
        has = ", ".join(sorted(features or ())) or "none"
        raise KernelError(
            f"backend {backend.name!r} needs the core feature {missing[0]!r}, "
            f"which the board lacks (it has: {has})"
        )


def _check_symbols(backends: Backends) -> None:
    """One symbol is one function: two backends that define the same one would not link."""
    owner: dict[str, Backend] = {}
    for backend in backends.backends:
        for kernel in backend.kernels:
            first = owner.setdefault(kernel.symbol, backend)
            if first is not backend:
                raise KernelError(
                    f"symbol {kernel.symbol!r} is in the tables of both {first.name!r} and {backend.name!r}"
                )
