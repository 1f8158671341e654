"""`test-kernels`: each fault in a folder of kernels is one line, and good kernels have none."""

import re
import shutil
import tomllib

import pytest
from c_build import KERNELS

from autodiff_gen.check import kernels
from autodiff_gen.check.kernels import test_kernels as compare
from autodiff_gen.cli.main import main
from autodiff_gen.kernels import registry
from autodiff_gen.kernels.contract import CONTRACT
from autodiff_gen.targets import board

pytestmark = pytest.mark.cc
GER = """\
#include "ag_kernels.h"

ag_ger_f32_fn ger_mine;

void ger_mine(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
              float beta) {
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            const float old = beta == 0.0f ? 0.0f : a[i * lda + j];
            a[i * lda + j] = alpha * x[i] * y[j] + beta * old;
        }
    }
}
"""
TYPE = "ger_mine is not the contract's ag_ger_f32_fn of ag_kernels.h: "
ROW = '[[kernel]]\nname = "ger_f32"\nsymbol = "ger_mine"\nsource = "ger.c"\n'


def folder(parent, source=GER, rows=ROW, head="schema = 1\n"):
    made = parent / "my kernels" / "mine"
    made.mkdir(parents=True)
    (made / "ger.c").write_text(source)
    (made / "kernels.toml").write_text(head + rows)
    return made


def run(capsys, path, name="host"):
    """Exit code, and what went to stdout and stderr."""
    code = main(["test-kernels", f"{path}/", "--board", name])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """Every kernel of the contract in a folder of a user's own: ref under another name."""
    made = tmp_path_factory.mktemp("whole") / "copy"
    shutil.copytree(KERNELS / "ref", made)
    for path in made.iterdir():
        path.write_text(re.sub(r"\b(ag_\w+)_ref\b", r"\1_copy", path.read_text()))
    return made


def test_a_product_that_is_added_to_its_output_term_by_term(tmp_path, capsys):
    """Right but for a sum of terms below the output's last digit."""
    source = """\
#include "ag_kernels.h"

ag_gemm_f32_fn gemm_mine;

void gemm_mine(const float *a, int32_t lda, const float *b, int32_t ldb, float *c, int32_t ldc, int32_t m,
               int32_t n, int32_t k, float alpha, float beta, const ag_epilogue *epilogue) {
    for (int32_t i = 0; i < m; i++) {
        for (int32_t j = 0; j < n; j++) {
            float sum = beta == 0.0f ? 0.0f : beta * c[i * ldc + j];
            for (int32_t p = 0; p < k; p++) {
                sum += alpha * a[i * lda + p] * b[p * ldb + j];
            }
            c[i * ldc + j] = sum;
        }
    }
    ag_finish(epilogue, c, ldc, m, n);
}
"""
    rows = ROW.replace("ger_f32", "gemm_nn_f32").replace("ger_mine", "gemm_mine")
    code, said, _ = run(capsys, folder(tmp_path, source, rows))
    assert code == 1 and "m=1 n=1 k=1000" in said, said


def test_a_compiler_that_is_not_there(capsys):
    assert main(["test-kernels", "fast", "--board", "host", "--compiler", "nogcc"]) == 1
    says = "error: board host: nogcc is not installed; install it, or leave out --compiler\n"
    assert capsys.readouterr().err == says


def test_every_kernel_of_the_contract_has_cases(copy):
    lines, good = compare(str(copy), board.load("host"))
    assert good, "\n".join(lines)
    assert {line.split()[0] for line in lines} == set(CONTRACT)
    for line in lines:
        assert int(re.search(r": (\d+) cases right", line)[1]) >= 30, line


def test_every_kernel_is_seen_to_differ(copy, tmp_path):
    """Each kernel again, with the first element of its result off by one in a thousand, or an integer by one."""
    made = tmp_path / "off"
    made.mkdir()
    for header in copy.glob("*.h"):
        shutil.copy(header, made)
    rows = ["schema = 1"]
    table = tomllib.loads((copy / "kernels.toml").read_text())["kernel"]
    scratch = {row["name"]: f'scratch = "{row["scratch"]}"\n' for row in table if "scratch" in row}
    for source in sorted(copy.glob("*.c")):
        text = source.read_text()
        for name in re.findall(r"^void ag_(\w+)_copy\(", text, re.MULTILINE):
            spec = CONTRACT[name]
            parameters = ", ".join(f"{p.ctype} {p.name}" for p in spec.params)
            kinds = {p.name: p.ctype for p in spec.params}
            text = text.replace(f"ag_{name}_copy(", f"inner_{name}(")
            text = re.sub(rf"^void inner_{name}", f"static void inner_{name}", text, flags=re.MULTILINE)
            text += (
                f"void off_{name}({parameters}) {{\n    inner_{name}({', '.join(spec.param_names)});\n"
                f"    {spec.output}[0] {'*= 1.001f' if kinds[spec.output] == 'float *' else '^= 1'};\n}}\n"
            )
            row = f'[[kernel]]\nname = "{name}"\nsymbol = "off_{name}"\nsource = "{source.name}"\n'
            rows.append(row + scratch.get(name, ""))
        (made / source.name).write_text(text)
    (made / "kernels.toml").write_text("\n".join(rows))
    lines, good = compare(str(made), board.load("host"))
    assert not good and len(lines) == len(CONTRACT)
    for line in lines:
        case = re.fullmatch(r"(\w+) \w+: WRONG: differs from ref in \d+ of \d+ cases, such as (.*)", line)
        assert case, line
        said = {word.partition("=")[0] for word in case[2].split()}
        numbers = {p.name for p in CONTRACT[case[1]].params if not (p.is_pointer or p.struct or p.is_scratch)}
        assert numbers <= said <= set(CONTRACT[case[1]].facts), line


