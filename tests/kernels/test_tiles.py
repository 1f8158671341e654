"""Convolutions of kernels/tiles over portable micro-kernels, under the sanitizers."""

import subprocess

import pytest
from c_build import KERNELS, compile_c
from checkout import C

SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


BACKENDS = {  # name: (flags, the fewest cases)
    "fast": ((), 3000),
    # panels that hold one row of a window or none, and blocks of few pooled pixels, so that all paths are taken
    "host": (("-DAG_PANEL=128", "-DAG_PANEL_PIXELS=8", "-DAG_POOL_BUFFER=100"), 2000),
}


@pytest.mark.cc
@pytest.mark.parametrize("backend", BACKENDS)
def test_convolutions_over_microkernels_stay_inside_their_arrays(tmp_path, backend):
    """1000 random geometries: padding, strides, dilation, groups, channel first; results as those of `ref`."""
    folder, (flags, fewest) = KERNELS / backend, BACKENDS[backend]
    sources = [C / "tiles_sweep.c", folder / "microkernel.c"]
    sources += [KERNELS / "ref" / name for name in ("conv2d.c", "conv2d_pool.c", "gemv.c")]
    program = compile_c(
        "gcc",
        sources,
        tmp_path / "sweep",
        (
            *SANITIZE,
            *flags,
            f"-DAG_BACKEND={backend}",
            f"-Dag_gemv_f32_{backend}=ag_gemv_f32_ref",
            f"-I{folder}",
            "-lm",
        ),
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    cases = int(done.stdout.split()[0])
    assert cases > fewest
