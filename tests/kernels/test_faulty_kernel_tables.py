"""Mistakes in kernel tables and in lists of backends: each gets one line."""

from pathlib import Path

import pytest
from toy_backend import KERNELS, fails, row, serves, toy

from autodiff_gen.errors import KernelError
from autodiff_gen.kernels import registry


@pytest.mark.parametrize(
    "table",
    [
        serves("gemv_f32 = []") + row(head=""),
        serves('gemv_f32 = ["n > 1"]') + row(symbol="ag_gemv_f32_toy", when='["n > 2"]', head=""),
    ],
)
def test_a_row_that_is_written_twice(tmp_path, table):
    source = "toy_gemv\nvoid ag_gemv_f32_toy(void);\n"
    fails([toy(tmp_path, table=table, source=source)], "duplicate row for gemv_f32: it has a [[kernel]] with")


FAULTY = [
    ("schema = ", "not valid TOML"),
    ("kernel = " + "[" * 3000 + "]" * 3000, "not valid TOML: brackets are nested too deeply"),
    ("schema = 0x" + "1" * 5000, "not valid TOML: Exceeds the limit"),
    ("schema = 2\nkernel = []", "unknown schema 2"),
    ("kernel = []", "schema is missing"),
    ("schema = 1", "kernel is missing"),
    ("schema = true\nkernel = []", "schema must be an integer"),
    ("schema = 1\nkernels = []", "unknown key 'kernels'; did you mean 'kernel'?"),
    ("schema = 1\nkernel = [3]", "kernel 1: must be a [[kernel]] table"),
    ('schema = 1\nserves = "most"', "serves = 'most': write \"all\", or a section [serves]"),
    ('schema = 1\nserves = "all"', "serves: gemm_nn_f32: no file in "),
    ("schema = 1\nserves = 3", "serves must be a string or a section, got 3"),
    (serves("gemv_f32 = []"), "serves: gemv_f32: no file in "),
    (serves("ger_f32 = []"), " defines void ag_ger_f32_toy(...)"),
    (serves("gemv_f23 = []"), "serves: no kernel 'gemv_f23' in the contract; did you mean 'gemv_f32'?"),
    (serves("gemv_f32 = 3"), "serves: gemv_f32: must be a list of strings, got 3"),
    (serves("gemv_f32 = [3]"), "serves: gemv_f32: must be a list of strings, got 3"),
    (
        serves('gemv_f32 = ["k > 1"]'),
        "serves: gemv_f32: 'k > 1' names 'k'; this kernel's call attributes",
    ),
    (serves('gemv_f32 = ["n"]'), "serves: gemv_f32: 'n' is not a comparison"),
    (
        'schema = 1\ntiles = "most"',
        "tiles = 'most': write \"all\", or a list of files of tiles/ without .c",
    ),
    ("schema = 1\ntiles = 3", "tiles must be a string or a list, got 3"),
    ("schema = 1\ntiles = [3]", "tiles: must be a list of strings, got 3"),
    ('schema = 1\ntiles = ["conv2"]', "tiles: 'conv2' is not a file of "),
    ("schema = 1\ncflags = [3]\nkernel = []", "cflags: must be a list of strings"),
    ("schema = 1\nrequires = 'fpu'\nkernel = []", "requires must be a list"),
    ("schema = 1\nldflags = [3]\nkernel = []", "ldflags: must be a list of strings"),
    ("schema = 1\nldflags = ['-lx']\nkernel = []", "packages is missing: name the Debian packages"),
    (row(name="gemv_f23"), "no kernel 'gemv_f23' in the contract; did you mean 'gemv_f32'?"),
    (row(symbol="toy-gemv"), "symbol 'toy-gemv' is not a C identifier"),
    (row(symbol="toy_gem"), "source 'toy.c' does not name the symbol 'toy_gem'"),
    (row(source="toy.s"), "source 'toy.s' is not a file"),
    (row().replace('symbol = "toy_gemv"\n', ""), "kernel 1: symbol is missing"),
    (row().replace('source = "toy.c"\n', ""), "kernel 1: source is missing"),
    (row().replace("when", "wehn"), "unknown key 'wehn'; did you mean 'when'?"),
    (row() + row(symbol="toy_gemv_any", head=""), "kernel 2: duplicate row for gemv_f32"),
    (row(when='["n > 1"]') + row(when='["n > 1"]', head=""), "kernel 2: duplicate row for gemv_f32"),
    (row(when="[3]"), "when: must be a list of strings"),
    (row() + "by_cost = 1\n", "kernel 1: by_cost must be true or false, got 1"),
    (row() + 'scratch = "4 * m"\n', "kernel 1: scratch: gemv_f32 has no parameter `void *scratch`"),
    (
        row("conv2d_f32") + "scratch_optional = true\n",
        'kernel 1: scratch_optional needs the bytes that it is about: add scratch = "4 * kh * kw * c", for example',
    ),
    (
        row(when='["k > 1"]'),
        "names 'k'; this kernel's call attributes are lda, m, n, alpha, beta, epilogue, align",
    ),
    (
        row("avg_pool2d_f32", when='["kx > 1"]'),
        "this kernel's call attributes are n, h, w, c, oh, ow, kh, kw, stride_h",
    ),
    (row(when='["n"]'), "is not a comparison"),
    (row(when='["n >"]'), "is not a comparison"),
    (row(when='["n in m"]'), "is not a comparison"),
    (row(when='["1 < 2"]'), "compares no call attribute"),
    (row(when='["n % m == 0"]'), "divides by something that is not a positive constant"),
    (row(when='["n % 0 == 0"]'), "divides by something that is not a positive constant"),
    (row(when='["n ** 9 > 1"]'), "only numbers, names and"),
    (row(when="[\"__import__('os') == n\"]"), "only numbers, names and"),
    (row(symbol="ag_gemv_f32_ref"), "in the tables of both 'toy' and 'ref'"),
]


