"""Flat loops over all elements of an array, whatever its axes are: the nodes that want one, and the groups that can
have one."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.node import Node, Value, base
from ...ir.op_kinds import Elementwise
from ...ir.types import Shape, planned, planned_size, varies
from ...ir.views import layout, stored
from ...targets.cost_table import CostTable
from .. import costs


def wants_a_flat_loop(node: Node, cost: CostTable) -> bool:
    """Whether a node calls a function so often that vectors pay, but not along its innermost axis."""
    lower, shape = node.op.lower, node.results[0].type.shape
    calls = isinstance(lower, Elementwise) and lower.calls
    return calls and costs.flat_loop_pays(cost, planned(shape), planned_size(shape))


def flat_shape(members: Sequence[Node], inside: set[Value]) -> Shape | None:
    """The one shape that all arrays of a purely elementwise group have, when they are dense: one loop can run
    over all of it. None also where an array has scales along an axis, since a flat array would not have them.
    """
    shapes = set()
    for n in members:
        if not isinstance(n.op.lower, Elementwise):
            return None
        if not stored(n.results[0]).dense:
            return None
        if any(
            v.type.quantization and v.type.quantization.axis is not None for v in (*n.results, *n.operands)
        ):
            return None
        shapes.add(n.results[0].type.shape)
        for v in n.operands:
            if v.type.shape == ():
                continue
            at = layout(v)
            if base(v) in inside:
                if v is not base(v) or "strides" in v.node.attrs:
                    return None
            elif at is None or not at.dense:
                return None
            shapes.add(v.type.shape)
    (shape, *others) = shapes
    moving = [d for d in shape if d != 1]
    gaps = varies(moving[1:])  # rows are stored as planned for the largest batch
    return None if others or gaps or len(moving) < 2 else shape
