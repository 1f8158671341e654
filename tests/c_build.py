"""Compiles C for the tests of hand-written kernels. A missing compiler is a failure, never a skip."""

import ctypes
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
KERNELS = REPOSITORY / "kernels"
RUNTIME = REPOSITORY / "runtime"
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wdouble-promotion", "-Werror")
INCLUDES = tuple(f"-I{folder}" for folder in (KERNELS, KERNELS / "ref", RUNTIME))
HOST = ("gcc", "clang")
CORTEX = {
    "m3": ("-mcpu=cortex-m3", "-mthumb", "-mfloat-abi=soft"),
    "m4f": ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
    "m7": ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
}


def compile_c(cc, sources, output, flags=(), std="-std=c99"):
    """Run one compiler over `sources`; its messages become the failure. Returns `output`."""
    command = [
        cc,
        std,
        "-fno-strict-aliasing",
        *STRICT,
        *INCLUDES,
        *flags,
        *map(str, sources),
        "-o",
        str(output),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return output


def shared_library(cc, sources, output, flags=("-O2", "-ffp-contract=off")):
    """Compile `sources` into a shared library and load it."""
    return ctypes.CDLL(str(compile_c(cc, sources, output, ("-shared", "-fPIC", *flags))))