def test_a_good_kernel_is_one_line(tmp_path, capsys):
    code, out, err = run(capsys, folder(tmp_path))
    assert (code, err) == (0, "")
    assert re.fullmatch(r"ger_f32 ger_mine: \d+ cases right, worst error \d\S*, \d+% of its bound\n", out), (
        out
    )


def test_what_conditions_leave_out_is_counted(tmp_path, capsys):
    when = ROW + 'when = ["n % 4 == 0", "beta == 1"]\n'
    code, out, _ = run(capsys, folder(tmp_path, GER.replace("beta == 0.0f ? 0.0f : ", ""), when))
    assert code == 0
    assert re.search(r"cases right, .*; \d+ left out by n % 4 == 0 and beta == 1$", out.strip()), out


ALIGNED = """\
#include "ag_kernels.h"

typedef float four __attribute__((vector_size(16)));

void ger_mine(float *a, int32_t lda, const float *x, const float *y, int32_t m, int32_t n, float alpha,
              float beta) {
    for (int32_t i = 0; i < m; i++) {
        four *row = (four *)(void *)(a + i * lda);
        for (int32_t j = 0; j < n / 4; j++) {
            row[j] = alpha * x[i] * ((const four *)(const void *)y)[j] + beta * row[j];
        }
    }
}
"""
QUARTERS = 'when = ["n % 4 == 0", "lda % 4 == 0", "beta != 0"]\n'


def test_a_condition_that_misses_for_alignment_is_named(tmp_path, capsys):
    """Vectors that must be at multiples of 16 bytes fault elsewhere: on x86 by SIGSEGV."""
    code, out, _ = run(capsys, folder(tmp_path, ALIGNED, ROW + QUARTERS))
    assert code == 1
    assert re.fullmatch(
        r"ger_f32 ger_mine: WRONG: right with arrays at multiples of 16 bytes, ends by SIG\w+ at multiples of 8: "
        r'its row needs when = \["align >= 16"\]\n',
        out,
    ), out


def test_with_its_condition_for_alignment_it_is_right(tmp_path, capsys):
    when = QUARTERS.replace("]", ', "align >= 16"]')
    made = folder(tmp_path, ALIGNED, ROW + when)
    code, out, _ = run(capsys, made)
    assert code == 0 and " left out by " in out and "align >= 16" in out
    facts = {"m": 4, "n": 8, "lda": 8, "alpha": 1.0, "beta": 1.0}
    tables = registry.load([str(made)], root=KERNELS)
    assert tables.select("ger_f32", {**facts, "align": 4}).backend == "ref"
    assert tables.select("ger_f32", {**facts, "align": 16}).backend == "mine"


@pytest.mark.parametrize(
    "fast, says",
    [
        (ALIGNED.split("\n\n", 1)[1], "WRONG: right with arrays at multiples of 16 bytes"),
        (GER.split("\n\n", 1)[1].replace("i++", "i += 0"), "WRONG: does not end"),
    ],
)
def test_rows_after_one_that_fails_to_return_are_tested(tmp_path, capsys, monkeypatch, fast, says):
    monkeypatch.setattr(kernels, "_SECONDS", 2)
    source = GER + fast.replace("ger_mine", "ger_fast")
    rows = ROW.replace("ger_mine", "ger_fast") + QUARTERS + ROW
    code, out, _ = run(capsys, folder(tmp_path, source, rows, "schema = 1\n"))
    assert code == 1
    first, second = out.splitlines()
    assert first.startswith(f"ger_f32 ger_fast: {says}") and second.startswith("ger_f32 ger_mine: ")
    assert "cases right" in second


@pytest.mark.parametrize(
    "old, new, says",
    [
        ("int32_t n, float alpha", "int64_t n, float alpha", TYPE),
        ("void ger_mine(float *a", "static void ger_mine(float *a", TYPE),
        ("const float old", "const double old", "does not compile for host under the strict warnings: "),
        ("void ger_mine(float", "void ger_other(float", "ger_mine is not defined"),
    ],
)  # fmt: skip
def test_what_does_not_build_is_one_line(tmp_path, capsys, old, new, says):
    source = (
        GER if "ger_other" in new else GER.replace("ag_ger_f32_fn ger_mine;\n", "")
    )  # which finds them too
    code, out, err = run(capsys, folder(tmp_path, source.replace(old, new)))
    assert (code, out) == (1, "")
    assert says in err and err.count("\n") == 1, err


