"""The network of an entry as a graph: its layers, from the inputs to the outputs of the forward pass, each with the
shape of its result, its parameters, and its share of the time of a call."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from ..errors import counted
from ..ir.origin import FORWARD, LOSS
from ..lowering.phases import layer_of
from .data import EntryRecord, ReportedOperand, StepRecord
from .layered_graph import Box, drawn
from .program_report import Report
from .svg import Picture

LONGEST = 30  # characters of a line in a box


@dataclass
class LayerBox:
    """An input, a layer or an output. shape: of an input, an output, or the last value that a layer writes, such as
    f32[1,32]; used: the shape of the largest value that another layer reads; layers: the layer, and others that only
    steps of this layer compute; functions: that the layer calls; again: the layer has another node before, and this one
    reads what was computed since then."""

    name: str
    kind: str  # "input", "node" of a layer, "output"
    shape: str = ""
    used: str = ""
    layers: dict[str, None] = field(default_factory=dict)
    functions: dict[str, None] = field(default_factory=dict)
    reads: dict[int, None] = field(default_factory=dict)
    again: bool = False


class NetworkGraph:
    """The nodes of an entry, each after those that it reads, but for inputs; none where no step of the forward pass has
    a layer. `parameters`: the names of layers that have some.

    Steps that read no input and nothing that is computed from one prepare parameters: they make no node, and their
    layers belong to the node that reads the result. A scalar that a step reads beside arrays makes no line: layers
    share factors that they have in common."""

    def __init__(self, entry: EntryRecord, parameters: Collection[str]) -> None:
        self.entry = entry
        self.nodes: list[LayerBox] = []
        self._inputs: dict[str, int] = {}
        self._latest: dict[str, int] = {}  # the node of a layer
        self._written: dict[ReportedOperand, int] = {}
        self._prepared: dict[
            ReportedOperand, tuple[str, ...]
        ] = {}  # the layers of a value that is computed from no input
        layers = {step.number: step.layer for step in entry.steps}
        reached, forward, others = set[ReportedOperand](), list[StepRecord](), {*parameters}
        for step in entry.steps:
            if any(o in reached or self._is_input(o) for o in step.reads) or not entry.inputs:
                reached |= {*step.writes}
                forward += [step] if step.phase.startswith((FORWARD, LOSS)) and step.layer else []
            else:
                self._prepared |= dict.fromkeys(step.writes, (step.layer, *self._layers_read(step)))
                others.add(step.layer)
        self._others = others - {"", *(step.layer for step in forward)}
        for step in forward:
            if step.layer != layers.get(step.number.rpartition(".")[0]):
                self._add(step)
        for name, type in entry.outputs.items():
            at = self._written.get(ReportedOperand(name))
            if at is not None:
                self.nodes.append(LayerBox(name, "output", type, reads={at: None}))

    def _add(self, step: StepRecord) -> None:
        inputs = [self._input(o.name) for o in step.reads if self._is_input(o)]
        shared = [o for o in step.reads if o in self._written]
        arrays = [o for o in shared if "[]" not in self.entry.type_of(o)]
        joined = {o: self._written[o] for o in (arrays if arrays or inputs else shared)}
        read = [*joined.values()]
        at = self._latest.get(step.layer)
        if at is None or any(o > at for o in read):
            self.nodes.append(LayerBox(step.layer, "node", layers={step.layer: None}, again=at is not None))
            at = self._latest[step.layer] = len(self.nodes) - 1
        node = self.nodes[at]
        node.layers |= {name: None for name in self._layers_read(step) if name in self._others}
        node.functions |= dict.fromkeys(step.functions)
        node.reads |= dict.fromkeys(o for o in (*inputs, *read) if o != at)
        for o, writer in joined.items():
            if writer != at:
                self.nodes[writer].used = max(self.nodes[writer].used, self.entry.type_of(o), key=_size)
        shapes = [shape for o in step.writes if (shape := self.entry.type_of(o))]  # a state has none
        if step.phase.startswith(FORWARD) and shapes:
            node.shape = shapes[-1]
        self._written |= dict.fromkeys(step.writes, at)

    def _layers_read(self, step: StepRecord) -> dict[str, None]:
        """The layers whose parameters a step reads, also by values that other steps prepare from them."""
        named = [layer_of(o.name) for o in step.reads if o.buffer is None]
        return dict.fromkeys([*named, *(name for o in step.reads for name in self._prepared.get(o, ()))])

    def _is_input(self, o: ReportedOperand) -> bool:
        return o.name in self.entry.inputs and o.buffer is None

    def _input(self, name: str) -> int:
        if name not in self._inputs:
            self._inputs[name] = len(self.nodes)
            self.nodes.append(LayerBox(name, "input", self.entry.inputs[name]))
        return self._inputs[name]


def _size(shape: str) -> int:
    """The number of elements of a shape, such as f32[n,32], for one sample; 0 for an empty text."""
    found = re.search(r"\[(.*?)\]", shape)
    return math.prod(int(extent) for extent in re.findall(r"\d+", found[1])) if found else 0


def shares(entry: EntryRecord, costs: Mapping[str, float]) -> dict[str, float]:
    """The share of each layer in the cost of all steps of a call, of all phases; `costs`: by the number of a step."""
    whole, found = sum(costs.values()), dict[str, float]()
    for step in entry.steps:
        found[step.layer] = found.get(step.layer, 0.0) + costs.get(step.number, 0.0) / (whole or 1.0)
    return found


def network_picture(entry: EntryRecord, report: Report, costs: Mapping[str, float]) -> Picture | None:
    """The network of an entry; a click on a layer is handled by the page. None for an entry without layers."""
    nodes = _before_readers(NetworkGraph(entry, {*report.parameters}).nodes)
    if not any(node.kind == "node" for node in nodes):
        return None
    share = shares(entry, costs)
    first = next(node for node in nodes if node.kind == "node")
    boxes = [_box(node, report, share, node is first) for node in nodes]
    return drawn(boxes, f"layers of {entry.name}", role="group")


def _before_readers(nodes: list[LayerBox]) -> list[LayerBox]:
    """The nodes in an order in which each comes after those that it reads: an input may be noticed after its reader."""
    order = sorted(range(len(nodes)), key=lambda k: nodes[k].kind != "input")
    place = {k: i for i, k in enumerate(order)}
    for node in nodes:
        node.reads = {place[o]: None for o in node.reads}
    return [nodes[k] for k in order]


def _box(node: LayerBox, report: Report, share: Mapping[str, float], is_first: bool) -> Box:
    """The box of a node: name, functions, shape, parameters and share of the time. On the page, Tab reaches the first
    layer, and arrow keys reach the others."""
    operands = tuple(node.reads)
    if node.kind != "node":
        return Box((_cut(node.name), node.shape), operands, node.kind)
    time = sum(share.get(name, 0.0) for name in node.layers)
    lines = [", ".join(node.layers), ", ".join(node.functions), node.used or node.shape]
    if node.again:
        lines[0] += ", called again"
    else:
        trained, constants = (
            sum(n.get(x, 0) for x in node.layers) for n in (report.parameters, report.constants)
        )
        lines += [counted(trained, "parameter")] if trained else []
        lines += [f"{constants:,} frozen"] if constants else []
        lines += [f"{100 * time:.1f} % of the time"]
    said = {
        "aria-label": ", ".join(line for line in lines if line),
        "aria-pressed": "false",
    }
    reached = {"role": "button", "tabindex": "0" if is_first else "-1"}
    attributes = {"class": "layer-of-net", "data-layers": " ".join(node.layers), **reached, **said}
    filled = None if node.again else time
    return Box(tuple(_cut(line) for line in lines if line), operands, "node", filled, attributes)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
