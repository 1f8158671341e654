"""The verifier of the IR: it runs before the first pass and after each."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import GraphError, ShapeError
from .graph import Graph
from .node import INPUT, STATE, Node, Region, Value, inferred
from .op_kinds import Cond, Fused, Leaf, Scan
from .types import Type, varies


def verify(graph: Graph, verified: dict[Node, tuple[Value, ...]] | None = None) -> None:
    """Raise GraphError, which names the node or the output, unless every rule of the IR holds: operands are defined
    before they are used and inside the graph, types equal the types that the ops infer, names are unique, updates have
    the types of their states. `verified`: nodes that were checked before, with their operands; the nodes of this graph
    are added.
    """
    verified = {} if verified is None else verified
    known = {v.node for v in graph.inputs}
    names: dict[str, object] = {}
    for node in graph.nodes:
        if verified.get(node) is not node.operands:
            _check_node(graph, node, graph.nodes)
            verified[node] = node.operands
    for node in graph.of(Leaf):
        if node.op is INPUT and node not in known:
            raise GraphError(
                f"{graph.name}: input {node.attrs['name']!r} is used but is not among the inputs{_reader(graph, node)}"
            )
        thing = node.attrs.get("state") or (node if node.op is INPUT else None)
        name = thing and node.results[0].name
        if name and names.setdefault(name, thing) is not thing:
            raise GraphError(f"{graph.name}: two inputs or parameters are called {name!r}; rename one")
    _check_ends(graph)


def _check_ends(graph: Graph) -> None:
    """Updates have the types of their states. Names are different, and the batch axis comes first. The last two rules
    do not hold for inner graphs: the plan of the graph around knows how their inputs and outputs are stored."""
    for state, value in graph.updates.items():
        if value.type != state.type:
            raise GraphError(
                f"{graph.name}: the new value of {state.name!r} is {value.type}, the state is {state.type}: "
                f"{described(value.node)}"
            )
    if graph.inner:
        return
    for v in graph.inputs:
        _check_batch_axis(graph, f"input {v.name!r}", v)
    for name, v in graph.outputs.items():
        _check_batch_axis(graph, f"output {name!r}", v)
    arguments = [*(v.name or "" for v in graph.inputs), *graph.outputs]
    for what, names in (
        ("inputs or outputs", arguments),
        ("new states", [s.name for s in graph.updates if s.name]),
    ):
        if len(set(names)) < len(names):
            twice = max(names, key=names.count)
            raise GraphError(f"{graph.name}: two {what} are called {twice!r}; rename one")


def described(node: Node) -> str:
    """A node in a message: its op, its operands and its results with their types."""
    operands = ", ".join(f"{v.name or v.node.op.name}: {v.type}" for v in node.operands)
    return f"{node.op.name}({operands}) -> {', '.join(str(r.type) for r in node.results)}"


def _reader(graph: Graph, leaf: Node) -> str:
    readers = graph.users.get(leaf.results[0])
    return f": {described(readers[0])}" if readers else ""


def _check_node(graph: Graph, node: Node, nodes: Sequence[Node]) -> None:
    """Check a node of `nodes`, the nodes of its graph or region. An operand that is older than the node is defined
    before it; types that the op's rule gave for these operands are not inferred again."""
    for v in node.operands:
        source = v.node
        if source.serial >= node.serial and source not in nodes[: nodes.index(node)]:
            raise _wrong(graph, node, f"operand {v!r} is used before it is defined")
        if v.index >= len(source.results) or source.results[v.index] is not v:
            raise _wrong(graph, node, f"operand {v!r} is no result of its node")
    if node.regions:
        _check_regions(graph, node)
    elif node.inferred is not node.operands and not isinstance(node.op.lower, Leaf):
        _check_types(graph, node)


def _check_types(graph: Graph, node: Node) -> None:
    try:
        types = inferred(node.op, [v.type for v in node.operands], node.attrs)
    except ShapeError as error:
        raise _wrong(graph, node, str(error)) from None
    if types != _types(node.results):
        raise _wrong(graph, node, f"its rule says {', '.join(map(str, types))}")


def _check_regions(graph: Graph, node: Node) -> None:
    """Regions read only their params. The regions of fused nodes are flattened, so the types of their nodes are not
    checked. Their loops store no views."""
    for region in node.regions:
        params = {v.node for v in region.params}
        for inner in region.nodes:
            if inner.op in (INPUT, STATE) and inner not in params:
                raise _wrong(
                    graph, node, f"a region reads {inner.results[0]!r}, which is not one of its params"
                )
            if not isinstance(node.op.lower, Fused):
                _check_node(graph, inner, region.nodes)
        _check_signature(graph, node, region)
        views = [v for v in region.results if v.base is not v]
        if views and isinstance(node.op.lower, Fused):
            raise _wrong(
                graph, node, f"its loops have no memory for {views[0]!r}, a view of {views[0].base!r}"
            )


def _check_signature(graph: Graph, node: Node, region: Region) -> None:
    """The params of a region have the types of the operands, and its results the types of the node's results; in a scan
    only the carries and the counts, as the others have a time axis outside."""
    operands, results = _types(node.operands), _types(node.results)
    params, ends = _types(region.params), _types(region.results)
    if isinstance(node.op.lower, Cond):
        operands = operands[1:]
    if len(params) != len(operands) or len(ends) != len(results):
        raise _wrong(graph, node, f"a region has {len(params)} params and {len(ends)} results")
    k = node.attrs["carries"] if isinstance(node.op.lower, Scan) else len(operands) + len(results)
    if params[:k] != operands[:k] or ends[:k] != results[:k]:
        raise _wrong(graph, node, f"a region has params {list(params)} and results {list(ends)}")


def _types(values: Sequence[Value]) -> tuple[Type, ...]:
    return tuple([v.type for v in values])


def _wrong(graph: Graph, node: Node, why: str) -> GraphError:
    return GraphError(f"{graph.name}: {described(node)}: {why}")


def _check_batch_axis(graph: Graph, what: str, v: Value) -> None:
    """The caller's arrays hold n samples without gaps, while strides are planned for the largest batch."""
    moving = [d for d in v.type.shape if d != 1]
    if varies(moving[1:]):
        raise GraphError(
            f"{graph.name}: {what} is {v.type}; the batch axis must come first, so permute the axes"
        )