def test_a_faulty_table_is_one_line(tmp_path, subtests):
    source = "toy_gemv toy_gemv_any ag_gemv_f32_ref"
    for number, (table, says) in enumerate(FAULTY):
        with subtests.test(says):
            fails([toy(tmp_path / str(number), table=table, source=source)], says)


def test_an_own_file_in_place_of_one_of_tiles_must_define_its_kernels(tmp_path):
    folder = Path(toy(tmp_path, table='schema = 1\ntiles = ["gemv"]'))
    (folder / "gemv.c").write_text("void other(void) {}\n")
    fails([str(folder)], f"tiles: no gemv.c in {folder} defines ag_gemv_f32_toy")


FUNCTION = 'schema = 1\n[[function]]\nname = "expf"\nsymbol = "my_expf"\nheader = "my.h"\nerror = "1e-3"\n'


@pytest.mark.parametrize(
    "table, says",
    [
        (
            FUNCTION.replace("expf", "exp", 1),
            "function 1: no function 'exp' in ag_math.h; did you mean 'expf'?",
        ),
        (FUNCTION.replace("my.h", "mine.h"), "function 1: header 'mine.h' is not a file in "),
        (
            FUNCTION.replace("my_expf", "my_exp"),
            "function 1: header 'my.h' does not name the symbol 'my_exp'",
        ),
        (FUNCTION.replace("error", "eror"), "function 1: unknown key 'eror'; did you mean 'error'?"),
        (FUNCTION.replace('error = "1e-3"\n', ""), "function 1: error is missing"),
        ("schema = 1\nfunction = [3]", "function 1: must be a [[function]] table"),
    ],
)
def test_a_faulty_function_is_one_line(tmp_path, table, says):
    path = toy(tmp_path, table=FUNCTION)
    (Path(path) / "my.h").write_text("static inline float my_expf(float x);")
    assert registry.load([path], root=KERNELS).functions["expf"].shown == (
        "expf: my_expf of toy, relative error at most 1e-3"
    )
    (Path(path) / "kernels.toml").write_text(table)
    fails([path], says)


@pytest.mark.parametrize(
    "names, says",
    [
        (["reff"], "unknown kernel backend 'reff'; did you mean 'ref'? (known: "),
        ([""], "unknown kernel backend ''"),
        ([".."], "unknown kernel backend '..'"),
        (["./nowhere"], "kernel folder ./nowhere: no kernels.toml in it"),
        (["ref", "ref"], "is listed after 'ref'"),
    ],
)
def test_a_faulty_list_is_one_line(names, says):
    fails(names, says)


def test_a_folder_without_a_slash_is_named(tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "kernels.toml").write_text("schema = 1")
    monkeypatch.chdir(tmp_path)
    fails(["mine"], "kernel folder mine: a name without a / names a backend of the tree; write ./mine")


@pytest.mark.parametrize(
    "old, new, says",
    [
        (
            'include = ["',
            'include = ["/',
            "external: paths must be relative, and version a file and a pattern, got '/",
        ),
        ("version = [", "version = [3]\n#", "external.version: must be a list of strings, got 3"),
        ("version = [", "version = []\n#", "and version a file and a pattern, got []"),
    ],
)
def test_faulty_third_party_sources_are_one_line(tmp_path, old, new, says):
    text = (KERNELS / "cmsis" / "kernels.toml").read_text()
    external = text[text.index("\n[external]") : text.index("[serves]")].replace(old, new, 1)
    fails([toy(tmp_path, table=row() + external)], says)


def test_a_backend_named_twice(tmp_path):
    path = toy(tmp_path)
    fails([path, path], "'toy' is listed twice")


def test_a_folder_named_like_a_backend_of_the_tree(tmp_path):
    fails([toy(tmp_path, name="ref")], "'ref' is a backend of the tree: rename the folder")


def test_a_core_feature_that_the_board_lacks(tmp_path):
    path = toy(tmp_path, table=row(head='schema = 1\nrequires = ["fpu"]\n'))
    assert registry.load([path], features=["fpu"], root=KERNELS).names == ("toy", "ref")
    fails([path], "needs the core feature 'fpu', which the board lacks (it has: mve)", features=["mve"])


@pytest.mark.parametrize(
    "use, says",
    [
        ({"gemv_f32": ["mvee"]}, "unknown kernel backend 'mvee'; did you mean 'mve'?"),
        ({"ger_f32": ["toy/"]}, "[kernels.use] ger_f32: backend 'toy' has no ger_f32"),
        ({"ger_f32": ["ref", "mve"]}, "[kernels.use] ger_f32: backend 'mve' is listed after 'ref'"),
        (
            {"ger_f32": ["mve"]},
            "backend 'mve' needs the core feature 'mve', which the board lacks (it has: fpu)",
        ),
    ],
)
def test_a_faulty_choice_for_one_kernel_is_one_line(tmp_path, use, says):
    toy(tmp_path)
    fails(["ref"], says, use=use, features=["fpu"], relative_to=tmp_path)


def test_two_folders_of_one_name(tmp_path):
    one, two = toy(tmp_path / "a"), toy(tmp_path / "b")
    fails([one], "[kernels.use] gemv_f32: two folders are called 'toy'", use={"gemv_f32": [two]})


def test_an_unknown_kernel_is_named():
    with pytest.raises(KernelError, match="did you mean 'gemv_f32'"):
        registry.load([], root=KERNELS).select("gemv_f3", {})
