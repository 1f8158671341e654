"""The backends of a build, and kernel selection for a call, by priority; `ref` is last. Stdlib only."""

from __future__ import annotations

import difflib
import functools
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import BoardError, KernelError
from ..targets import installation
from ..targets.board import BoardSpec
from ..targets.board import load as load_board
from ..targets.cost_table import CostTable
from ..targets.schema import HOST, near
from ..targets.toml_file import read_toml, shown
from .call_size import call_size
from .callees import with_callees
from .contract import CONTRACT, DECLARED
from .predicates import Number
from .read_table import TABLE, external_of, load_backend
from .table import Backend, Kernel, KernelSource, MathFunction
from .third_party import External

REF = "ref"

TREE = installation.kernels()
_OF_THE_TREE: dict[Path, Backend] = {}


@dataclass(frozen=True)
class Backends:
    """The backends of a build; the last, `ref`, serves every call. priority: their names by priority. use: kernel ->
    the priority list that overrides `priority` for it. features: the core's features. cost: the core's cost table.
    """

    root: Path
    backends: tuple[Backend, ...]
    priority: tuple[str, ...]
    cost: CostTable
    use: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: frozenset[str] = frozenset()

    @property
    def names(self) -> tuple[str, ...]:
        return self.priority

    @property
    def only_ref(self) -> bool:
        """Whether `ref` is the only backend; generated C is then built without contraction into FMA."""
        return all(b.name == REF for b in self.backends)

    @property
    def ldflags(self) -> tuple[str, ...]:
        """Linker flags for libraries; they go after all objects."""
        return tuple(dict.fromkeys(flag for b in self.backends for flag in b.ldflags))

    def candidates(self, name: str) -> tuple[Kernel, ...]:
        """All table rows for the contract's kernel `name`, by priority."""
        return tuple(k for b in self._order(name) for k in b.kernels if k.name == name)

    def select(self, name: str, facts: Mapping[str, Number]) -> Kernel:
        """The first matching row that is not `by_cost`; if the cost of that row is known, the cheapest of the matching
        rows with a known cost. facts: the call attributes by parameter name (m, n, k, lda, beta, ...) that are known at
        generation time. Raises KernelError."""
        known = self._with_features(facts)
        matching = [k for k in self.candidates(name) if k.matches(known)]
        first = next((k for k in matching if not k.by_cost), None)
        if first is None:
            raise KernelError(
                f"no kernel serves {name} with {dict(facts)}: the ref table lacks an unconditional row"
            )
        costs = {k: cost for k in (first, *matching) if (cost := self.estimate(k, facts)) is not None}
        return min(costs, key=costs.__getitem__) if first in costs else first

    def serves(self, kernel: Kernel, facts: Mapping[str, Number]) -> bool:
        """Whether the conditions of a kernel hold for a call on this core."""
        return kernel.matches(self._with_features(facts))

    def estimate(self, kernel: Kernel, facts: Mapping[str, Number]) -> float | None:
        """The cost of a call of the kernel for one image, in the unit of the cost table; None where it is not known."""
        cost, size = self.cost.kernels.get(kernel.symbol), call_size(kernel.name, facts)
        return None if cost is None or size is None else size.cost(cost)

    def rejected(self, name: str, facts: Mapping[str, Number]) -> tuple[str, ...]:
        """Lines for reports: the kernels that cost more than the selected kernel, and the rejected backends and rows of
        higher priority, each with the reason. Rows of the selected kernel's backend for other cases are left out."""
        chosen, known = self.select(name, facts), self._with_features(facts)
        reasons = []
        if name in self.use:
            unused = [n for n in self.priority if n not in (*self.use[name], REF)]
            reasons = [f"{n}, as the board's [kernels.use] lists {', '.join(self.use[name])}" for n in unused]
        own, before = self.estimate(chosen, facts), True
        for backend in self._order(name):
            rows = [k for k in backend.kernels if k.name == name]
            if before and not rows:
                reasons.append(f"{backend.name}, which has no {name}")
            for row in rows:
                failed, cost = next((c for c in row.when if not c(known)), None), self.estimate(row, facts)
                if row is chosen:
                    before = False
                elif failed is None and cost is not None and own is not None:
                    reasons.append(f"{row.symbol}, as it costs {cost:,.0f} for an image, this {own:,.0f}")
                elif before and failed is None:
                    reasons.append(f"{row.symbol}, as the board's [cost.kernels] lacks it")
                elif before and failed is not None and backend.name != chosen.backend:
                    reasons.append(f"{row.symbol}, as {failed.why_not(known)}")
        return tuple(reasons)

    @property
    def functions(self) -> dict[str, MathFunction]:
        """Replacements of functions of ag_math.h by name, each from the first backend by priority that has one."""
        replacements: dict[str, MathFunction] = {}
        by_name = {b.name: b for b in self.backends}
        for name in self.priority:
            for function in by_name[name].functions:
                replacements.setdefault(function.name, function)
        return replacements

    def _order(self, name: str) -> list[Backend]:
        if name not in CONTRACT:
            raise KernelError(f"no kernel {name!r} in the contract{near(name, CONTRACT)}")
        by_name = {b.name: b for b in self.backends}
        return [by_name[n] for n in dict.fromkeys((*self.use.get(name, self.priority), REF))]

    def _with_features(self, facts: Mapping[str, Number]) -> dict[str, Number]:
        return {**facts, **dict.fromkeys(self.features, 1)}

    def sources(self, called: Iterable[Kernel] | None = None) -> tuple[KernelSource, ...]:
        """Every file of every backend once, in table order; the linker removes functions that are not called. Files of
        kernels that the core cannot run are left out. With `called`, so are files without any of these kernels and of
        their callees."""
        symbols = None if called is None else self.with_callees(called)
        sources: list[KernelSource] = []
        for b in self.backends:
            runs = (k for k in b.kernels if k.runs_on(self.features))
            kernels = tuple(k for k in runs if symbols is None or k.symbol in symbols)
            sources += replace(b, kernels=kernels, shared=b.shared if kernels else ()).sources
            for path in b.external:
                sources.append(
                    KernelSource(b.name, path, b.external_cflags, f"external/{path.stem}", b.folder)
                )
        return tuple(sources)

    def with_callees(self, called: Iterable[Kernel]) -> set[str]:
        """The symbols of these kernels, and of kernels that they call."""
        known = {k.symbol: (k, b.folder) for b in self.backends for k in b.kernels}
        return with_callees(called, known, self.root)

    @property
    def tables(self) -> tuple[Path, ...]:
        """The files from which the rows of all backends were read."""
        return tuple(dict.fromkeys(path for b in self.backends for path in b.tables))

    def include_dirs(self) -> tuple[Path, ...]:
        """Folders of ag_kernels.h, ag_math.h and the backends' own headers."""
        external = (path for b in self.backends for path in b.include)
        return tuple(dict.fromkeys((self.root, *(b.folder for b in reversed(self.backends)), *external)))


