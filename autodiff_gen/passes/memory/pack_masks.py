"""Pack masks: where the backward pass reads a value of the forward pass only to compute a mask, such as x > 0, store
one bit for each element instead of the value.

    entry f(x: f32[1,4], w: f32[4,16], dy: f32[1,16])
      %0: f32[1,16] = matmul(x, w)
      %1: bool[1,16] = gt(%0, 0.0)
      %2: f32[1,16] = where(%1, dy, 0.0)
      dx <- %2
    ->
    entry f(x: f32[1,4], w: f32[4,16], dy: f32[1,16])
      %0: f32[1,16] = matmul(x, w)
      %1: f32[2,8] = reshape(%0, shape=(2, 8))
      %2: bool[2,8] = gt(%1, 0.0)
      %3: s32[8] = iota(size=8)
      %4: s32[2,8] = bit(%2, %3)
      %5: s32[2] = sum_s32(%4, axes=(1,), keepdim=False)
      %6: u8[2] = to_u8(%5)
      %7: s32[1,16] = iota(size=(1, 16))
      %8: s32[1,16] = byte_of_bit(%7)
      %9: u8[1,16] = index_select(%6, %8, dim=0)
      %10: bool[1,16] = has_bit(%9, %7)
      %11: f32[1,16] = where(%10, dy, 0.0)
      dx <- %11

It is done where the arena becomes so much smaller that it is worth the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...ir.build import apply
from ...ir.graph import Graph
from ...ir.node import CONST, Node, Value, base, topological
from ...ir.op_kinds import Elementwise, Leaf
from ...ir.origin import building_as, is_after_loss
from ...ir.rewrite import rewritten
from ...ir.traits import is_fusable
from ...ir.types import planned_size
from ...ir.views import layout
from ...ops.elementwise.packed_masks import BITS, first_packed_axis, packed, unpacked
from ..context import Context
from ..profitability import is_worth_its_time
from .recomputation import is_large_part


@dataclass(frozen=True)
class _Mask:
    """A mask that is computed from one value of the forward pass: its nodes, operands first."""

    of: Value
    nodes: tuple[Node, ...]

    @property
    def result(self) -> Value:
        return self.nodes[-1].results[0]


def pack_masks(graph: Graph, context: Context) -> Graph:
    """See the module."""
    masks = [] if graph.inner else _found(graph)
    if not masks or not is_large_part([m.of for m in masks], graph, context):
        return graph
    packed = _with_packed(graph, masks)
    return packed if is_worth_its_time(packed, graph, context) else graph


def _with_packed(graph: Graph, masks: Sequence[_Mask]) -> Graph:
    made = {m.result: _unpacked(_packed(m), m.result) for m in masks}
    return rewritten(graph, lambda node, _: (made[node.results[0]],), [m.result.node for m in masks])


def _found(graph: Graph) -> list[_Mask]:
    """The masks of those forward values that are stored only because the backward pass computes masks from them."""
    users, roots = graph.users, graph.outside_arena
    found: dict[Value, list[_Mask]] = {}
    for node in graph.of(Elementwise):
        readers = [n for n in users.get(node.results[0], ()) if not _is_mask(n)]
        mask = _mask(node) if readers and all(is_after_loss(n.origin) for n in readers) else None
        if mask is not None:
            found.setdefault(base(mask.of), []).append(mask)
    out: list[_Mask] = []
    for source, masks in found.items():
        inside = frozenset(n for m in masks for n in m.nodes)
        every = list(graph.readers(source))
        late = {n for n in every if is_after_loss(n.origin)}
        stored = not is_fusable(source.node) or not all(map(is_fusable, every))
        stays = source in roots or isinstance(source.node.op.lower, Leaf) or is_after_loss(source.node.origin)
        if stored and not stays and late <= inside:
            out += masks
    return out


def _is_mask(node: Node) -> bool:
    return isinstance(node.op.lower, Elementwise) and node.results[0].type.dtype.kind == "b"


def _mask(root: Node) -> _Mask | None:
    """The mask that a node computes from one dense value of the same shape and from constant numbers. None if the node
    computes no such mask, or if the bits do not fill whole bytes."""
    shape = root.results[0].type.shape
    if not _is_mask(root) or planned_size(shape[first_packed_axis(shape) :]) % BITS:
        return None
    nodes = [n for n in topological(root.results, stop=lambda n: not _is_mask(n)) if _is_mask(n)]
    operands = {v for n in nodes for v in n.operands if v.node not in nodes}
    arrays = [v for v in operands if v.node.op is not CONST or v.type.shape != ()]
    at = layout(arrays[0]) if len(arrays) == 1 and arrays[0].type.shape == shape else None
    return _Mask(arrays[0], tuple(nodes)) if at is not None and at.dense else None


def _packed(mask: _Mask) -> Value:
    """The bits, computed in the forward pass."""

    def computed(of: Value) -> Value:
        new = {mask.of: of}
        for node in mask.nodes:
            operands = [new.get(v, v) for v in node.operands]
            new[node.results[0]] = apply(node.op.name, *operands, **node.attrs)
        return new[mask.result]

    origin = base(mask.of).node.origin
    with building_as(origin):
        return packed(computed, [mask.of], mask.of.type.shape)


def _unpacked(bits: Value, mask: Value) -> Value:
    """The mask, read from its bits."""
    with building_as(mask.node.origin):
        return unpacked(bits, mask.type.shape)
