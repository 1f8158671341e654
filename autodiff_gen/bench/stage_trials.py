"""`bench --without`: the cost of a network on a core without some stages of the pipeline.

Each result is a file, named by a hash of everything that determines it, so an interrupted run continues.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property
from math import isnan
from pathlib import Path
from typing import Any

from ..codegen.program import Program
from ..errors import AutodiffError, ToolError
from ..host.compiler import fingerprint
from ..kernels import registry
from ..kernels.registry import Backends
from ..lowering import left_out_stages
from ..model.build import compile_file
from ..model.loader import LoadedFile, load_file
from ..targets import build_commands, installation
from ..targets.board import BoardSpec, load
from . import executable
from .executable import Builder
from .program import counted_texts
from .program_cost import Cost, cost, reference

SCHEMA = 1
STEPS = 2  # the loss of the second step depends on the gradients of the first
CLOSE = 1e-3  # relative difference of losses and outputs, which stages change by rounding only
# Packages that do not affect a result.
_TOOLS = ("check", "cli", "device", "fleet", "report")


@dataclass(frozen=True)
class Core:
    """A core of bench/stages.toml. reference: whether the results with `ref` kernels on the host are compared too."""

    name: str
    title: str
    board: str
    kernels: tuple[str, ...]
    reference: bool = False

    def load(self) -> tuple[BoardSpec, Backends]:
        path = installation.root() / self.board
        board = load(str(path) if path.is_file() else self.board)
        return board, registry.for_board(board, self.kernels)


def settings() -> tuple[list[str], list[Core]]:
    """The networks and cores of bench/stages.toml. Raises ToolError."""
    path = installation.root() / "bench" / "stages.toml"
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise ToolError(f"{path}: missing; stages are measured from a checkout of the project") from None
    return table["networks"], [Core(**{**c, "kernels": tuple(c["kernels"])}) for c in table["core"]]


@dataclass(frozen=True)
class TrialNetwork:
    """A model by its name or path. ram: the most bytes of its states and arena; None: no limit."""

    name: str
    ram: int | None = None

    @property
    def title(self) -> str:
        return self.name if self.ram is None else f"{self.name}:{self.ram >> 10}K"


@dataclass(frozen=True)
class Trial:
    """A network without some stages. needed: the reason why the stages cannot be left out, because the program cannot
    be built or behaves differently; effective: the stages that changed an entry; promises: properties on which callers
    rely, by name."""

    left_out: tuple[str, ...] = ()
    needed: str = ""
    effective: tuple[str, ...] = ()
    promises: dict[str, str] = field(default_factory=dict)
    c: str = ""  # a hash of the generated C
    cost: Cost = field(default_factory=Cost)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n"


def from_json(text: str) -> Trial:
    """The trial of a stored result."""
    fields: dict[str, Any] = json.loads(text)
    del fields["schema"]
    return Trial(**{**_with_tuples(fields), "cost": Cost(**_with_tuples(fields["cost"]))})


def _with_tuples(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in fields.items()}


class Trials:
    """The trials of a network on a core. `results`: the folder of stored results."""

    def __init__(self, network: TrialNetwork, core: Core, results: Path) -> None:
        self.network, self.core, self._results = network, core, results
        self._board, tables = core.load()
        self._builder = Builder(self._board, tables)
        self._machine = str(SCHEMA), core.board, *core.kernels, *_tools(self._board)

    def each(self, sets: Sequence[tuple[str, ...]]) -> Iterator[Trial]:
        """The trial with all stages, then a trial without each of these sets. A set whose stages have no effect is not
        tried: its trial equals the first."""
        base = self._trial((), None)
        yield base
        for names in sets:
            if any(name in base.effective for name in names):
                yield self._trial(names, base)
            else:
                yield replace(base, left_out=names)

    @cached_property
    def _decided_by(self) -> str:
        file = load_file(self.network.name)
        texts = [fingerprint(Path(f).read_bytes().hex()) for f in file.files]
        return fingerprint(_compiler(), *self._machine, *texts, str(self.network.ram))

    def _trial(self, names: tuple[str, ...], base: Trial | None) -> Trial:
        key = fingerprint(self._decided_by, *names)
        path = self._results / f"{key}.json"
        if (stored := _stored(path)) is not None:
            return from_json(stored)
        trial = self._made(names, base)
        _store(path, trial.to_json())
        return trial

    def _made(self, names: tuple[str, ...], base: Trial | None) -> Trial:
        with left_out_stages.without(names) as stages:
            try:
                return self._measured(Trial(names), base, stages)
            except Exception as error:
                if base is None or isinstance(error, OSError | MemoryError):
                    raise
                return Trial(names, needed=_reason(error))

    def _measured(self, trial: Trial, base: Trial | None, stages: left_out_stages.LeftOut) -> Trial:
        file = load_file(self.network.name)
        program = self._compiled(file)
        files = counted_texts(program, file, STEPS)
        promises = _promises(program)
        if base is not None and (broken := [k for k, v in promises.items() if base.promises[k] != v]):
            return replace(trial, needed=f"differs in the {broken[0]}")
        c = fingerprint(*(f"{k}\0{v}" for k, v in sorted(files.items())))
        if base is not None and c == base.c:
            return replace(base, left_out=trial.left_out)
        found = self._cost(program, files)
        if self.core.reference:
            losses, outputs = reference(file)
            found = replace(found, reference_losses=losses, reference_outputs=outputs)
        needed = "" if base is None else _difference(found, base.cost)
        return replace(
            trial,
            needed=needed,
            effective=tuple(sorted(stages.effective)),
            promises=promises,
            c=c,
            cost=found,
        )

    def _compiled(self, file: LoadedFile) -> Program:
        ram = self.network.ram
        return compile_file(file.made, file.name, self.core.kernels, self._board, ram, must_fit=False)

    def _cost(self, program: Program, files: dict[str, str]) -> Cost:
        """The costs of a program, from the stored result for the same C if there is one."""
        key = fingerprint(_c_sources(), *self._machine, *(f"{k}\0{v}" for k, v in sorted(files.items())))
        path = self._results / f"{key}.cost.json"
        if (stored := _stored(path)) is not None:
            return Cost(**_with_tuples(json.loads(stored)))
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            found = cost(program, files, self._builder, Path(folder), self._results, STEPS)
        _store(path, json.dumps(asdict(found), indent=1) + "\n")
        return found


def _reason(error: Exception) -> str:
    """The reason why a program cannot be built, as one line without folders of the host."""
    kind = "" if isinstance(error, AutodiffError) else f"{type(error).__name__}: "
    text = next(iter(str(error).splitlines()), "")
    return kind + re.sub(r"(?<!\S)(/[^\s/:]+)+/", "", text)


def _promises(program: Program) -> dict[str, str]:
    """The properties of a program on which callers rely, by their names in messages."""
    entries = program.entries
    graphs = [e.plan.graph for e in entries]
    return {
        "entries": repr(
            [(e.c_name, e.takes_n, [(a.name, a.role, repr(a.type)) for a in e.args]) for e in entries]
        ),
        "checks of inputs": repr([[(c.low, c.high) for c in g.checks] for g in graphs]),
        "guard": repr([(g.guard, g.bound is not None) for g in graphs]),
        "states": repr([(s.name, repr(s.state.logical), s.state.role) for s in program.slots]),
    }


def _difference(found: Cost, base: Cost) -> str:
    """The results that differ beyond rounding; empty if none differs, or if the programs cannot be compared."""
    if found.uncounted or base.uncounted:
        return "" if base.uncounted else found.uncounted
    for what in ("losses", "reference_losses", "reference_outputs"):
        new, old = getattr(found, what), getattr(base, what)
        if (error := largest_difference(new, old)) > CLOSE:
            return f"differs in the {what.replace('_', ' ')} by {error:.1g}"
    return ""


def largest_difference(new: Sequence[float], old: Sequence[float]) -> float:
    """The largest difference of two results, relative to the largest of the old numbers."""
    if len(new) != len(old):
        return float("inf")
    largest = max(map(abs, old), default=0.0) or 1.0
    return (
        max(
            (_difference_of(a, b) for a, b in zip(new, old, strict=True)),
            default=0.0,
        )
        / largest
    )


def _difference_of(a: float, b: float) -> float:
    """|a - b|; 0 for two NaN, infinity for one."""
    if isnan(a) or isnan(b):
        return 0.0 if isnan(a) and isnan(b) else float("inf")
    return abs(a - b)


def _tools(board: BoardSpec) -> Iterator[str]:
    """The paths and sizes of the C compiler and the emulator of a board, which differ between versions."""
    emulator = "valgrind" if board.qemu is None else board.qemu.binary
    for name in (build_commands.tool(board, "gcc"), emulator):
        path = Path(os.path.realpath(shutil.which(name) or name))
        yield f"{path} {path.stat().st_size if path.is_file() else ''}"


@cache
def _compiler() -> str:
    """A hash of this package, and of the C sources and boards that it reads."""
    package = installation.root() / "autodiff_gen"
    files = [p for p in _files(package) if p.relative_to(package).parts[0] not in _TOOLS]
    return _hash([*files, *_files(installation.root() / "bench" / "qemu")]) + _c_sources()


@cache
def _c_sources() -> str:
    """A hash of the C sources, board files and build commands that a program is built from."""
    folders = (installation.kernels(), installation.runtime(), installation.boards())
    builders = [Path(str(module.__file__)) for module in (build_commands, executable)]
    builders += _files(installation.root() / "bench" / "qemu")
    plugin = installation.qemu_plugin()
    return _hash(
        [
            *builders,
            *(p for folder in folders for p in _files(folder)),
            *([plugin] if plugin.is_file() else []),
        ]
    )


def _files(folder: Path) -> list[Path]:
    ends = (".py", ".j2", ".c", ".h", ".s", ".S", ".toml", ".ld")
    return sorted(p for p in folder.rglob("*") if p.suffix in ends)


def _hash(files: Sequence[Path]) -> str:
    return fingerprint(*(f"{p.name}\0{p.read_text(encoding='utf-8')}" for p in files))


def _stored(path: Path) -> str | None:
    """The text of a result, None if there is none."""
    return path.read_text(encoding="utf-8") if path.is_file() else None


def _store(path: Path, text: str) -> None:
    """Write a result as a whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_suffix(f".{os.getpid()}")
    aside.write_text(text, encoding="utf-8")
    os.replace(aside, path)
