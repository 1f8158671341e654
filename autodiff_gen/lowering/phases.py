"""Which phase of training and which layer a step belongs to: from what it reads, writes and leads to."""

from __future__ import annotations

from collections.abc import Iterable

from ..ir.graph import State
from ..ir.node import Node, Value, base, topological
from .plan import EntryPlan, Step

FORWARD, LOSS, BACKWARD, UPDATE = "forward", "loss", "backward", "update"


class Phases:
    """The phases and layers of an entry's steps.

    A layer is the module of a parameter, as state_dict names it: `0.weight` belongs to `0`; a parameter without a
    module is a layer itself. Steps without parameters belong to the last layer before them in the forward pass, and to
    the last one that they lead to in the backward pass.
    """

    def __init__(self, plan: EntryPlan) -> None:
        self.plan = plan
        graph = plan.graph
        trained = graph.updates and "loss" in graph.outputs
        self._loss = base(graph.outputs["loss"]).node if trained else None
        goals = [graph.outputs["loss"]] if trained else list(graph.outputs.values())
        self._forward = set(topological(goals))
        self._parameters = {s.name: s for s in plan.states.values() if s.role == "parameter"}
        self._own = {s.node: self._own_layer(s) for s in plan.steps}
        steps = sorted(plan.steps, key=lambda s: self.phase(s) not in (FORWARD, LOSS))
        self.layers = [name for name in dict.fromkeys(self._own[s.node] for s in steps) if name]
        rank = {name: k for k, name in enumerate(self.layers)}
        order = graph.nodes
        self._before = self._nearest(order, {n: n.operands for n in order}, rank)
        readers: dict[Node, list[Value]] = {n: [] for n in order}
        for n in order:
            for v in n.operands:
                readers[v.node] += n.results[:1]
        self._after = self._nearest(reversed(order), readers, rank)

    def phase(self, step: Step) -> str:
        if any(s.role != "buffer" for s in self._written(step)):
            return UPDATE
        if step.node is self._loss:
            return LOSS
        return FORWARD if step.node in self._forward else BACKWARD

    def layer(self, step: Step) -> str:
        """The layer whose parameters the step writes or reads, else the nearest; "" where there is none."""
        own = self._own[step.node]
        if own:
            return own
        in_forward = self.phase(step) in (FORWARD, LOSS)
        near = (self._before if in_forward else self._after)[step.node]
        if near >= 0:
            return self.layers[near]
        return self.layers[0] if self.layers and in_forward else ""

    def headings(self) -> dict[Step, str]:
        """What begins at a step: `forward: encoder.0`. Updates before the last gradient is computed belong to the
        backward pass; layers whose steps are interleaved share a heading."""
        groups: list[tuple[str, list[Step]]] = []
        last = max((s.number for s in self.plan.steps if self._makes_gradient(s)), default=0)
        for step in self.plan.steps:
            phase = self.phase(step)
            phase = BACKWARD if phase == UPDATE and step.number <= last else phase
            if not groups or groups[-1][0] != phase:
                groups.append((phase, []))
            groups[-1][1].append(step)
        out: dict[Step, str] = {}
        for phase, steps in groups:
            if phase == LOSS:
                out[steps[0]] = LOSS if steps[0].number > 1 else f"{FORWARD}, {LOSS}"
                continue
            for some in self._apart(steps):
                layers = list(dict.fromkeys(title(n) for n in map(self.layer, some) if n))
                if len(layers) > 4:
                    layers = [f"{layers[0]} to {layers[-1]}"]
                out[some[0]] = f"{phase}: {', '.join(layers)}" if layers else phase
        return out if len(out) > 1 or any(":" in text for text in out.values()) else {}

    def _makes_gradient(self, step: Step) -> bool:
        """Whether a step computes a gradient, be it to add it to a weight at once."""
        phase = self.phase(step)
        return phase == BACKWARD or (phase == UPDATE and not step.node.regions and step.nest is None)

    def _apart(self, steps: list[Step]) -> list[list[Step]]:
        """Cut where no layer of the steps before comes again."""
        end: dict[str, int] = {}
        for k, step in enumerate(steps):
            end[self.layer(step)] = k
        out: list[list[Step]] = []
        until = -1
        for k, step in enumerate(steps):
            name = self.layer(step)
            if not out or (k > until and name):
                out.append([])
            out[-1].append(step)
            until = max(until, end[name] if name else k)
        return out

    def _nearest(
        self,
        order: Iterable[Node],
        sources: dict[Node, list[Value]] | dict[Node, tuple[Value, ...]],
        rank: dict[str, int],
    ) -> dict[Node, int]:
        """For each node the last layer among all that `sources` leads to, -1 where there is none."""
        found: dict[Node, int] = {}
        for n in order:
            around = (max(found[v.node], rank.get(self._own.get(v.node, ""), -1)) for v in sources[n])
            found[n] = max(around, default=-1)
        return found

    def _written(self, step: Step) -> list[State]:
        return [self.plan.states[r] for r in step.node.results if r in self.plan.states]

    def _own_layer(self, step: Step) -> str:
        """Of the parameters that it writes, or whose moments it writes; else of those that it reads."""
        read = [self.plan.states.get(base(v)) for v in step.node.operands]
        for states in (self._written(step), read):
            for s in states:
                if s is None:
                    continue
                of = s if s.role == "parameter" else self._parameters.get(s.name.rpartition(".")[0])
                if of is not None:
                    return _layer_of(of)
        return ""


def _layer_of(state: State) -> str:
    name = state.name.rpartition("/")[2]
    return name.rpartition(".")[0] or name


def title(layer: str) -> str:
    """A layer as C and its comments call it: `0` is `layer0`."""
    return f"layer{layer}" if layer[0].isdigit() else layer
