"""The loop nest of a fused node. Nodes of the same structure, such as nodes of equal layers, share the nest over the
region of the first node. Names in generated code are the names of each node's own values.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from itertools import chain

from ...ir.node import Node, Region, Value
from ...ir.traits import key_of
from ...ir.views import layout
from ...targets.cost_table import CostTable
from ..context import Context
from ..costs import has_wide_vectors
from .accumulator_tiles import tile_accumulators
from .loop_nest import LoopNest
from .product_blocks import block_products
from .row_tiles import tile_rows


def nest_of(node: Node, context: Context) -> LoopNest:
    """The nest of a fused node, with tiles and blocks where they pay."""
    region = region_of_nest(node, context)
    return context.analysis(
        (LoopNest, region),
        lambda: block_products(_with_tiles(region, context.cost), node.operands, context),
    )


def _with_tiles(region: Region, cost: CostTable) -> LoopNest:
    """The nest with tiles of sums and rows. Elementwise values join the loops of sums that read the same promoted
    values, if the nest then needs less memory and the target has no wide vectors."""

    def tiled(in_order_of_sums: bool) -> LoopNest:
        return tile_rows(tile_accumulators(LoopNest(region, cost, in_order_of_sums)))

    nest = tiled(False)
    if has_wide_vectors(cost) or not any(v.node in nest.promoted for v in nest.scratch):
        return nest
    other = tiled(True)
    return other if other.scratch_bytes < nest.scratch_bytes else nest


def region_of_nest(node: Node, context: Context) -> Region:
    """The region that the nest of a fused node covers: the region of the first node with its structure."""
    region = node.regions[0]
    return context.analysis(region, lambda: context.analysis(_structure(node), lambda: region))


def own_values(node: Node, nest: LoopNest) -> Mapping[Value, Value]:
    """Maps each value of the nest's region to the node's value; empty where both are the same."""
    mine, theirs = node.regions[0], nest.region
    return {} if mine is theirs else dict(zip(_values(theirs), _values(mine), strict=True))


def _values(region: Region) -> list[Value]:
    return [*region.params, *chain.from_iterable(n.results for n in region.nodes)]


def _structure(node: Node) -> Hashable:
    """Equal for fused nodes whose regions compute the same from operands with the same types and layouts."""
    region = node.regions[0]
    number = {v: k for k, v in enumerate(region.params)}
    keys = []
    for n in region.nodes:
        keys.append(key_of(n, tuple([number[v] for v in n.operands])))
        for r in n.results:
            number[r] = len(number)
    operands = tuple([(v.type.dtype, v.type.shape, layout(v)) for v in node.operands])
    return operands, tuple(keys), tuple([number[r] for r in region.results])
