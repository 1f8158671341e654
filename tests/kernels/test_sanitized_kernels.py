"""Kernels of the host under the sanitizers: `ref`'s shape tables, and convolutions of random geometry."""

import shutil
import subprocess

import pytest
from c_build import compile_c
from checkout import ROOT

from autodiff_gen.check.kernels import test_kernels as compare
from autodiff_gen.targets import board, installation

SANITIZE = (
    "-O1",
    "-fsanitize=address,undefined",
    "-fno-sanitize-recover=all",
    "--param=asan-instrumentation-with-call-threshold=0",  # checks are calls: two thirds of the time to compile
)
PROGRAM = ("-DCOMPARE_FORBID_GUARDS=1", "-DCOMPARE_RANDOM=50")
BACKENDS = {  # name: flags
    "fast": (),
    # panels that hold one row of a window or none, and blocks of few pooled pixels, so that all paths are taken
    "host": ("-DAG_PANEL_FLOATS=128", "-DAG_PANEL_FROM=8", "-DAG_POOL_BUFFER=100"),
}


@pytest.mark.cc
@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_kernels_stay_inside_their_arrays(tmp_path, monkeypatch, backend):
    """Padding, strides, dilation, groups, channel first; results as from `ref`. Only with -O1: with the kernels'
    own -O3 the checks take four times as long to compile."""
    kernels = shutil.copytree(ROOT / "kernels", tmp_path / "kernels")
    table = kernels / backend / "kernels.toml"
    table.write_text(table.read_text().replace('cflags = ["-O3"]', "cflags = []"))
    monkeypatch.setattr(installation, "kernels", lambda: kernels)
    path = tmp_path / "sanitized.toml"
    flags = ", ".join(f'"{flag}"' for flag in (*SANITIZE, *PROGRAM, *BACKENDS[backend]))
    path.write_text(f'schema = 1\nname = "host"\ninherits = "host"\n[target]\ncflags = [{flags}]\n')
    lines, good = compare(backend, board.load(str(path)))
    assert good, "\n".join(lines)


POOL = """#include "ag_kernels.h"
ag_max_pool2d_values_f32_fn ag_max_pool2d_values_f32_host;
int main(void) {
    const float x[3] = {1.0f, 3.0f, 2.0f};
    float y[2];
    const ag_pool2d_shape s = {.h = 1, .w = 3, .c = 1, .oh = 1, .ow = 2, .kh = 1, .kw = 2, .stride_h = 1,
                               .stride_w = 1, .dilation_h = 1, .dilation_w = 1, .x_n = 3, .x_h = 3, .x_w = 1,
                               .x_c = 1};
    ag_max_pool2d_values_f32_host(x, y, 1, &s);
    return y[0] != 3.0f || y[1] != 3.0f;
}
"""


@pytest.mark.cc
def test_nothing_is_added_to_the_pointer_of_indices_that_there_are_not(tmp_path):
    """Undefined, even of 0; only Clang checks it."""
    (tmp_path / "main.c").write_text(POOL)
    kernels = ROOT / "kernels"
    flags = (*SANITIZE[:3], "-DAG_BACKEND=host", f"-I{kernels}", f"-iquote{kernels / 'host'}")
    sources = [tmp_path / "main.c", kernels / "tiles" / "max_pool2d.c"]
    program = compile_c("clang", sources, tmp_path / "pool", flags, "-std=gnu99")
    subprocess.run([program], check=True)
