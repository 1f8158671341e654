"""Loops over blocks of floats: rows of small loops, boards with and without them, and the instructions of the
header. test_random_graphs.py runs such loops."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from c_build import compile_c
from checkout import C
from firmware_build import program, run
from op_expressions import computed, reduced

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.loops.block_moves import BEGIN, END, LIMITED, POSITIVE, with_block_moves
from autodiff_gen.codegen.loops.block_registers import LOAD, STORE
from autodiff_gen.codegen.loops.loop_accesses import CALLER, Memory
from autodiff_gen.codegen.loops.next_blocks import with_next_blocks
from autodiff_gen.kernels import registry
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.c import c_query
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

M4F = board.load("stm32").cost
INDEX, TOTAL, LENGTH = c.Name("i"), c.Name("total"), 64
ARENA = c.Member("t", "arena")


def pointer(name: str, start: c.Expr) -> c.Declare:
    return c.Declare("float *", ((name, start),), True, bytes=4 * LENGTH)


def at(array: str, *terms: c.Expr | int) -> c.Element:
    return c.Element(c.Name(array), c.total([c.number(t) if isinstance(t, int) else t for t in terms]))


A = pointer("a", ARENA)
B = pointer("b", c.plus(ARENA, [c.number(LENGTH)]))
SAME = pointer("b", ARENA)
MORE = [pointer(name, c.plus(ARENA, [c.number(k * LENGTH)])) for k, name in enumerate("cdefgx", start=1)]
WORDS = c.Declare("int32_t *", (("b", c.Cast("int32_t *", ARENA)),), True, bytes=256)
EXP = computed("exp", at("b", INDEX))


def copy(*, to: c.Element, of: c.Expr) -> c.Assign:
    return c.Assign(to, of)


def added(x: c.Expr) -> c.StepTemplate:
    return reduced("sum", TOTAL, x)


# The pointers, the body, how many iterations; the arrays that are loaded by blocks, and those that are stored.
ROWS: dict[str, tuple[list[c.Declare], list[c.Statement], int, str, str]] = {
    "a copy": ([A, B], [copy(to=at("a", INDEX), of=at("b", INDEX))], LENGTH, "b", "a"),
    "in place": ([A, SAME], [copy(to=at("a", INDEX), of=at("b", INDEX))], LENGTH, "b", "a"),
    "a sum": ([A], [added(at("a", INDEX))], LENGTH, "a", ""),
    "added to": ([A, B], [c.Assign(at("a", INDEX), at("b", INDEX), "+=")], LENGTH, "ab", "a"),
    "filled": ([A], [copy(to=at("a", INDEX), of=c.number(0))], LENGTH, "", "a"),
    "every other element": (
        [A, B],
        [copy(to=at("a", INDEX), of=at("b", c.times(INDEX, 2)))],
        LENGTH,
        "",
        "a",
    ),
    "one element": ([A, B], [copy(to=at("a", INDEX), of=at("b", 3))], LENGTH, "", "a"),
    "the next element": ([A, SAME], [copy(to=at("a", INDEX), of=at("b", INDEX, 1))], LENGTH, "", ""),
    "four elements away": ([A, SAME], [copy(to=at("a", INDEX), of=at("b", INDEX, 4))], LENGTH, "b", "a"),
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
        "bcdefg",
        "a",
    ),
    "a seventh array": (
        [A, SAME, *MORE],
        [copy(to=at("a", INDEX), of=c.Sum(tuple(at(x, INDEX) for x in "bcdefgx")))],
        LENGTH,
        "bcdefg",
        "a",
    ),
    "a function": ([A, B], [copy(to=at("a", INDEX), of=EXP)], LENGTH, "", ""),
    "integers": ([A, WORDS], [copy(to=at("a", INDEX), of=at("b", INDEX))], LENGTH, "", "a"),
    "an unknown type": ([A], [copy(to=at("a", INDEX), of=at("x", INDEX))], LENGTH, "", "a"),
    "no whole blocks": ([A, B], [copy(to=at("a", INDEX), of=at("b", INDEX))], 62, "", ""),
    "few elements": ([A, B], [copy(to=at("a", INDEX), of=at("b", INDEX))], 32, "", ""),
}


def moved(tree: c.Statements, function: str) -> str:
    """The arrays of the calls of a macro, in order."""
    calls = [node for node in c_query.nodes(tree) if isinstance(node, c.Call) and node.function == function]
    places = [next(a for a in call.arguments if isinstance(a, c.Unary)).operand for call in calls]
    return "".join(c_query.words(place)[0] for place in places)


@pytest.mark.parametrize("row", ROWS)
def test_blocks_are_loaded_and_stored(row: str) -> None:
    pointers, body, length, loaded, stored = ROWS[row]
    loop = c.For("i", c.number(length), tuple(body))
    (tree,) = with_block_moves([(*pointers, loop)], M4F, {})
    assert (moved(tree, LOAD), moved(tree, STORE)) == (loaded, stored)
    if not loaded and not stored:
        assert replace(tree[-1], rolled=False) == loop
    assert with_block_moves([(*pointers, loop)], replace(M4F, block_moves=False), {}) == ((*pointers, loop),)


def test_a_shorter_loop_inside_of_another_one() -> None:
    for length, loaded in ((16, ""), (32, "b")):
        loop = c.For("j", c.number(length), (copy(to=at("a", c.Name("j")), of=at("b", c.Name("j"))),))
        (tree,) = with_block_moves([(A, B, c.For("i", c.number(2), (loop,)))], M4F, {})
        assert moved(tree, LOAD) == loaded


@pytest.mark.parametrize(
    "length, rolled, moves", [(17, False, True), (16, False, False), (5, True, True)], ids=str
)
def test_pointers_move_from_row_to_row(length: int, rolled: bool, moves: bool) -> None:
    """In loops that compilers do not unroll; what is loaded and stored at one address has one pointer."""
    row = c.times(c.Name("j"), 64)
    inner = c.For("k", c.number(4), (copy(to=at("a", row, c.Name("k")), of=at("b", row, c.Name("k"))),))
    loop = c.For("j", c.number(length), (inner,), rolled=rolled)
    steps = with_block_moves([(A, SAME, loop)], M4F, {})
    ((*_, made),) = with_next_blocks(steps, M4F)
    lines = PRINTER.lines([made])
    assert ("    float *a_next = &a[0];" in lines) is moves
    moved = [line.strip() for line in lines if "AG_" in line and "ROLL" not in line]
    place = "a_next" if moves else "&a[j * 64]"
    assert moved == [
        f"AG_LOAD_BLOCK(0, b_block, {place});",
        f"AG_STORE_BLOCK(0, {place}, b_block);",
        *(["AG_MOVE(a_next, 64);"] if moves else []),
    ]


def test_blocks_are_wide_where_all_of_them_fit_the_registers() -> None:
    """Blocks that are in the same registers count once; loops with many operations are not unrolled eight times."""
    more = [pointer(name, c.plus(ARENA, [c.number(k * LENGTH)])) for k, name in enumerate("cdx", start=2)]
    a, b, *others = (at(name, INDEX) for name in "abcd")
    total = computed("add", a, b)
    wide = c.Assign(at("x", INDEX), total)
    for body, length, step in (
        ((wide,), 64, 8),
        ((wide,), 36, 4),  # no whole wide blocks
        ((c.Assign(at("x", INDEX), c.Sum((a, b, *others))),), 64, 4),
        ((c.Assign(at("x", INDEX), c.Sum((a,) * 12)),), 64, 4),
    ):
        loop = c.For("i", c.number(length), body)
        ((*_, made),) = with_block_moves([(A, B, *more, loop)], M4F, {})
        assert made.step == step, made


def test_the_text_of_a_block() -> None:
    floats = {"x": Memory(CALLER, "x", 0, 4, is_float=True)}
    loop = c.For("i", c.number(LENGTH), (c.Assign(at("a", INDEX), c.Sum((at("x", INDEX), at("b", INDEX)))),))
    ((*_, made),) = with_block_moves([(A, B, loop)], M4F, floats)
    assert PRINTER.lines([made]) == [
        "for (int32_t i = 0; i < 64; i += 8) {",
        "    float x_block[8];",
        "    float b_block[8];",
        "    float a_block[8];",
        "    AG_LOAD_BLOCK(0, x_block, &x[i]);",
        "    AG_LOAD_BLOCK(2, b_block, &b[i]);",
        "    for (int32_t j = i; j < i + 8; j++) {",
        "        a_block[j - i] = x_block[j - i] + b_block[j - i];",
        "    }",
        "    AG_STORE_BLOCK(4, &a[i], a_block);",
        "}",
    ]


def test_the_text_of_blocks_that_follow_each_other() -> None:
    """What is loaded and stored has one pointer."""
    row = c.total((c.times(c.Name("j"), 64), INDEX))
    of_row = c.Element(c.Name("a"), row)
    value = computed("add", of_row, at("b", INDEX, 8))
    inner = c.For("i", c.number(LENGTH), (c.Assign(of_row, value),))
    steps = with_block_moves([(A, B, c.For("j", c.number(2), (inner,)))], M4F, {})
    assert with_next_blocks(steps, replace(M4F, block_moves=False)) == steps
    ((*_, made),) = with_next_blocks(steps, M4F)
    assert PRINTER.lines([made]) == [
        "for (int32_t j = 0; j < 2; j++) {",
        "    const float *b_next = &b[8];",
        "    float *a_next = &a[j * 64];",
        "    for (int32_t i = 0; i < 64; i += 8) {",
        "        float a_block[8];",
        "        float b_block[8];",
        "        AG_LOAD_BLOCK(0, a_block, a_next);",
        "        AG_LOAD_NEXT(2, b_block, b_next);",
        "        for (int32_t k = i; k < i + 8; k++) {",
        "            a_block[k - i] = a_block[k - i] + b_block[k - i];",
        "        }",
        "        AG_STORE_NEXT(0, a_next, a_block);",
        "    }",
        "}",
    ]


def test_a_block_that_is_stored_and_then_loaded_has_no_pointer_to_constants() -> None:
    place, block = c.Unary("&", at("a", INDEX)), c.Name("a_block")
    calls = (c.Call(STORE, (c.number(0), place, block)), c.Call(LOAD, (c.number(0), block, place)))
    loop = c.For("i", c.number(LENGTH), tuple(map(c.ExprStatement, calls)), step=4)
    ((made,),) = with_next_blocks([(loop,)], M4F)
    assert PRINTER.lines([made])[1].strip() == "float *a_next = a;"


def test_a_sum_is_in_the_registers_of_a_term() -> None:
    product = computed("mul", at("a", INDEX), at("b", INDEX))
    value = computed("add", product, at("x", INDEX))
    x, y = (pointer(name, c.plus(ARENA, [c.number(k * LENGTH)])) for k, name in ((2, "x"), (3, "y")))
    loop = c.For("i", c.number(LENGTH), (c.Assign(at("y", INDEX), value),))
    ((*_, made),) = with_block_moves([(A, B, x, y, loop)], M4F, {})
    calls = [n for n in c_query.nodes(made) if isinstance(n, c.Call) and n.function in (LOAD, STORE)]
    assert [PRINTER.expression(call.arguments[0]) for call in calls] == ["0", "2", "4", "4"]


def test_sums_of_more_blocks_than_registers_hold_are_computed_in_stages() -> None:
    product, less = (computed("mul", at(a, INDEX), at(b, INDEX)) for a, b in ("cd", "ef"))
    value = computed("add", at("b", INDEX), product)
    value = computed("sub", value, less)
    loop = c.For("i", c.number(LENGTH), (c.Assign(at("x", INDEX), value),))
    tree = with_block_moves([(B, *MORE, loop)], M4F, {})[0][-1:]
    assert PRINTER.lines(tree)[7:] == [
        "    AG_LOAD_BLOCK(0, b_block, &b[i]);",
        "    AG_LOAD_BLOCK(2, c_block, &c[i]);",
        "    AG_LOAD_BLOCK(4, d_block, &d[i]);",
        "    for (int32_t j = i; j < i + 8; j++) {",
        "        x_block[j - i] = b_block[j - i] + c_block[j - i] * d_block[j - i];",
        "    }",
        "    AG_LOAD_BLOCK(2, e_block, &e[i]);",
        "    AG_LOAD_BLOCK(4, f_block, &f[i]);",
        "    for (int32_t j = i; j < i + 8; j++) {",
        "        x_block[j - i] = x_block[j - i] - e_block[j - i] * f_block[j - i];",
        "    }",
        "    AG_STORE_BLOCK(0, &x[i], x_block);",
        "}",
    ]


def test_a_product_is_added_to_a_row_that_is_loaded_anew() -> None:
    """Where loops around the block keep a row in a local array, which a multiply-add would replace by the sum."""
    load = c.For("k", c.number(4), (c.Assign(at("row", c.Name("k")), at("b", c.Name("k"))),))
    row, text = c.Array("float", "row", 4), ("row_block", "AG_LOAD_BLOCK(0, row_block, &row[0]);", "row[k] -")
    product = computed("mul", at("a", c.times(c.Name("j"), 4), c.Name("k")), c.Literal("2.0f"))
    for value, is_loaded in ((product, True), (c.Literal("2.0f"), False)):
        total = computed("sub", at("row", c.Name("k")), value)
        limited = replace(RELU, operands=(c.Name("v"),))
        stored = c.Assign(at("a", c.times(c.Name("j"), 4), c.Name("k")), limited)
        tile = c.For("k", c.number(4), (c.Declare("float", (("v", total),), True), stored))
        (tree,) = with_block_moves([(A, B, row, load, c.For("j", c.number(9), (tile,)))], M4F, {})
        lines = "\n".join(PRINTER.lines(tree))
        assert [word in lines for word in text] == [is_loaded, is_loaded, not is_loaded], lines


def test_boards_say_whether_they_have_them() -> None:
    for name, profile, said in (
        ("stm32", "speed", True),
        ("stm32", "size", False),
        ("virt_a53", "speed", False),
    ):
        on = replace(board.load(name), profile=profile)
        source = emit(compile_model(load_model("gesture")[0], "gesture", None, on))["gesture.c"]
        assert ((LOAD in source), ('#include "ag_blocks.h"' in source)) == (said, said)


RELU = computed("relu", c.Name("v"))
RELU6 = computed("hardtanh", c.Name("v"), min_val=0.0, max_val=6.0)
SUM = computed("sub", at("b", INDEX), c.Literal("1.0f"))


@pytest.mark.parametrize(
    "value, limited, more, macro",
    [
        (SUM, RELU, (), POSITIVE),
        (SUM, RELU6, (), LIMITED),
        (c.Unary("-", at("b", INDEX)), RELU, (), STORE),  # a NaN may be negative
        (SUM, RELU, (c.Assign(at("a", INDEX), c.Name("v")),), STORE),
        (SUM, RELU, (added(at("a", INDEX)),), STORE),
    ],
    ids=["sum", "with a limit", "negated", "stored again", "read again"],
)
def test_a_macro_stores_sums_between_limits(
    value: c.Expr, limited: c.Expr, more: c.Statements, macro: str
) -> None:
    body = (c.Declare("float", (("v", value),), True), copy(to=at("a", INDEX), of=limited), *more)
    (tree,) = with_block_moves([(A, B, c.For("i", c.number(LENGTH), body))], M4F, {})
    assert moved(tree, macro) == "a"
    text = "\n".join(PRINTER.lines(tree))
    assert ("?" in text, BEGIN in text, END in text) == (
        (True, False, False) if macro == STORE else (False, True, True)
    )


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
float moved[9];
int check(const float *from);
int check(const float *from) {
    float a[4], b[4], c[4], d[4], e[8];
    AG_LOAD_BLOCK(0, a, from + 1);
    AG_LOAD_BLOCK(1, b, from + 2);
    AG_LOAD_BLOCK(2, c, from + 3);
    AG_LOAD_BLOCK(3, d, from + 4);
    for (int k = 0; k < 4; k++) {
        a[k] += b[k] * c[k] - d[k];
    }
    AG_STORE_BLOCK(3, moved + 1, a);
    AG_LOAD_BLOCK(5, e, from);
    AG_STORE_BLOCK(5, moved + 1, e);
    return moved[0] != 0.0f || moved[5] != 0.0f;
}
"""


@pytest.mark.cc
@pytest.mark.parametrize("level", ["-O0", "-O3"])
def test_one_instruction_moves_a_block(level: str, tmp_path: Path) -> None:
    """On Cortex-M4F, five loads and two stores in all; without optimisation plain C."""
    (tmp_path / "blocks.c").write_text(PROGRAM)
    flags = ("-S", level, "-mcpu=cortex-m4", "-mthumb", "-mfloat-abi=hard", "-mfpu=fpv4-sp-d16")
    compile_c("arm-none-eabi-gcc", [tmp_path / "blocks.c"], tmp_path / "blocks.s", flags)
    text = (tmp_path / "blocks.s").read_text()
    counts = [text.count(word) for word in ("vldmia", "vstmia")]
    assert counts == ([0, 0] if level == "-O0" else [5, 2])
