"""Board profiles: read `boards/<board>.toml` or a user's file into an immutable `Board`. Unknown keys are errors.
Stdlib only."""

from __future__ import annotations

import itertools
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any

from ..errors import BoardError
from .cost_table import CostTable, KernelCost
from .schema import HOST, KINDS, PROFILES, SCHEMA, check, near

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True)
class Region:
    """A memory region: its `origin` and size in `bytes`; code and constants go to 'flash', variables to 'ram'."""

    name: str
    kind: str
    origin: int
    bytes: int

    @property
    def end(self) -> int:
        return self.origin + self.bytes


@dataclass(frozen=True)
class Target:
    """The core and its compiler flags. `startup`: the folder with the core's start-up code (reset, faults, memory
    guards), None on the host; `support`: the folder with the machine's code (clock, UART). Both are absolute."""

    core: str
    features: tuple[str, ...]
    cflags: tuple[str, ...]
    ldflags: tuple[str, ...]
    startup: Path | None
    support: Path


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
class Qemu:
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
class Store:
    """Flash for checkpoints, after the program: `slots` erase units of `slot_bytes`, starting at `origin`."""

    origin: int
    slots: int
    slot_bytes: int

    @property
    def end(self) -> int:
        return self.origin + self.slots * self.slot_bytes


@dataclass(frozen=True)
class Board:
    """One board. `id`: the file's stem; `files`: all TOML files that were read, the board's own first."""

    id: str
    name: str
    path: Path
    files: tuple[Path, ...]
    memory: Mapping[str, Region]
    profile: str  # the goal of optimisation: "speed" or "size"
    stack_bytes: int
    target: Target
    cost: CostTable
    kernels: Kernels
    toolchain: Toolchain
    qemu: Qemu | None
    upload: Upload | None
    store: Store | None
    platformio: Mapping[str, Any]

    @property
    def is_host(self) -> bool:
        """True when programs are built for the host and run directly."""
        return self.target.core == HOST

    def region(self, kind: str) -> Region | None:
        """The main region of a kind, the first in the file; None on the host."""
        return next((r for r in self.memory.values() if r.kind == kind), None)

    @property
    def ram_bytes(self) -> int | None:
        """The RAM budget of a trainer: main RAM less the stack; None without a limit (host)."""
        ram = self.region("ram")
        return None if ram is None else ram.bytes - self.stack_bytes


def names() -> list[str]:
    """Names of the boards in the tree, sorted."""
    return sorted(path.stem for path in boards_dir().glob("*.toml"))


def boards_dir() -> Path:
    """The tree's `boards` folder."""
    from . import installation

    return installation.root() / "boards"


def load(name_or_path: str, profile: str = "") -> Board:
    """Read a board: a name in the tree (`stm32`), or the path of a file (with a / or ending in .toml). `profile`:
    "speed" or "size", overrides the file's.

    Raises BoardError, whose one line names the file and the dotted path of the key.
    """
    text = str(name_or_path)
    if text.endswith(".toml") or "/" in text or "\\" in text:
        path = Path(text).expanduser()
        if not path.is_file():
            raise BoardError(f"board file {text}: no such file")
    else:
        path = boards_dir() / f"{text}.toml"
        if not text or not path.is_file():
            raise BoardError(
                f"unknown board {text!r}{near(text, names())}; give a board of your own as path/to/board.toml"
            )
    path = path.resolve()
    if not _ID.fullmatch(path.stem):
        raise BoardError(f"{path}: the file's name is the board's name: use letters, digits, _ and -")
    data, files = _read_chain(path)
    if profile:
        if profile not in PROFILES:
            raise BoardError(f"profile={profile}: must be {' or '.join(PROFILES)}")
        data["profile"] = profile
    return _build(data, path, tuple(files))


# ---- files and inheritance


def _read(path: Path) -> dict[str, Any]:
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BoardError(f"{path}: not valid TOML: {error}") from None
    except OSError as error:
        raise BoardError(f"{path}: cannot be read: {error.strerror}") from None
    if "schema" not in data:
        raise BoardError(f"{path}: schema is missing: write schema = {SCHEMA}")
    check(data, path)
    support = data.get("target", {}).get("support", "")
    if "/" in support:  # a user's folder, relative to the file that names it
        data["target"]["support"] = str((path.parent / support).resolve())
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
    return str((path.parent / Path(name).expanduser()).resolve()) if "/" in name else name


def _read_chain(path: Path) -> tuple[dict[str, Any], list[Path]]:
    """The file merged over the files that it inherits: tables merge, lists are replaced."""
    chain: list[dict[str, Any]] = []
    files: list[Path] = []
    while True:
        files.append(path)
        data = _read(path)
        chain.append(data)
        if "inherits" not in data:
            break
        parent = _parent(path, data["inherits"])
        if parent in files:
            circle = " -> ".join(p.stem for p in (*files[files.index(parent) :], parent))
            raise BoardError(f"{path}: inherits goes in a circle: {circle}")
        path = parent
    merged: dict[str, Any] = {}
    for data in reversed(chain):
        merged = _merge(merged, data)
    return merged, files


def _parent(path: Path, name: str) -> Path:
    """The file that `inherits` names, without .toml: in the same folder, otherwise in the tree's boards."""
    for folder in (path.parent, boards_dir()):
        candidate = folder / f"{name.removesuffix('.toml')}.toml"
        if candidate.is_file() and candidate.resolve() != path:  # a user's stm32.toml may inherit "stm32"
            return candidate.resolve()
    tree = boards_dir()
    known = [p.relative_to(tree).with_suffix("").as_posix() for p in tree.rglob("*.toml")]
    raise BoardError(
        f"{path}: inherits {name!r}, which is neither in its folder nor in the tree{near(name, known)}"
    )


