"""Compiles C for the tests of hand-written kernels. A missing compiler is a failure, never a skip."""

import ctypes
import os
import subprocess
from pathlib import Path

from checkout import ROOT

from autodiff_gen.targets.build_commands import STRICT_FLAGS

KERNELS = ROOT / "kernels"
RUNTIME = ROOT / "runtime"
INCLUDES = tuple(f"-I{folder}" for folder in (KERNELS, KERNELS / "ref", RUNTIME))
# The link on the host, with simulated flash, as in a board's support.
LINK = [
    *(
        RUNTIME / f"ag_{n}.c"
        for n in (
            "link",
            "link_model",
            "requests",
            "object_requests",
            "round_requests",
            "round",
            "round_shared",
            "gradients",
        )
    ),
    *(RUNTIME / f"ag_{n}.c" for n in ("round_delta", "round_samples", "noise")),
    *(
        RUNTIME / f"ag_{n}.c"
        for n in (
            "store",
            "store_records",
            "store_notes",
            "frame",
            "samples",
            "flash_ram",
            "console",
            "format",
        )
    ),
    ROOT / "boards" / "support" / "host" / "system.c",
]
HOST = ("gcc", "clang")
WIDTHS = {"": (), "avx2": ("-march=x86-64-v3",), "avx512": ("-march=x86-64-v4",)}  # of the host's vectors
CORTEX = {
    "m3": ("-mcpu=cortex-m3", "-mthumb", "-mfloat-abi=soft"),
    "m4f": ("-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16"),
    "m7": ("-mcpu=cortex-m7", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv5-d16"),
}


def widths():
    """The widths of vectors that this machine can run; the least always, so that some test of them always runs."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text().split()) if info.is_file() else set()
    needs = {
        "": set(),
        "avx2": {"avx2", "fma", "bmi2"},
        "avx512": {"avx512f", "avx512vl", "avx512bw", "avx512dq"},
    }
    return [width for width, needed in needs.items() if needed <= flags]


def compiler(cc, flags=(), std="-std=c99"):
    """The start of a command: the compiler with the flags of all builds, then `flags`."""
    return [cc, std, "-fno-strict-aliasing", *STRICT_FLAGS, *INCLUDES, *flags]


def compile_c(cc, sources, output, flags=(), std="-std=c99"):
    """Run one compiler over `sources`; its messages become the failure. Returns `output`."""
    command = [*compiler(cc, flags, std), *map(str, sources), "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stderr}"
    return output


def check_warnings(cc, source, flags=()):
    """Fail if the compiler warns of a source with -O2, where gcc follows values through functions; clang's front end
    gives all of its warnings."""
    stage = ("-fsyntax-only",) if cc == "clang" else ("-O2", "-S")
    compile_c(cc, [source], os.devnull, (*stage, *flags))


def shared_library(cc, sources, output, flags=("-O2", "-ffp-contract=off")):
    """Compile `sources` into a shared library and load it."""
    return ctypes.CDLL(str(compile_c(cc, sources, output, ("-shared", "-fPIC", *flags))))
