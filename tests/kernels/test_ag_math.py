"""ag_math.h: the bounds that its header states, special values as in C99 annex F, the same bits on every core."""

import ctypes
import math
import re
import subprocess
import zlib

import numpy as np
import pytest
from c_build import CORTEX, HOST, KERNELS, compile_c, shared_library
from checkout import C

from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file

UNARY = ["expf", "logf", "expm1f", "log1pf", "tanhf", "sigmoidf", "sinf", "cosf", "erff", "rintf"]
NAMES = [*UNARY, "powf", "atan2f"]
SWEEP = 20_000
SWEPT = ("avg_pool2d", "conv2d", "gemm", "gemv", "ger", "max_pool2d")  # by kernel_sweep.c
SOURCES = [C / "math_sweep.c", C / "kernel_sweep.c", *(KERNELS / "ref" / f"{name}.c" for name in SWEPT)]
HEADER = (KERNELS / "ref" / "ag_math.h").read_text()
BOUNDS = {
    name: float(bound) for name, bound in re.findall(r"ag_(\w+f) (\d+\.\d+)", HEADER.split("#ifndef")[0])
}
INF, NAN = np.inf, np.nan


def sigmoid(x):
    z = np.exp(-np.abs(x))
    return np.where(x < 0, z, 1) / (1 + z)


def erf(x):
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(x), np.float64)