def _merge(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in over.items():
        old = result.get(key)
        result[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


# ---- the record


def _build(data: dict[str, Any], path: Path, files: tuple[Path, ...]) -> Board:
    def section(name: str, *required: str) -> dict[str, Any]:
        part = data.get(name)
        if not isinstance(part, dict):
            raise BoardError(f"{path}: missing section [{name}]")
        for key in required:
            if key not in part:
                raise BoardError(f"{path}: {name}.{key} is missing")
        return part

    if "name" not in data:
        raise BoardError(f"{path}: name is missing")
    target = section("target", "core", "support")
    toolchain = section("toolchain", "prefix")
    kernels = section("kernels", "backends")
    host = target["core"] == HOST
    memory = {} if host else _regions(section("memory"), path)
    if not host and "startup" not in target:
        raise BoardError(f"{path}: target.startup is missing")
    if not host and "stack_bytes" not in data:
        raise BoardError(f"{path}: stack_bytes is missing")
    qemu = section("qemu", "machine") if "qemu" in data else None
    upload = section("upload", "address") if "upload" in data else None
    store = section("store", "origin", "slots", "slot_bytes") if "store" in data else None
    board = Board(
        id=path.stem,
        name=data["name"],
        path=path,
        files=files,
        memory=MappingProxyType(memory),
        profile=data.get("profile", PROFILES[0]),
        stack_bytes=data.get("stack_bytes", 0),
        target=Target(
            target["core"],
            tuple(target.get("features", ())),
            tuple(target.get("cflags", ())),
            tuple(target.get("ldflags", ())),
            None if host else _startup(target["startup"], path),
            _support(target["support"], path),
        ),
        cost=_cost(section("cost", *(f.name for f in fields(CostTable))), path),
        kernels=Kernels(
            tuple(kernels["backends"]),
            MappingProxyType({kernel: tuple(names) for kernel, names in kernels.get("use", {}).items()}),
        ),
        toolchain=Toolchain(
            toolchain["prefix"],
            tuple(toolchain.get("packages", ())),
            tuple(tuple(probe) for probe in toolchain.get("probes", ())),
        ),
        qemu=None
        if qemu is None
        else Qemu(
            qemu.get("binary", "qemu-system-arm"),
            qemu["machine"],
            qemu.get("cpu"),
            tuple(qemu.get("args", ())),
        ),
        upload=None
        if upload is None
        else Upload(upload["address"], tuple(upload.get("openocd", ())), upload.get("st_flash", False)),
        store=None if store is None else Store(store["origin"], store["slots"], store["slot_bytes"]),
        platformio=MappingProxyType(data.get("platformio", {})),
    )
    _check_memory(board)
    return board


def _cost(section: dict[str, Any], path: Path) -> CostTable:
    values = dict(section)
    for name, value in section.items():
        if isinstance(value, dict):
            for key in (f.name for f in fields(KernelCost) if f.name not in value):
                raise BoardError(f"{path}: cost.{name}.{key} is missing")
            values[name] = KernelCost(**value)
    return CostTable(**values)


def _support(name: str, path: Path) -> Path:
    tree = boards_dir() / "support"
    folder = Path(name) if "/" in name else tree / name
    if not folder.is_dir():
        known = [p.name for p in tree.glob("*/") if p.name not in ("common", "cores")]
        raise BoardError(f"{path}: target.support names no folder: {name!r}{near(name, known)}")
    return folder


def _startup(name: str, path: Path) -> Path:
    tree = boards_dir() / "support" / "cores"
    known = [p.name for p in tree.glob("*/")]
    if name not in known:
        raise BoardError(f"{path}: target.startup names no folder of {tree}: {name!r}{near(name, known)}")
    return tree / name


def _regions(section: dict[str, Any], path: Path) -> dict[str, Region]:
    regions = {}
    for name, part in section.items():
        for key in ("origin", "bytes"):
            if key not in part:
                raise BoardError(f"{path}: memory.{name}.{key} is missing")
        regions[name] = Region(name, part.get("kind", "ram"), part["origin"], part["bytes"])
        if regions[name].end > 1 << 32:
            raise BoardError(
                f"{path}: memory.{name} ends above 4 GiB: origin + bytes = {regions[name].end:#x}"
            )
    return regions


def _check_memory(board: Board) -> None:
    if board.is_host:
        return
    for kind in KINDS:
        if board.region(kind) is None:
            raise BoardError(f"{board.path}: memory has no region of kind {kind!r}: add [memory.<name>]")
    regions = sorted(board.memory.values(), key=lambda r: r.origin)
    for low, high in itertools.pairwise(regions):
        if low.end > high.origin:
            raise BoardError(f"{board.path}: memory.{low.name} and memory.{high.name} overlap")
    ram = board.region("ram")
    assert ram is not None
    if ram.origin % 32 or ram.bytes % 32:
        raise BoardError(
            f"{board.path}: memory.{ram.name}: origin and bytes must be multiples of 32 (MPU guards)"
        )
    flash = board.region("flash")
    assert flash is not None
    if board.store is not None and not flash.origin < board.store.origin <= board.store.end <= flash.end:
        raise BoardError(
            f"{board.path}: [store] must be inside memory.{flash.name} ({flash.origin:#x} to {flash.end:#x}) and after "
            "its start, where the program is"
        )
    if board.stack_bytes % 8:
        raise BoardError(f"{board.path}: stack_bytes must be a multiple of 8, got {board.stack_bytes}")
    if board.stack_bytes >= ram.bytes:
        raise BoardError(
            f"{board.path}: stack_bytes is {board.stack_bytes}, but memory.{ram.name} has {ram.bytes} bytes"
        )
