"""Board profiles: read `boards/<board>.toml` or a user's file into an immutable `BoardSpec`. Unknown keys are errors.
Stdlib only."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from ..errors import BoardError
from ..reading import regular
from . import installation
from .allowed import check_specs
from .board_file import read_chain
from .cost_table import Cache, CostTable, KernelCost
from .memory import (
    CheckpointStore,
    MemoryRegion,
    Space,
    check_memory,
    further_regions,
    main_region,
    read_regions,
)
from .schema import HOST, PROFILES, near
from .toml_file import shown

_MEASURED = [  # of [cost]
    f.name for f in fields(CostTable) if f.default is MISSING and f.default_factory is MISSING
]
Costs = TypeVar("Costs", Cache, KernelCost)
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True)
class Target:
    """The core and its compiler flags. `startup`: the folder with the core's start-up code (reset, faults, memory
    guards), None on the host; `support`: the folder with the machine's code (clock, UART). Both are absolute.
    `clock_hz`: of the core, for estimates of time; None where it is not known. `ua_per_mhz`: microamperes for each MHz
    of the clock while the core computes, at a supply of so many `volts`; 0 where they are not known."""

    core: str
    features: tuple[str, ...]
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    startup: Path | None
    support: Path
    clock_hz: int | None = None
    ua_per_mhz: float = 0.0
    volts: float = 0.0

    def milliseconds(self, cycles: float) -> float | None:
        """None without a clock."""
        return None if self.clock_hz is None else 1e3 * cycles / self.clock_hz

    def millijoules(self, cycles: float) -> float | None:
        """The current times the voltage times the time, which depends on no clock; None without a current."""
        return 1e-9 * self.ua_per_mhz * self.volts * cycles or None


@dataclass(frozen=True)
class Kernels:
    """Kernel backends by priority; `ref` serves every call that no other does. `use`: priority lists for single
    kernels, by kernel name."""

    backends: tuple[str, ...]
    use: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Toolchain:
    """`prefix` of the tool names, the Debian `packages` that contain them, and `probes`: commands that exit with 0 if
    the packages are installed."""

    prefix: str
    packages: tuple[str, ...]
    probes: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class QemuCommand:
    """The emulator's command: `binary -M machine [-cpu cpu] args...`."""

    binary: str
    machine: str
    cpu: str | None
    args: tuple[str, ...]


@dataclass(frozen=True)
class Upload:
    """How a debug probe writes the binary to `address`: openocd arguments, and whether st-flash supports the chip."""

    address: int
    openocd: tuple[str, ...]
    st_flash: bool


@dataclass(frozen=True)
class BoardSpec:
    """One board. `id`: the file's stem; `files`: all TOML files that were read, the board's own first."""

    id: str
    name: str
    path: Path
    files: tuple[Path, ...]
    memory: Mapping[str, MemoryRegion]
    profile: str  # the goal of optimisation: "speed" or "size"
    stack_bytes: int
    ram_budget: int | None
    target: Target
    cost: CostTable
    kernels: Kernels
    toolchain: Toolchain
    qemu: QemuCommand | None
    upload: Upload | None
    store: CheckpointStore | None
    platformio: Mapping[str, Any]
    trusted: bool = False  # the files may do more than choose compilers and options

    @property
    def is_host(self) -> bool:
        """True when programs are built for the host and run directly."""
        return self.target.core == HOST

    def region(self, kind: str) -> MemoryRegion | None:
        """The main region of a kind, the first in the file; None on the host."""
        return main_region(self.memory, kind)

    @property
    def ram_bytes(self) -> int | None:
        """The RAM budget of a trainer, over all regions that it may use: the budget of the file, at most the size of
        the regions; None without a limit (host)."""
        limits = [self.ram_budget, sum(s.bytes for s in self.spaces) if self.spaces else None]
        return min((n for n in limits if n is not None), default=None)

    @cached_property
    def spaces(self) -> tuple[Space, ...]:
        """The RAM that a trainer may use: main RAM less the stack, then the further regions; nothing on the host."""
        main = self.region("ram")
        if main is None:
            return ()
        cost = 1.0 if main.cost is None else main.cost
        further = (Space(r.name, r.bytes, r.cost or 0.0, r.states) for r in further_regions(self.memory))
        return (Space(main.name, main.bytes - self.stack_bytes, cost, main.states), *further)


def names() -> list[str]:
    """Names of the boards in the tree, sorted."""
    return sorted(path.stem for path in boards_dir().glob("*.toml"))


def boards_dir() -> Path:
    """The tree's `boards` folder."""
    return installation.boards()


def load(name_or_path: str, profile: str = "", *, trusted: bool = False) -> BoardSpec:
    """Read a board: a name in the tree (`stm32`), or the path of a file (with a / or ending in .toml). `profile`:
    "speed" or "size", overrides the file's. `trusted`: the file may do more than choose compilers and options.

    Raises BoardError, whose one line names the file and the dotted path of the key.
    """
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text or "\\" in text:
        path = Path(os.path.expanduser(text))
        if not path.exists():
            file = f"{text}.toml"
            found = f"; did you mean {file}?" if os.path.isfile(os.path.expanduser(file)) else ""
            raise BoardError(f"board file {text}: no such file{found}")
    else:
        path = boards_dir() / f"{text}.toml"
        if not text or not path.is_file():
            own = f"{text}.toml" if os.path.isfile(f"{text}.toml") else "path/to/board.toml"
            known = near(text, names())
            raise BoardError(f"unknown board {shown(text)}{known}; give a board of your own as {own}")
    regular.open_regular(path, BoardError).close()
    path = path.resolve()
    if not _ID.fullmatch(path.stem):
        raise BoardError(f"{path}: the file's name is the board's name: use letters, digits, _ and -")
    data, files = read_chain(path, trusted)
    if profile:
        if profile not in PROFILES:
            raise BoardError(f"profile={profile}: must be {' or '.join(PROFILES)}")
        data["profile"] = profile
    return _build(data, path, tuple(files), trusted)


