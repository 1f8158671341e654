"""Loops over blocks of floats: rows of small loops, boards with and without them, and the instructions of the
header. test_random_graphs.py runs such loops."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from c_build import compile_c
from checkout import C
from firmware_build import program, run
from op_expressions import computed, reduced
from placed_loops import at, counted, placed, pointer

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.types import Dim
from autodiff_gen.kernels import registry
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query
from autodiff_gen.lowering.loops.block_moves import with_block_moves
from autodiff_gen.lowering.loops.loop_normalization import with_tiles_from_zero
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

M4F = board.load("stm32").cost
INDEX, TOTAL, LENGTH = c.Name("i"), c.Name("total"), 64


A = pointer("a", 0)
B = pointer("b", LENGTH)
SAME = pointer("b", 0)
MORE = [pointer(name, k * LENGTH) for k, name in enumerate("cdefgx", start=1)]
WORDS = pointer("b", 0, is_float=False)
EXP = computed("exp", at("b", INDEX))
TWICE = computed("mul", at("b", INDEX), c.Literal("2.0f"))
NEGATED = c.Unary("-", at("b", INDEX, 4))


def copy(*, to: c.Element, of: c.Expr) -> c.Assign:
    return c.Assign(to, of)


def added(x: c.Expr) -> c.StepTemplate:
    return reduced("sum", TOTAL, x)


# The pointers, the body, how many iterations; the arrays that are loaded by blocks, and those that are stored.
ROWS: dict[str, tuple[list[c.Declare], list[c.Statement], int, str, str]] = {
    "a product": ([A, B], [copy(to=at("a", INDEX), of=TWICE)], LENGTH, "b", "a"),
    "in place": ([A, SAME], [copy(to=at("a", INDEX), of=TWICE)], LENGTH, "b", "a"),
    "a sum": ([A], [added(at("a", INDEX))], LENGTH, "a", ""),
    "added to": ([A, B], [c.Assign(at("a", INDEX), at("b", INDEX), "+=")], LENGTH, "ba", "a"),
    "filled with a sum": ([A], [copy(to=at("a", INDEX), of=c.Sum((TOTAL, TOTAL)))], LENGTH, "", "a"),
    "every other element": (
        [A, B],
        [copy(to=at("a", INDEX), of=at("b", c.times(INDEX, 2)))],
        LENGTH,
        "",
        "a",
    ),
    "one element": ([A, B], [copy(to=at("a", INDEX), of=at("b", 3))], LENGTH, "", "a"),
    "the next element": ([A, SAME], [copy(to=at("a", INDEX), of=at("b", INDEX, 1))], LENGTH, "", ""),
    "four elements away": ([A, SAME], [copy(to=at("a", INDEX), of=NEGATED)], LENGTH, "b", "a"),
    "stored, then read under another name": (
        [A, SAME],
        [copy(to=at("a", INDEX), of=c.number(0)), added(at("b", INDEX))],
        LENGTH,
        "",
        "",
    ),
    "six arrays, and the sum in place of one": (
        [A, SAME, *MORE],
        [copy(to=at("a", INDEX), of=c.Sum(tuple(at(x, INDEX) for x in "bcdefg")))],
        LENGTH,
        "cdefgb",
        "a",
    ),
    "a seventh array": (
        [A, SAME, *MORE],
        [copy(to=at("a", INDEX), of=c.Sum(tuple(at(x, INDEX) for x in "bcdefgx")))],
        LENGTH,
        "cdefgb",
        "a",
    ),
    "a function": ([A, B], [copy(to=at("a", INDEX), of=EXP)], LENGTH, "", ""),
    "integers": ([A, WORDS], [copy(to=at("a", INDEX), of=at("b", INDEX))], LENGTH, "", "a"),
    "an unknown type": ([A], [copy(to=at("a", INDEX), of=at("x", INDEX))], LENGTH, "", "a"),
    "no whole blocks": ([A, B], [copy(to=at("a", INDEX), of=TWICE)], 62, "", ""),
    "one block": ([A, B], [copy(to=at("a", INDEX), of=TWICE)], 8, "", ""),
}


def operands(tree: c.Statements) -> list[c.BlockOperand]:
    return [o for loop in c_query.loops(tree) for o in loop.blocks]


def arrays(moved: list[c.BlockOperand]) -> str:
    return "".join(c_query.words(o.pointer)[0] for o in moved)


def lines(*step: c.Statement, floats: str = "") -> list[str]:
    """The text of the last statement, with blocks. floats: the caller's arrays of floats."""
    (tree,) = with_block_moves([placed(step, floats)], M4F, floats)
    return PRINTER.lines(with_tiles_from_zero(tree[-1:]))


