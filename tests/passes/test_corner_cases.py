"""Graphs that every pass must survive: their meaning, the copies that they need, and their C."""

from __future__ import annotations

import sys

import pytest
from corner_cases import SURVIVORS, survivor
from equivalence import preserves
from generated_c import Running, expected, library_of, program_of
from random_functions import close

from autodiff_gen.lowering import left_out_stages
from autodiff_gen.passes.calls.whole_gradients import whole_gradients


@pytest.mark.parametrize("name", SURVIVORS)
def test_every_pass_survives(name: str) -> None:
    preserves(survivor(name)[0])


@pytest.fixture
def large_products(monkeypatch: pytest.MonkeyPatch) -> None:
    """No product counts as tiny."""
    inlining = sys.modules["autodiff_gen.passes.calls.inline_small_matmul"]
    monkeypatch.setattr(inlining, "LARGEST_OUTER", 0)
    monkeypatch.setattr(inlining, "product_is_inlined", lambda *_: False)


@pytest.mark.usefixtures("large_products")
@pytest.mark.parametrize("name", SURVIVORS)
def test_the_copies_are_those_that_are_needed_and_are_named(name: str) -> None:
    case, kept = survivor(name)
    (entry,) = program_of(case, "m").entries
    assert entry.plan.copies == kept


@pytest.mark.cc
@pytest.mark.parametrize("products", ["tiny_products", "large_products"])
def test_survivors_in_c(products: str, request: pytest.FixtureRequest) -> None:
    if products == "large_products":
        request.getfixturevalue(products)
    cases = {name: survivor(name)[0] for name in SURVIVORS}
    programs = {name: program_of(case, name) for name, case in cases.items()}
    library = library_of(list(programs.values()), "-O0", poison=True)
    for name, case in cases.items():
        running = Running(library, programs[name])
        for n in case.batches:
            outputs, states = expected(case.graph, case.values(n))
            for state, array in case.init.items():
                running.array(state.name)[...] = array
            got = running.call(running.program.entries[0], case.at(n), n)
            for key, array in outputs.items():
                assert close(got[key], array), f"{name}, n = {n}, output {key}"
            for key, array in states.items():
                assert close(running.array(key), array), f"{name}, n = {n}, new {key}"


@pytest.mark.usefixtures("large_products")
@pytest.mark.parametrize("name", ["sgd_momentum", "weight_decay", "adam"])
def test_no_gradient_of_a_weight_is_stored_where_that_takes_memory(name: str) -> None:
    """Products that only feed the rules of their weights are completed by rows, or whole where the arena has room."""
    case, _ = survivor(name)
    program = program_of(case, "m")
    with left_out_stages.without([whole_gradients.__name__]):
        by_rows = program_of(case, "m")
    (entry,) = by_rows.entries
    weights = [s.type for s in case.init if len(s.type.shape) == 2]
    assert weights
    stored = [(v.type.shape, b.bytes) for b in entry.plan.placed for v in b.values]
    assert not [t for t in weights if (t.shape, t.bytes) in stored]
    assert program.arena_words <= by_rows.arena_words


@pytest.mark.usefixtures("large_products")
def test_the_gradient_of_a_shared_weight_is_stored_where_memory_is_free(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case, _ = survivor("shared_adam")
    stored = program_of(case, "m").arena_words
    sums = sys.modules["autodiff_gen.passes.memory.accumulate_gradients"]
    monkeypatch.setattr(sums, "_sums", lambda graph: {})
    assert stored <= program_of(case, "m").arena_words
