"""Passes, lowering and code generation decide by the cost table of the target, not by constants."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "autodiff_gen"
FOLDERS = ("ir/arena", "passes", "lowering", "codegen")

# file and name: why it is no property of the target
EXEMPT = {
    "passes/training/finite_guard.py MARGIN": "a fact of float32",
    "passes/training/finite_guard.py LIMIT": "a fact of float32",
    "passes/training/finite_guard.py TINY": "a fact of float32",
    "passes/work_estimate.py FUNCTION": "a fact of ag_math.h",
    "passes/fusion/phase_boundaries.py LARGEST": "what readable steps may cost",
    "passes/fusion/phase_boundaries.py SHARE": "what readable steps may cost",
    "passes/fusion/phase_boundaries.py SMALL": "what readable steps may cost",
    "passes/fusion/groups.py LARGEST_GROUP": "compile time and readable loop nests",
    "passes/calls/inline_small_matmul.py LARGEST_OUTER": "decides how a product is rounded, on every core alike",
    "passes/memory/rematerialize_products.py LEAST_SHARE": "compile time",
    "passes/memory/rematerialize_products.py MOST_ALONE": "compile time",
    "passes/memory/rematerialize_products.py MOST_TRIED": "compile time",
    "passes/memory/tile_and_fuse.py NUMBERS_OF_STRIPS": "length of the C",
    "passes/memory/tile_and_fuse.py MOST_REGIONS": "compile time",
    "passes/demand/joined.py MOST_PARTS": "compile time and length of the C",
    "passes/memory/accumulate_gradients.py MOST_TRIES": "compile time",
    "passes/memory/recomputation.py SMALLEST_PART": "compile time",
    "passes/memory/snapshot_states.py MOST_TRIES": "compile time",
    "ir/arena/buffer_assignment.py EFFORT": "compile time",
    "ir/arena/buffer_assignment.py SMALL": "compile time",
    "lowering/arena/memory_regions.py ROUNDS": "compile time",
    "lowering/plan_search.py CLOSE": "compile time",
    "lowering/plan_search.py RETRIES": "compile time",
    "ir/arena/order.py WORK": "compile time",
    "ir/arena/order.py NARROWEST": "compile time",
    "ir/arena/order.py WIDEST": "compile time",
    "passes/loops/unroll_reductions.py _TERMS": "length of an expression",
    "lowering/phases.py MOST_LAYERS": "length of a heading",
    "lowering/loops/block_operands.py OPERANDS": "what runtime/ag_blocks.h takes",
    "lowering/loops/block_operands.py REGISTERS": "what runtime/ag_blocks.h names",
    "lowering/loops/block_moves.py UNROLLED": "what GCC unrolls",
    "lowering/loops/block_operands.py OPERATIONS": "what GCC unrolls",
    "codegen/budget_notes.py UNLIMITED": "more than any memory",
    "codegen/executed_trees.py SELECT": "what GCC makes of a selection",
    "codegen/instruction_estimate.py CALL": "what GCC makes of a call",
    "codegen/instruction_estimate.py FUNCTION": "a fact of ag_math.h",
    "codegen/instruction_estimate.py OWN": "a fact of ag_math_fma.h",
    "codegen/instruction_estimate.py _LIMITED": "a fact of ag_blocks.h",
    "codegen/instruction_estimate.py _RELU": "a fact of ag_blocks.h",
    "codegen/instruction_estimate.py UNROLLED": "what GCC unrolls",
    "codegen/stack.py CALLBACK": "a bound that tests hold",
    "codegen/stack.py FRAME": "a bound that tests hold",
    "codegen/stack.py KERNEL": "a bound that tests hold",
    "codegen/line_breaking.py WIDTH": "line width",
    "codegen/c_printer.py _LOGICAL": "precedence in C",
    "codegen/line_breaking.py _NESTED": "where a line is cut",
    "codegen/line_breaking.py _BETWEEN_WORDS": "where a line is cut",
    "codegen/line_breaking.py _IN_SUBSCRIPT": "where a line is cut",
    "codegen/line_breaking.py _LINE": "where a line is cut",
    "lowering/loops/row_results.py SHORT": "what GCC unrolls",
    "codegen/formulas.py LONGEST": "length of a comment",
    "codegen/gradient_calls.py MOST": "length of a comment",
    "lowering/loops/outlined_names.py MOST": "length of a name",
    "codegen/budget_error.py LEAST": "length of a list in a message",
    "lowering/arena/cache_misses.py BLOCK": "how finely an estimate divides memory",
}


def constants(source: str) -> list[str]:
    """The names of a module that are assigned numbers: one, several, or expressions of them."""
    found = []
    for node in ast.parse(source).body:
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        parts = list(ast.walk(node.value))
        numbers = [p for p in parts if isinstance(p, ast.Constant) and type(p.value) in (int, float)]
        groups = (ast.Tuple, ast.List, ast.Set, ast.expr_context)
        others = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.operator, ast.unaryop, *groups)
        if numbers and all(isinstance(p, others) for p in parts):
            found += [t.id for target in targets for t in ast.walk(target) if isinstance(t, ast.Name)]
    return found


def test_no_module_has_a_threshold_of_its_own() -> None:
    found = {
        f"{path.relative_to(PACKAGE).as_posix()} {name}"
        for folder in FOLDERS
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for name in constants(path.read_text(encoding="utf-8"))
    }
    assert found == EXEMPT.keys()


@pytest.mark.parametrize(
    "source",
    [
        "MOST = 8",
        "MOST: int = 8",
        "MOST = 2 * 4",
        "MOST = -1.5",
        "MOST = 2.0**-63",
        "MOST = (2, 4, 8)",
        "MOST = [2, 4]",
    ],
)
def test_numbers_are_found(source: str) -> None:
    assert constants(source) == ["MOST"]


def test_numbers_of_several_names_are_found() -> None:
    assert constants("LEAST, MOST = 16, 256") == ["LEAST", "MOST"]


@pytest.mark.parametrize("source", ['NAME = "x"', "TABLE = {1: 2}", "def f():\n    most = 8", "FLAG = True"])
def test_other_values_are_not(source: str) -> None:
    assert constants(source) == []