@pytest.mark.parametrize("row", ROWS)
def test_blocks_are_loaded_and_stored(row: str) -> None:
    pointers, body, length, loaded, stored = ROWS[row]
    loop = counted("i", length, tuple(body))
    step = placed((*pointers, loop))
    (tree,) = with_block_moves([step], M4F, ())
    found = operands(tree)
    assert arrays([o for o in found if o.is_read]) == loaded
    assert arrays([o for o in found if o.is_written]) == stored
    if not found:
        assert replace(tree[-1], rolled=False) == loop
    assert with_block_moves([step], replace(M4F, block_moves=False), ()) == (step,)


@pytest.mark.parametrize("length", [17, 16, 5], ids=str)
def test_pointers_move_from_row_to_row(length: int) -> None:
    """What replaces a block in memory is in its registers."""
    row = c.times(c.Name("j"), 64)
    value = computed("mul", at("b", row, c.Name("k")), c.Literal("2.0f"))
    inner = counted("k", 4, (copy(to=at("a", row, c.Name("k")), of=value),))
    assert lines(A, SAME, counted("j", length, (inner,))) == [
        f"AG_BLOCK_ROWS(j, {length}, k, 4, read(b_block, &b[0], 64), replace(a_block, &a[0], 64)) {{",
        "    a_block[k] = b_block[k] * 2.0f;",
        "}",
    ]


@pytest.mark.parametrize(
    "first, text",
    [
        (c.Sum((c.Name("j"), c.number(1))), "AG_BLOCK_ROWS(j, 5, k, 4, write(a_block, &a[64], 64)) {"),
        (c.Sum((c.number(4),), (c.Name("j"),)), "for (int32_t j = 0; j < 5; j++) {"),
    ],
    ids=["the second", "the last, backwards"],
)
def test_rows_that_begin_at_another_row(first: c.Expr, text: str) -> None:
    to = at("a", c.times(first, 64), c.Name("k"))
    inner = counted("k", 4, (copy(to=to, of=c.Literal("2.0f")),))
    assert lines(A, counted("j", 5, (inner,)))[0] == text


def test_a_tile_in_a_loop_of_unknown_length_is_one_block() -> None:
    row = c.times(c.Name("j"), 64)
    inner = counted("k", 4, (copy(to=at("a", row, c.Name("k")), of=c.Literal("2.0f")),))
    assert lines(A, counted("j", Dim(1, 8), (inner,)))[1:4] == [
        "    AG_BLOCK(k, 4, write(a_block, &a[j * 64])) {",
        "        a_block[k] = 2.0f;",
        "    }",
    ]


@pytest.mark.parametrize(
    "value, count, text",
    [
        (at("b", INDEX), LENGTH, "ag_copy(a, b, 64);"),
        (at("b", INDEX, 8), 20, "ag_copy(a, &b[8], 20);"),
        (c.Literal("0.0f"), LENGTH, "ag_fill(a, 0.0f, 64);"),
        (TOTAL, LENGTH, "ag_fill(a, total, 64);"),
    ],
    ids=["copy", "of a part", "zeros", "a number"],
)
def test_copies_and_fills_are_calls(value: c.Expr, count: int, text: str) -> None:
    loop = counted("i", count, (copy(to=at("a", INDEX), of=value),))
    assert lines(A, B, loop) == [text]


def test_a_loop_around_a_copy_stays() -> None:
    row = at("a", c.times(c.Name("j"), 32), INDEX)
    inner = counted("i", 16, (copy(to=row, of=at("b", c.times(c.Name("j"), 16), INDEX)),))
    assert lines(A, B, counted("j", 5, (inner,))) == [
        "for (int32_t j = 0; j < 5; j++) {",
        "    ag_copy(&a[j * 32], &b[j * 16], 16);",
        "}",
    ]


