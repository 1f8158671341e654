"""The content of kernel tables: backends, their rows and functions, and the files to compile. Stdlib only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

from .contract import CONTRACT
from .predicates import Condition, Formula, Number


@dataclass(frozen=True)
class Kernel:
    """A row of a kernel table: `symbol` implements the contract's `name` if every condition in `when` holds. by_cost:
    it is only called if it is the cheapest by the board's cost table. scratch: the bytes of scratch memory of a call;
    scratch_optional: a call without scratch memory works too."""

    name: str
    symbol: str
    backend: str
    source: Path
    when: tuple[Condition, ...]
    cflags: tuple[str, ...]
    declared: bool  # in ag_kernels.h; otherwise the generated C has the `declaration`
    by_cost: bool = False
    scratch: Formula | None = None
    scratch_optional: bool = False

    def matches(self, facts: Mapping[str, Number]) -> bool:
        """Whether all conditions hold; a condition on an attribute that is unknown at generation time does not hold."""
        return all(condition(facts) for condition in self.when)

    def runs_on(self, features: Collection[str]) -> bool:
        """Whether a core with these features meets the conditions that name a feature."""
        return all(c(dict.fromkeys(features, 1)) for c in self.when if c.feature is not None)

    @property
    def declaration(self) -> str:
        """The C declaration of the symbol, by the contract's function type."""
        return f"{CONTRACT[self.name].type_name} {self.symbol};"


@dataclass(frozen=True)
class MathFunction:
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
class KernelSource:
    """A file to compile, with its backend's flags. name: the path of its object in the folder of the backend's objects,
    without suffix; headers: the folder of its backend's headers."""

    backend: str
    path: Path
    cflags: tuple[str, ...]
    name: str
    headers: Path

    @property
    def object(self) -> str:
        """The path of its object in the folder of the objects of all backends, without suffix."""
        return f"{self.backend}/{self.name}"


@dataclass(frozen=True)
class Backend:
    """One kernel folder and its table. `requires`: core features of the board, such as "fpu"; `shared`: files that
    several of its kernels use; `tables`: the files that were read. A library that the kernels need is linked with
    `ldflags`, has `headers`, and is in Debian's `packages`."""

    name: str
    folder: Path
    requires: tuple[str, ...]
    cflags: tuple[str, ...]
    shared: tuple[Path, ...]
    kernels: tuple[Kernel, ...]
    tables: tuple[Path, ...]
    functions: tuple[MathFunction, ...] = ()
    ldflags: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()  # folders of third-party headers; `external` has the third-party sources
    external: tuple[Path, ...] = ()
    external_cflags: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[KernelSource, ...]:
        """Every file of its kernels once, in table order, then the files that they share."""
        paths = dict.fromkeys((*(k.source for k in self.kernels), *self.shared))
        return tuple(self.source(path) for path in paths)

    def source(self, path: Path) -> KernelSource:
        """A file of this backend, or a file of `tiles/`, which finds vec.h and other headers here, before headers of
        the same name in other backends."""
        own = path.is_relative_to(self.folder)
        name = path.relative_to(self.folder).with_suffix("").as_posix() if own else f"tiles/{path.stem}"
        cflags = self.cflags if len(self.tables) == 1 else (*self.cflags, f"-iquote{self.folder}")
        return KernelSource(self.name, path, cflags, name, self.folder)
