"""The network of an entry as a graph: its layers and lines, parameters, and shares of the time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from report_models import MODELS, compiled

from autodiff_gen import Model, nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.instruction_estimate import instructions, instructions_by_step
from autodiff_gen.ir.origin import FORWARD
from autodiff_gen.report.collect import collect
from autodiff_gen.report.data import EntryRecord, ReportedOperand, StepRecord
from autodiff_gen.report.network import LayerBox, NetworkGraph, network_picture, shares
from autodiff_gen.report.program_report import Report
from autodiff_gen.targets import board


def edges(report: Report, entry: int = 0) -> list[tuple[str, str]]:
    nodes = NetworkGraph(report.entries[entry], report.parameters).nodes
    return [(nodes[o].name, node.name) for node in nodes for o in node.reads]


def test_a_chain_of_layers() -> None:
    _, report = compiled("mnist")
    assert edges(report) == [("x", "0"), ("0", "2"), ("label", "2"), ("2", "loss")]
    assert edges(report, 1) == [("x", "0"), ("0", "2"), ("2", "scores")]
    nodes = {node.name: node for node in NetworkGraph(report.entries[0], report.parameters).nodes}
    assert {name: node.used or node.shape for name, node in nodes.items()} == {
        "x": "f32[1,784]", "0": "f32[1,32]", "label": "u8[1]", "2": "f32[1,10]", "loss": "f32[]"
    }  # fmt: skip
    assert list(nodes["2"].functions) == ["linear", "log_softmax", "nll_loss"]
    assert report.parameters == {"0": 32 * 784, "2": 320} and report.constants == {}


def test_residual_blocks_have_lines_around_layers() -> None:
    found = edges(compiled("resnet8")[1])
    assert {("1", "3.main.4"), ("3.main.4", "4.shortcut"), ("4.shortcut", "4.main.4"), ("8", "loss")} <= set(
        found
    )
    assert ("3.main.0", "3.main.3") not in found


def test_loops_and_frozen_layers() -> None:
    assert edges(compiled("gesture")[1]) == [
        ("x", "gru"),
        ("gru", "head"),
        ("label", "head"),
        ("head", "loss"),
    ]
    _, report = compiled("keywords")
    assert report.constants["conv"] == 32 * 40 + 32 and "conv" not in report.parameters
    picture = str(network_picture(report.entries[0], report, {}))
    assert "1,312 frozen" in picture and 'data-layers="conv"' in picture


def called_twice(width: int) -> Report:
    """A network whose layer a is called before and after b."""

    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            return self.a(self.b(self.a(x).relu()).relu())

    chip = board.load("stm32")
    model = Model.supervised(Twice(), input=(1, width), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.1))
    return collect(compile_model(model, "twice", None, chip, chip.ram_bytes), chip, chip.ram_bytes)


def test_a_layer_that_is_called_twice_has_two_nodes() -> None:
    report = called_twice(32)
    nodes = NetworkGraph(report.entries[0], report.parameters).nodes
    assert [(n.name, n.again) for n in nodes if n.kind == "node"] == [("a", False), ("b", False), ("a", True)]
    picture = str(network_picture(report.entries[0], report, {}))
    assert picture.count(">1,056 parameters<") == 2 and ">a, called again<" in picture


class Tempered(nn.Module):
    """A linear layer whose result is multiplied by the exponential of a parameter."""

    def __init__(self, temperature: Any) -> None:
        super().__init__()
        self.lin, self.t = nn.Linear(64, 64), temperature

    def forward(self, x: Any) -> Any:
        return self.lin(x) * (self.t.exp() + 1.0)


class SharedTemperature(nn.Module):
    """The first and the last layer share the exponential of a parameter."""

    def __init__(self) -> None:
        super().__init__()
        t = nn.Parameter(np.zeros(1, np.float32))
        self.a, self.b, self.c = Tempered(t), nn.Linear(64, 64), Tempered(t)

    def forward(self, x: Any) -> Any:
        return self.c(self.b(self.a(x)).relu())


def test_values_of_parameters_make_no_line() -> None:
    model = Model.supervised(
        SharedTemperature(), input=(1, 64), loss=nn.MSELoss(), optimizer=optim.SGD(lr=0.1)
    )
    chip = board.load("stm32")
    report = collect(compile_model(model, "shared", None, chip, chip.ram_bytes), chip, chip.ram_bytes)
    found = [("x", "a.lin"), ("a.lin", "b"), ("b", "c.lin"), ("target", "c.lin"), ("c.lin", "loss")]
    assert edges(report) == found
    layers = [
        list(n.layers) for n in NetworkGraph(report.entries[0], report.parameters).nodes if n.kind == "node"
    ]
    assert layers == [["a.lin", "a"], ["b"], ["c.lin", "a"]]


def recorded(*steps: StepRecord) -> list[LayerBox]:
    """The nodes of an entry with an input x, two outputs in no arena, and these steps."""
    types = {"small": "f32[n,2]", "scalar": "f32[]", "large": "f32[n,8]"}
    entry = EntryRecord("step", "step", steps, (), {}, (), (), "", {"x": "f32[n,8]"}, types, 0.0)
    return NetworkGraph(entry, ()).nodes


def step(number: str, layer: str, reads: str, writes: str) -> StepRecord:
    def operands(names: str) -> tuple[ReportedOperand, ...]:
        return tuple(map(ReportedOperand, names.split()))

    return StepRecord(number, "", layer, FORWARD, "", (), operands(reads), operands(writes), (), 1.0)


def test_layers_that_prepare_parameters_belong_to_their_reader() -> None:
    """The scale of a batch norm, for one, is computed before the layer that it is folded into."""
    prepare, count = step("1", "norm", "norm.weight", "small"), step("2", "", "", "scalar")
    fold = step("3", "fold", "small", "folded")
    nodes = recorded(prepare, count, fold, step("4", "a", "x folded scalar", "large"))
    assert [(n.name, [*n.layers]) for n in nodes] == [("x", []), ("a", ["a", "fold", "norm"]), ("large", [])]


def test_the_shape_of_a_layer_is_its_largest_value_that_is_read() -> None:
    a = step("1", "a", "x", "small large scalar")
    for read in ("small large scalar", "scalar large small"):
        node = recorded(a, step("2", "b", read, "scalar"))[1]
        assert node.name == "a" and node.used == "f32[n,8]"
    nodes = recorded(a, step("2", "b", "x scalar", "small"))
    assert [[*n.reads] for n in nodes if n.name == "b"] == [[0]], "a scalar beside an array makes no line"
    nodes = recorded(a, step("2", "loss", "scalar", "scalar"))
    assert [[*n.reads] for n in nodes if n.name == "loss"] == [[1]]


def test_a_state_is_no_shape_of_a_layer() -> None:
    assert (
        recorded(step("1", "a", "x", "large"), step("2", "a", "large", "a.running_var"))[1].shape
        == "f32[n,8]"
    )


def test_layers_that_one_step_computes_are_one_node() -> None:
    report = called_twice(8)
    (node,) = (n for n in NetworkGraph(report.entries[0], report.parameters).nodes if n.kind == "node")
    assert list(node.layers) == ["a", "b"]
    picture = str(network_picture(report.entries[0], report, {"2": 1.0, "4": 3.0}))
    assert ">144 parameters<" in picture and ">100.0 % of the time<" in picture


@pytest.mark.parametrize("name", MODELS)
def test_nodes_come_after_what_they_read_and_shares_sum_to_one(name: str) -> None:
    program, report = compiled(name)
    for entry in report.entries:
        assert all(
            o < k or nodes[o].kind == "input"
            for nodes in [NetworkGraph(entry, report.parameters).nodes]
            for k, n in enumerate(nodes)
            for o in n.reads
        )
        costs = {s.number: s.instructions for s in entry.steps}
        share = shares(entry, costs)
        assert sum(share.values()) == pytest.approx(1.0)
        total, steps = instructions_by_step(program)[entry.name]
        assert total == instructions(program)[entry.name] == pytest.approx(sum(steps.values()))
        assert steps == costs and min(steps.values()) >= 0.0
        layers = {s.layer for s in entry.steps}
        assert (network_picture(entry, report, costs) is None) == (layers == {""})


def test_weights_gradients_belong_to_their_layer() -> None:
    """A gradient of a parameter that an optimizer clips belongs to the layer of the parameter."""
    _, report = compiled("gesture")
    entry = report.entries[0]
    gradients = [s for s in entry.steps if s.text.startswith("d_gru_weight_ih_l0")]
    assert [s.layer for s in gradients] == ["gru"]
    share = shares(entry, {s.number: s.instructions for s in entry.steps})
    assert share["gru"] > 0.9 > 0.1 > share["head"]
