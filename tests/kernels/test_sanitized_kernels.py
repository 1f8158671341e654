"""Kernels of the host under the sanitizers: those of `ref`'s shape tables, and convolutions of random geometry."""

import shutil

import pytest
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
    "host": ("-DAG_PANEL=128", "-DAG_PANEL_PIXELS=8", "-DAG_POOL_BUFFER=100"),
}


@pytest.mark.cc
@pytest.mark.slow
@pytest.mark.parametrize("backend", BACKENDS)
def test_kernels_stay_inside_their_arrays(tmp_path, monkeypatch, backend):
    """Padding, strides, dilation, groups, channel first; results as those of `ref`. With -O1 alone: with the kernels'
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
