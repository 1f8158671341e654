"""The products of `ref`, with which all other kernels are compared, against float64; forbidden memory is NaN or
guarded.

Kernels that ops call through their records are in test_op_kernels.py."""

import ctypes
import itertools
import re
import zlib

import numpy as np
import pytest
from c_build import CORTEX, HOST, KERNELS, compile_c
from kernel_builds import EPSILON, GUARD, PAD, REF, build
from matrix_products import product_of, shapes_of

from autodiff_gen.kernels import registry
from autodiff_gen.kernels.contract import CONTRACT

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
    (19, 47, 41),
]
SCALES = [(1.0, 0.0), (-0.01, 1.0), (0.5, -2.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0)]
SOURCES = sorted({k.source for k in REF.kernels})  # C and C++
PRODUCTS = [(cc, k) for cc in HOST for k in REF.kernels if k.name.startswith("ge")]  # gemm, gemv, ger


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
        now, before = self.buffer.copy(), self.before.copy()
        if written:
            for buffer in (now, before):
                buffer[GUARD:-GUARD].reshape(-1, self.ld)[:, : self.view.shape[1]] = 0
        return now.tobytes() == before.tobytes()


@pytest.fixture(scope="module")
def libraries(tmp_path_factory):
    """`ref` by compiler."""
    return {cc: build(REF, cc, tmp_path_factory.mktemp(cc)) for cc in HOST}


def products(family):
    """Parametrizes a test by compiler and kernel."""
    rows = [
        pytest.param(*row, id=f"{row[0]}-{row[1].symbol}")
        for row in PRODUCTS
        if row[1].name.startswith(family)
    ]
    return pytest.mark.parametrize(("cc", "kernel"), rows)


@pytest.mark.cc
@products("ge")
@pytest.mark.parametrize("slack", [0, 3])
def test_kernel_against_float64(libraries, cc, kernel, slack):
    assert check_all(libraries[cc], kernel, slack), "no case of the table meets the kernel's conditions"


def check_all(library, kernel, slack):
    """Run every case that the kernel's conditions admit; returns how many."""
    rng = np.random.default_rng(zlib.crc32(kernel.name.encode()))
    cases = itertools.product(FULL, SCALES)
    return sum(check(library, kernel, *mnk, slack, *map(np.float32, scales), rng) for mnk, scales in cases)


def check(library, kernel, m, n, k, slack, alpha, beta, rng):
    spec = CONTRACT[kernel.name]
    operands = {}
    for name, (rows, columns) in shapes_of(kernel.name, m, n, k).items():
        nan_output = name == spec.output and beta == 0
        vector = f"ld{name}" not in spec.param_names
        operands[name] = Operand(rows, columns, 0 if vector else slack, rng, np.nan if nan_output else None)
    numbers = {"m": m, "n": n, "k": k, **{f"ld{name}": o.ld for name, o in operands.items()}}
    if not kernel.matches({**numbers, "alpha": float(alpha), "beta": float(beta)}):
        return False
    arguments = []
    for p in spec.params:
        if p.is_pointer:
            arguments.append(operands[p.name].pointer)
        elif p.is_epilogue:
            arguments.append(None)
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
    return True


@pytest.mark.cc
@products("gemm")
def test_the_sum_is_complete_before_the_output_is_read(libraries, cc, kernel):
    """Products far below C's last digit must still add up: 1000 of 2^-26 change 1 by 2^-16."""
    k = 1000
    a, b, out = np.full(k, 2.0**-13, np.float32), np.full(k, 2.0**-13, np.float32), np.ones(1, np.float32)
    one = ctypes.c_float(1.0)
    lda, ldb = k if kernel.name[5] == "n" else 1, k if kernel.name[6] == "t" else 1
    at_a, at_b, at_out = (ctypes.c_void_p(v.ctypes.data) for v in (a, b, out))
    function = getattr(libraries[cc], kernel.symbol)
    function(at_a, lda, at_b, ldb, at_out, 1, 1, 1, k, one, one, None)
    assert out[0] == np.float32(1 + k * 2.0**-26)


@pytest.mark.cc
@pytest.mark.parametrize(
    "cc, std", [("gcc", "-std=c99"), ("clang", "-std=c99"), ("g++", "-std=c++11"), ("clang++", "-std=c++11")]
)
def test_kernels_are_clean_as_c_and_cpp(cc, std, tmp_path):
    language = ("-x", "c++") if cc.endswith("++") else ()
    for source in SOURCES:
        compile_c(cc, [source], tmp_path / "kernel.o", ("-c", "-O2", *language), std)


@pytest.mark.qemu
@pytest.mark.parametrize("core", CORTEX)
def test_kernels_are_clean_on_cortex_m(core, tmp_path):
    for source in SOURCES:
        compile_c("arm-none-eabi-gcc", [source], tmp_path / "kernel.o", ("-c", "-O2", *CORTEX[core]))


@pytest.fixture(scope="module")
def documented(tmp_path_factory):
    """The backend of kernels/README.md, as its reader would type it, in a folder with a space."""
    folder = tmp_path_factory.mktemp("my kernels") / "wide"
    folder.mkdir()
    blocks = dict(re.findall(r"```(c|toml)\n(.*?)```", (KERNELS / "README.md").read_text(), flags=re.DOTALL))
    (folder / "wide.c").write_text(blocks["c"])
    (folder / "kernels.toml").write_text(blocks["toml"])
    return registry.load([str(folder)], root=KERNELS)


@pytest.mark.parametrize(
    "facts, backend", [({"n": 12, "beta": 1.0}, "wide"), ({"n": 13, "beta": 1.0}, "ref"), ({"n": 12}, "ref")]
)
def test_the_documented_backend_is_selected(documented, facts, backend):
    assert documented.select("ger_f32", {"m": 3, "lda": 16, **facts}).backend == backend


@pytest.mark.cc
@pytest.mark.parametrize("cc", HOST)
def test_the_documented_backend_computes(documented, cc, tmp_path):
    wide = documented.backends[0]
    assert wide.cflags == ("-O3", "-ffp-contract=fast")
    assert check_all(build(wide, cc, tmp_path), wide.kernels[0], slack=3)
