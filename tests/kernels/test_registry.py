"""Kernel tables: which backends are loaded, and which kernel is chosen for a call."""

import subprocess
from pathlib import Path

import pytest
from c_build import INCLUDES
from toy_backend import GEMV, KERNELS, row, serves, toy

from autodiff_gen.errors import KernelError, ToolError
from autodiff_gen.kernels import registry
from autodiff_gen.kernels.contract import CONTRACT
from autodiff_gen.kernels.libraries import check_libraries


def test_ref_serves_every_kernel_without_conditions():
    loaded = registry.load([], root=KERNELS)
    assert loaded.names == ("ref",) and loaded.only_ref
    for name in CONTRACT:
        kernel = loaded.select(name, {})
        assert kernel.symbol == f"ag_{name}_ref"
    assert all(s.cflags == ("-ffp-contract=off",) and s.path.is_file() for s in loaded.sources())
    assert {s.path for s in loaded.sources()} == set((KERNELS / "ref").glob("*.c"))
    assert loaded.include_dirs() == (KERNELS, KERNELS / "ref")


@pytest.mark.cc
def test_a_kernel_of_tiles_without_its_backend_names_the_macro():
    """A build system that leaves out the flags of a folder must not get another name for each kernel."""
    command = [
        "gcc",
        "-std=c99",
        "-fsyntax-only",
        *INCLUDES,
        f"-I{KERNELS / 'fast'}",
        KERNELS / "tiles" / "gemv.c",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "#error" in done.stderr, done.stderr
    assert "define AG_BACKEND as the folder of the backend" in done.stderr
    done = subprocess.run([*command, "-DAG_BACKEND=fast"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["armv7em", "fast", "host", "mve", "neon"])
def test_a_tuned_backend_serves_every_transpose_of_a_product(name):
    (tuned,) = registry.load([name], root=KERNELS).backends[:1]
    served = {kernel.name for kernel in tuned.kernels if not kernel.when}
    assert {f"gemm_{a}{b}_f32" for a in "nt" for b in "nt"} <= served


@pytest.mark.parametrize(
    "facts, symbol",
    [
        (GEMV, "toy_gemv"),
        ({**GEMV, "n": 783}, "ag_gemv_f32_ref"),
        ({**GEMV, "m": 7}, "ag_gemv_f32_ref"),
        ({"n": 784}, "ag_gemv_f32_ref"),  # m varies at run time: its condition cannot be promised
    ],
)
def test_a_folder_outside_the_tree_is_tried_first_and_ref_last(tmp_path, facts, symbol):
    loaded = registry.load([toy(tmp_path / "with space")], root=KERNELS)
    assert loaded.names == ("toy", "ref") and not loaded.only_ref
    chosen = loaded.select("gemv_f32", facts)
    assert chosen.symbol == symbol
    assert chosen.declared == (symbol != "toy_gemv")
    assert [k.backend for k in loaded.candidates("gemv_f32")] == ["toy", "ref"]
    assert loaded.select("ger_f32", facts).backend == "ref"
    flags = {s.backend: s.cflags for s in loaded.sources()}
    assert flags == {"toy": ("-ffp-contract=fast",), "ref": ("-ffp-contract=off",)}


def test_rows_are_tried_in_order(tmp_path):
    table = row(when='["n >= 64"]') + row(symbol="toy_gemv_any", head="")
    loaded = registry.load([toy(tmp_path, table=table), "ref"], root=KERNELS)
    assert loaded.select("gemv_f32", {**GEMV, "n": 64}).symbol == "toy_gemv"
    assert loaded.select("gemv_f32", {**GEMV, "n": 63}).symbol == "toy_gemv_any"


def test_rows_follow_from_the_contract(tmp_path):
    table = serves('gemv_f32 = ["n >= 64"]\ngemv_t_f32 = []') + row(symbol="toy_gemv", head="")
    source = "\nvoid ag_gemv_f32_toy(void);\nvoid ag_gemv_t_f32_toy(void);\nvoid toy_gemv(void);\n"
    loaded = registry.load([toy(tmp_path, table=table, source=source)], root=KERNELS)
    assert loaded.select("gemv_f32", {**GEMV, "n": 64}).symbol == "ag_gemv_f32_toy"
    assert loaded.select("gemv_f32", {**GEMV, "n": 63}).symbol == "toy_gemv"  # without conditions: last
    assert loaded.select("gemv_t_f32", GEMV).symbol == "ag_gemv_t_f32_toy"
    assert [s.name for s in loaded.sources() if s.backend == "toy"] == ["toy"]


def test_files_of_tiles_are_compiled_for_a_folder(tmp_path):
    """The backend's file replaces the one in tiles/; the backend's condition is added to the conditions there."""
    head = 'schema = 1\ntiles = ["conv2d", "max_pool2d", "gemv"]\n'
    path = Path(toy(tmp_path, name="my-toy", table=serves('max_pool2d_f32 = ["c >= 4"]', head)))
    (path / "gemv.c").write_text("ag_gemv_f32_my_toy ag_gemv_t_f32_my_toy")
    loaded = registry.load([str(path)], root=KERNELS)
    backend = loaded.backends[0]
    assert [k.symbol for k in backend.kernels] == [
        f"ag_{name}_f32_my_toy"
        for name in ("conv2d", "max_pool2d", "max_pool2d_values", "max_pool2d_dx", "gemv", "gemv_t")
    ]
    assert [[str(c) for c in k.when] for k in backend.kernels][1] == ["x_c == 1", "c >= 4"]
    assert not any(k.declared for k in backend.kernels)
    assert backend.cflags == ("-ffp-contract=fast", "-DAG_BACKEND=my_toy")
    assert [(s.name, s.path.parent) for s in backend.sources] == [
        ("tiles/conv2d", KERNELS / "tiles"),
        ("tiles/max_pool2d", KERNELS / "tiles"),
        ("gemv", path),
    ]
    assert {s.cflags[-1] for s in backend.sources} == {f"-iquote{path}"}
    assert loaded.tables == (
        path / "kernels.toml",
        KERNELS / "tiles/tiles.toml",
        KERNELS / "ref/kernels.toml",
    )


def test_two_backends_compile_the_same_file_of_tiles():
    loaded = registry.load(["armv7em", "fast"], root=KERNELS)
    compiled = [(s.backend, s.cflags[-2]) for s in loaded.sources() if s.name == "tiles/gemm"]
    assert compiled == [("armv7em", "-DAG_BACKEND=armv7em"), ("fast", "-DAG_BACKEND=fast")]


@pytest.mark.parametrize(
    "condition, facts, holds",
    [
        ("n % 4 == 0", {"n": 8}, True),
        ("n % 4 == 0", {"n": 9}, False),
        ("4 <= n < 8", {"n": 8}, False),
        ("4 <= n < 8", {"n": 4}, True),
        ("lda == n", {"n": 8, "lda": 8}, True),
        ("lda == n", {"n": 8, "lda": 9}, False),
        ("m * n - 1 > 2 * m + n // 3", {"m": 2, "n": 3}, False),
        ("m * n - 1 > 2 * m + n // 3", {"m": 2, "n": 4}, True),
        ("beta == 1", {"beta": 1.0}, True),
        ("n != -1", {"n": 3}, True),
        ("max_m % 4 == 0", {"n": 3, "max_m": 8}, True),  # m varies at run time
        ("max_m % 4 == 0", {"n": 3, "m": 8}, False),
    ],
)
def test_conditions(tmp_path, condition, facts, holds):
    loaded = registry.load([toy(tmp_path, table=row(when=f'["{condition}"]'))], root=KERNELS)
    assert (loaded.select("gemv_f32", facts).backend == "toy") == holds


@pytest.mark.parametrize("backend", ["armv7em", "fast", "mve", "neon"])
@pytest.mark.parametrize("m, rows", [(32, False), (8, False), (17, True), (3, True)])
def test_only_rows_that_fill_no_tile_need_products_of_vectors(backend, m, rows):
    loaded = registry.load([backend], root=KERNELS)
    chosen = loaded.select("gemm_nt_f32", {"n": 32, "k": 16, "max_m": m})
    assert chosen.symbol == f"ag_gemm{'_rows' if rows else ''}_nt_f32_{backend}"


def test_a_path_is_relative_to_the_given_folder(tmp_path):
    toy(tmp_path)
    assert registry.load(["./toy"], root=KERNELS, relative_to=tmp_path).names == ("toy", "ref")


def test_one_kernel_by_another_backend(tmp_path):
    """Also by one that is used for no other kernel."""
    path = toy(tmp_path)
    loaded = registry.load(["armv7em"], use={"gemv_f32": [path], "ger_f32": ["ref"]}, root=KERNELS)
    assert loaded.names == ("armv7em", "ref") and not loaded.only_ref
    assert [b.name for b in loaded.backends] == ["armv7em", "toy", "ref"]
    chosen = {name: loaded.select(name, GEMV).backend for name in ("gemv_f32", "gemv_t_f32", "ger_f32")}
    assert chosen == {"gemv_f32": "toy", "gemv_t_f32": "armv7em", "ger_f32": "ref"}
    assert loaded.select("gemv_f32", {**GEMV, "n": 3}).backend == "ref"
    assert loaded.rejected("ger_f32", GEMV) == ("armv7em, as the board's [kernels.use] lists ref",)


def test_rejected_kernels_have_a_reason(tmp_path):
    table = row(when='["n % 4 == 0", "align >= 16"]') + row(symbol="toy_gemv_any", when='["mve"]', head="")
    loaded = registry.load([toy(tmp_path, table=table)], root=KERNELS, features=["fpu"])
    facts = {**GEMV, "align": 4}
    assert loaded.rejected("gemv_f32", facts) == (
        "toy_gemv, as align >= 16 fails for align=4",
        "toy_gemv_any, as the core has no mve",
    )
    assert loaded.rejected("gemv_f32", {"align": 4})[0] == (
        "toy_gemv, as n % 4 == 0 needs n, which is known at run time only"
    )
    assert loaded.rejected("ger_f32", facts) == ("toy, which has no ger_f32",)
    assert registry.load([], root=KERNELS).rejected("ger_f32", facts) == ()


def test_rows_for_other_cases_of_the_selected_backend_are_no_reason(tmp_path):
    table = row(when='["align >= 16"]') + row(symbol="toy_gemv_any", head="")
    loaded = registry.load([toy(tmp_path, table=table)], root=KERNELS)
    facts = {**GEMV, "align": 4}
    assert loaded.select("gemv_f32", facts).symbol == "toy_gemv_any"
    assert loaded.rejected("gemv_f32", facts) == ()


def test_a_row_for_cores_with_a_feature(tmp_path):
    """Where the core lacks it, its source is not even compiled."""
    folder = Path(
        toy(
            tmp_path,
            table=row(when='["n % 4 == 0"]') + row(symbol="toy_mve", source="mve.c", when='["mve"]', head=""),
        )
    )
    (folder / "mve.c").write_text("void toy_mve(void);")
    for features, symbol, files in (
        (["mve"], "toy_mve", {"toy.c", "mve.c"}),
        (["fpu"], "ag_gemv_f32_ref", {"toy.c"}),
        (None, "ag_gemv_f32_ref", {"toy.c"}),
    ):
        loaded = registry.load([str(folder)], root=KERNELS, features=features)
        assert loaded.select("gemv_f32", {**GEMV, "n": 3}).symbol == symbol
        assert {s.path.name for s in loaded.sources() if s.backend == "toy"} == files


SCRATCH = """\
schema = 1
[[kernel]]
name = "avg_pool2d_s8"
symbol = "toy_pool"
source = "toy.c"
when = ["mve"]
scratch = "16 * kh * kw"
[[kernel]]
name = "avg_pool2d_s8"
symbol = "toy_pool"
source = "toy.c"
when = ["not mve", "x_c == 1"]
scratch = "4 * c"
"""


@pytest.mark.parametrize("features, size", [(["dsp", "mve"], 96), (["dsp"], 20), ([], 20)])
def test_a_kernel_with_a_row_for_each_kind_of_core(tmp_path, features, size):
    path = toy(tmp_path, table=SCRATCH, source="void toy_pool(void);")
    loaded = registry.load([path], root=KERNELS, features=features)
    facts = {"kh": 2, "kw": 3, "c": 5, "x_c": 1}
    chosen = loaded.select("avg_pool2d_s8", facts)
    assert (chosen.symbol, chosen.scratch(facts)) == ("toy_pool", size)
    assert [k.runs_on(features) for k in loaded.backends[0].kernels] == [size == 96, size != 96]
    assert loaded.backends[0].kernels[1].when[0].why_not({}) == "the core has mve"


def test_the_list_of_the_command_line():
    assert registry.parse_list("fast, ./mine,ref") == ["fast", "./mine", "ref"]
    with pytest.raises(KernelError, match="an empty name"):
        registry.parse_list("fast,,ref")


def test_a_library_that_is_not_there(tmp_path):
    head = 'schema = 1\nldflags = ["-lno_such_library"]\npackages = ["libno-such-dev"]\n'
    loaded = registry.load([toy(tmp_path, table=row(head=head))], root=KERNELS)
    assert loaded.ldflags == ("-lno_such_library",)
    with pytest.raises(ToolError) as error:
        check_libraries(loaded, ["gcc"])
    assert str(error.value) == (
        "kernel backend 'toy' needs -lno_such_library, which is not installed; run: "
        "sudo apt-get install -y --no-install-recommends libno-such-dev"
    )


def test_the_library_of_blas_is_there():
    check_libraries(registry.load(["blas"], root=KERNELS), ["gcc"])


@pytest.mark.parametrize("backend", ["host", "armv7em", "neon", "mve"])
def test_a_program_gets_what_its_kernels_call(backend: str) -> None:
    """conv2d calls gemv for one image; the gradient of 8-bit weights calls the gradient of floats."""
    backends = registry.load([backend, "ref"])
    for name, callee in (("conv2d_f32", "gemv_f32"), ("conv2d_dw_s8_f32", "conv2d_dw_f32")):
        *_, kernel = (k for k in backends.backends[0].kernels if k.name == name)  # which serves all shapes
        assert f"ag_{callee}_{backend}" in backends.with_callees([kernel])
    assert backends.with_callees([]) == set() and backends.sources([]) == ()


def test_a_row_precedes_that_of_tiles_unless_it_serves_all_of_its_calls():
    loaded = registry.load(["armv7em", "neon"], root=KERNELS)
    facts = {"x_c": 1, "o": 8, "c": 8, "kh": 3, "kw": 3, "oh": 9, "ow": 9, "max_n": 1, "groups": 1}
    one, two = (loaded.select("conv2d_f32", {**facts, "oh": oh}) for oh in (9, 1))
    assert one.symbol == two.symbol == "ag_conv2d_f32_armv7em"
    assert (one.scratch_optional, one.scratch(facts), two.scratch) == (True, 32 * 9 * 8, None)
    assert loaded.select("conv2d_f32", {**facts, "groups": 2}).scratch is None
    rows = [k for k in loaded.candidates("conv2d_dx_f32_s8") if k.backend == "neon"]
    assert [k.scratch.text for k in rows] == ["64 * kh * kw * o"]
