"""Which memory the results of a scan may reuse."""

from __future__ import annotations

from .graph import Graph
from .node import Node, Value, base, topological
from .op_kinds import Leaf, View
from .strides import dense
from .views import layout


def reused_by_stacks(node: Node, graph: Graph) -> dict[int, Value]:
    """The operand whose buffer a stack, a result of a scan, may reuse, by the number of the result: the operand has the
    layout of the stack, and nothing reads it later. Stacks whose elements are computed after the last read of the
    operand's element come first."""
    carries, xs = node.attrs["carries"], node.attrs["xs"]
    roots = graph.outside_arena
    before = set(topological(node.operands))
    readers: dict[Value, set[Node]] = {}
    order = graph.nodes
    for n in order:
        for v in n.operands:
            readers.setdefault(base(v), set()).add(n)

    def fits(k: int, v: Value) -> bool:
        axis, result, source = node.attrs["axes"][k - carries], node.results[k], base(v)
        is_other = isinstance(source.node.op.lower, Leaf) or source.type.dtype != result.type.dtype
        if result in roots or not readers.get(result) or source in roots or is_other:
            return False
        strides = dense(result.type.shape).strides
        wanted = (strides[axis], *strides[:axis], *strides[axis + 1 :])
        at = layout(v)
        if at is None:
            return False  # it is copied
        found = zip(at.shape, at.strides, wanted, strict=False)
        differs = len(at.shape) != len(wanted) or any(d != 1 and a != b for d, a, b in found)
        if differs or at.offset or source.type.bytes != result.type.bytes:
            return False
        return sum(base(o) is source for o in node.operands) == 1 and not readers[source] - before - {node}

    out: dict[int, Value] = {}
    free = dict.fromkeys(range(carries, carries + xs))
    for anyhow in (False, True):
        for k in range(carries, len(node.results)):
            for i in free if k not in out else ():
                if fits(k, node.operands[i]) and (anyhow or not _read_after(node, i, k)):
                    out[k] = node.operands[i]
                    del free[i]
                    break
    return out


def _read_after(node: Node, i: int, k: int) -> bool:
    """Whether a node that depends on result k of a region reads its param i, an element."""
    (region,) = node.regions
    result = region.results[k].base
    shown, below = {region.params[i]}, {result}
    for n in region.nodes:
        if isinstance(n.op.lower, View) and not shown.isdisjoint(n.operands):
            shown.update(n.results)
        if not below.isdisjoint(n.operands):
            if not shown.isdisjoint(n.operands):
                return True
            below.update(n.results)
    return False