def test_copies_over_less_than_a_wide_block_are_loops() -> None:
    """ag_copy loads eight elements before it stores them."""
    copied = copy(to=at("a", INDEX), of=at("b", INDEX, 4))
    assert "ag_copy" not in "".join(lines(A, SAME, counted("i", LENGTH, (copied,))))


def test_blocks_are_wide_where_all_of_them_fit_the_registers() -> None:
    """Blocks that are in the same registers count once; loops with many operations are not unrolled eight times."""
    more = [pointer(name, k * LENGTH) for k, name in enumerate("cdx", start=2)]
    a, b, *others = (at(name, INDEX) for name in "abcd")
    total = computed("add", a, b)
    wide = c.Assign(at("x", INDEX), total)
    for body, length, step in (
        ((wide,), 64, 8),
        ((wide,), 36, 4),  # no whole wide blocks
        ((c.Assign(at("x", INDEX), c.Sum((a, b, *others))),), 64, 4),
        ((c.Assign(at("x", INDEX), c.Sum((a,) * 12)),), 64, 4),
    ):
        loop = counted("i", length, body)
        ((*_, made),) = with_block_moves([placed((A, B, *more, loop))], M4F, ())
        assert made.step == step, made


def test_the_text_of_blocks() -> None:
    loop = counted("i", LENGTH, (c.Assign(at("a", INDEX), c.Sum((at("x", INDEX), at("b", 8)))),))
    assert lines(A, B, loop, floats="x") == [
        "AG_BLOCKS(i, 64, j, 8, read(x_block, x), write(a_block, a)) {",
        "    a_block[j] = x_block[j] + b[8];",
        "}",
    ]


def test_other_elements_are_read_one_by_one() -> None:
    every_other = at("b", c.times(INDEX, 2))
    loop = counted("i", LENGTH, (c.Assign(at("a", INDEX), every_other, "+="),))
    assert lines(A, B, loop) == [
        "AG_BLOCKS(i, 64, j, 8, update(a_block, a)) {",
        "    a_block[j] += b[(i + j) * 2 + 0];",
        "}",
    ]


def test_a_sum_is_in_the_registers_of_a_term() -> None:
    product = computed("mul", at("a", INDEX), at("b", INDEX))
    value = computed("add", product, at("x", INDEX))
    x, y = (pointer(name, k * LENGTH) for k, name in ((2, "x"), (3, "y")))
    loop = counted("i", LENGTH, (c.Assign(at("y", INDEX), value),))
    assert lines(A, B, x, y, loop) == [
        "AG_BLOCKS(i, 64, j, 8, read(a_block, a), read(b_block, b), read(x_block, x), replace(y_block, y)) {",
        "    y_block[j] = a_block[j] * b_block[j] + x_block[j];",
        "}",
    ]


def test_a_product_is_added_to_a_row_that_is_loaded_anew() -> None:
    """Where loops around the block keep a row in a local array, which a multiply-add would replace by the sum."""
    load = counted("k", 4, (c.Assign(at("row", c.Name("k")), at("b", c.Name("k"))),))
    row, text = c.Array("float", "row", 4), ("row_block", "read(row_block, &row[0], 0)", "row[k] -")
    product = computed("mul", at("a", c.times(c.Name("j"), 4), c.Name("k")), c.Literal("2.0f"))
    for value, is_loaded in ((product, True), (c.Literal("2.0f"), False)):
        total = computed("sub", at("row", c.Name("k")), value)
        limited = replace(RELU, operands=(c.Name("v"),))
        stored = c.Assign(at("a", c.times(c.Name("j"), 4), c.Name("k")), limited)
        tile = counted("k", 4, (c.Declare("float", (("v", total),), True), stored))
        made = "\n".join(lines(A, B, row, load, counted("j", 9, (tile,))))
        assert [word in made for word in text] == [is_loaded, is_loaded, not is_loaded], made


def test_boards_say_whether_they_have_them() -> None:
    for name, profile, said in (
        ("stm32", "speed", True),
        ("stm32", "size", False),
        ("virt_a53", "speed", False),
    ):
        on = replace(board.load(name), profile=profile)
        source = emit(compile_model(load_model("gesture")[0], "gesture", None, on))["gesture.c"]
        assert (("AG_BLOCKS(" in source), ('#include "ag_blocks.h"' in source)) == (said, said)