EXACT = {
    "expf": np.exp,
    "logf": np.log,
    "expm1f": np.expm1,
    "log1pf": np.log1p,
    "tanhf": np.tanh,
    "sigmoidf": sigmoid,
    "sinf": np.sin,
    "cosf": np.cos,
    "erff": erf,
    "rintf": np.rint,
    "powf": np.power,
    "atan2f": np.arctan2,
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return shared_library("gcc", [C / "math_sweep.c"], tmp_path_factory.mktemp("math") / "math.so")


def call(library, name, x, y=None):
    """The C function over float32 arrays."""
    x = np.ascontiguousarray(x, np.float32)
    y = np.zeros_like(x) if y is None else np.ascontiguousarray(y, np.float32)
    result = np.empty_like(x)
    data = [ctypes.c_void_p(v.ctypes.data) for v in (x, y, result)]
    library.sweep_map(NAMES.index(name), *data, x.size)
    return result


def exact(name, x, y=None):
    """The same in float64."""
    arguments = (x.astype(np.float64),) if y is None else (x.astype(np.float64), y.astype(np.float64))
    with np.errstate(all="ignore"):
        return EXACT[name](*arguments)


def worst_ulp(got, want, arguments):
    """The greatest error in units of the last place; infinities, NaN and the sign of zero must be right."""
    with np.errstate(over="ignore"):
        rounded = want.astype(np.float32)
    special = ~np.isfinite(rounded) | (want == 0)
    right = (got.view(np.uint32) == rounded.view(np.uint32)) | (np.isnan(got) & np.isnan(rounded))
    assert np.all(right[special]), f"wrong special value at {[a[special & ~right][:3] for a in arguments]}"
    got, want = got[~special].astype(np.float64), want[~special]
    _, exponent = np.frexp(want)
    return float(np.ldexp(np.abs(got - want), 24 - np.maximum(exponent, -125)).max())


def every(stride):
    """Floats at equal distances in their bits: all signs and exponents, infinity and (quiet) NaN too."""
    x = np.arange(0, 2**32, stride, dtype=np.uint64).astype(np.uint32).view(np.float32)
    return np.where(np.isnan(x), np.float32(NAN), x)


@pytest.mark.cc
@pytest.mark.parametrize("name", UNARY)
def test_error_is_within_the_bound_that_the_header_states(library, name):
    rng = np.random.default_rng(1)
    x = np.concatenate([every(2003), rng.uniform(-4, 4, 500_000), rng.uniform(-110, 110, 500_000)]).astype(
        np.float32
    )
    worst = worst_ulp(call(library, name, x), exact(name, x), [x])
    assert worst <= BOUNDS[name] <= 2
    assert worst >= 0.7 * BOUNDS[name], "the header promises less than it could"


@pytest.mark.cc
def test_the_bounds_hold_with_contraction(tmp_path):
    """As generated C is compiled beside tuned kernels, on a core that has FMA."""
    flags = ("-O2", "-march=native", "-ffp-contract=fast", "-DAG_MATH_SHORTCUTS=1")
    contracted = shared_library("gcc", [C / "math_sweep.c"], tmp_path / "contracted.so", flags)
    x = np.concatenate([every(20_011), np.linspace(-8, 8, 200_001, dtype=np.float32)])
    for name in UNARY:
        assert worst_ulp(call(contracted, name, x), exact(name, x), [x]) <= BOUNDS[name] + 0.1, name


@pytest.mark.cc
def test_error_of_pow(library):
    rng = np.random.default_rng(2)
    n = 500_000
    near_one = (1 + rng.uniform(-1, 1, n) * 2.0**-10).astype(np.float32)
    positive = np.abs(every(2**32 // n)[:n])
    x = np.concatenate(
        [near_one, positive, rng.uniform(0, 16, n), rng.uniform(-9, 9, n), every(8590)[:n]]
    ).astype(np.float32)
    with np.errstate(all="ignore"):  # results over the whole range of float
        spread = [rng.uniform(-151, 129, n) / np.log2(v.astype(np.float64)) for v in (near_one, positive)]
        whole = [rng.uniform(-8, 8, n), np.round(rng.uniform(-40, 40, n)), rng.permutation(every(8590)[:n])]
        y = np.concatenate([*spread, *whole]).astype(np.float32)
    assert worst_ulp(call(library, "powf", x, y), exact("powf", x, y), [x, y]) <= BOUNDS["powf"] <= 1


@pytest.mark.cc
@pytest.mark.parametrize("contraction", ["off", "fast"])
def test_error_of_atan2(contraction, tmp_path):
    """At all angles and distances."""
    flags = ("-O2", "-march=native", f"-ffp-contract={contraction}")
    library = shared_library("gcc", [C / "math_sweep.c"], tmp_path / "math.so", flags)
    rng = np.random.default_rng(3)
    n = 1_000_000
    angle, distance = rng.uniform(-math.pi, math.pi, n), np.exp2(rng.uniform(-140, 127, n))
    tangent, pairs = every(4099), (rng.permutation(every(4099)), rng.permutation(every(4099)))
    y = np.concatenate([distance * np.sin(angle), tangent, pairs[0]]).astype(np.float32)
    x = np.concatenate([distance * np.cos(angle), np.ones_like(tangent), pairs[1]]).astype(np.float32)
    worst = worst_ulp(call(library, "atan2f", y, x), exact("atan2f", y, x), [y, x])
    assert 0.7 * BOUNDS["atan2f"] <= worst <= BOUNDS["atan2f"]


TINY, SMALL = 2.0**-149, 2.0**-126
SPECIAL = {
    "expf": [(0, 1), (-0.0, 1), (INF, INF), (-INF, 0), (89, INF), (-104, 0), (TINY, 1), (-103.9, TINY)],
    "logf": [
        (1, 0),
        (0, -INF),
        (-0.0, -INF),
        (-1, NAN),
        (INF, INF),
        (-INF, NAN),
        (-TINY, NAN),
        (TINY, -103.27893),
    ],
    "expm1f": [
        (0, 0),
        (-0.0, -0.0),
        (INF, INF),
        (-INF, -1),
        (89, INF),
        (-50, -1),
        (TINY, TINY),
        (-TINY, -TINY),
    ],
    "log1pf": [
        (0, 0),
        (-0.0, -0.0),
        (-1, -INF),
        (-2, NAN),
        (INF, INF),
        (-INF, NAN),
        (TINY, TINY),
        (-SMALL, -SMALL),
    ],
    "tanhf": [
        (0, 0),
        (-0.0, -0.0),
        (INF, 1),
        (-INF, -1),
        (30, 1),
        (-3e38, -1),
        (TINY, TINY),
        (-SMALL, -SMALL),
    ],
    "sigmoidf": [
        (0, 0.5),
        (-0.0, 0.5),
        (INF, 1),
        (-INF, 0),
        (3e38, 1),
        (-3e38, 0),
        (-103, 1.401298464324817e-45),
    ],
    "sinf": [
        (0, 0),
        (-0.0, -0.0),
        (INF, NAN),
        (-INF, NAN),
        (TINY, TINY),
        (-SMALL, -SMALL),
        (2.0**127, 0.6233855),
    ],
    "cosf": [(0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (TINY, 1), (1e22, 0.6790613)],
    "erff": [
        (0, 0),
        (-0.0, -0.0),
        (INF, 1),
        (-INF, -1),
        (4, 1),
        (-3e38, -1),
        (SMALL, 1.3263943e-38),
        (1, 0.8427008),
    ],
    "rintf": [
        (0, 0),
        (-0.0, -0.0),
        (INF, INF),
        (-INF, -INF),
        (0.5, 0),
        (-0.5, -0.0),
        (1.5, 2),
        (2.5, 2),
        (-3.5, -4),
        (8388607.5, 8388608),
        (3e38, 3e38),
        (TINY, 0),
    ],
}


@pytest.mark.cc
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(library, name):
    x = np.array([x for x, _ in SPECIAL[name]] + [NAN, -NAN], np.float32)
    got = call(library, name, x)
    want = np.array([y for _, y in SPECIAL[name]] + [NAN, NAN], np.float32)
    for value, a, b in zip(x, got, want, strict=True):
        same = a == b and np.signbit(a) == np.signbit(b)
        assert same or (np.isnan(a) and np.isnan(b)) or (b not in (0, 1) and abs(a / b - 1) < 1e-4), (
            value,
            a,
            b,
        )
    assert set(got[np.isnan(got)].view(np.uint32).tolist()) == {0x7FC00000}, (
        "NaN has one pattern on every core"
    )


@pytest.mark.cc
@pytest.mark.parametrize("name", ["powf", "atan2f"])
def test_special_values_of_two_arguments(library, name):
    """All pairs of these, against float64, which follows C99: signs of zero, odd integers."""
    top = 3.4028235e38
    one = [
        0.0,
        TINY,
        0.5,
        1.0 - 2.0**-24,
        1.0,
        1.5,
        2.0,
        3.0,
        4.0,
        8388607.5,
        16777215.0,
        16777216.0,
        1e30,
        top,
        INF,
        NAN,
    ]
    values = np.array(one + [-v for v in one], np.float32)
    x, y = (grid.ravel().copy() for grid in np.meshgrid(values, values))
    got = call(library, name, x, y)
    assert worst_ulp(got, exact(name, x, y), [x, y]) < BOUNDS[name]
    assert set(got[np.isnan(got)].view(np.uint32).tolist()) == {0x7FC00000}


@pytest.mark.cc
def test_exact_results(library):
    """Powers that are floats come out exactly, and the identities that models lean on hold."""
    n = np.arange(1, 2000, dtype=np.float32)
    assert np.array_equal(call(library, "powf", n, np.full_like(n, 1)), n)
    assert np.array_equal(call(library, "powf", n, np.full_like(n, 2)), n * n)
    assert np.array_equal(call(library, "powf", n * n, np.full_like(n, 0.5)), n)
    two = np.arange(-149, 128, dtype=np.float32)
    assert np.array_equal(
        call(library, "powf", np.full_like(two, 2), two), np.ldexp(np.float32(1), two.astype(int))
    )
    x = every(40_009)
    x = x[np.isfinite(x)]
    for name in ("tanhf", "sinf", "erff", "rintf"):
        assert np.array_equal(call(library, name, -x), -call(library, name, x)), f"{name} is odd"
    assert np.array_equal(call(library, "cosf", -x), call(library, "cosf", x))


@pytest.mark.cc
def test_shortcuts_have_the_same_bits(library, tmp_path):
    """Cores without vectors take them; their ends, and what is beyond, among the arguments."""
    flags = ("-O2", "-ffp-contract=off", "-DAG_MATH_SHORTCUTS=1")
    quick = shared_library("gcc", [C / "math_sweep.c"], tmp_path / "quick.so", flags)
    ends = np.array([0, TINY, SMALL, 0.55, 35.2, 87, 89, 104, INF], np.float32).view(np.uint32)
    near = (np.maximum(ends[:, None], 3) + np.arange(-3, 4)).astype(np.uint32).view(np.float32).ravel()
    x = np.concatenate([near, -near, every(2003), np.linspace(-90, 90, 300_001, dtype=np.float32)])
    x = np.where(np.isnan(x), np.float32(NAN), x)
    for name in UNARY:
        assert call(quick, name, x).tobytes() == call(library, name, x).tobytes(), name


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


def test_the_checksum_is_of_the_results(library):
    """A sweep that were the same for every function would detect nothing."""
    library.sweep_crc.restype = ctypes.c_uint32
    assert len({library.sweep_crc(i, SWEEP) for i in range(len(NAMES))}) == len(NAMES)
    one = call(library, "expf", np.array([16.0], np.float32))  # argument 0: |-16|
    assert library.sweep_crc(0, 1) == zlib.crc32(one.tobytes())


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


@pytest.mark.cc
@pytest.mark.parametrize(
    "cc, std", [("gcc", "-std=c99"), ("clang", "-std=c99"), ("g++", "-std=c++11"), ("clang++", "-std=c++11")]
)
def test_header_is_clean_as_c_and_cpp(cc, std, tmp_path):
    user = tmp_path / "user.c"
    user.write_text(
        '#include "ag_math.h"\nfloat all(float x, float y);\nfloat all(float x, float y) {\n    return '
        + " + ".join(f"ag_{name}(x)" for name in UNARY)
        + " + ag_powf(x, y);\n}\n"
    )
    compile_c(
        cc, [user], tmp_path / "user.o", ("-c", "-O2", *(("-x", "c++") if cc.endswith("++") else ())), std
    )


# ---- the faster functions of backends

FAST = {b: registry.load([b], root=KERNELS).functions for b in ("fastmath", "armv7em", "host")}
HEADERS = {b: {f.header for f in functions.values()} for b, functions in FAST.items()}
EDGES = {
    "fastmath": (87, 88, 6.2, 3.12),
    "armv7em": (87, 87.34, 88, 0.5, 32, 0.8, 4, 2.0**18, 355.0),
    "host": (87, 87.34, 88, 104, 9, 3.92),
}


def fast_source(backend):
    return "".join(f'#include "{header}"\n' for header in HEADERS[backend])


@pytest.fixture(scope="module", params=[(b, c) for b in FAST for c in ("off", "fast")], ids="-".join)
def fast(request, tmp_path_factory):
    """A backend, and a library with map_<name>(x, y, n) of each of its functions; with contraction on a core that has
    FMA."""
    backend, contract = request.param
    folder = tmp_path_factory.mktemp(contract)
    lines = [fast_source(backend)]
    for name, f in FAST[backend].items():
        arguments = f"map_{name}(const float *x, float *y, int32_t n)"
        lines.append(f"void {arguments};\nvoid {arguments} {{")
        lines.append(f"    for (int32_t i = 0; i < n; i++) {{\n        y[i] = {f.symbol}(x[i]);\n    }}\n}}")
    (folder / "fast.c").write_text("\n".join([*lines, ""]))
    native = ("-march=native",) if contract == "fast" else ()
    flags = ("-O2", f"-ffp-contract={contract}", f"-I{KERNELS / backend}", *native)
    return backend, shared_library("gcc", [folder / "fast.c"], folder / "fast.so", flags)


@pytest.mark.cc
def test_error_of_the_faster_functions(fast, library):
    """What their table states, wherever the result is a normal float; elsewhere they give what ag_math.h does."""
    backend, functions = fast
    edges = np.array([*EDGES[backend], 2.0**-126, INF], np.float32).view(np.uint32)
    near = (edges[:, None] + np.arange(-2, 3)).astype(np.uint32).view(np.float32).ravel()
    ranges = [np.linspace(-c, c, 100_001, dtype=np.float32) for c in (7, 90)]
    x = np.concatenate([every(20_011), near, -near, *ranges])
    x = np.where(np.isnan(x), np.float32(NAN), x)
    for name, function in FAST[backend].items():
        got, want, slow = np.empty_like(x), exact(name, x), call(library, name, x)
        pointers = (ctypes.c_void_p(array.ctypes.data) for array in (x, got))
        getattr(functions, f"map_{name}")(*pointers, x.size)
        normal = np.isfinite(slow) & (np.abs(want) >= SMALL)
        worst = (np.abs(got[normal] - want[normal]) / np.abs(want[normal])).max()
        bound = float(function.error)
        assert 0.1 * bound < worst <= bound, name
        assert np.array_equal(np.isnan(got), np.isnan(slow)), name
        odd = ~normal & ~np.isnan(slow) & ((slow == 0) | np.isinf(slow))
        assert np.array_equal(got[odd].view(np.uint32), slow[odd].view(np.uint32)), name


@pytest.mark.cc
@pytest.mark.parametrize("backend", FAST)
@pytest.mark.parametrize("cc, std", [("clang", "-std=c99"), ("g++", "-std=c++11")])
def test_the_faster_functions_are_clean_as_c_and_cpp(backend, cc, std, tmp_path):
    words = " + ".join(f"{f.symbol}(x)" for f in FAST[backend].values())
    user = tmp_path / "user.c"
    user.write_text(
        f"{fast_source(backend)}float all(float x);\nfloat all(float x) {{\n    return {words};\n}}\n"
    )
    language = ("-x", "c++") if cc.endswith("++") else ()
    compile_c(cc, [user], tmp_path / "user.o", ("-c", "-O2", f"-I{KERNELS / backend}", *language), std)


@pytest.mark.cc
def test_generated_c_calls_them_where_the_list_says_so():
    loaded = load_file("tanh4")
    x, y = loaded.samples.values()
    plain, quick = (load_file("tanh4").made.on_host(kernels=k) for k in ("ref", "fastmath,ref"))
    losses = [[t.train_step(x, y) for _ in range(20)] for t in (plain, quick)]
    assert losses[0] != losses[1]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
    files = emit(compile_file(loaded.made, "tanh4", ["fastmath"]))
    assert "ag_fast_tanhf(" in files["tanh4.c"] and '#include "ag_fastmath.h"' in files["tanh4.c"]
    assert "tanhf: ag_fast_tanhf of fastmath, relative error at most 2e-5\n" in files["tanh4.h"]
