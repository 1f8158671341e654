"""What is written once over blocks and rows (kernels/tiles), over plain ones on the host, under the sanitizers."""

import subprocess

import pytest
from c_build import KERNELS, compile_c
from checkout import C

SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")


@pytest.mark.cc
def test_convolutions_over_plain_microkernel_stay_inside_their_arrays(tmp_path):
    """1000 random geometries: padding, strides, dilation, groups, channel first; results as those of `ref`."""
    sources = [C / "tiles_sweep.c", C / "plain_microkernel" / "microkernel.c"]
    sources += [KERNELS / "ref" / "conv2d.c", KERNELS / "ref" / "conv2d_pool.c"]
    program = compile_c(
        "gcc",
        sources,
        tmp_path / "sweep",
        (*SANITIZE, "-DAG_BACKEND=plain", f"-I{C}/plain_microkernel", "-lm"),
    )
    done = subprocess.run([program], capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, f"{done.stdout}{done.stderr}"
    cases = int(done.stdout.split()[0])
    assert cases > 3000
