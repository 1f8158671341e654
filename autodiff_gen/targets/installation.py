"""The version, and the folders of C sources, boards and SCons tools: in the checkout, otherwise inside the package.
Standard library only.
"""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

__version__ = "0.1.0"

_PACKAGE = Path(__file__).resolve().parents[1]


@cache
def root() -> Path:
    """The folder that holds `kernels`, `runtime`, `boards` and `examples`.

    A checkout has priority: an editable install also has a copy in `_data`, but edits are made in the checkout.
    """
    checkout = _PACKAGE.parent
    return checkout if is_checkout(checkout) else _PACKAGE / "_data"


def is_checkout(folder: Path) -> bool:
    """True for the project's tree, false for a folder that only contains the package (site-packages)."""
    return (folder / "SConstruct").is_file() and (folder / "kernels" / "ag_kernels.h").is_file()


def kernels() -> Path:
    """Kernel backends, one folder each, and the contract `ag_kernels.h`."""
    return root() / "kernels"


def requirements() -> Path:
    """Pinned packages; the wheel has only the packages with third-party sources for kernel backends."""
    return root() / "requirements"


def runtime() -> Path:
    """C for the board that is neither a kernel nor generated."""
    return root() / "runtime"


def boards() -> Path:
    """Board profiles, and `support` with start-up code and linker scripts."""
    return root() / "boards"


def examples() -> Path:
    """Example models, one folder each."""
    return root() / "examples"


def error_pages() -> Path:
    """The entries about error messages, which `autodiff-gen help-error` prints."""
    return root() / "docs" / "errors"


@cache
def _index() -> dict[str, dict[str, str]]:
    """The titles of the benchmark's networks by group and name; empty in an installed package, which has none."""
    path = root() / "bench" / "workloads" / "index.toml"
    if not path.is_file():
        return {}
    groups = tomllib.loads(path.read_text(encoding="utf-8"))
    return {name: titles for name, titles in groups.items() if name != "schema"}


def _group(name: str) -> dict[str, Path]:
    return {network: root() / "bench" / "workloads" / f"{network}.py" for network in _index().get(name, {})}


def workloads() -> dict[str, Path]:
    """The benchmark's workloads by name, a model file each; an installed package has none."""
    return _group("workloads")


def networks() -> dict[str, Path]:
    """The benchmark's float networks, likewise."""
    return _group("networks")


def sparse_updates() -> dict[str, Path]:
    """The benchmark's 8-bit networks that train in part, likewise."""
    return _group("sparse_updates")


def small_networks() -> dict[str, Path]:
    """Small networks with layers that the others lack, likewise: `autodiff-gen bench` measures stages of the compiler
    on them."""
    return _group("small_networks")


def benchmarks() -> dict[str, Path]:
    """All model files of the benchmark by name."""
    return {name: path for group in _index() for name, path in _group(group).items()}


def title(name: str) -> str:
    """The title of a network of the benchmark; the name of any other model."""
    return next((titles[name] for titles in _index().values() if name in titles), name)


def qemu_plugin() -> Path:
    """The source of the QEMU plugin that counts instructions."""
    return root() / "bench" / "qemu" / "ag_count.c"


def platformio() -> Path:
    """PlatformIO's platform for emulated boards."""
    return root() / "platformio"


def scons_tools() -> Path:
    """The folder of the SCons tools: autodiff, firmware, bench and train."""
    tools = root() / "site_scons" / "site_tools"
    return tools if tools.is_dir() else root() / "site_tools"
