"""The version, and the folders of C sources, boards and SCons tools: in the checkout, otherwise inside the package.
Standard library only.
"""

from __future__ import annotations

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
    """Pinned packages, of which the wheel has those with third-party sources for kernel backends."""
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


def workloads() -> dict[str, Path]:
    """The benchmark's workloads by name, a model file each; an installed package has none."""
    return {path.stem: path for path in sorted((root() / "bench" / "workloads").glob("w*.py"))}


def networks() -> dict[str, Path]:
    """The benchmark's float networks by name, a model file each; an installed package has none."""
    files = sorted((root() / "bench" / "workloads").glob("[!w]*.py"))
    others = ("common", "lenet", "sparse_update", *sparse_updates(), *small_networks())
    return {path.stem: path for path in files if path.stem not in others}


def sparse_updates() -> dict[str, Path]:
    """The benchmark's 8-bit networks that train in part, likewise."""
    files = (root() / "bench" / "workloads" / f"{name}.py" for name in ("mcunet", "mbv2", "proxyless"))
    return {path.stem: path for path in files if path.is_file()}


def small_networks() -> dict[str, Path]:
    """Small networks with what the others lack, likewise: `autodiff-gen bench` measures stages of the compiler on
    them."""
    names = ("dropout", "flat_dropout", "gat", "moe", "ode", "same_padding", "sknet")
    files = (root() / "bench" / "workloads" / f"{name}.py" for name in names)
    return {path.stem: path for path in files if path.is_file()}


def benchmarks() -> dict[str, Path]:
    """All model files of the benchmark by name."""
    return workloads() | networks() | sparse_updates() | small_networks()


def qemu_plugin() -> Path:
    """The source of the QEMU plugin that counts instructions."""
    return root() / "bench" / "qemu" / "ag_count.c"


def platformio() -> Path:
    """PlatformIO's platform for emulated boards."""
    return root() / "platformio"


def scons_tools() -> Path:
    """The SCons tools `autodiff` and `firmware`."""
    tools = root() / "site_scons" / "site_tools"
    return tools if tools.is_dir() else root() / "site_tools"
