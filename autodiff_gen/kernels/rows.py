"""The rows of a kernel table: rows written out in [[kernel]], and rows that follow from the contract by `serves` and
`tiles`. Stdlib only."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from ..errors import KernelError, quoted
from ..reading import regular
from ..reading.limits import TEXT
from ..targets.known_cores import features
from ..targets.schema import near
from ..targets.toml_file import shown
from .contract import CONTRACT, DECLARED
from .predicates import Condition, Formula
from .table import Kernel

TILES = "tiles/tiles.toml"
C_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_KINDS = {int: "an integer", str: "a string", list: "a list", dict: "a section", bool: "true or false"}

Conditions = tuple[Condition, ...]


@dataclass(frozen=True)
class TableRows:
    """The rows of one table. root: the tree's `kernels` folder; cflags: the flags of each row."""

    table: Path
    root: Path
    cflags: tuple[str, ...]

    def load(self, table: Mapping[str, Any]) -> tuple[Kernel, ...]:
        """The rows of each kernel in the order in which they are tried: rows of [[kernel]] first, a row without
        conditions last. Raises KernelError."""
        written: list[Kernel] = []
        for number, row in enumerate(table.get("kernel", []), 1):
            kernel = self._written(row, f"{self.table}: kernel {number}")
            for other in written:
                unused = every_call(other) and not kernel.by_cost
                same = (other.symbol, other.when) == (kernel.symbol, kernel.when)
                if other.name == kernel.name and (unused or same):
                    why = (
                        "it follows a row without conditions, which matches every call"
                        if unused
                        else f"{kernel.symbol} has a row with these conditions already"
                    )
                    raise KernelError(
                        f"{self.table}: kernel {number}: duplicate row for {kernel.name}: {why}"
                    )
            written.append(kernel)
        serves = self._serves(table.get("serves", {}), {kernel.name for kernel in written})
        tiles = self._of_tiles(table.get("tiles", []), serves)
        tiles = [
            k for k in tiles if not any(k.symbol == o.symbol and {*o.when} <= {*k.when} for o in written)
        ]
        derived = [*tiles, *self._of_folder(serves)]
        for kernel in derived:
            for other in written:
                if (other.symbol == kernel.symbol and kernel not in tiles) or (
                    other.name == kernel.name and every_call(other) and every_call(kernel)
                ):
                    raise KernelError(
                        f"{self.table}: duplicate row for {kernel.name}: it has a [[kernel]] with the symbol "
                        f"{other.symbol}"
                    )
        names = list(dict.fromkeys(kernel.name for kernel in (*derived, *written)))
        order = sorted(
            (*written, *derived), key=lambda kernel: (names.index(kernel.name), every_call(kernel))
        )
        return tuple(order)

    @property
    def _folder(self) -> Path:
        return self.table.parent

    @cached_property
    def _in_the_tree(self) -> bool:
        return self._folder.parent.resolve() == self.root.resolve()

    def _row(self, name: str, symbol: str, source: Path, when: Conditions) -> Kernel:
        declared = symbol in DECLARED and self._in_the_tree
        return Kernel(name, symbol, self._folder.name, source, when, self.cflags, declared)

    def _symbol(self, name: str) -> str:
        return f"ag_{name}_{suffix(self._folder)}"

    def _written(self, row: Any, where: str) -> Kernel:
        if not isinstance(row, dict):
            raise KernelError(f"{where}: must be a [[kernel]] table")
        kinds = {"name": str, "symbol": str, "source": str, "when": list, "by_cost": bool, "scratch": str}
        kinds["scratch_optional"] = bool
        check_keys(row, kinds, ("name", "symbol", "source"), where)
        name, symbol = row["name"], row["symbol"]
        _check_kernel(name, where)
        if not C_NAME.fullmatch(symbol):
            raise KernelError(f"{where}: symbol {quoted(symbol)} is not a C identifier")
        source = own_or_tiles(self._folder / row["source"], self.root)
        if not source.is_file():
            raise KernelError(f"{where}: source {quoted(row['source'])} is not a file in {self._folder}")
        stem = symbol.removeprefix("ag_").removesuffix(f"_{suffix(self._folder)}")
        if not (self._names(source, symbol, name) or self._names(source, symbol, stem)):
            raise KernelError(
                f"{where}: source {quoted(row['source'])} does not name the symbol {quoted(symbol)}"
            )
        written = self._row(name, symbol, source, _conditions(row.get("when", []), name, f"{where}: when"))
        optional = row.get("scratch_optional", False)
        if optional and "scratch" not in row:
            raise KernelError(
                f"{where}: scratch_optional needs the bytes that it is about: "
                'add scratch = "4 * kh * kw * c", for example'
            )
        given = replace(written, scratch=_scratch(row, where), scratch_optional=optional)
        return replace(given, by_cost=row.get("by_cost", False))

    def _names(self, source: Path, symbol: str, kernel: str) -> bool:
        """Whether a file names the symbol, or instantiates a file of `tiles/` that defines the kernel."""
        text = text_of(source)
        if re.search(rf"\b{symbol}\b|\bAG_SYMBOL\({kernel}\)", text):
            return True
        included = re.findall(r'^#include "(tiles/\w+\.c)"', text, re.MULTILINE)
        return any(f"AG_SYMBOL({kernel})" in text_of(self.root / name) for name in included)

    def _serves(self, serves: str | Mapping[str, Any], written: Collection[str]) -> dict[str, Conditions]:
        """Kernel -> conditions, for the kernels in `serves`; "all" means the kernels that are not written out."""
        where = f"{self.table}: serves"
        if isinstance(serves, str):
            if serves != "all":
                raise KernelError(f'{where} = {quoted(serves)}: write "all", or a section [serves]')
            return {name: () for name in CONTRACT if name not in written}
        for name in serves:
            _check_kernel(name, where)
        return {name: _conditions(when, name, f"{where}: {name}") for name, when in serves.items()}

    def _of_tiles(self, tiles: str | Sequence[Any], serves: dict[str, Conditions]) -> list[Kernel]:
        """The kernels of the files in `tiles`, with their conditions there and in `serves`; these kernels are removed
        from `serves`."""
        found = []
        where, known = f"{self.table}: tiles", _tiles(self.root / TILES) if tiles else {}
        if isinstance(tiles, str) and tiles != "all":
            raise KernelError(
                f'{where} = {quoted(tiles)}: write "all", or a list of files of tiles/ without .c'
            )
        for name in known if isinstance(tiles, str) else strings(list(tiles), where):
            if name not in known:
                raise KernelError(
                    f"{where}: {quoted(name)} is not a file of {self.root / TILES}{near(name, known)}"
                )
            source = own_or_tiles(self._folder / f"{name}.c", self.root)
            for kernel, (stem, when, scratch) in known[name].items():
                symbol = self._symbol(stem)
                if not source.is_file() or not self._names(source, symbol, stem):
                    raise KernelError(f"{where}: no {name}.c in {self._folder} defines {symbol}")
                row = self._row(kernel, symbol, source, (*when, *serves.get(kernel, ())))
                found.append(replace(row, scratch=scratch))
        for row in found:
            serves.pop(row.name, None)
        return found

    def _of_folder(self, serves: Mapping[str, Conditions]) -> Iterator[Kernel]:
        """The kernels in `serves`, from the files of the folder that define them."""
        texts = {source: text_of(source) for source in sorted(self._folder.glob("*.c"))} if serves else {}
        for name, when in serves.items():
            symbol = self._symbol(name)
            source = next((p for p, text in texts.items() if f"\nvoid {symbol}(" in text), None)
            if source is None:
                raise KernelError(
                    f"{self.table}: serves: {name}: no file in {self._folder} defines void {symbol}(...)"
                )
            yield self._row(name, symbol, source, when)


