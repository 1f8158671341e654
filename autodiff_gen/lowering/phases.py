"""The phase of training and the layer of a step: from the values that it reads and writes, and its later readers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..ir.graph import State
from ..ir.node import CONST, Node, Value, base
from ..ir.origin import BACKWARD, FORWARD, LOSS, UPDATE, Origin
from .plan import EntryPlan, PlannedStep, ScanPlan

MOST_LAYERS = 4  # in one heading
ORDER = (FORWARD, LOSS, BACKWARD, UPDATE)


class Phases:
    """The phases and layers of an entry's steps.

    A layer is the module of a parameter, as state_dict names it: `0.weight` belongs to `0`; a parameter without a
    module is a layer itself. The module of a constant that has a role there is a layer too. Steps without parameters
    belong to the last layer before them in the forward pass, and to the last one that they lead to in the backward
    pass.
    """

    def __init__(self, plan: EntryPlan) -> None:
        self.plan = plan
        graph = plan.graph
        trained = graph.updates and "loss" in graph.outputs
        self._loss_value = base(graph.outputs["loss"]) if trained else None
        self._loss = None if self._loss_value is None else self._loss_value.node
        self._parameters = {s.name: s for s in plan.states.values() if s.role == "parameter"}
        self._own = {s.node: self._own_layer(s) for s in plan.steps}
        self._found = {s.node: self._find_phases(s) for s in plan.steps}
        steps = sorted(plan.steps, key=lambda s: not self._is_forward(s))
        self.layers = [name for name in dict.fromkeys(self._own[s.node] for s in steps) if name]
        self._rank = rank = {name: k for k, name in enumerate(self.layers)}
        own = {n: rank.get(name, -1) for n, name in self._own.items()}
        order = graph.nodes
        readers: dict[Node, list[Node]] = {n: [] for n in order}
        for n in order:
            for v in n.operands:
                readers[v.node].append(n)
        self._before = _nearest(order, lambda n: [v.node for v in n.operands], own)
        self._after = _nearest(reversed(order), readers.__getitem__, own)

    def phase(self, step: PlannedStep) -> str:
        """The phase; of a step that computes values of several, all of them: `forward, loss and backward`."""
        *others, last = self._phases(step)
        return f"{', '.join(others)} and {last}" if others else last

    def _phases(self, step: PlannedStep) -> list[str]:
        return self._found[step.node]

    def _find_phases(self, step: PlannedStep) -> list[str]:
        found = {self._phase_of(step, r) for r in step.node.results}
        if isinstance(step.inner, ScanPlan) and step.inner.samples:
            found = {n.origin.phase for n in step.inner.body.plan.graph.nodes if n.operands}
        return [phase for phase in ORDER if phase in found]

    def _phase_of(self, step: PlannedStep, result: Value) -> str:
        state = self.plan.states.get(result)
        if state is not None and (state.role != "buffer" or self._keeps_statistics(step)):
            return UPDATE
        if not self.plan.graph.updates:
            return FORWARD
        if step.node is self._loss and result is self._loss_value:
            return LOSS
        inside = step.node.regions[0].results[result.index] if step.nest is not None else result
        return inside.base.node.origin.phase

    def _keeps_statistics(self, step: PlannedStep) -> bool:
        """Whether a step does no more than change running statistics and counters."""
        return all(r in self.plan.states and self.plan.states[r].role == "buffer" for r in step.node.results)

    def _is_forward(self, step: PlannedStep) -> bool:
        return self._phases(step)[0] in (FORWARD, LOSS)

    def layer(self, step: PlannedStep) -> str:
        """The layer whose parameters the step writes or reads, otherwise the nearest layer; "" if there is none, and
        for a loop over micro-batches."""
        own = self._own[step.node]
        if isinstance(step.inner, ScanPlan) and step.inner.samples:
            return ""  # of all layers, which its own steps tell
        if own or self._phases(step) == [UPDATE]:
            return own
        said = self._labelled_layer(step)
        if said in self._rank:
            return said
        in_forward = self._is_forward(step)
        near = (self._before if in_forward else self._after)[step.node]
        if near >= 0:
            return self.layers[near]
        return self.layers[0] if self.layers and in_forward else ""

    def _labelled_layer(self, step: PlannedStep) -> str:
        """The layer whose value or parameter, or the gradient of either, is the first result."""
        v = step.node.regions[0].results[0] if step.nest is not None else step.node.results[0]
        while (
            label := v.base.node.origin.labels.get(v.base.index)
        ) is not None and label.gradient_of is not None:
            v = label.gradient_of
        if label is None and v.base in self.plan.states:
            return layer_of(self.plan.states[v.base].name)
        return label.scope if label is not None else ""

    def inside(self, step: PlannedStep, top: PlannedStep) -> tuple[str, str]:
        """The phase and the layer of `step`, which is `top` or a step inside of `top`: the same as for `top`, unless
        `top` is a loop over micro-batches."""
        if step is not top and isinstance(top.inner, ScanPlan) and top.inner.samples:
            origin = _latest(step)
            return origin.phase, origin.scope
        return self.phase(top), self.layer(top)

    def headings(self) -> dict[PlannedStep, str]:
        """Headings by the step at which they begin: `forward: encoder.0`. Updates before the last gradient is computed
        belong to the backward pass; layers whose steps are interleaved share a heading."""
        groups: list[tuple[str, list[PlannedStep]]] = []
        last = max((s.number for s in self.plan.steps if self._makes_gradient(s)), default=0)
        for step in self.plan.steps:
            phase = self.phase(step)
            trains = self.layer(step) and not self._keeps_statistics(step)
            if trains and step.number <= last and phase in (UPDATE, f"{BACKWARD} and {UPDATE}"):
                phase = BACKWARD
            if not groups or groups[-1][0] != phase:
                groups.append((phase, []))
            groups[-1][1].append(step)
        out: dict[PlannedStep, str] = {}
        for phase, steps in groups:
            if phase == LOSS:
                out[steps[0]] = LOSS
                continue
            for some in self._apart(steps):
                layers = list(dict.fromkeys(title(n) for n in map(self.layer, some) if n))
                out[some[0]] = f"{phase}: {', '.join(layers)}" if layers else phase
        return out if len(out) > 1 or any(":" in text for text in out.values()) else {}

    def _makes_gradient(self, step: PlannedStep) -> bool:
        """Whether a step computes a gradient, be it to add it to a weight at once."""
        phases = self._phases(step)
        return BACKWARD in phases or (phases == [UPDATE] and not step.node.regions and step.nest is None)

    def _apart(self, steps: list[PlannedStep]) -> list[list[PlannedStep]]:
        """Cut where no layer of the steps before comes again, and before more layers than fit in a heading."""
        end: dict[str, int] = {}
        for k, step in enumerate(steps):
            end[self.layer(step)] = k
        out: list[list[PlannedStep]] = []
        layers: set[str] = set()
        until = -1
        for k, step in enumerate(steps):
            name = self.layer(step)
            if not out or (name and (k > until or len(layers | {name}) > MOST_LAYERS)):
                out.append([])
                layers = set()
            out[-1].append(step)
            layers |= {name} - {""}
            until = max(until, end[name] if name else k)
        return out

    def _written(self, step: PlannedStep) -> list[State]:
        return [self.plan.states[r] for r in step.node.results if r in self.plan.states]

    def _own_layer(self, step: PlannedStep) -> str:
        """The layer of the parameters that the step writes, or whose moments it writes; else of parameters that it
        reads."""
        read = [self.plan.states.get(v.base) for v in step.node.operands]
        for states in (self._written(step), read):
            for s in states:
                if s is None:
                    continue
                of = (
                    s
                    if s.role in ("parameter", "buffer")
                    else self._parameters.get(s.name.rpartition(".")[0])
                )
                if of is not None:
                    return layer_of(of.name)
        constants = (v.base.node for v in step.node.operands if v.base.node.op is CONST)
        return next((n.origin.scope for n in constants if n.origin.labels and n.origin.scope), "")


def _nearest(
    order: Iterable[Node], sources: Callable[[Node], Iterable[Node]], own: Mapping[Node, int]
) -> dict[Node, int]:
    """For each node the last layer among all nodes that `sources` leads to, -1 where there is none. own: the layers of
    nodes; layers are numbers in the order of the forward pass."""
    found: dict[Node, int] = {}
    last: dict[Node, int] = {}  # the node itself included
    for n in order:
        found[n] = max([last[source] for source in sources(n)], default=-1)
        last[n] = max(found[n], own.get(n, -1))
    return found


def layer_of(state: str) -> str:
    """The layer of a parameter or buffer, by its name in state_dict."""
    name = state.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def layer_headings(plan: EntryPlan) -> dict[PlannedStep, str]:
    """Headings by the step of a loop's body at which they begin; empty unless several layers have steps there."""
    out: dict[PlannedStep, str] = {}
    last = ""
    for step in plan.steps:
        origin = _latest(step)
        text = f"{origin.phase}: {title(origin.scope)}" if origin.scope else last
        if text != last:
            out[step] = text
        last = text
    return out if len(set(out.values())) > 1 else {}


def _latest(step: PlannedStep) -> Origin:
    """The origin of the result that belongs to the latest phase."""
    results = step.node.regions[0].results if step.nest is not None else step.node.results
    return max((v.base.node.origin for v in results), key=lambda o: ORDER.index(o.phase))


def title(layer: str) -> str:
    """A layer as C and its comments call it: `0` is `layer0`."""
    return f"layer{layer}" if layer[0].isdigit() else layer
