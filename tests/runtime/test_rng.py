"""The random numbers of the host and of the board are the same bits."""

import ctypes
import math
import platform

import numpy as np
import pytest
from c_build import HOST, compile_c, shared_library
from checkout import C

from autodiff_gen import init
from autodiff_gen.ir import counter_rng

KNOWN = [1903711600, 4009561374, 1737027458]
INDEX = np.concatenate([np.arange(5000), 2**32 - 1 - np.arange(50), 2**31 + np.arange(-5, 5)]).astype(
    np.uint32
)
KEYS = [(0, 0), (1, 0), (0, 1), (1001, 3), (2**32 - 1, 2**32 - 1), (0x61C88647, 2**31)]


def address(array):
    return ctypes.c_void_p(array.ctypes.data)


@pytest.fixture(scope="module", params=HOST)
def library(request, tmp_path_factory):
    source = C / "rng.c"
    return shared_library(request.param, [source], tmp_path_factory.mktemp(request.param) / "rng.so")


@pytest.mark.cc
@pytest.mark.parametrize("key, counter", KEYS)
def test_bits_equal_the_c(library, key, counter):
    c = np.zeros_like(INDEX)
    library.rng_bits(ctypes.c_uint32(key), ctypes.c_uint32(counter), address(INDEX), address(c), INDEX.size)
    assert np.array_equal(c, counter_rng.rand_u32(key, counter, INDEX))


@pytest.mark.cc
@pytest.mark.parametrize("key, counter", KEYS)
def test_uniform_equals_the_c(library, key, counter):
    for bound in (1.0, 1 / 28, 0.17677669, 1e-30, 3e38):
        c = np.zeros(INDEX.size, np.float32)
        arguments = ctypes.c_uint32(key), ctypes.c_uint32(counter), address(INDEX), ctypes.c_float(bound)
        library.rng_uniform(*arguments, address(c), INDEX.size)
        python = counter_rng.uniform(key, counter, INDEX, bound)
        assert python.dtype == np.float32
        assert np.array_equal(c.view(np.uint32), python.view(np.uint32)), bound


@pytest.mark.cc
@pytest.mark.parametrize("key, counter", KEYS)
def test_normal_equals_the_c(library, key, counter):
    c = np.zeros(INDEX.size, np.float32)
    library.rng_normal(ctypes.c_uint32(key), ctypes.c_uint32(counter), address(INDEX), address(c), INDEX.size)
    assert np.array_equal(c, counter_rng.normal(key, counter, INDEX))


def test_normal_is_nearly_normal():
    """Moments, tails and the distribution function of 200,000 numbers."""
    z = counter_rng.normal(5, 0, np.arange(200_000)).astype(np.float64)
    assert abs(z.mean()) < 0.01 and abs(z.std() - 1) < 0.01 and np.abs(z).max() <= 6
    assert abs((z**3).mean()) < 0.03 and abs((z**4).mean() - 2.9) < 0.05  # as for twelve uniform numbers
    below = np.array([math.erfc(-t / math.sqrt(2)) / 2 for t in np.linspace(-3, 3, 25)])
    assert np.abs(np.mean(z[:, None] <= np.linspace(-3, 3, 25), axis=0) - below).max() < 0.006
    assert abs(np.corrcoef(z[:-1], z[1:])[0, 1]) < 0.01


