"""Loops that reduce rows of memory say so, where the board's kernels may reorder sums anyway: rows of small loops,
a model on several boards, and the extremes of ag_loops.h."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from c_build import compile_c
from checkout import ROOT
from op_expressions import reduced
from placed_loops import counted, placed

from autodiff_gen.codegen.c_printer import PRINTER
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.types import Dim
from autodiff_gen.lowering.c import c_ast as c
from autodiff_gen.lowering.loops.independent_loops import with_independent_loops
from autodiff_gen.lowering.loops.row_results import with_row_results
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

LENGTH = 64
INDEX, SUM, MOST = c.Name("i"), c.Name("sum"), c.Name("most")


def x(factor: int = 1) -> c.Element:
    return c.Element(c.Name("x"), c.times(INDEX, factor))


ADD, MAX = reduced("sum", SUM, x()), reduced("amax", MOST, x())
SQUARES = reduced("sum", c.Name("squares"), c.Binary("*", x(), x()))
STORE = c.Assign(c.Element(c.Member("t", "arena"), INDEX), x())
ROWS: dict[str, tuple[str, tuple[c.Statement, ...]]] = {
    "sum": ("+ : sum", (ADD,)),
    "sums": ("+ : sum, squares", (ADD, SQUARES)),
    "maximum": ("ag_max : most", (MAX,)),
    "a sum and a store": ("+ : sum", (c.declare("float", "term", x(), const=True), STORE, ADD)),
    "nothing": ("", (STORE,)),
    "two kinds": ("", (ADD, MAX)),
    "partial results cannot be combined": ("", (reduced("largest", MOST, x()),)),
    "an element of an array": ("", (reduced("sum", c.Element(SUM, c.number(0)), x()),)),
    "read in the loop": ("", (ADD, c.Assign(c.Element(c.Member("t", "arena"), INDEX), SUM))),
    "read in a term": ("", (ADD, reduced("sum", c.Name("squares"), SUM))),
    "another variable": ("", (ADD, c.Assign(c.Name("last"), x()))),
    "columns": ("", (reduced("sum", SUM, x(LENGTH)),)),
    "looked up": ("", (reduced("sum", SUM, c.Element(c.Name("x"), x())),)),
    "what another iteration reads": ("", (ADD, c.Assign(c.Element(c.Name("x"), c.number(3)), c.number(0)))),
}


@pytest.mark.parametrize("row", ROWS)
def test_loop(row: str) -> None:
    expected, body = ROWS[row]
    for length, reorder in ((LENGTH, True), (LENGTH, False), (LENGTH - 1, True)):
        loop = counted("i", length, body)
        ((found,),) = with_independent_loops([placed((loop,))], LENGTH, reorder)
        assert isinstance(found, c.For)
        said = found.reduction
        text = f"{said.identifier} : {', '.join(said.names)}" if said else ""
        assert text == (expected if reorder and length == LENGTH else "")


@pytest.mark.parametrize(
    ("name", "kernels", "said"),
    [
        ("host_avx2", ["host", "ref"], True),
        ("host_avx2", ["ref"], False),
        ("stm32", ["armv7em", "ref"], False),
    ],
)
def test_reference_kernels_keep_the_order_of_sums(name: str, kernels: list[str], said: bool) -> None:
    program = compile_model(load_model("attention")[0], "attention", kernels, board.load(name))
    text = emit(program)["attention.c"]
    assert any(word in text for word in ("AG_REDUCTION(", "ag_sum(", "ag_larger_order(")) == said


EXTREMES = """
#include <stdio.h>
#include <stdint.h>
#include <math.h>
#include "ag_loops.h"
int main(void) {
    for (int32_t at = 0; at < 37; at++) {
        float x[37], most = -INFINITY, least = INFINITY, sum = 0.0f;
        for (int32_t i = 0; i < 37; i++) x[i] = (float)((i * 7 + 36 - at) % 37);
        for (int32_t with_nan = 0; with_nan < 3; with_nan++) {
            if (with_nan > 0) x[at] = with_nan > 1 ? -NAN : NAN;
            AG_REDUCTION(ag_max : most)
            for (int32_t i = 0; i < 37; i++) most = (x[i] > most || x[i] != x[i]) ? x[i] : most;
            AG_REDUCTION(ag_min : least)
            for (int32_t i = 0; i < 37; i++) least = (x[i] < least || x[i] != x[i]) ? x[i] : least;
            AG_REDUCTION(+ : sum)
            for (int32_t i = 0; i < 37; i++) sum += x[i];
            uint32_t most_order = 0, least_order = 0;
            AG_IVDEP
            for (int32_t i = 0; i < 37; i++) most_order = ag_larger_order(most_order, x[i]);
            AG_IVDEP
            for (int32_t i = 0; i < 37; i++) least_order = ag_larger_order(least_order, -x[i]);
            const float latest = ag_of_order(most_order), first = -ag_of_order(least_order);
            if (with_nan) printf("%d", (most != most) + (least != least) + (sum != sum) +
                                 (latest != latest) + (first != first));
            else printf("%g %g %g %g %g ", (double)most, (double)least, (double)sum, (double)latest,
                        (double)first);
        }
        puts("");
    }
    return 0;
}
"""


@pytest.mark.cc
@pytest.mark.parametrize("flags", [(), ("-O3", "-fno-trapping-math", "-fopenmp-simd", "-DAG_OPENMP_SIMD")])
@pytest.mark.parametrize("cc", ["gcc", "clang"])
def test_extremes_are_nan_if_any_element_is(cc: str, flags: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(EXTREMES)
    program = compile_c(cc, [tmp_path / "main.c"], tmp_path / "program", [*flags, f"-I{ROOT / 'runtime'}"])
    done = subprocess.run([program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["36 0 666 36 0 55"] * 37


ROW = counted("i", LENGTH, (ADD, SQUARES), independent=True, reduction=c.Reduction("+", ("sum", "squares")))
BEGUN = (c.declare("float", "sum", c.Literal("0.0f")), c.declare("float", "squares", c.Literal("0.0f")))
PARTS = """
float sum_parts[16];
float squares_parts[16];
AG_IVDEP
for (int32_t j = 0; j < 16; j++) {
    float sum = 0.0f;
    float squares = 0.0f;
    for (int32_t i = 0; i < 64; i += 16) {
        sum += x[i + j];
        squares += x[i + j] * x[i + j];
    }
    sum_parts[j] = sum;
    squares_parts[j] = squares;
}
float sum = ag_sum(sum_parts, 16);
float squares = ag_sum(squares_parts, 16);
"""
MOST_OF_ROW = """
uint32_t most_order = 0;
AG_IVDEP
for (int32_t i = 0; i < 64; i++) {
    most_order = ag_larger_order(most_order, x[i]);
}
float most = ag_of_order(most_order);
"""
LEAST_OF_ROW = MOST_OF_ROW.replace("x[i]", "-x[i]").replace("ag_of_order(", "-ag_of_order(")


def row_results(board_name: str, *statements: c.Statement) -> str:
    (found,) = with_row_results([statements], board.load(board_name).cost)
    return "\n" + "\n".join(PRINTER.lines(found)) + "\n"


def test_short_rows_have_partial_sums_where_vectors_are_wide() -> None:
    assert row_results("host_avx512", *BEGUN, ROW) == PARTS
    for other, rows in (
        ("virt_a53", (*BEGUN, ROW)),
        ("host_avx512", (*BEGUN, replace(ROW, extent=LENGTH + 1))),
        ("host_avx512", (*BEGUN, replace(ROW, extent=LENGTH**2))),
        ("host_avx512", (*BEGUN, replace(ROW, extent=Dim(1, LENGTH)))),
        ("host_avx512", (*(replace(d, c_type="int32_t") for d in BEGUN), ROW)),
        ("host_avx512", (ROW,)),
    ):
        assert "_parts" not in row_results(other, *rows)


@pytest.mark.parametrize(("op", "text"), [("amax", MOST_OF_ROW), ("amin", LEAST_OF_ROW)])
def test_an_extreme_is_one_of_integers_where_vectors_are_wide(op: str, text: str) -> None:
    most = reduced(op, MOST, x())
    row = c.For("i", c.number(LENGTH), (most,), reduction=c.Reduction(most.identifier, ("most",)))
    assert row_results("host_avx2", c.declare("float", "most", c.Literal("-INFINITY")), row) == text