def available(root: Path | None = None) -> list[str]:
    """Names of the backends in the tree without third-party sources, sorted."""
    tables = sorted(_root(root).glob(f"*/{TABLE}"))
    return [t.parent.name for t in tables if "\n[external]\n" not in t.read_text(encoding="utf-8")]


def external(name: str, root: Path | None = None) -> External:
    """The third-party sources of a backend in the tree. Raises KernelError."""
    root = _root(root)
    path = _find(name, root, Path()) / TABLE
    table = read_toml(path, KernelError)
    if not isinstance(table.get("external"), dict):
        raise KernelError(f"backend {name!r} has no third-party sources: there is nothing to fetch")
    return external_of(name, table, str(path))


def load(
    names: Iterable[str],
    *,
    use: Mapping[str, Sequence[str]] | None = None,
    features: Collection[str] | None = None,
    root: Path | None = None,
    relative_to: Path | None = None,
    cost: CostTable | None = None,
    trusted: bool = True,
) -> Backends:
    """Read the tables of `names`: backends in the tree, or paths of folders that hold a `kernels.toml`.

    use: kernel -> the priority list that overrides `names`. features: the board's core features; None skips the check
    that the core has those that backends require. root: the tree's `kernels` folder. relative_to: the base of relative
    paths, by default the current folder. cost: the board's table, by default the host's. trusted: tables may have any
    options. Raises KernelError.
    """
    root = _root(root)
    base = relative_to or Path()
    loaded: dict[str, Backend] = {}

    def load_list(words: Iterable[str], what: str) -> tuple[str, ...]:
        chosen: list[str] = []
        for word in words:
            if chosen and chosen[-1] == REF:
                raise KernelError(
                    f"{what}backend {word!r} is listed after 'ref', which serves every call: put 'ref' last"
                )
            backend = _backend(_find(word, root, base), root, trusted)
            if backend.name in chosen:
                raise KernelError(f"{what}backend {backend.name!r} is listed twice: name it once")
            _check_features(backend, features)
            if loaded.setdefault(backend.name, backend).folder != backend.folder:
                raise KernelError(f"{what}two folders are called {backend.name!r}: rename one")
            chosen.append(backend.name)
        return tuple(chosen)

    priority = load_list(names, "")
    overrides = {}
    for kernel, words in (use or {}).items():
        overrides[kernel] = load_list(words, f"[kernels.use] {kernel}: ")
        for name in overrides[kernel]:
            if all(k.name != kernel for k in loaded[name].kernels):
                raise KernelError(f"[kernels.use] {kernel}: backend {name!r} has no {kernel}")
    ref = loaded.pop(REF, None) or _backend(_find(REF, root, Path()), root, trusted)
    result = Backends(
        root,
        (*loaded.values(), ref),
        priority if REF in priority else (*priority, REF),
        cost or host_cost(),
        overrides,
        frozenset(features or ()),
    )
    _check_symbols(result)
    return result


