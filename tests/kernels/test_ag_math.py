"""ag_math.h: the bounds that its header states, special values as in C99 annex F, exact results."""

import math
import re

import numpy as np
import pytest
from c_build import KERNELS, compile_c, shared_library
from checkout import C
from math_functions import INF, NAN, SMALL, TINY, UNARY, call, every, exact, worst_ulp

HEADER = (KERNELS / "ref" / "ag_math.h").read_text()
BOUNDS = {
    name: float(bound) for name, bound in re.findall(r"ag_(\w+f) (\d+\.\d+)", HEADER.split("#ifndef")[0])
}


@pytest.mark.cc
@pytest.mark.parametrize("name", UNARY)
def test_error_is_within_the_bound_that_the_header_states(math_library, name):
    rng = np.random.default_rng(1)
    x = np.concatenate([every(2003), rng.uniform(-4, 4, 500_000), rng.uniform(-110, 110, 500_000)]).astype(
        np.float32
    )
    worst = worst_ulp(call(math_library, name, x), exact(name, x), [x])
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
def test_error_of_pow(math_library):
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
    assert worst_ulp(call(math_library, "powf", x, y), exact("powf", x, y), [x, y]) <= BOUNDS["powf"] <= 1


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
def test_special_values(math_library, name):
    x = np.array([x for x, _ in SPECIAL[name]] + [NAN, -NAN], np.float32)
    got = call(math_library, name, x)
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
def test_special_values_of_two_arguments(math_library, name):
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
    got = call(math_library, name, x, y)
    assert worst_ulp(got, exact(name, x, y), [x, y]) < BOUNDS[name]
    assert set(got[np.isnan(got)].view(np.uint32).tolist()) == {0x7FC00000}


@pytest.mark.cc
def test_exact_results(math_library):
    """Powers that are floats come out exactly, and the identities that models lean on hold."""
    n = np.arange(1, 2000, dtype=np.float32)
    assert np.array_equal(call(math_library, "powf", n, np.full_like(n, 1)), n)
    assert np.array_equal(call(math_library, "powf", n, np.full_like(n, 2)), n * n)
    assert np.array_equal(call(math_library, "powf", n * n, np.full_like(n, 0.5)), n)
    two = np.arange(-149, 128, dtype=np.float32)
    assert np.array_equal(
        call(math_library, "powf", np.full_like(two, 2), two), np.ldexp(np.float32(1), two.astype(int))
    )
    x = every(40_009)
    x = x[np.isfinite(x)]
    for name in ("tanhf", "sinf", "erff", "rintf"):
        assert np.array_equal(call(math_library, name, -x), -call(math_library, name, x)), f"{name} is odd"
    assert np.array_equal(call(math_library, "cosf", -x), call(math_library, "cosf", x))


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
