"""An estimate of the memory that the training of each parameter costs: its state, and the values of the forward pass
that its gradient needs.

The estimate selects the choices to compile; the compiler then tells the memory that a choice takes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..ir.graph import Graph, State
from ..ir.module import IRModule
from ..ir.node import Node, Value, base
from ..ir.op_kinds import Elementwise, Leaf, Pick, View
from ..ir.origin import is_after_loss
from ..ir.traits import is_free
from ..kernels.registry import Backends
from ..lowering.pipeline import SIMPLIFY, run
from ..passes.context import Context
from ..passes.training.differentiate import gradient_name
from .model import Model

MASK_BITS = 8  # a byte stores a mask of 8 elements


@dataclass(frozen=True)
class Costs:
    """The costs of parameters p, by stored values v of the forward pass.

    bytes[v]: the bytes of v. path[p, v]: 1 if operations that the gradient of p shares with other gradients read v.
    own[p, v]: 1 if operations that only the gradient of p needs read v. For example, the product that gives the
    gradient of p reads the layer's input; if only a part of the channels trains, it reads only that part. state[p]: the
    bytes of p and of its optimizer state, if all of p trains. working[p]: the most bytes of gradients that one
    operation of the gradient of p reads and writes."""

    bytes: Any
    path: Any
    own: Any
    state: Any
    working: Any

    def more(self, kept: Any, part: float) -> tuple[Any, Any]:
        """For each parameter the bytes of the forward pass that must be kept in addition to `kept` if a part of its
        channels trains: for shared operations, and for its own. kept[v]: the bytes of v that are kept already."""
        whole = self.path @ np.maximum(self.bytes - kept, 0)
        return whole, self.own @ np.maximum(part * self.bytes - kept, 0)

    def with_kept(self, kept: Any, p: int, part: float) -> Any:
        """`kept` after a part of the channels of parameter `p` is added."""
        kept = np.maximum(kept, self.path[p] * self.bytes)
        return np.maximum(kept, self.own[p] * part * self.bytes)


def costs(everything: Model, states: Sequence[State], backends: Backends) -> Costs:
    """The costs of the parameters `states`; all of them train in `everything`. The operations of a parameter are the
    operations of its gradient, without its update: an update may read all gradients, for example to clip by their
    norm."""
    stages = dict(everything.stages)
    known, stored = stages["differentiate"], everything.stages[-1][1]
    step: Graph = known.entries[0]
    gradients = {known.state(state): step.outputs[gradient_name(known.state(state))] for state in states}
    bare = replace(step, outputs={"loss": step.outputs["loss"]}, updates={**step.updates, **gradients})
    *_, (_, module) = run(SIMPLIFY, IRModule((bare,)), Context(backends=backends), check=False)
    graph: Graph = module.entries[0]
    cones = [_late_nodes(graph.updates[known.state(state)]) for state in states]
    count: dict[Node, int] = {}
    for cone in cones:
        for n in cone:
            count[n] = count.get(n, 0) + 1
    reads = {n: _kept(n) for n in count}
    index = {key: k for k, key in enumerate(dict.fromkeys(key for n in count for key in reads[n]))}
    path, own = (np.zeros((len(states), len(index))) for _ in range(2))
    for p, cone in enumerate(cones):
        for n in cone:
            for key in reads[n]:
                (own if count[n] == 1 else path)[p, index[key]] = 1
    sizes = [v.type.bytes / (4 * MASK_BITS if is_mask else 1) for v, is_mask in index]
    working = [max(map(_working, cone)) for cone in cones]
    return Costs(
        np.array(sizes), path, own, _state_bytes(everything, states, stored), np.array(working, float)
    )


def _late_nodes(v: Value) -> list[Node]:
    """The nodes of the backward pass and of the update that a value depends on."""
    pending, found = [v.node], dict[Node, None]()
    while pending:
        n = pending.pop()
        if n not in found and is_after_loss(n.origin):
            found[n] = None
            pending += [u.node for u in n.operands]
    return list(found)


def _working(node: Node) -> int:
    """The bytes of gradients that an operation of the backward pass reads and writes; 0 for an elementwise
    operation."""
    if isinstance(node.op.lower, Elementwise | Pick | View):
        return 0
    values = {base(v) for v in (*node.operands, *node.results) if is_after_loss(base(v).node.origin)}
    return sum(v.type.bytes for v in values)


def _kept(node: Node) -> list[tuple[Value, bool]]:
    """The stored values of the forward pass that a node of the backward pass needs, each with whether the node needs
    only a mask of it."""
    is_mask = isinstance(node.op.lower, Elementwise) and node.results[0].type.dtype.kind == "b"
    early = [u for u in node.operands if not is_after_loss(u.node.origin)]
    return [(v, is_mask) for v in _sources(early)]


def _sources(values: Sequence[Value]) -> list[Value]:
    """The stored values from which these are computed element by element."""
    pending, found = list(values), dict[Value, None]()
    seen = set(pending)
    while pending:
        v = base(pending.pop())
        if isinstance(v.node.op.lower, Leaf) or is_free(v.node):
            continue
        if isinstance(v.node.op.lower, Elementwise | Pick | View):
            new = [u for u in v.node.operands if u not in seen]
            seen.update(new)
            pending += new
        else:
            found[v] = None
    return list(found)


def _state_bytes(everything: Model, states: Sequence[State], stored: IRModule[Graph]) -> Any:
    sizes: Mapping[str, int] = {s.name: s.type.bytes for s in everything.states}
    own = [stored.state(state).name for state in states]
    extra = dict.fromkeys(own, 0)
    for s in everything.states:
        of = s.name.rpartition(".")[0]
        if s.role == "optimizer" and of in extra:
            extra[of] += s.type.bytes
    return np.array([sizes[name] + extra[name] for name in own], float)
