"""Decisions by the cost table of the target, and that a board of the user's own changes them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_functions
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.types import Dim, Size
from autodiff_gen.passes import costs
from autodiff_gen.targets import board
from autodiff_gen.targets.cost_table import CostTable, KernelCost

M4F = board.load("stm32").cost
M3 = board.load("mps2_an385").cost
Decision = Callable[[CostTable], bool]

# decision -> the answer on a core with FPU and tuned kernels, on one without FPU
DECISIONS: list[tuple[str, Decision, bool, bool]] = [
    ("a product of 4x4x4", lambda c: costs.product_is_inlined(c, 4, 4, 4, True), True, True),
    ("a product of 16x16x16", lambda c: costs.product_is_inlined(c, 16, 16, 16, True), False, False),
    ("a product of 1x16x16", lambda c: costs.product_is_inlined(c, 1, 16, 16, True), False, False),
    ("a product of edges", lambda c: costs.product_is_inlined(c, 2, 16, 64, False), True, False),
    ("a product of two rows", lambda c: costs.product_is_inlined(c, 2, 16, 64, True), False, False),
    ("sums of few rows", lambda c: costs.sums_are_inlined(c, 4, 40), True, True),
    ("sums of many rows", lambda c: costs.sums_are_inlined(c, 32, 40), False, True),
    ("an update of 4", lambda c: costs.addition_is_inlined(c, 4), True, True),
    ("an update of 64", lambda c: costs.addition_is_inlined(c, 64), False, True),
    ("a bias of a layer", lambda c: costs.result_is_finished_in_loops(c, 1, False, False, True), True, False),
    (
        "a bias of an output",
        lambda c: costs.result_is_finished_in_loops(c, 1, False, False, False),
        False,
        False,
    ),
    ("a residual, ReLU", lambda c: costs.result_is_finished_in_loops(c, 3, True, True, True), True, False),
    ("one operation again", lambda c: costs.is_recomputed(c, 1, 1, 2), True, True),
    ("ten operations again", lambda c: costs.is_recomputed(c, 10, 2, 2), False, False),
    ("a copy for 9 factors", lambda c: costs.is_gathered_once(c, 100, 900), False, False),
    ("a copy for 9 factors without tiles", lambda c: costs.is_gathered_once(c, 100, 900, False), True, False),
    ("a copy for 60 factors", lambda c: costs.is_gathered_once(c, 100, 6000), True, False),
    ("rows of 3 images", lambda c: costs.uses_column_blocks(c, 3, 3, 64, 4), True, True),
    ("rows of 1 image", lambda c: costs.uses_column_blocks(c, 3, 1, 64, 4), False, False),
    ("blocks of 2 rows", lambda c: costs.rows_are_read_by_blocks(c, 2, 64), True, False),
    ("blocks of 4 rows", lambda c: costs.rows_are_read_by_blocks(c, 4, 64), True, False),
    ("blocks of 4 rows of 20", lambda c: costs.rows_are_read_by_blocks(c, 4, 20), False, False),
    ("blocks of 5 rows", lambda c: costs.rows_are_read_by_blocks(c, 5, 64), False, False),
    ("blocks of short rows", lambda c: costs.rows_are_read_by_blocks(c, 2, 16), False, False),
    ("a second pass of a mask", lambda c: costs.is_stored_between_passes(c, 2, 1), True, True),
    ("a second pass of nothing", lambda c: costs.is_stored_between_passes(c, 0, 0), False, False),
    ("by many readers", lambda c: costs.is_recomputed(c, 2, 2, 9), False, False),
]


@pytest.mark.parametrize(
    "decision, fast, slow", [row[1:] for row in DECISIONS], ids=[row[0] for row in DECISIONS]
)
def test_decisions(decision: Decision, fast: bool, slow: bool) -> None:
    assert (decision(M4F), decision(M3)) == (fast, slow)


def test_without_vectors_no_function_wants_a_flat_loop() -> None:
    assert not costs.flat_loop_pays(replace(M4F, vector_loop=0), (8, 4), 32)
    assert costs.flat_loop_pays(replace(M4F, vector_loop=8), (8, 4), 32)


def test_the_cost_of_a_call_counts_whole_tiles_and_what_is_shorter_than_one() -> None:
    cost = KernelCost(call=100, result=10, term=1, edge=5, tile=4)
    assert cost.total((8, 4), 3) == 100 + 320 + 32 * 3
    assert cost.total((5, 4), 3) == 100 + 200 + 32 * 3
    assert cost.total((3, 8), 3) == 100 + 240 + 24 * 3 * 5


@pytest.mark.parametrize(
    "extents, tile",
    [
        ((4, 4), (4, 4)),
        ((1, 1), (1, 1)),
        ((2, 32), (1, 4)),
        ((64, 1), (4, 1)),
        ((3, 10), (1, 10)),
        ((3, 5), (3, 5)),
        ((8, 17), (1, 1)),
        ((Dim(1, 8), 4), (1, 4)),
        ((4, Dim(1, 8)), (1, 1)),
        ((Dim(1, 8), 1), (1, 1)),
    ],
)
def test_sums_that_share_the_loop_over_their_terms(extents: tuple[Size, ...], tile: tuple[int, ...]) -> None:
    assert costs.sums_in_a_tile(M4F, extents) == tile


def test_terms_are_repeated_for_the_sake_of_vectors_or_of_few_loops() -> None:
    assert costs.terms_are_repeated(replace(M4F, vector=4, loop=0), 4, 4)
    assert not costs.terms_are_repeated(replace(M4F, vector=1, loop=0), 4, 1)
    assert costs.terms_are_repeated(M4F, 4, 1) and not costs.terms_are_repeated(M4F, 4, 4)


def test_a_tile_has_as_many_accumulators_as_lowering_gives_it() -> None:
    a, b = ag.Input("a", (32, 12)), ag.Input("b", (32, 20))
    each = F.reshape(a, (32, 12, 1)) * F.reshape(b, (32, 1, 20))
    program = compile_functions([ag.function([a, b], [F.sum(each, 0)])], "m", None, board.load("stm32"))
    assert "total[4] = {0.0f}" in emit(program)["m.c"]
    assert costs.sums_in_a_tile(M4F, (12, 20)) == (1, 4)


def test_a_dearer_call_on_a_board_of_ones_own_inlines_a_larger_product(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('schema = 1\ninherits = "stm32"\n[cost.gemm]\ncall = 50000\n')
    mine = board.load(str(path))
    assert mine.cost == replace(M4F, gemm=replace(M4F.gemm, call=50000))
    a, b = ag.Input("a", (16, 16)), ag.Input("b", (16, 16))
    f = ag.function([a, b], [F.matmul(a, b)])

    def kernels(target: board.BoardSpec) -> list[str]:
        program = compile_functions([f], "m", None, target)
        return [k.symbol for e in program.entries for s in e.plan.steps for _, k in s.calls.values()]

    assert kernels(board.load("stm32")) == ["ag_gemm_nn_f32_armv7em"] and kernels(mine) == []
