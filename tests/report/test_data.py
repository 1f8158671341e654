"""The records of the reports against the plan: buffers, live sets, sizes, steps, and values that are computed again."""

from __future__ import annotations

import pytest
from report_models import MODELS, compiled

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.lowering.plan import EntryPlan
from autodiff_gen.report.explain import explain, text
from autodiff_gen.targets import board

each = pytest.mark.parametrize("name", MODELS)


@each
def test_sizes_are_those_of_the_program(name: str) -> None:
    program, report = compiled(name)
    assert (report.state_bytes, report.struct_bytes) == (program.state_bytes, program.struct_bytes)
    assert report.bound_bytes == program.bound_bytes
    assert sum(s.bytes for s in report.states) == program.state_bytes
    used = sum(
        max(e.arenas[pool].peak for e in report.entries if pool in e.arenas)
        for pool in {p for e in report.entries for p in e.arenas}
    )
    padding = 4 * (program.padding_words + program.split)
    assert report.arena_bytes == max(used, 4) + padding


@each
def test_the_peak_of_each_arena_and_its_bound_follow_from_the_buffers(name: str) -> None:
    _, report = compiled(name)
    for entry in report.entries:
        for pool, arena in entry.arenas.items():
            outer = [b for b in entry.buffers if b.pool == pool and not b.nested]
            assert max((b.offset + b.size for b in outer), default=0) == arena.peak
            live = [sum(b.size for b in outer if b.first <= k <= b.last) for k in range(len(entry.steps))]
            assert max(live) == arena.bound
        if len(entry.arenas) == 1:
            assert entry.live_bytes[entry.peak] == entry.bound_bytes


@each
def test_no_two_buffers_overlap_at_a_step(name: str) -> None:
    """Of those that hold values, also inside loops and branches."""
    _, report = compiled(name)
    for entry in report.entries:
        held = [b for b in entry.buffers if b.tensors]
        for i, a in enumerate(held):
            for b in held[i + 1 :]:
                together = a.first <= b.last and b.first <= a.last and a.pool == b.pool
                assert not together or a.offset + a.size <= b.offset or b.offset + b.size <= a.offset


@each
def test_every_step_and_every_buffer_of_the_plan_is_there(name: str) -> None:
    program, report = compiled(name)
    for entry, record in zip(program.entries, report.entries, strict=True):
        assert [s.number for s in record.steps] == [number for number, _ in entry.plan.all_steps()]
        assert [c.symbol for s in record.steps for c in s.calls] == [k.symbol for k in entry.plan.kernels]
        placed = [b for plan in entry.plan.all_plans() for b in plan.placed]
        assert sorted(b.bytes for b in record.buffers) == sorted(b.bytes for b in placed)
        for step in record.steps:
            for operand in (*step.reads, *step.writes):
                if operand.buffer is not None:
                    b, k = record.buffers[operand.buffer], record.steps.index(step)
                    assert b.first <= k <= b.last
                    assert operand.name == b.tensors[operand.tensor].name


def again(plan: EntryPlan) -> bool:
    inside = [n for p in plan.all_plans() for s in p.steps for r in s.node.regions for n in r.nodes]
    return any(n.origin.recomputed for n in (*inside, *(s.node for s in plan.steps)))


@each
def test_what_is_computed_again_is_told(name: str) -> None:
    program, report = compiled(name)
    for entry, record in zip(program.entries, report.entries, strict=True):
        assert bool(record.again) == again(entry.plan)
        assert (f"computed again in {entry.name}" in text(report)) == bool(record.again)
    assert any(e.again for e in report.entries) == (name == "resnet8")


def test_a_summary_comes_first_and_the_graph_only_in_full() -> None:
    _, report = compiled("resnet8")
    short, full = text(report), text(report, full=True)
    assert full.startswith(short) and "entry train_step(" not in short and "entry train_step(" in full
    assert len(short.splitlines()) < 120


@each
def test_functions_are_those_that_loops_call(name: str) -> None:
    program, report = compiled(name)
    source = emit(program)[f"{program.name}.c"]
    assert set(report.functions) == {
        f.shown for f in program.backends.functions.values() if f"{f.symbol}(" in source
    }


def test_until_when_a_value_is_stored_that_is_computed_again() -> None:
    """In memory to that step and no further, and computed again in a later one."""
    _, report = compiled("resnet8")
    (entry,) = (e for e in report.entries if e.again)
    numbers = [s.number for s in entry.steps]
    known = [a for a in entry.again if a.until]
    assert 0 < len(known) < len(entry.again)
    for again in known:
        name, last, at = (
            again.name.removesuffix("_again"),
            numbers.index(again.until),
            numbers.index(again.step),
        )
        lives = entry.lives[name]
        assert any(end == last < at for _, end in lives) and not any(last < end < at for _, end in lives)


@pytest.mark.parametrize(
    ("x", "t", "batch_axis", "samples"),
    [((6, 4), (6, 3), 0, 6), ((2, 4), (2, 3), None, 2), ((4,), (3,), None, 1), ((1, 4), (1, 3), None, 1)],
)
def test_the_batch_of_a_heading(
    x: tuple[int, ...], t: tuple[int, ...], batch_axis: int | None, samples: int
) -> None:
    """Also one that is fixed, as exporters fix it."""
    inputs = [ag.Input(name, shape, batch_axis=batch_axis) for name, shape in (("x", x), ("t", t))]
    y = nn.Linear(4, 3)(inputs[0])
    model = ag.Model(inputs[:1], inputs[1:], {"y": y}, F.mse_loss(y, inputs[1]), optim.SGD(lr=0.1))
    told = explain(compile_model(model, "net"), board.load("host"), None)
    assert f"(host); batch {samples}; kernel" in told
