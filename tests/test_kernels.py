"""Every kernel against float64, over a table of shapes; what it must not touch is NaN or guarded."""

import ctypes
import itertools
import zlib

import numpy as np
import pytest
from c_build import CORTEX, HOST, KERNELS, compile_c, shared_library

from autodiff_gen import backends
from autodiff_gen.kernel_contract import CONTRACT

GUARD = 5  # floats before and after each operand, and an odd number of them: nothing is aligned to more than 4 bytes
PAD = np.float32(-7.625e30)  # in guards and between rows: one of it in a sum is seen
EPSILON = 2.0**-24
FULL = [
    (1, 1, 1),
    (1, 7, 1),
    (5, 1, 3),
    (2, 3, 4),
    (4, 4, 4),
    (7, 5, 9),
    (8, 16, 32),
    (13, 17, 11),
    (10, 32, 1),
    (3, 33, 70),
]
SCALES = [(1.0, 0.0), (-0.01, 1.0), (0.5, -2.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
SOURCES = [k for k in backends.load(["ref"], root=KERNELS).backends[0].kernels]


class Operand:
    """A float32 matrix in a guarded buffer with `slack` floats between its rows."""

    def __init__(self, rows, columns, slack, rng, fill=None):
        self.ld = columns + slack
        self.buffer = np.full(GUARD + rows * self.ld + GUARD, PAD, np.float32)
        self.view = self.buffer[GUARD : GUARD + rows * self.ld].reshape(rows, self.ld)[:, :columns]
        self.view[:] = rng.uniform(-1, 1, (rows, columns)) if fill is None else fill
        self.before = self.buffer.copy()

    @property
    def pointer(self):
        return ctypes.c_void_p(self.buffer.ctypes.data + 4 * GUARD)

    def untouched(self, written):
        """True when nothing changed, but for the matrix itself where it is the output."""
        now = self.buffer.copy()
        if written:
            now[GUARD:-GUARD].reshape(-1, self.ld)[:, : self.view.shape[1]] = self.expected_hole()
        return now.tobytes() == self.before.tobytes()

    def expected_hole(self):
        return self.before[GUARD:-GUARD].reshape(-1, self.ld)[:, : self.view.shape[1]]


def shapes_of(name, m, n, k):
    """Stored shape of each operand of a kernel, by parameter name."""
    if name.startswith("gemm"):
        a, b = name[5:7]
        return {"a": (m, k) if a == "n" else (k, m), "b": (k, n) if b == "n" else (n, k), "c": (m, n)}
    if name == "gemv_f32":
        return {"a": (m, n), "x": (1, n), "y": (1, m)}
    return {
        "gemv_t_f32": {"a": (m, n), "x": (1, m), "y": (1, n)},
        "ger_f32": {"a": (m, n), "x": (1, m), "y": (1, n)},
    }[name]


def product_of(name, v):
    """The sum that alpha scales, and the sum of its terms' magnitudes, in float64; `v` holds the operands."""
    f = {key: value.astype(np.float64) for key, value in v.items()}
    if name.startswith("gemm"):
        left = f["a"] if name[5] == "n" else f["a"].T
        right = f["b"] if name[6] == "n" else f["b"].T
    elif name == "ger_f32":
        left, right = f["x"].T, f["y"]
    else:
        left, right = f["x"], f["a"].T if name == "gemv_f32" else f["a"]
    return left @ right, np.abs(left) @ np.abs(right), left.shape[1]


@pytest.fixture(scope="module", params=HOST)
def library(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    return shared_library(request.param, sorted({k.source for k in SOURCES}), folder / "kernels.so")


@pytest.mark.cc
@pytest.mark.parametrize("kernel", SOURCES, ids=lambda k: k.symbol)
@pytest.mark.parametrize("slack", [0, 3])
def test_kernel_against_float64(library, kernel, slack):
    rng = np.random.default_rng(zlib.crc32(kernel.name.encode()))
    for (m, n, k), (alpha, beta) in itertools.product(FULL, SCALES):
        check(library, kernel, m, n, k, slack, np.float32(alpha), np.float32(beta), rng)


def check(library, kernel, m, n, k, slack, alpha, beta, rng):
    spec = CONTRACT[kernel.name]
    operands = {}
    for name, (rows, columns) in shapes_of(kernel.name, m, n, k).items():
        nan_output = name == spec.output and beta == 0
        vector = f"ld{name}" not in spec.param_names
        operands[name] = Operand(rows, columns, 0 if vector else slack, rng, np.nan if nan_output else None)
    numbers = {"m": m, "n": n, "k": k, **{f"ld{name}": o.ld for name, o in operands.items()}}
    arguments = []
    for p in spec.params:
        if p.is_pointer:
            arguments.append(operands[p.name].pointer)
        elif p.ctype == "float":
            arguments.append(ctypes.c_float({"alpha": alpha, "beta": beta}[p.name]))
        else:
            arguments.append(ctypes.c_int32(numbers[p.name]))
    old = operands[spec.output].view.astype(np.float64)
    total, magnitude, terms = product_of(kernel.name, {name: o.view for name, o in operands.items()})
    function = getattr(library, kernel.symbol)
    function.restype = None
    function(*arguments)

    kept = 0.0 if beta == 0 else float(beta) * old
    want = float(alpha) * total + kept
    # each term meets at most `terms` roundings in the sum, then alpha, beta and the last addition
    bound = EPSILON * ((terms + 3) * abs(float(alpha)) * magnitude + 3 * np.abs(kept)) + 1e-44
    where = f"{kernel.symbol} m={m} n={n} k={k} slack={slack} alpha={alpha} beta={beta}"
    error = np.abs(operands[spec.output].view - want)
    assert np.all(error <= bound), f"{where}: off by {error.max()}"
    for name, operand in operands.items():
        assert operand.untouched(name == spec.output), f"{where}: wrote outside {name}"


@pytest.mark.cc
def test_the_sum_is_complete_before_the_output_is_read(library):
    """Products far below C's last digit must still add up: 1000 of 2^-26 change 1 by 2^-16."""
    k = 1000
    a, b, c = np.full(k, 2.0**-13, np.float32), np.full(k, 2.0**-13, np.float32), np.ones(1, np.float32)
    pointers = [ctypes.c_void_p(v.ctypes.data) for v in (a, b, c)]
    one = ctypes.c_float(1.0)
    library.ag_gemm_nt_f32_ref(pointers[0], k, pointers[1], k, pointers[2], 1, 1, 1, k, one, one)
    assert c[0] == np.float32(1 + k * 2.0**-26)


@pytest.mark.cc
@pytest.mark.parametrize(
    "cc, std", [("gcc", "-std=c99"), ("clang", "-std=c99"), ("g++", "-std=c++11"), ("clang++", "-std=c++11")]
)
@pytest.mark.parametrize("source", sorted({k.source for k in SOURCES}), ids=lambda p: p.name)
def test_kernels_are_clean_as_c_and_cpp(cc, std, source, tmp_path):
    language = ("-x", "c++") if cc.endswith("++") else ()
    compile_c(cc, [source], tmp_path / "kernel.o", ("-c", "-O2", *language), std)


@pytest.mark.qemu
@pytest.mark.parametrize("core", CORTEX)
@pytest.mark.parametrize("source", sorted({k.source for k in SOURCES}), ids=lambda p: p.name)
def test_kernels_are_clean_on_cortex_m(core, source, tmp_path):
    compile_c("arm-none-eabi-gcc", [source], tmp_path / "kernel.o", ("-c", "-O2", *CORTEX[core]))
