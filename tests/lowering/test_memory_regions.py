"""States and buffers in several regions of memory: the numbers of one region, sizes that are kept, the cheapest access
for the values that move most, and rejected limits."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.cli.main import main
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.codegen.program import Program
from autodiff_gen.errors import AutodiffError, BoardError, ModelError, PlanError
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.lowering.arena.memory_regions import assign_regions
from autodiff_gen.lowering.arena.traffic import of_buffer, of_states, traffic
from autodiff_gen.report.collect import collect
from autodiff_gen.report.explain import text
from autodiff_gen.report.listing import listings
from autodiff_gen.report.page import Measured, page
from autodiff_gen.targets import board
from autodiff_gen.targets.board import BoardSpec
from autodiff_gen.targets.memory import Space

STEPS = 3


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(3, 12, batch_first=True)
        self.out = nn.Linear(12, 4)

    def forward(self, x: Any) -> Any:
        return self.out(self.gru(x)[0][:, -1])


def convolutional() -> ag.Model:
    net = nn.Sequential(
        nn.Conv2d(1, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(54, 24), nn.SiLU(), nn.Dropout(0.25), nn.Linear(24, 4),
    )  # fmt: skip
    optimizer = optim.Adam(lr=0.01)
    return ag.Model.supervised(
        net, input=(4, 1, 8, 8), loss=nn.CrossEntropyLoss(), optimizer=optimizer, split=True
    )


def recurrent() -> ag.Model:
    optimizer = optim.SGD(lr=0.1, momentum=0.9)
    return ag.Model.supervised(
        Recurrent(), input=(4, 6, 3), loss=nn.CrossEntropyLoss(), optimizer=optimizer, guard="gradients"
    )


MODELS: dict[str, tuple[Callable[[], ag.Model], tuple[int, ...]]] = {
    "convolutional": (convolutional, (4, 1, 8, 8)),
    "recurrent": (recurrent, (4, 6, 3)),
}
SHARES = {"halves": (0.55, 0.55), "small first": (0.03, 1.05), "three": (0.4, 0.4, 0.3)}
ROWS = [("convolutional", "halves"), ("recurrent", "small first"), ("recurrent", "three")]


@cache
def one(name: str) -> Program:
    return compile_model(MODELS[name][0](), "model")


@cache
def several(name: str, shares: str) -> tuple[dict[str, int], Program]:
    whole = one(name).struct_bytes
    ram = {f"r{k}": int(share * whole) // 4 * 4 for k, share in enumerate(SHARES[shares])}
    return ram, compile_model(MODELS[name][0](), "model", ram=ram)


@pytest.mark.parametrize(("name", "shares"), ROWS)
def test_regions_keep_their_sizes_and_buffers_their_memory(name: str, shares: str) -> None:
    ram, program = several(name, shares)
    assert [r.region for r in program.regions] == list(ram)
    for r in program.regions:
        assert 0 < r.bytes + (program.handle_bytes if r.region == "r0" else 0) <= ram[r.region]
    assert sorted(s.name for r in program.regions for s in r.slots) == sorted(s.name for s in one(name).slots)
    assert program.graph_id == one(name).graph_id
    inner = {
        b.arena_name for e in program.entries for b in e.plan.placed if not b.values
    }  # for the steps of loops
    assert inner == {"r1"} if shares == "small first" else inner <= {"float"}
    for entry in program.entries:
        placed = entry.plan.placed
        for i, a in enumerate(placed):
            assert a.offset + a.bytes <= 4 * program.arenas[a.arena_name]
            for b in placed[:i]:
                apart = a.offset + a.bytes <= b.offset or b.offset + b.bytes <= a.offset
                assert apart or a.arena_name != b.arena_name or a.end < b.start or b.end < a.start


@pytest.mark.cc
@pytest.mark.parametrize(("name", "shares"), ROWS)
def test_the_numbers_are_those_of_one_region(name: str, shares: str, tmp_path: Any) -> None:
    """Losses, predictions, states and checkpoints; memory without a value is filled with NaN."""
    compiler = Compiler(find_compiler(), "-O1")
    plain, parted = Trainer(one(name), compiler), Trainer(several(name, shares)[1], compiler, poison=True)
    random = np.random.default_rng(2)
    for _ in range(STEPS):
        x = random.standard_normal(MODELS[name][1]).astype(np.float32)
        t = random.integers(0, 4, 4)
        assert plain.train_step(x, t) == parted.train_step(x, t)
        assert np.array_equal(plain.predict(x), parted.predict(x))
    ours, theirs = parted.state_dict(), plain.state_dict()
    assert all(np.array_equal(ours[k], theirs[k]) for k in theirs)
    plain.save(tmp_path / "plain")
    parted.save(tmp_path / "parted")
    assert (tmp_path / "plain").read_bytes() == (tmp_path / "parted").read_bytes()
    parted.init(7)
    parted.load(tmp_path / "plain")
    assert all(np.array_equal(v, theirs[k]) for k, v in parted.state_dict().items())


def test_what_is_moved_most_for_its_size_has_the_cheapest_access() -> None:
    program = one("convolutional")
    spaces = (Space("slow", program.struct_bytes, 3.0), Space("fast", program.struct_bytes // 4, 1.0))
    states = [s.state for s in program.slots]
    made = assign_regions([e.plan for e in program.entries], states, spaces, 4)
    assert not made.missing(spaces) and made.used[1] > 0.8 * spaces[1].bytes

    moved: list[tuple[float, int, int]] = []  # bytes moved for each byte, size, region
    totals = dict.fromkeys(states, 0)
    for plan in made.plans:
        values, memory = traffic(plan)
        for s, count in of_states(plan, values).items():
            totals[s] += count
        moved += [(of_buffer(b, values, memory) / b.bytes, b.bytes, bool(b.arena)) for b in plan.placed]
    moved += [(totals[s] / s.type.bytes, s.type.bytes, made.states[s]) for s in states]
    mean = [
        sum(d * size for d, size, at in moved if at == k) / sum(size for _, size, at in moved if at == k)
        for k in (0, 1)
    ]
    assert mean[1] > 2 * mean[0]
    densest = max(moved)
    assert densest[2] == 1


def test_steps_of_a_loop_count_for_each_iteration() -> None:
    program = one("recurrent")
    plan = program.entries[0].plan
    values, memory = traffic(plan)
    scans = [s for s in plan.steps if s.inner is not None]
    assert scans and all(memory[s, "float"] > 0 for s in scans if any(b.owner is s for b in plan.placed))
    states = of_states(plan, values)
    weights = {
        s.name: n / s.type.bytes for s, n in states.items() if s.name in ("gru.weight_hh_l0", "out.weight")
    }
    assert weights["gru.weight_hh_l0"] >= 6 > weights["out.weight"]


def test_one_region_that_is_large_enough_has_everything() -> None:
    """Further regions whose access is no cheaper change nothing."""
    given = MODELS["convolutional"][0]
    b = board.load("mps2_an386")
    with_psram = compile_model(given(), "model", ["ref"], b)
    without = replace(b, memory={k: r for k, r in b.memory.items() if k != "psram"})
    assert emit(with_psram) == emit(compile_model(given(), "model", ["ref"], without))


def test_explain_shows_each_region() -> None:
    model = MODELS["convolutional"][0]()
    b, ram = board.load("stm32_ccm"), {"sram": 9000, "ccm": 16384}
    program = compile_model(model, "model", ["ref"], b, ram)
    report = collect(program, b, ram)
    told = " ".join(text(report, full=True).split())
    html = page(report, listings(program), Measured((), {}))
    assert [r.name for r in report.regions] == ["sram", "ccm"]
    assert all(f"<h2>{r.name}, struct</h2>" in html for r in report.regions)
    assert sum(r.bytes for r in report.regions) == report.struct_bytes
    for r in report.regions:
        assert f"{r.name}: states {r.state_bytes} {r.name}: arena {r.arena_bytes}" in told
        assert f"{r.name}: free of {ram[r.name]} {ram[r.name] - r.bytes}" in told
    for s, slot in zip(report.states, program.slots, strict=True):
        assert s.region == next(r.region for r in program.regions if slot in r.slots)


def with_states(**regions: list[str]) -> BoardSpec:
    """The board stm32_ccm, which has these states in these regions."""
    b = board.load("stm32_ccm")
    return replace(b, memory={k: replace(r, states=tuple(regions.get(k, ()))) for k, r in b.memory.items()})


@pytest.mark.parametrize("states", [{"ccm": ["0.weight"]}, {"ccm": ["*.bias*"], "sram": ["0.weight*"]}])
def test_states_are_where_the_board_has_them(states: dict[str, list[str]]) -> None:
    """Everything would fit the main region; the rest is placed as before."""
    program = compile_model(MODELS["convolutional"][0](), "model", ["ref"], with_states(**states))
    homes = {s.name: r.region for r in program.regions for s in r.slots}
    assert len(program.regions) == 2 and homes.keys() == {s.name for s in program.slots}
    for region, patterns in states.items():
        named = [n for n in homes if any(fnmatchcase(n, p) for p in patterns)]
        assert named and all(homes[n] == region for n in named)


WRONG_STATES: list[tuple[dict[str, list[str]], Any, str]] = [
    (
        {"ccm": ["0.wieght"]},
        None,
        "memory.ccm.states: model has no state '0.wieght'; did you mean '0.weight'",
    ),
    ({"ccm": ["0.*"], "sram": ["0.weight"]}, None, "'0.weight' is in memory.sram.states already"),
    ({"ccm": ["*"]}, {"sram": 90000, "ccm": 256}, "ccm has 256 for a trainer"),
    ({"ccm": ["0.weight"]}, {"sram": 90000}, "ram: give ccm bytes, as the board has '0.weight' there"),
    ({"ccm": ["0.weight"]}, 90000, "ccm has 0 for a trainer"),
]


@pytest.mark.parametrize(("states", "ram", "told"), WRONG_STATES)
def test_states_that_cannot_be_where_the_board_has_them(
    states: dict[str, list[str]], ram: Any, told: str
) -> None:
    with pytest.raises(AutodiffError, match=re.escape(told)):
        compile_model(MODELS["convolutional"][0](), "model", ["ref"], with_states(**states), ram)


WRONG = [
    ({"dtcm": 4096}, BoardError, "board stm32_ccm has no region 'dtcm' (known: sram, ccm)"),
    ({"sram": 4096, "ccm": 1 << 20}, BoardError, "ccm has 65536 bytes for the trainer, not 1048576"),
    ({"sram": 1000, "ccm": 9000}, PlanError, "has 10000 for it (sram 1000, ccm 9000): "),
    (
        {"ccm": 18000},
        PlanError,
        'a smaller batch (accumulate="mean") or less optimizer state',
    ),
    (
        {"ccm": 1000},
        PlanError,
        "needs 17768 bytes for parameters and optimizer state, board stm32_ccm has 1000",
    ),
]


@pytest.mark.parametrize(("ram", "kind", "told"), WRONG)
def test_what_does_not_fit_names_the_region(
    ram: dict[str, int], kind: type[AutodiffError], told: str
) -> None:
    with pytest.raises(kind, match=re.escape(told)):
        compile_model(MODELS["convolutional"][0](), "model", ["ref"], board.load("stm32_ccm"), ram)


@pytest.mark.parametrize("ram", [{}, {"a b": 4096}, {"a": 0}, {"a": 4096, "b": True}])
def test_on_host_rejects_what_are_no_sizes(ram: dict[str, int]) -> None:
    with pytest.raises(ModelError, match="must be a number of bytes"):
        MODELS["convolutional"][0]().on_host(ram=ram)


@pytest.mark.parametrize("given", ["sram=4K,sram=8K", "=4K", "sram=", "sram=4K,"])
def test_the_command_line_rejects_what_are_no_sizes(given: str, capsys: Any) -> None:
    assert main(["explain", "xor", "--board", "stm32_ccm", "--ram", given]) != 0
    assert "expected" in capsys.readouterr().err
