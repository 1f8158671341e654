"""Every schedule of the tree drives the loops of tiles/ on the host: with vectors and micro-kernels in plain C, each
kernel agrees with ref. A schedule that cannot be is one line."""

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from checkout import ROOT

from autodiff_gen.cli.main import main

HERE = Path(__file__).parent
KERNELS = ROOT / "kernels"
# A row: the backend, and what selects it in the backend's schedule.h.
ROWS = {
    "fast": ("fast", ""),
    "armv7em": ("armv7em", ""),
    "armv7em for size": ("armv7em", "__OPTIMIZE_SIZE__"),
    "mve": ("mve", ""),
    "neon in AArch64": ("neon", "__aarch64__"),
    "neon in AArch32": ("neon", ""),
    "neon 4 x 4": ("neon", "AG_NEON_4X4"),
    "host with AVX-512": ("host", "__AVX512F__"),
    "host with AVX": ("host", "__AVX__"),
    "host with SSE": ("host", ""),
}
SHARED = ["microkernel.c", "depthwise_microkernel.c", "epilogue.c", "axpby.c", "gemv.c", "conv2d.c"]
NARROW = ["narrow.h", "microkernel_4x4.c", "gemm_4x4.c", "conv2d_dx_4x4.c"]
OWN_TILES = {"host": ["gemm.c", "conv2d_pool.c"]}  # drivers of a backend that are C over its vectors


def folder(tmp_path, row):
    """A backend of the row's name with its schedule, and everything else in plain C."""
    backend, macro = ROWS[row]
    made = tmp_path / f"plain_{backend}"
    made.mkdir()
    define = f"#define {macro} 1\n" if macro else ""
    (made / "schedule.h").write_text(
        f'#ifndef ROW_H\n#define ROW_H\n{define}#include "{backend}/schedule.h"\n'
        + (f"#undef {macro}\n" if macro and macro != "AG_NEON_4X4" else "")
        + "#endif\n"
    )
    shutil.copy(HERE / "vectors_of_four" / "vec.h", made)
    shutil.copy(HERE / "plain_microkernel.c", made / "microkernel.c")
    files = [*OWN_TILES.get(backend, ())]
    shared = SHARED
    if backend == "neon" and macro != "AG_NEON_4X4":
        files += NARROW
        shared = [*SHARED, *(name for name in NARROW if name.endswith(".c"))]
    for name in files:
        text = (KERNELS / backend / name).read_text()
        (made / name).write_text(re.sub(rf"_{backend}\b", f"_{made.name}", text))
    table = tomllib.loads((KERNELS / backend / "kernels.toml").read_text())
    tiles = table["tiles"]
    if tiles == "all":
        tiles = list(tomllib.loads((KERNELS / "tiles" / "tiles.toml").read_text()))
        if backend == "neon" and macro != "AG_NEON_4X4":  # of the narrow tiles
            tiles.remove("conv2d_dx_windows")
    else:
        tiles = [*tiles, "depthwise2d", "conv2d_by_channels"]
    gemm = "gemm_nn_f32 = []\ngemm_nt_f32 = []\ngemm_tn_f32 = []\ngemm_tt_f32 = []\n"
    serves = f"[serves]\n{gemm}" if backend == "host" else ""
    scratch = next((r["scratch"] for r in table.get("kernel", []) if r["name"] == "conv2d_dx_f32_s8"), None)
    rows = (
        f'[[kernel]]\nname = "conv2d_dx_f32_s8"\nsymbol = "ag_conv2d_dx_f32_s8_{made.name}"\n'
        f'source = "gradients_s8.c"\nscratch = "{scratch}"\n'
    )
    head = f"schema = 1\ncflags = ['-Wno-psabi']\ntiles = {tiles!r}\nshared = {shared!r}\n".replace("'", '"')
    (made / "kernels.toml").write_text(head + serves + (rows if scratch else ""))
    return made


@pytest.mark.cc
@pytest.mark.parametrize("row", ROWS)
def test_a_schedule_drives_every_kernel(row, tmp_path, capsys):
    made = folder(tmp_path, row)
    code = main(["test-kernels", str(made), "--board", "host"])
    out, err = capsys.readouterr()
    assert code == 0, out + err
    symbols = set(re.findall(r"ag_\w+", out))
    for kernel in ("gemm_nt", "gemm_tn", "conv2d", "conv2d_dx", "conv2d_dw", "conv2d_pool", "depthwise2d_dw"):
        assert f"ag_{kernel}_f32_{made.name}" in symbols, out


def test_every_schedule_of_the_tree_is_a_row():
    assert {path.parent.name for path in KERNELS.glob("*/schedule.h")} == {b for b, _ in ROWS.values()}


@pytest.mark.cc
@pytest.mark.parametrize(
    "name, value, wrong",
    [
        ("AG_TILE_M", 8, "sums_of_a_tile_a_row_of_B_and_a_factor_take_more_than_AG_REGISTERS"),
        ("AG_TILE_N", 3, "AG_TILE_N_is_no_multiple_of_LANES"),
        ("AG_SCRATCH_PANEL", 1, "AG_SCRATCH_PANEL_needs_AG_TILE_RUNS"),
        ("PART", 3, "PART_is_neither_1_nor_LANES"),
    ],
)
def test_a_schedule_that_cannot_be_is_one_line(name, value, wrong, tmp_path, capsys):
    made = folder(tmp_path, "mve")
    text = (KERNELS / "mve" / "schedule.h").read_text()
    (made / "schedule.h").write_text(re.sub(rf"\b{name} = \w+", f"{name} = {value}", text))
    assert main(["test-kernels", str(made), "--board", "host"]) == 1
    out, err = capsys.readouterr()
    assert err.count("\n") == 1 and f"{wrong}_in_schedule_of_plain_mve" in err and not out, out + err