@pytest.mark.parametrize(
    "rows, name, says",
    [
        (ROW.replace("ger_mine", "ger_nine"), "host", "source 'ger.c' does not name the symbol 'ger_nine'"),
        (ROW + 'when = ["n == 784"]\n', "host", ""),
        (ROW, "pico", "board pico has no emulator: test kernels on a board with a [qemu] section"),
    ],
)
def test_bad_input_is_one_line(tmp_path, capsys, rows, name, says):
    code, out, err = run(capsys, folder(tmp_path, rows=rows), name)
    assert code == 1
    if says:
        assert says in err and err.count("\n") == 1 and not out
    else:
        assert (
            out
            == "ger_f32 ger_mine: WRONG: no case of the shape table meets n == 784, so it was not tested\n"
        )


def test_a_core_feature_that_the_board_lacks(tmp_path, capsys):
    made = folder(tmp_path, head='schema = 1\nrequires = ["fpu"]\n')
    code, _, err = run(capsys, made, "mps2_an385")
    assert code == 1
    assert err == (
        "error: backend 'mine' needs the core feature 'fpu', which the board lacks (it has: none)\n"
    )


@pytest.mark.qemu
def test_a_board_that_is_too_small_for_the_comparison_is_one_line(tmp_path, capsys):
    small = tmp_path / "small.toml"
    small.write_text('schema = 1\nname = "small"\ninherits = "mps2_an386"\n[memory.sram]\nbytes = 32768\n')
    code, _, said = run(capsys, folder(tmp_path), str(small))
    assert code == 1 and re.fullmatch(
        r"error: the program that compares kernels needs \d+ bytes more of RAM than board small has; test on a larger "
        r"board of the same core, or .*\n",
        said,
    )


def test_tiles_over_the_micro_kernels_of_a_folder(tmp_path, capsys):
    """A vector instruction set of a user's own: its header and its list; here the portable one under another name."""
    made = tmp_path / "my kernels" / "wide"
    made.mkdir(parents=True)
    for header in ("vec.h", "schedule.h"):
        shutil.copy(KERNELS / "fast" / header, made)
    (made / "kernels.toml").write_text(
        'schema = 1\ntiles = ["avg_pool2d"]\nshared = ["depthwise_microkernel.c"]\n'
    )
    code, said, _ = run(capsys, made)
    first, second = said.splitlines()
    assert code == 0 and first.startswith("avg_pool2d_f32 ag_avg_pool2d_f32_wide: 80 cases right")
    assert second.startswith("avg_pool2d_dx_f32 ag_avg_pool2d_dx_f32_wide: 92 cases right")
    (made / "vec.h").unlink()
    code, _, said = run(capsys, made)
    assert code != 0 and said.count("\n") == 1
    assert "depthwise_microkernel.c does not compile for host" in said and "vec.h: No such file" in said


POOL = """\
#include "ag_kernels.h"

#include <string.h>

ag_avg_pool2d_s8_fn pool_mine;

void pool_mine(const int8_t *x, int8_t *y, int32_t n, int32_t low, int32_t high, void *scratch,
               const ag_pool2d_shape *shape) {
    AG_SCRATCH_NEEDED(shape->c);
    memset(scratch, 1, (size_t)shape->c);
    ag_avg_pool2d_s8_ref(x, y, n, low, high, NULL, shape);
}
"""
POOL_OF_NULL = POOL.replace("    memset", "    if (scratch != NULL)\n        memset")
POOL_ROW = '[[kernel]]\nname = "avg_pool2d_s8"\nsymbol = "pool_mine"\nsource = "ger.c"\nscratch = "c"\n'


@pytest.mark.parametrize(
    "source, row, says",
    [
        (POOL, POOL_ROW, "168 cases right"),
        (POOL_OF_NULL, POOL_ROW + "scratch_optional = true\n", "336 cases right"),
        (
            POOL_OF_NULL.replace("y, n, low", "y, n, scratch != NULL ? low : low + 1"),
            POOL_ROW + "scratch_optional = true\n",
            " without scratch memory",
        ),
        (POOL.replace("NEEDED(shape->c", "NEEDED(shape->c + 2"), POOL_ROW, "WRONG: needs 3 bytes of scratch"),
        (
            POOL.replace("(size_t)shape->c", "(size_t)shape->c + 1u"),
            POOL_ROW,
            "WRONG: differs from ref in 42 of",
        ),
        (POOL.replace("scratch, 1", "(char *)scratch - 1, 1"), POOL_ROW, "WRONG: differs from ref in 42 of"),
        (
            POOL.replace("shape);\n}", "shape);\n    y[-1] = 1;\n}"),
            POOL_ROW,
            "WRONG: writes outside its output, such as",
        ),
        (
            GER.replace("    }\n}", "    }\n    a[(m - 1) * lda + n] = 0.0f;\n}"),
            ROW,
            "ger_mine: WRONG: writes outside its output, such as lda=1 m=",
        ),
    ],
)
def test_writes_are_to_the_output_and_to_scratch_memory_of_the_formulas_size(
    tmp_path, capsys, source, row, says
):
    assert says in run(capsys, folder(tmp_path, source, row))[1]