RELU = computed("relu", c.Name("v"))
RELU6 = computed("hardtanh", c.Name("v"), min_val=0.0, max_val=6.0)
SUM = computed("sub", at("b", INDEX), c.Literal("1.0f"))


@pytest.mark.parametrize(
    "value, limited, more, kind",
    [
        (SUM, RELU, (), "replace_relu(a_block, a)"),
        (SUM, RELU6, (), "replace_limited(a_block, a, 6.0f)"),
        (c.Unary("-", at("b", INDEX)), RELU, (), ""),  # a NaN may be negative
        (SUM, RELU, (c.Assign(at("a", INDEX), c.Name("v")),), ""),
        (SUM, RELU, (added(at("a", INDEX)),), ""),
    ],
    ids=["sum", "with a limit", "negated", "stored again", "read again"],
)
def test_a_macro_stores_sums_between_limits(
    value: c.Expr, limited: c.Expr, more: c.Statements, kind: str
) -> None:
    body = (c.Declare("float", (("v", value),), True), copy(to=at("a", INDEX), of=limited), *more)
    text = "\n".join(lines(A, B, counted("i", LENGTH, body)))
    assert ("?" in text, "AG_RELU_BLOCKS(" in text) == (not kind, bool(kind))
    assert kind in text


@pytest.mark.qemu
@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
@pytest.mark.parametrize("name", ["mps2_an386", "mps2_an500"])
def test_sums_between_limits_are_exact(name: str, level: str, tmp_path: Path) -> None:
    b = board.load(name)
    tables = registry.load(("ref",), features=b.target.features)
    own, elf = [C / "positive_blocks.c"], tmp_path / "positive.elf"
    program(b, tables, [], own, elf, cc=None, flags=(level,), include=())
    run(name, elf, tmp_path)


PROGRAM = """
#include "ag_blocks.h"
void check(const float *a, const float *b, const float *c, const float *d, float *to);
void check(const float *a, const float *b, const float *c, const float *d, float *to) {
    AG_BLOCK(k, 4, read(x, a), read(y, b), read(z, c), read(v, d), replace(w, to)) {
        w[k] = x[k] * y[k] + z[k] - v[k];
    }
    AG_BLOCKS(i, 64, j, 8, read(x, a), update(y, to)) {
        y[j] += x[j] * b[i + j];
    }
}
"""


@pytest.mark.cc
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_one_instruction_moves_a_block(level: str, tmp_path: Path) -> None:
    """On Cortex-M4F, six loads and two stores in all; without optimisation plain C."""
    (tmp_path / "blocks.c").write_text(PROGRAM)
    flags = ("-S", level, "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
    compile_c("arm-none-eabi-gcc", [tmp_path / "blocks.c"], tmp_path / "blocks.s", flags)
    text = (tmp_path / "blocks.s").read_text()
    counts = [text.count(word) for word in ("vldmia", "vstmia")]
    assert counts == ([0, 0] if level == "-O0" else [6, 2])


COUNTED = """
#include "ag_blocks.h"
#include <stdlib.h>
int main(int argc, char **argv) {
    float x[16] = {0.0f};
    AG_BLOCKS(i, atoi(argv[argc - 1]), j, 8, update(x_block, x)) {
        x_block[j] += 1.0f;
    }
    return (int)x[0] - 1;
}
"""


@pytest.mark.cc
@pytest.mark.parametrize("count, flags, passes", [(16, ("-DAG_DEBUG",), True), (12, ("-DAG_DEBUG",), False)])
def test_debugging_checks_that_blocks_are_whole(
    count: int, flags: tuple[str, ...], passes: bool, tmp_path: Path
) -> None:
    (tmp_path / "counted.c").write_text(COUNTED)
    compile_c("cc", [tmp_path / "counted.c"], tmp_path / "counted", flags)
    done = subprocess.run([tmp_path / "counted", str(count)], capture_output=True, text=True, check=False)
    assert (done.returncode == 0, "Assertion" in done.stderr) == (passes, not passes)
