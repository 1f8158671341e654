"""Placement: buffers alive together never overlap, the peak is honest, and real models reach the bound."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from checkout import ROOT
from generated_c import program_of
from hypothesis import given
from hypothesis import strategies as st
from random_functions import random_function
from random_models import random_model

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.arena import buffer_assignment
from autodiff_gen.ir.arena.buffer_assignment import ArenaBuffer, lower_bound, place
from autodiff_gen.model.loader import load_model
from autodiff_gen.targets import board

BENCH = ROOT / "bench" / "workloads"


@st.composite
def buffers(draw: st.DrawFn) -> list[ArenaBuffer]:
    steps, later = st.integers(0, 6), st.none() | st.integers(0, 4)
    rows = draw(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 12), steps, later), max_size=14))
    unit = draw(st.sampled_from((4, 32)))
    out = []
    for k, (size, start, length, more) in enumerate(rows):
        end = start + length
        parts = () if more is None else (((size + 1) // 2, end + 1, end + 1 + more),)
        out.append(ArenaBuffer(k, size, start, end, unit, parts))
    return out


def check(given_buffers: list[ArenaBuffer]) -> None:
    plan = place(given_buffers)
    for b in given_buffers:
        assert plan.offsets[b.key] % b.alignment == 0
        assert plan.offsets[b.key] >= 0 and plan.offsets[b.key] + b.bytes <= plan.peak
    parts = [(b, p) for b in given_buffers for p in ((b.bytes, b.start, b.end), *b.later)]
    for a, (size, start, end) in parts:
        for b, (other, first, last) in parts:
            if a.key < b.key and start <= last and first <= end:
                apart = plan.offsets[a.key] + size <= plan.offsets[b.key]
                apart = apart or plan.offsets[b.key] + other <= plan.offsets[a.key]
                assert apart, f"{a} and {b} overlap"
    live = [
        sum(-(-size // b.alignment) * b.alignment for b, (size, start, end) in parts if start <= s <= end)
        for s in {start for _, (_, start, _) in parts}
    ]
    assert plan.bound == max(live, default=0)
    assert plan.peak >= plan.bound
    assert plan.peak <= sum(b.size for b in given_buffers)


@given(buffers())
def test_properties(given_buffers: list[ArenaBuffer]) -> None:
    check(given_buffers)


@given(buffers(), st.randoms(use_true_random=False))
def test_same_buffers_same_plan(given_buffers: list[ArenaBuffer], r: random.Random) -> None:
    plan = place(given_buffers)
    assert plan == place(list(given_buffers))
    r.random()  # the planner has another generator
    assert plan == place(list(given_buffers))


def test_nothing_to_place() -> None:
    assert place([]).peak == place([]).bound == lower_bound([]) == 0


def many_buffers() -> list[ArenaBuffer]:
    r = random.Random(1)
    return [
        ArenaBuffer(k, r.randint(1, 400), s := r.randint(0, 500), s + r.randint(0, 60)) for k in range(400)
    ]


def test_many_buffers() -> None:
    check(many_buffers())


def test_each_order_is_placed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all buffers are large, so that none follow those that are moved."""
    orders: list[tuple[int, ...]] = []
    first_fit = buffer_assignment._first_fit

    def note(order: Sequence[ArenaBuffer]) -> tuple[dict[int, int], int]:
        orders.append(tuple(b.key for b in order))
        return first_fit(order)

    monkeypatch.setattr(buffer_assignment, "_first_fit", note)
    plan = place(many_buffers())
    assert plan.peak > plan.bound and len(orders) > 5
    assert len(set(orders)) == len(orders)


@pytest.mark.parametrize("block", range(3))
def test_plans_of_random_graphs(block: int) -> None:
    """The buffers of a compiled entry do not overlap those that are alive with them."""
    for seed in range(block * 8, block * 8 + 8):
        case = (random_function if seed % 2 else random_model)(seed, 12)
        (entry,) = program_of(case, "m").entries
        for pool, plan in entry.plan.plans.items():
            mine = [b for b in entry.plan.placed if b.pool == pool]
            assert plan.bound <= plan.peak
            for i, a in enumerate(mine):
                assert a.offset % 4 == 0 and a.offset + a.bytes <= plan.peak, f"seed {seed}"
                for b in mine[:i]:
                    if a.start <= b.end and b.start <= a.end:
                        assert a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset, (
                            f"seed {seed}"
                        )


@pytest.mark.parametrize(("name", "alignment"), [("stm32", 4), ("virt_a53", 16), ("host_avx2", 32)])
def test_vectors_of_a_trainer_that_is_aligned_cross_no_cache_line(name: str, alignment: int) -> None:
    target = board.load(name)
    program = compile_model(load_model("gesture")[0], "gesture", None, target)
    assert target.cost.alignment == alignment
    assert (program.state_bytes + 4 * program.padding_words) % alignment == 0
    assert (program.padding_words > 0) == ("before_arena[" in emit(program)["gesture.h"])
    for entry in program.entries:
        assert all(b.offset % alignment == 0 for b in entry.plan.placed)


def mlp(batch: int, activation: nn.Module, *last: nn.Module, loss: nn.Module) -> ag.Model:
    net = nn.Sequential(nn.Linear(784, 32, bias=False), activation, nn.Linear(32, 10, bias=False), *last)
    return ag.Model.supervised(net, input=(batch, 784), loss=loss, optimizer=optim.SGD(lr=0.01))


# Parameters 101,632 bytes; the rest is the arena: W1 keeps h[32], z and dz[10] and dh[32]; W2 the same for 32 samples.
WORKLOADS = {
    "w1": (lambda: mlp(1, nn.Sigmoid(), nn.LogSoftmax(dim=1), loss=nn.NLLLoss()), 101_928),
    "w2": (lambda: mlp(32, nn.ReLU(), loss=nn.CrossEntropyLoss()), 111_104),
}


# The live-set bound of each: parameters once, saved inputs of layers, the output and input gradients of the current
# one, ReLU and pooling in their producer.
NETS = {"w3b1": 186_760, "w3b8": 250_152, "w6": 304_328}


@pytest.mark.parametrize("name", NETS)
def test_convolutional_nets_stay_within_the_live_set(name: str) -> None:
    program = compile_model(load_model(str(BENCH / f"{name}.py"))[0], name)
    assert program.struct_bytes == program.bound_bytes
    assert program.struct_bytes <= NETS[name]


@pytest.mark.parametrize("name", WORKLOADS)
def test_real_models_reach_the_bound(name: str) -> None:
    make, size = WORKLOADS[name]
    program = compile_model(make(), name)
    assert program.struct_bytes == program.bound_bytes
    assert program.struct_bytes <= size
