"""The pipeline: which results may be used again."""

from __future__ import annotations

from dataclasses import replace

import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.node import Node, Value
from autodiff_gen.lowering import control_flow, planner
from autodiff_gen.lowering.plan import RegionPlan
from autodiff_gen.passes.context import Context
from autodiff_gen.targets import board


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
