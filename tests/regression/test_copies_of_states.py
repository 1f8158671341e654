"""An output of an old state beside its update: the old state was copied to the arena first, and copies were
reported that nobody had made.
"""

from __future__ import annotations

from random_models import Model
from small_graphs import float_state

from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.ir.graph import Graph


def test_an_output_needs_no_copy_of_the_state() -> None:
    state, w = float_state("w", 2, 3)
    graph = Graph("train_step", (), {"z": w.T}, {state: w * 0.5})
    program = compile_model(Model((state,), 1, 0.1, [graph]), "m")  # type: ignore[arg-type]
    assert program.entries[0].plan.copies == []
    assert program.arena_words == 0
