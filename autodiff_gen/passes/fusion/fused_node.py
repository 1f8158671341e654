"""From a group of nodes to one fused node with the nodes in its region. A group that is purely elementwise over dense
arrays of one shape is flattened, so that one loop runs over all elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ...ir.build import with_shape
from ...ir.loop_axes import label
from ...ir.node import INPUT, Node, Region, Value, define
from ...ir.op_kinds import Fused, Iota, View
from ...ir.traits import key_of
from ...ir.types import Shape, Type, product
from ...ops.support import never
from .flat_loops import flat_shape
from .groups import with_free

FUSED = define("fused", infer=never, ref=never, vjp=None, lower=Fused())


def fused_node(
    members: Sequence[Node], stored: Sequence[Value], outside: Callable[[Value], Value] = lambda v: v
) -> Node:
    """One fused node for the members, with the stored values as results. It is flattened where the group can be.
    outside: maps a value that the members read to an operand."""
    params, region, merged = _region(members, stored)
    if merged and not _has_labels(region):  # an equal value of two loops is computed in each
        params, region, _ = _region(members, stored, once=False)
    operands = tuple(with_shape(outside(v), p.type.shape) for v, p in zip(params, region.params, strict=True))
    return Node(FUSED, operands, {}, tuple(r.type for r in region.results), (region,))


def _region(
    members: Sequence[Node], results: Sequence[Value], once: bool = True
) -> tuple[list[Value], Region, bool]:
    """The values for the params of a region, the region with the members, and whether equal nodes were merged. once:
    merge nodes that compute the same from the same operands, unless they are results."""
    inside = {r for n in with_free(members) for r in n.results}
    stored = set(results)
    flat = flat_shape(members, inside)
    params: dict[Value, Value] = {}
    inner: dict[Value, Value] = {}
    known: dict[Any, Node] = {}
    merged = False

    def resolve(v: Value) -> Value:
        nonlocal merged
        if v in inner:
            return inner[v]
        if v.base not in inside:
            if v not in params:
                node = Node(INPUT, (), {"name": f"p{len(params)}"}, (_flattened(v.type, flat),))
                params[v] = node.results[0]
            return params[v]
        operands = tuple([resolve(o) for o in v.node.operands])
        types = tuple([_flattened(r.type, flat) for r in v.node.results])
        attrs = v.node.attrs
        if isinstance(v.node.op.lower, Iota) and types[0] != v.type:
            attrs = {"size": types[0].shape}
        node = made = Node(v.node.op, operands, attrs, types, origin=v.node.origin)
        if once and stored.isdisjoint(v.node.results):
            made = known.setdefault(key_of(node, operands), node)
            merged = merged or made is not node
        inner.update(zip(v.node.results, made.results, strict=True))
        return inner[v]

    made = tuple(map(resolve, results))
    return list(params), Region(tuple(params.values()), made), merged


def _has_labels(region: Region) -> bool:
    inside = {r for n in region.nodes for r in n.results if not isinstance(n.op.lower, View)}
    return label(region.nodes, inside) is not None


def _flattened(type: Type, flat: Shape | None) -> Type:
    return type.with_shape((product(flat),)) if type.shape == flat else type