@pytest.mark.cc
@pytest.mark.parametrize("low, high", [(1.0, 3.0), (-0.1, 0.7), (100.0, 100.3)])
def test_no_contraction_into_a_draw(low, high, tmp_path):
    """A tuned build may fuse multiplication and addition; initial weights must still be the host's."""
    fma = ("-mfma",) if platform.machine() in ("x86_64", "AMD64") else ()
    source = C / "rng.c"
    flags = ("-O3", "-ffp-contract=fast", *fma)
    library = shared_library("gcc", [source], tmp_path / "rng.so", flags)
    drawn = init.uniform(INDEX.size, low=low, high=high, seed=7)
    span = np.float32(high) - np.float32(low)
    index, c = np.arange(INDEX.size, dtype=np.uint32), np.zeros(INDEX.size, np.float32)
    library.rng_uniform_from(
        7, address(index), ctypes.c_float(low), ctypes.c_float(span), address(c), index.size
    )
    assert np.array_equal(c, drawn.array())
    normal = init.normal(INDEX.size, mean=low, std=high, seed=7)
    mean, std = ctypes.c_float(low), ctypes.c_float(high)
    library.rng_normal_from(7, address(index), mean, std, address(c), index.size)
    assert np.array_equal(c, normal.array())


@pytest.mark.cc
@pytest.mark.parametrize("cc, std", [("g++", "-std=c++11"), ("clang++", "-std=c++11")])
@pytest.mark.parametrize(
    "header",
    [
        "ag_rng.h",
        "ag_crc32.h",
        "ag_checkpoint.h",
        "ag_status.h",
        "ag_math.h",
        "ag_kernels.h",
        "ag_loops.h",
        "ag_blocks.h",
        "ag_poison.h",
    ],
)
def test_headers_serve_cpp(cc, std, header, tmp_path):
    user = tmp_path / "user.cpp"
    user.write_text(f'#include "{header}"\n')
    compile_c(cc, [user], tmp_path / "user.o", ("-c",), std)


def test_known_numbers():
    """A change of these changes every model drawn on a device: it would need a new graph id."""
    assert counter_rng.rand_u32(0, 0, [0, 1, 2]).tolist() == KNOWN


def test_arguments_broadcast_and_wrap():
    whole = counter_rng.rand_u32(7, 9, np.arange(12).reshape(3, 4))
    assert whole.shape == (3, 4) and whole.dtype == np.uint32
    assert np.array_equal(whole[1], counter_rng.rand_u32(7, 9, np.arange(4, 8)))
    assert counter_rng.rand_u32(7, 9, 5).shape == () and counter_rng.rand_u32(7, 9, 5) == whole[1, 1]
    assert np.array_equal(
        counter_rng.rand_u32(7 - 2**32, 9 + 2**32, np.arange(12, dtype=np.uint8).reshape(3, 4)), whole
    )
    assert counter_rng.rand_u32(np.uint32(7), np.array([[9], [10]]), np.arange(4)).shape == (2, 4)
    with pytest.raises(TypeError, match="are integers"):
        counter_rng.rand_u32(7, 9, [0.5])


def test_numbers_are_distinct_and_spread():
    """For one key the numbers are a bijection of the index; neighbours, keys and counters are unrelated."""
    n = 2**16
    index = np.arange(n)
    rows = [counter_rng.rand_u32(k, c, index) for k, c in [(0, 0), (1, 0), (0, 1), (2, 0), (12345, 678)]]
    for row in rows:
        assert np.unique(row).size == n
        u = row / 2.0**32
        assert abs(u.mean() - 0.5) < 4 * np.sqrt(1 / 12 / n)
        counts = np.bincount(row >> 24, minlength=256)
        chi2 = ((counts - n / 256) ** 2 / (n / 256)).sum()
        assert 255 - 5 * np.sqrt(510) < chi2 < 255 + 5 * np.sqrt(510)
        assert abs(np.corrcoef(u[:-1], u[1:])[0, 1]) < 5 / np.sqrt(n)
    for i, a in enumerate(rows):
        for b in rows[:i]:
            assert abs(np.corrcoef(a / 2.0**32, b / 2.0**32)[0, 1]) < 5 / np.sqrt(n)


def test_uniform_stays_in_its_range():
    u = counter_rng.unit(3, 0, np.arange(100_000))
    assert u.dtype == np.float32 and u.min() >= 0 and u.max() < 1
    v = counter_rng.uniform(3, 0, np.arange(100_000), 0.25)
    assert -0.25 <= v.min() < -0.249 and 0.249 < v.max() < 0.25