def _build(data: dict[str, Any], path: Path, files: tuple[Path, ...], trusted: bool) -> BoardSpec:
    if "name" not in data:
        raise BoardError(f"{path}: name is missing")
    target, toolchain, kernels = _target(data, path), _toolchain(data, path), _kernels(data, path)
    check_specs([*target.cflags, *target.ldflags] if not trusted else [], toolchain.prefix, path)
    host = target.core == HOST
    memory = {} if host else read_regions(_section(data, path, "memory"), path)
    if not host and "stack_bytes" not in data:
        raise BoardError(f"{path}: stack_bytes is missing")
    board = BoardSpec(
        id=path.stem,
        name=data["name"],
        path=path,
        files=files,
        memory=MappingProxyType(memory),
        profile=data.get("profile", PROFILES[0]),
        stack_bytes=data.get("stack_bytes", 0),
        ram_budget=data.get("ram_budget"),
        target=target,
        cost=_cost(_section(data, path, "cost", *_MEASURED), path),
        kernels=kernels,
        toolchain=toolchain,
        qemu=_qemu(data, path) if "qemu" in data else None,
        upload=_upload(data, path) if "upload" in data else None,
        store=_store(data, path) if "store" in data else None,
        platformio=MappingProxyType(data.get("platformio", {})),
        trusted=trusted,
    )
    if not host:
        check_memory(board.memory, board.store, board.stack_bytes, path)
    return board


def _section(data: dict[str, Any], path: Path, name: str, *required: str) -> dict[str, Any]:
    """A section with the keys that it must have. Raises BoardError."""
    part = data.get(name)
    if not isinstance(part, dict):
        raise BoardError(f"{path}: missing section [{name}]")
    for key in required:
        if key not in part:
            raise BoardError(f"{path}: {name}.{key} is missing")
    return part


def _target(data: dict[str, Any], path: Path) -> Target:
    target = _section(data, path, "target", "core", "support")
    host = target["core"] == HOST
    if not host and "startup" not in target:
        raise BoardError(f"{path}: target.startup is missing")
    if target.get("ua_per_mhz") and not target.get("volts"):
        raise BoardError(
            f"{path}: target.volts is missing: the supply at which target.ua_per_mhz was measured"
        )
    return Target(
        target["core"],
        tuple(target.get("features", ())),
        tuple(target.get("cflags", ())),
        tuple(target.get("ldflags", ())),
        None if host else _startup(target["startup"], path),
        _support(target["support"], path),
        target.get("clock_hz"),
        target.get("ua_per_mhz", 0.0),
        target.get("volts", 0.0),
    )


def _toolchain(data: dict[str, Any], path: Path) -> Toolchain:
    toolchain = _section(data, path, "toolchain", "prefix")
    return Toolchain(
        toolchain["prefix"],
        tuple(toolchain.get("packages", ())),
        tuple(tuple(probe) for probe in toolchain.get("probes", ())),
    )


def _kernels(data: dict[str, Any], path: Path) -> Kernels:
    kernels = _section(data, path, "kernels", "backends")
    use = {kernel: tuple(names) for kernel, names in kernels.get("use", {}).items()}
    return Kernels(tuple(kernels["backends"]), MappingProxyType(use))


def _qemu(data: dict[str, Any], path: Path) -> QemuCommand:
    qemu = _section(data, path, "qemu", "machine")
    binary = qemu.get("binary", "qemu-system-arm")
    return QemuCommand(binary, qemu["machine"], qemu.get("cpu"), tuple(qemu.get("args", ())))


def _upload(data: dict[str, Any], path: Path) -> Upload:
    upload = _section(data, path, "upload", "address")
    return Upload(upload["address"], tuple(upload.get("openocd", ())), upload.get("st_flash", False))


def _store(data: dict[str, Any], path: Path) -> CheckpointStore:
    store = _section(data, path, "store", "origin", "slots", "slot_bytes")
    return CheckpointStore(store["origin"], store["slots"], store["slot_bytes"])


def _cost(section: dict[str, Any], path: Path) -> CostTable:
    def complete(name: str, value: dict[str, Any], made: type[Costs]) -> Costs:
        for key in (f.name for f in fields(made) if f.name not in value):
            raise BoardError(f"{path}: cost.{name}.{key} is missing")
        return made(**value)

    values = dict(section)
    kernels, calls = values.pop("kernels", {}), values.pop("calls", {})
    by_symbol = {name: complete(f"kernels.{name}", v, KernelCost) for name, v in kernels.items()}
    for name, value in values.items():
        if isinstance(value, dict):
            values[name] = (
                complete(name, value, KernelCost) if name != "cache" else complete(name, value, Cache)
            )
    return CostTable(kernels=MappingProxyType(by_symbol), calls=MappingProxyType(calls), **values)


def _support(name: str, path: Path) -> Path:
    tree = boards_dir() / "support"
    folder = Path(name) if "/" in name else tree / name
    if not folder.is_dir():
        known = [p.name for p in tree.glob("*/") if p.name not in ("common", "cores")]
        raise BoardError(f"{path}: target.support names no folder: {shown(name)}{near(name, known)}")
    return folder


def _startup(name: str, path: Path) -> Path:
    tree = boards_dir() / "support" / "cores"
    known = [p.name for p in tree.glob("*/")]
    if name not in known:
        raise BoardError(
            f"{path}: target.startup names no folder of {tree}: {shown(name)}{near(name, known)}"
        )
    return tree / name
