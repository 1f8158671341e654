"""The backends of a build and the choice of a kernel per call, `ref` last. Stdlib only."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import BoardError, KernelError
from ..targets import installation
from ..targets.board import Board
from ..targets.schema import near
from .contract import CONTRACT
from .predicates import Number
from .table import TABLE, Backend, Function, Kernel, Source, external_of, load_backend
from .third_party import External

REF = "ref"


@dataclass(frozen=True)
class Backends:
    """The backends of a build, `ref` last, which serves all; `asked` are the names of those that are asked for every
    kernel, in order, `use` those that are asked for some kernels instead, by kernel. Of the board: `features` are the
    core's; generated loops that call exp, tanh, ... are laid out for vectors from `vectors` turns on, with 0 none is.
    """

    root: Path
    backends: tuple[Backend, ...]
    asked: tuple[str, ...]
    use: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    features: frozenset[str] = frozenset()
    vectors: int = 0

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
            raise KernelError(f"no kernel {name!r} in the contract{near(name, CONTRACT)}")
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
            backend = load_backend(_find(word, root, base), root)
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
    ref = found.pop(REF, None) or load_backend(_find(REF, root, Path()), root)
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
    features, vectors = board.target.features, board.target.vectors
    unknown = next((kernel for kernel in board.kernels.use if kernel not in CONTRACT), None)
    if unknown is not None:
        raise BoardError(f"{board.files[0]}: unknown key 'kernels.use.{unknown}'{near(unknown, CONTRACT)}")
    if kernels is not None:
        return replace(load(kernels, features=features), vectors=vectors)
    return replace(load(board.kernels.backends, use=board.kernels.use, features=features), vectors=vectors)


def parse_list(text: str) -> list[str]:
    """Split the value of `kernels=` / `--kernels`: names or folders with commas between them."""
    names = [part.strip() for part in text.split(",")]
    if not all(names):
        raise KernelError(f"kernels={text}: an empty name in the list; write kernels=fast,ref")
    return names


def _root(root: Path | None) -> Path:
    if root is not None:
        return root
    return installation.kernels()


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
            f"unknown kernel backend {name!r}{near(name, available(root))}; "
            "a folder of your own is given as a path with a /"
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
    """One symbol is one function: two backends that define the same one would not link."""
    owner: dict[str, Backend] = {}
    for backend in backends.backends:
        for kernel in backend.kernels:
            first = owner.setdefault(kernel.symbol, backend)
            if first is not backend:
                raise KernelError(
                    f"symbol {kernel.symbol!r} is in the tables of both {first.name!r} and {backend.name!r}"
                )
