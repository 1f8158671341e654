"""The verifier of the IR: it runs before the first pass and after each."""

from __future__ import annotations

from ..errors import GraphError
from .graph import Graph
from .node import INPUT, STATE, Node, Value
from .op_kinds import Fused, Leaf
from .types import Dim


def verify(graph: Graph, verified: set[Node] | None = None) -> None:
    """Raise GraphError unless every rule of the IR holds: inferred types, unique names, known inputs, typed
    updates. `verified`: nodes whose types were inferred before, to which those of this graph are added.
    """
    verified = set() if verified is None else verified
    known = {v.node for v in graph.inputs}
    names: dict[str, object] = {}
    for node in graph.nodes:
        if node in verified:
            continue
        if isinstance(node.op.lower, Leaf):
            if node.op is INPUT and node not in known:
                raise GraphError(
                    f"{graph.name}: input {node.attrs['name']!r} is used but is not among the inputs"
                )
            thing = node.attrs.get("state") or (node if node.op is INPUT else None)
            name = thing and node.results[0].name
            if name and names.setdefault(name, thing) is not thing:
                raise GraphError(f"{graph.name}: two inputs or parameters are called {name!r}; rename one")
            continue
        verified.add(node)
        if node.regions:
            _check_regions(graph, node)
        else:
            _check_types(graph, node)
    if graph.inner:  # the plan around it knows where its inputs and outputs are stored
        return
    for v in graph.inputs:
        _check_batch_axis(graph, f"input {v.name!r}", v)
    for name, v in graph.outputs.items():
        _check_batch_axis(graph, f"output {name!r}", v)
    for state, value in graph.updates.items():
        if value.type != state.type:
            raise GraphError(
                f"{graph.name}: the new value of {state.name!r} is {value.type}, the state is {state.type}"
            )


def _check_types(graph: Graph, node: Node) -> None:
    types = node.op.infer(*(v.type for v in node.operands), **node.attrs)
    types = types if isinstance(types, tuple) else (types,)
    if types != tuple(r.type for r in node.results):
        raise GraphError(
            f"{graph.name}: {node.op.name} has results {node.results}, but its rule says {types}"
        )


def _check_regions(graph: Graph, node: Node) -> None:
    """Regions read nothing but their params; those of fused nodes are flattened, so their types are their own."""
    for region in node.regions:
        params = {v.node for v in region.params}
        for inner in region.nodes:
            if inner.op in (INPUT, STATE) and inner not in params:
                raise GraphError(f"{graph.name}: {node.op.name} reads {inner.results[0]!r} past its operands")
            if inner.regions:
                _check_regions(graph, inner)
            elif not isinstance(inner.op.lower, Leaf) and not isinstance(node.op.lower, Fused):
                _check_types(graph, inner)


def _check_batch_axis(graph: Graph, what: str, v: Value) -> None:
    """The caller's arrays hold n samples without gaps, while strides are planned for the largest batch."""
    moving = [d for d in v.type.shape if d != 1]
    if any(isinstance(d, Dim) for d in moving[1:]):
        raise GraphError(
            f"{graph.name}: {what} is {v.type}; the batch axis must come first, so permute the axes"
        )