def own_or_tiles(file: Path, root: Path) -> Path:
    """The file, or if it is missing the file of that name in `tiles/`. Raises KernelError for a path with ".."."""
    if ".." in file.parts or len(file.name) > 200:
        raise KernelError(f"{file} is outside of its kernel folder: copy it into the folder")
    return file if file.is_file() else (root / TILES).parent / file.name


def every_call(kernel: Kernel) -> bool:
    """Whether the row serves every call, so that no later row is tried."""
    return not kernel.when and not kernel.by_cost


def suffix(folder: Path) -> str:
    """The end of the symbols of a backend's kernels, ag_<kernel>_<suffix>."""
    return folder.name.replace("-", "_")


def _tiles(path: Path) -> dict[str, dict[str, tuple[str, Conditions, Formula | None]]]:
    """File -> kernel -> its symbol without ag_ and backend, its conditions, and the formula of its scratch memory."""
    found: dict[str, dict[str, tuple[str, Conditions, Formula | None]]] = {}
    for name, kernels in tomllib.loads(text_of(path)).items():
        found[name] = {}
        for kernel, given in kernels.items():
            _check_kernel(kernel, f"{path}: {name}")
            row = given if isinstance(given, dict) else {"when": given}
            where = f"{path}: {name}: {kernel}"
            scratch = _scratch({**row, "name": kernel}, where)
            found[name][kernel] = row.get("symbol", kernel), _conditions(row["when"], kernel, where), scratch
    return found


def text_of(path: Path) -> str:
    """The text of a C file of a kernel folder. Raises KernelError."""
    return regular.read_bytes(path, KernelError, TEXT).decode(errors="replace")


def _check_kernel(name: str, where: str) -> None:
    if name not in CONTRACT:
        raise KernelError(f"{where}: no kernel {quoted(name)} in the contract{near(name, CONTRACT)}")


def _scratch(row: Mapping[str, Any], where: str) -> Formula | None:
    """The formula for the bytes of scratch memory in a row."""
    if "scratch" not in row:
        return None
    spec = CONTRACT[row["name"]]
    if not any(p.is_scratch for p in spec.params):
        raise KernelError(f"{where}: scratch: {spec.name} has no parameter `void *scratch`")
    return Formula.parse(row["scratch"], spec.facts, f"{where}: scratch")


def _conditions(values: Any, kernel: str, where: str) -> Conditions:
    texts = strings(values, where)
    known = features() if any(text.strip().removeprefix("not ").isidentifier() for text in texts) else ()
    return tuple(Condition.parse(text, CONTRACT[kernel].attributes, where, known) for text in texts)


def check_keys(
    table: Mapping[str, Any],
    kinds: Mapping[str, type | tuple[type, ...]],
    required: Sequence[str],
    where: str,
) -> None:
    """Raise KernelError for unknown keys, values of other types and missing keys."""
    for key, value in table.items():
        if key not in kinds:
            raise KernelError(f"{where}: unknown key {quoted(key)}{near(key, kinds)}")
        kind = kinds[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            names = " or ".join(_KINDS[k] for k in (kind if isinstance(kind, tuple) else (kind,)))
            raise KernelError(f"{where}: {key} must be {names}, got {shown(value)}")
    for key in required:
        if key not in table:
            raise KernelError(f"{where}: {key} is missing")


def strings(values: Any, where: str) -> tuple[str, ...]:
    """A list of strings as a tuple. Raises KernelError for anything else."""
    if not isinstance(values, list):
        raise KernelError(f"{where}: must be a list of strings, got {quoted(values)}")
    for value in values:
        if not isinstance(value, str):
            raise KernelError(f"{where}: must be a list of strings, got {shown(value)}")
    return tuple(values)
