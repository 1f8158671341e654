"""The faster functions of backends: the errors that their tables state, and where generated C calls them."""

import ctypes

import numpy as np
import pytest
from c_build import KERNELS, compile_c, shared_library
from math_functions import INF, NAN, SMALL, call, every, exact

from autodiff_gen.codegen.files import emit
from autodiff_gen.kernels import registry
from autodiff_gen.model.build import compile_file
from autodiff_gen.model.loader import load_file

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
def test_error_of_the_faster_functions(fast, math_library):
    """What their table states, wherever the result is a normal float; elsewhere they give what ag_math.h does."""
    backend, functions = fast
    edges = np.array([*EDGES[backend], 2.0**-126, INF], np.float32).view(np.uint32)
    near = (edges[:, None] + np.arange(-2, 3)).astype(np.uint32).view(np.float32).ravel()
    ranges = [np.linspace(-c, c, 100_001, dtype=np.float32) for c in (7, 90)]
    x = np.concatenate([every(20_011), near, -near, *ranges])
    x = np.where(np.isnan(x), np.float32(NAN), x)
    for name, function in FAST[backend].items():
        got, want, slow = np.empty_like(x), exact(name, x), call(math_library, name, x)
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
