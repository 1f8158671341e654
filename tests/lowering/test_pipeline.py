"""The pipeline: which results may be used again, and how deep stages measure what later ones make of theirs."""

from __future__ import annotations

import inspect
import re
import sys
from dataclasses import replace

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.node import Node, Value
from autodiff_gen.lowering import control_flow, pipeline, planner
from autodiff_gen.lowering.plan import RegionPlan
from autodiff_gen.passes.context import ArenaUse, Context
from autodiff_gen.targets import board

WEIGHS = re.compile(r"""\bcontext\.(
    budget|slack|is_estimate|excess|is_worth_its_time|least_peak|live_at_peak|memory|over_budget|placed|samples|takes_less|takes_no_more|
    weighing|weighs_memory)\b""", re.VERBOSE)  # fmt: skip


def test_stages_whose_results_depend_on_memory_say_so() -> None:
    """What another does is not computed again for a plan after an estimate."""
    source = inspect.getsource(pipeline)
    stages = re.findall(r"^    (on_entries|weighing)\(\s*(\w+)(, weighs=\w+)?\s*\)", source, re.MULTILINE)
    listed = {name for how, name, when in stages if how == "weighing" or when}
    found = {
        name
        for _, name, _ in stages
        if WEIGHS.search(inspect.getsource(sys.modules[getattr(pipeline, name).__module__]))
    }
    assert WEIGHS.search(inspect.getsource(control_flow.plan_regions))
    found.add("select_kernels")  # by plan_regions
    others = {"copy_overwritten_states", "schedule", "assign_buffers"}  # beside select_kernels in planner.py
    assert "copy_insertion" in found and others < {name for _, name, _ in stages}
    assert found - others == listed


def test_estimates_do_not_measure_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for copies of states at a peak, once."""
    depth, depths, measure = 0, [], pipeline._memory_after

    def counted(context: Context, stage: str, graph: Graph) -> ArenaUse:
        nonlocal depth
        depth += 1
        depths.append((depth, stage))
        try:
            return measure(context, stage, graph)
        finally:
            depth -= 1

    monkeypatch.setattr(pipeline, "_memory_after", counted)

    def block(narrow: int, wide: int) -> tuple[nn.Module, ...]:
        expanded = nn.Conv2d(narrow, wide, 1), nn.BatchNorm2d(wide), nn.ReLU6()
        return (*expanded, nn.Conv2d(wide, narrow, 1), nn.BatchNorm2d(narrow))

    net = nn.Sequential(nn.Conv2d(3, 8, 1), *block(8, 24), *block(8, 24), nn.Flatten(), nn.Linear(512, 4))
    model = ag.Model.supervised(net, (1, 3, 8, 8), nn.CrossEntropyLoss(), optim.Adam(lr=0.01))
    compile_model(model, "m", ["ref"], board.load("stm32"))
    measured = {stage for level, stage in depths if level == 1}
    assert {"gradient_rows", "rematerialize", "snapshot_states"} <= measured
    assert {stage for level, stage in depths if level == 2} == {"snapshot_states"}
    assert max(level for level, _ in depths) == 2


def test_nothing_takes_less_than_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a dense block a result takes the memory of another one, which takes that of an operand."""

    class Dense(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layers = [(nn.BatchNorm2d(c), nn.ReLU(), nn.Conv2d(c, 4, 3, padding=1)) for c in (8, 12, 16)]
            self.layers = nn.ModuleList([nn.Sequential(*layer) for layer in layers])

        def forward(self, x: Value) -> Value:
            for layer in self.layers:
                x = F.cat([x, layer(x)], 1)
            return x

    found, measure = [], pipeline._memory_after

    def compared(context: Context, stage: str, graph: Graph) -> ArenaUse:
        use = measure(context, stage, graph)
        found.append((max(pipeline._bound_after(context, stage, graph)), use.peak, stage))
        return use

    monkeypatch.setattr(pipeline, "_memory_after", compared)
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), Dense(), nn.Conv2d(20, 8, 1), nn.Flatten())
    model = ag.Model.supervised(
        nn.Sequential(net, nn.Linear(2048, 4)), (1, 3, 16, 16), nn.CrossEntropyLoss(), optim.SGD(lr=0.01)
    )
    compile_model(model, "m", ["ref"], board.load("stm32"))
    assert len(found) > 10
    assert [row for row in found if row[0] > row[1]] == []


def test_a_loop_is_planned_once_for_all_graphs_that_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the C that planning it each time gives."""

    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = nn.GRU(3, 6, batch_first=True), nn.LSTM(6, 5, batch_first=True)
            self.hidden, self.head = nn.Linear(60, 20), nn.Linear(20, 4)

        def forward(self, x: Value) -> Value:
            y, _ = self.second(self.first(x)[0])
            return self.head(F.mish(self.hidden(F.silu(F.flatten(y, 1)))))

    def text() -> str:
        model = ag.Model.supervised(Net(), (2, 12, 3), nn.CrossEntropyLoss(), optim.Adam(lr=0.01))
        return "".join(emit(compile_model(model, "m", ["ref"], board.load("stm32"), 28100)).values())

    planned, wanted, plan_scan, plan_regions = [], [], control_flow.plan_scan, planner.plan_regions
    monkeypatch.setattr(control_flow, "plan_scan", lambda *a: planned.append(1) or plan_scan(*a))
    monkeypatch.setattr(planner, "plan_regions", lambda *a: wanted.append(1) or plan_regions(*a))
    once = text()
    assert 4 * len(planned) < len(wanted)

    def again(node: Node, graph: Graph, plan: control_flow.Planner, context: Context) -> RegionPlan:
        return plan_regions(node, graph, plan, replace(context, analyses={}))

    monkeypatch.setattr(planner, "plan_regions", again)
    assert text() == once