def for_board(board: BoardSpec, kernels: Iterable[str] | None = None) -> Backends:
    """The backends of a board's profile, or of `kernels`, which overrides the profile. Raises BoardError,
    KernelError."""
    features, cost = board.target.features, board.cost
    if board.profile == "size":  # loops over blocks are not unrolled, and blocks stay in memory
        cost = replace(cost, block_moves=False)
    unknown = next((kernel for kernel in board.kernels.use if kernel not in CONTRACT), None)
    if unknown is not None:
        raise BoardError(f"{board.files[0]}: unknown key 'kernels.use.{unknown}'{near(unknown, CONTRACT)}")
    if kernels is not None:
        return load(kernels, features=features, cost=cost, trusted=board.trusted)
    try:
        names, use = board.kernels.backends, board.kernels.use
        backends = load(names, use=use, features=features, cost=cost, trusted=board.trusted)
    except KernelError as error:
        raise KernelError(f"{board.files[0]}: its kernels cannot be used: {error}") from None
    symbols = DECLARED | {k.symbol for b in backends.backends for k in b.kernels}
    unknown = next((symbol for symbol in cost.kernels if symbol not in symbols), None)
    if unknown is not None:
        closest = ", ".join(difflib.get_close_matches(unknown, sorted(symbols)))
        hint = f"; the closest names are {closest}" if closest else ""
        raise BoardError(f"{board.files[0]}: cost.kernels.{unknown}: no backend has this kernel{hint}")
    return backends


@functools.cache
def host_cost() -> CostTable:
    """The cost table of the host, for programs that are compiled without a board."""
    return load_board(HOST).cost


def parse_list(text: str) -> list[str]:
    """Split the value of `kernels=` / `--kernels`: comma-separated names or folders. Raises KernelError."""
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise KernelError(f"kernels={text}: an empty name in the list; write kernels=fast,ref")
    return names


def _root(root: Path | None) -> Path:
    if root is not None:
        return root
    return installation.kernels()


def _backend(folder: Path, root: Path, trusted: bool) -> Backend:
    """The backend of a folder. Backends of the tree are read once, unless they have third-party sources."""
    if root != TREE or folder.parent != TREE:
        return load_backend(folder, root, trusted)
    found = _OF_THE_TREE.get(folder) or load_backend(folder, root)
    if not found.external:
        _OF_THE_TREE[folder] = found
    return found


def _find(name: str, root: Path, base: Path) -> Path:
    """The folder of a backend. A bare name is in the tree; anything with a slash is a path."""
    if "/" in name or "\\" in name:
        folder = base / os.path.expanduser(name)
        if not (folder / TABLE).is_file():
            raise KernelError(f"kernel folder {name}: no {TABLE} in it")
        folder = folder.resolve()
        if folder.name in available(root) and folder.parent != root.resolve():
            raise KernelError(
                f"kernel folder {name}: {folder.name!r} is a backend of the tree: rename the folder"
            )
        return folder
    if not (root / name / TABLE).is_file() or name in ("", ".", ".."):
        if name and (base / name / TABLE).is_file():
            raise KernelError(
                f"kernel folder {name}: a name without a / names a backend of the tree; write ./{name}"
            )
        raise KernelError(
            f"unknown kernel backend {shown(name)}{near(name, available(root))}; "
            "give a folder of your own as a path with a /"
        )
    return root / name


def _check_features(backend: Backend, features: Collection[str] | None) -> None:
    missing = [f for f in backend.requires if features is not None and f not in features]
    if missing:
        has = ", ".join(sorted(features or ())) or "none"
        raise KernelError(
            f"backend {backend.name!r} needs the core feature {missing[0]!r}, "
            f"which the board lacks (it has: {has})"
        )


def _check_symbols(backends: Backends) -> None:
    """Reject symbols that two backends define, which would not link."""
    owner: dict[str, Backend] = {}
    for backend in backends.backends:
        for kernel in backend.kernels:
            first = owner.setdefault(kernel.symbol, backend)
            if first is not backend:
                raise KernelError(
                    f"symbol {kernel.symbol!r} is in the tables of both {first.name!r} and {backend.name!r}"
                )
