"""Which sums are written out, which have a tile of accumulators, and which keep separate loops."""

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_function, compile_functions
from autodiff_gen.codegen.files import emit
from autodiff_gen.targets import board


def body(make, *shapes):
    """The C of a function of inputs x0, x1, ..."""
    xs = [ag.Input(f"x{i}", shape) for i, shape in enumerate(shapes)]
    text = emit(compile_function(ag.function(xs, [make(*xs)]), "f"))["f.c"]
    return text[text.index("/* 1 ") : text.index("return F_OK")]


def dot(a, b):
    return F.sum(a * b, 1)


@pytest.mark.parametrize(
    "make, shapes, has, has_not",
    [
        (
            dot,
            [(3, 4), (3, 4)],
            ["x0[i * 4 + 0] * x1[i * 4 + 0] + x0[i * 4 + 1] * x1[i * 4 + 1] +"],
            ["total += "],
        ),
        (dot, [(3, 8), (3, 8)], ["x0[i * 8 + 7] * x1[i * 8 + 7];"], ["total += "]),
        (lambda a: F.sum(F.exp(a), 1), [(3, 4)], ["total += ag_expf(x0[i * 4 + j]);"], ["total["]),
        # all accumulators in one tile, also over two axes
        (lambda a: F.sum(a, 0), [(9, 2)], ["float total[2] = {0.0f};", "total[j] += x0[i * 2 + j];"], []),
        (
            dot,
            [(5, 9), (5, 9)],
            ["float total[5] = {0.0f};", "total[j] += x0[j * 9 + i] * x1[j * 9 + i];"],
            [],
        ),
        (
            lambda a: F.sum(a, 1),
            [(2, 9, 3)],
            ["float total[6]", "total[j * 3 + k] += x0[j * 27 + i * 3 + k];"],
            [],
        ),
        # in blocks, which divide the axis
        (
            lambda a: F.sum(a * a, 0),
            [(9, 64)],
            [
                "for (int32_t i = 0; i < 64; i += 16) { float total[16] = {0.0f};",
                "for (int32_t k = 0; k < 16; k++) { total[k] += x0[j * 64 + i + k] * x0[j * 64 + i + k]; }",
                "out0[i + j] = total[j];",
            ],
            [],
        ),
        (lambda a: F.sum(a * a, 0), [(9, 30)], ["i < 30; i += 15", "float total[15] = {0.0f};"], []),
        (lambda a: F.sum(a * a, 0), [(9, 17)], ["total += x0[j * 17 + i] * x0[j * 17 + i];"], ["total["]),
        # blocks are whole vectors where they can be: 12 of 36 elements, not 18 or 15
        (lambda a: F.sum(a * a, 0), [(9, 60)], ["i < 60; i += 12", "float total[12] = {0.0f};"], []),
        # what changes with another loop too is computed again for each term, but not where memory is read by columns
        (
            lambda a, b: F.sum(a * (b[:, None, :] + 1), (0, 1)),
            [(3, 9, 8), (3, 8)],
            ["total[8]", "* (x1[i * 8 + k] + 1.0f)"],
            [],
        ),
        (
            lambda a, b: F.sum(a * (b[:, :, None] + 1), 2),
            [(4, 3, 9), (4, 3)],
            ["total += x0[i * 9 + k] * total_2;"],
            ["total["],
        ),
        # values that are loaded once for a tile take registers too
        (
            lambda a, b, c: F.sum((a - b) * c, 0),
            [(9, 64), (64,), (64,)],
            ["i += 4", "total[k] += (x0[j * 64 + i + k] - x1[i + k]) * x2[i + k];"],
            [],
        ),
        # accumulators that do not begin with 0; two sums; a value for each sum that a later loop reads
        (
            lambda a: F.amax(a, 0),
            [(9, 4)],
            ["float reduced[4]; for (int32_t i = 0; i < 4; i++) { reduced[i] = -INFINITY; }"],
            [],
        ),
        (
            lambda a: F.sum(a - F.sum(a, 0), 0),
            [(9, 4)],
            ["float total_2[4]", "total_2[j] += x0[i * 4 + j] - total[j];", "out0[i] = total_2[i];"],
            [],
        ),
        # functions are not called for a tile
        (lambda a: F.sum(F.exp(a), 0), [(9, 4)], ["total += ag_expf(x0[j * 4 + i]);"], ["total["]),
        # what all terms of a sum share is computed for the tile before, also where it needs another sum
        (
            lambda a, b: F.sum(a * (b + 1), 0),
            [(9, 4), (4,)],
            ["add_row[i] = x1[i] + 1.0f;", "total[j] += x0[i * 4 + j] * add_row[j];"],
            [],
        ),
        (
            lambda a: F.sum(F.square(a - F.mean(a, 0)), 0),
            [(9, 4)],
            [
                "mean_row[i] = total[i] * 0.11111111f;",
                "const float difference = x0[i * 4 + j] - mean_row[j];",
            ],
            [],
        ),
        # what single accumulators give is a local next to them
        (
            lambda a, b: F.matmul(-F.sum(a * a, 0), b),
            [(9, 2, 2), (2, 3)],
            ["const float val = -total[0];", "val * x1[j] + val_2 * x1[j + 3];"],
            [],
        ),
        # but not where rows are summed
        (
            lambda a, b: F.sum(a * (b + 1), 1),
            [(4, 9), (4, 1)],
            ["total += x0[i * 9 + j] * total_2;"],
            ["total["],
        ),
    ],
)
def test_shapes_of_sums(make, shapes, has, has_not):
    text = " ".join(body(make, *shapes).split())
    assert all(part in text for part in has), text
    assert not any(part in text for part in has_not), text


@pytest.mark.parametrize("on, tile", [("stm32", True), ("host_avx2", False), ("host_avx512", False)])
def test_rows_that_compilers_sum_in_vectors_have_no_tile(on, tile):
    a, b = ag.Input("a", (16, 64)), ag.Input("b", (16, 64))
    for axis, tiled in ((1, tile), (0, True)):
        f = ag.function([a, b], [F.sum(a * b, axis)], name="f")
        text = emit(compile_functions([f], "net", ("ref",), board.load(on)))["net.c"]
        assert ("total[" in text) == tiled


def test_what_a_deeper_loop_reads_in_every_iteration_is_a_local():
    text = body(lambda a, b: a * F.reshape(b, (3, 1)), (3, 20), (3,))
    assert "const float x1_i = x1[i];" in text and "x0[i * 20 + j] * x1_i;" in text


def test_a_loop_over_accumulators_has_a_variable_of_its_own():
    """Boards' flags have -Wshadow and -Werror."""
    a = ag.Input("a", (3, 4, 5))
    h = F.tanh(a)
    f = ag.function([a], [F.sum(F.square(F.amin(h, 1))), F.sum(h)], name="f")
    text = " ".join(emit(compile_functions([f], "net", ("ref",), board.load("stm32")))["net.c"].split())
    assert "float reduced[5]; for (int32_t j = 0; j < 5; j++) { reduced[j] = INFINITY; }" in text
