"""ag_math.h and kernels of ref give the same bits in every build, on every core."""

import ctypes
import re
import subprocess
import zlib

import numpy as np
import pytest
from c_build import CORTEX, HOST, KERNELS, compile_c, shared_library
from checkout import C
from math_functions import INF, NAMES, NAN, SMALL, TINY, UNARY, call, every

SWEEP = 20_000
SWEPT = ("avg_pool2d", "conv2d", "gemm", "gemv", "ger", "max_pool2d")  # by kernel_sweep.c
SOURCES = [C / "math_sweep.c", C / "kernel_sweep.c", *(KERNELS / "ref" / f"{name}.c" for name in SWEPT)]


@pytest.mark.cc
def test_shortcuts_have_the_same_bits(math_library, tmp_path):
    """Cores without vectors take them; their ends, and numbers beyond them, among the arguments."""
    flags = ("-O2", "-ffp-contract=off", "-DAG_MATH_SHORTCUTS=1")
    quick = shared_library("gcc", [C / "math_sweep.c"], tmp_path / "quick.so", flags)
    ends = np.array([0, TINY, SMALL, 0.55, 35.2, 87, 89, 104, INF], np.float32).view(np.uint32)
    near = (np.maximum(ends[:, None], 3) + np.arange(-3, 4)).astype(np.uint32).view(np.float32).ravel()
    x = np.concatenate([near, -near, every(2003), np.linspace(-90, 90, 300_001, dtype=np.float32)])
    x = np.where(np.isnan(x), np.float32(NAN), x)
    for name in UNARY:
        assert call(quick, name, x).tobytes() == call(math_library, name, x).tobytes(), name


def checksums_on_host(cc, flags, folder):
    library = shared_library(cc, SOURCES, folder / "sweep.so", flags)
    library.sweep_crc.restype = library.kernels_crc.restype = ctypes.c_uint32
    return {name: library.sweep_crc(i, SWEEP) for i, name in enumerate(NAMES)} | {
        "kernels": library.kernels_crc()
    }


@pytest.fixture(scope="module")
def checksums(tmp_path_factory):
    """What every build must give: gcc -O0 on the host."""
    return checksums_on_host("gcc", ("-O0", "-ffp-contract=off"), tmp_path_factory.mktemp("O0"))


@pytest.mark.cc
@pytest.mark.parametrize("cc", ["gcc -march=x86-64-v3", "aarch64-linux-gnu-gcc -mcpu=cortex-a53"])
def test_loops_over_them_become_vectors(cc, tmp_path):
    """With gcc's own flags, which mind traps: of one function after the other."""
    names = [n for n in NAMES if n not in ("sinf", "cosf", "powf", "rintf", "atan2f")]
    loops = [
        f"void {n}_(float *y, const float *x, int n) {{ for (int i = 0; i < n; i++) y[i] = ag_{n}(x[i]); }}"
        for n in names
    ]
    source = tmp_path / "loops.c"
    source.write_text("\n".join(['#include "ag_math.h"', *loops]) + "\n")
    told = [*cc.split(), "-std=c99", "-O3", "-fopt-info-vec", f"-I{KERNELS / 'ref'}", "-c", str(source)]
    done = subprocess.run(
        [*told, "-o", str(tmp_path / "loops.o")], capture_output=True, text=True, check=True
    )
    lines = {int(n) for n in re.findall(r"loops\.c:(\d+):\d+: optimized: +loop vectorized", done.stderr)}
    assert lines == set(range(2, 2 + len(names)))


def test_the_checksum_is_of_the_results(math_library):
    """A sweep that were the same for every function would detect nothing."""
    math_library.sweep_crc.restype = ctypes.c_uint32
    assert len({math_library.sweep_crc(i, SWEEP) for i in range(len(NAMES))}) == len(NAMES)
    one = call(math_library, "expf", np.array([16.0], np.float32))  # argument 0: |-16|
    assert math_library.sweep_crc(0, 1) == zlib.crc32(one.tobytes())


@pytest.mark.cc
@pytest.mark.parametrize(
    "cc, flags",
    [
        (cc, flags)
        for cc in HOST
        for flags in ("-O0", "-O2", "-O3", "-O3 -march=native")
        if (cc, flags) != ("gcc", "-O0")  # `checksums` is this
    ],
)
def test_same_bits_on_the_host(cc, flags, checksums, tmp_path):
    assert checksums_on_host(cc, (*flags.split(), "-ffp-contract=off"), tmp_path) == checksums


@pytest.mark.qemu
@pytest.mark.parametrize(
    "core, machine, level",
    [("m3", "mps2-an385", "-O0"), ("m4f", "mps2-an386", "-O3"), ("m7", "mps2-an500", "-O3")],
)
def test_same_bits_on_cortex_m(core, machine, level, checksums, tmp_path):
    layout = (
        "-nostartfiles",
        "-Wl,--section-start=.vectors=0",
        "-Wl,-Ttext=0x100",
        "-Wl,-Tbss=0x20000000",
        "-Wl,-ereset",
    )
    flags = (*CORTEX[core], level, "-ffp-contract=off", "-fno-math-errno", f"-DSWEEP={SWEEP}u", *layout)
    sources = [C / "bare_sweep.c", *SOURCES, "-lm"]
    elf = compile_c("arm-none-eabi-gcc", sources, tmp_path / "sweep.elf", flags)
    semihosting = ("-semihosting-config", "enable=on,target=native")
    command = [
        "timeout",
        "60",
        "qemu-system-arm",
        "-M",
        machine,
        "-display",
        "none",
        "-monitor",
        "none",
        *semihosting,
    ]
    done = subprocess.run(
        [*command, "-kernel", str(elf)], capture_output=True, stdin=subprocess.DEVNULL, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    lines = [line.split() for line in done.stderr.decode().splitlines() if line.count(" ") == 1]
    assert {name: int(crc, 16) for name, crc in lines} == checksums
