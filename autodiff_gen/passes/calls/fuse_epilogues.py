"""Fuse the ops after a product into its kernel: a scale and a bias for each channel, the addition of a value of the
same shape, and limits (ReLU, ReLU6), in this order. The product itself is never stored.

    entry f(x: f32[1,4,4,3], w: f32[8,1,1,3], b: f32[8], v: f32[8,8])
      %0: f32[1,4,4,8] = conv2d(x, w, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %1: f32[1,4,4,8] = add(%0, b)
      %2: f32[16,8] = reshape(%1, shape=(16, 8))
      %3: f32[16,8] = relu(%2)
      %4: f32[16,8] = matmul(%3, v)
      y <- %4
    ->
    entry f(x: f32[1,4,4,3], w: f32[8,1,1,3], b: f32[8], v: f32[8,8])
      %0: f32[1,4,4,8] = conv2d_epilogue(x, w, b, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1,
          epilogue=('bias',), activation='relu', low=0.0, high=inf)
      %1: f32[16,8] = reshape(%0, shape=(16, 8))
      %2: f32[16,8] = matmul(%1, v)
      y <- %2

A bias before the scale, such as the bias of a convolution before a batch normalisation in evaluation mode, is scaled
too: (x + b) s + t is x s + (b s + t), and b s + t is computed once for each channel.

Only results that are stored anyway are computed so: an output, a value that another kernel reads, or a value that is
read before and after its sum is known, as in a normalisation. A loop that reads a value once computes these steps as
well as the kernel. Where a separate loop takes less time by the cost table, the loop computes these steps, unless the
RAM budget is exceeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import UnionType

from ...ir.build import apply, with_shape
from ...ir.graph import Graph
from ...ir.names import with_role
from ...ir.node import Node, Op, Value, base, in_form
from ...ir.op_forms import WithEpilogue
from ...ir.op_kinds import Cond, Contraction, Elementwise, KernelOp, Leaf, Reduce, Scan, View
from ...ir.origin import BACKWARD, building_as
from ...ir.rewrite import rewritten
from ...ir.traits import has_address, is_by_channel
from ...ir.types import planned_size
from ...ir.views import layout, whole_views
from ...targets.cost_table import CostTable
from ..context import Context
from ..costs import result_is_finished_in_loops
from ..profitability import excess

_ORDER = ("bias_before_scale", "scale", "bias", "residual", "limits")


@dataclass(frozen=True)
class _Part:
    """A node of a chain. kind: the entry of _ORDER that it computes; index: its operand that is in the chain too."""

    node: Node
    kind: str
    index: int


def _whole(v: Value) -> Value:
    return whole_views(v)[-1]


def _is_plain(v: Value) -> bool:
    """Whether a kernel can read the elements of v one after the other."""
    at = layout(v)
    return at is not None and at.dense and has_address(v)


def _finished(node: Node) -> Op | None:
    """The op that computes the node with an epilogue, if there is one. A product of matrices that may become an outer
    product or a column has none."""
    if isinstance(node.op.lower, Contraction):
        inner, columns = node.operands[0].type.shape[-1], node.results[0].type.shape[-1]
        if 1 in (inner, columns):
            return None
    return in_form(node.op, WithEpilogue)


class _Chains:
    """The chains of a graph: each product with the parts that its kernel computes too, by the last part. cost: decides
    which chains are left to loops; None leaves no chain to loops."""

    def __init__(self, graph: Graph, cost: CostTable | None = None) -> None:
        self.cost = cost
        self.outputs = set(graph.outputs.values())
        self.roots, self.readers = set(graph.roots), graph.users
        self.taken: set[Node] = set()
        self.by_last: dict[Node, list[_Part]] = {}
        products = [n for n in reversed(graph.nodes) if _finished(n)]
        # nodes that a kernel may compute without a residual: a kernel stores their results, if anything does
        self.finished: set[Node] = set()
        self.finished = {p.node for node in products for p in self._parts(node) if p.kind != "residual"}
        for node in products:
            parts = self._parts(node)
            last = parts[-1].node.results[0] if parts else None
            if last is None or self._is_left_to_loops(parts):
                continue
            if self._is_stored(last) or self._is_read_after_a_sum(last):
                self.by_last[parts[-1].node] = parts
                self.taken.update(p.node for p in parts)

    def _parts(self, product: Node) -> list[_Part]:
        parts: list[_Part] = []
        v, channels = product.results[0], product.results[0].type.shape[-1]
        while (reader := self._only_reader(v)) is not None:
            node, v = reader
            done = _ORDER.index(parts[-1].kind) if parts else -1
            kinds = list(self._kinds(node, v, channels))
            if [p.kind for p in parts] == ["bias"] and any(p.kind == "scale" for p in kinds):
                parts, done = [replace(parts[0], kind="bias_before_scale")], 0
            part = next((p for p in kinds if _ORDER.index(p.kind) > done), None)
            if part is None:
                break
            parts.append(part)
            v = node.results[0]
        return parts

    def _only_reader(self, v: Value) -> tuple[Node, Value] | None:
        """The only node that reads v, and the view of v that it reads."""
        while v not in self.roots and len(self.readers.get(v, ())) == 1:
            (node,) = self.readers[v]
            if not isinstance(node.op.lower, View):
                return None if node in self.taken else (node, v)
            if _whole(node.results[0]) is not _whole(v):
                return None
            v = node.results[0]
        return None

    def _kinds(self, node: Node, v: Value, channels: object) -> Iterator[_Part]:
        """The parts of a chain that a reader of v may be."""
        y, index = node.results[0], node.operands.index(v)
        if len(node.results) != 1 or y.type != v.type:
            return
        low, high = node.op.limits(node.attrs)
        if low < high:
            yield _Part(node, "limits", index)
        if len(node.operands) != 2:
            return
        other = node.operands[1 - index]
        if not _is_plain(other):
            return
        by_channel = y.type.shape[-1:] == (channels,) and is_by_channel(other, y)
        if node.op.powers == (1, 1) and by_channel and planned_size(y.type.shape[:-1]) > 1:
            yield _Part(node, "scale", index)
        if node.op.signs == (1, 1):
            if by_channel:
                yield _Part(node, "bias", index)
            elif other.type == y.type and self._is_in_memory(other):
                yield _Part(node, "residual", index)

    def _is_in_memory(self, v: Value) -> bool:
        """Whether v is stored even if no kernel reads it as a residual."""
        kept = Leaf | KernelOp | Contraction | Scan | Cond
        node = base(v).node
        return isinstance(node.op.lower, kept) or node in self.finished or self._is_stored(v)

    def _is_left_to_loops(self, parts: Sequence[_Part]) -> bool:
        """Whether loops compute these parts in less time than a kernel."""
        if self.cost is None:
            return False
        kinds = [p.kind for p in parts]
        operands = sum(kind != "limits" for kind in kinds)
        in_arena = parts[-1].node.results[0] not in self.outputs
        return result_is_finished_in_loops(
            self.cost, operands, "residual" in kinds, "limits" in kinds, in_arena
        )

    def _is_read_after_a_sum(self, v: Value) -> bool:
        """Whether v is read together with a reduction of v: v is then stored until the reduction is known."""
        of_v = self._loops_after([v], Elementwise | View)
        if not any(isinstance(n.op.lower, Reduce) for n in of_v):
            return False
        reduced = [r for n in of_v if isinstance(n.op.lower, Reduce) for r in n.results]
        direct = {n for n in of_v if any(_whole(u) is _whole(v) for u in n.operands)}
        return not direct.isdisjoint(self._loops_after(reduced, Elementwise | View | Reduce))

    def _loops_after(self, values: Sequence[Value], through: type | UnionType) -> set[Node]:
        """The nodes of loops that read these values, directly or through nodes of the kinds `through`."""
        found: set[Node] = set()
        pending = list(values)
        while pending:
            for n in self.readers.get(pending.pop(), ()):
                if n not in found and isinstance(n.op.lower, Elementwise | View | Reduce):
                    found.add(n)
                    pending += n.results if isinstance(n.op.lower, through) else []
        return found

    def _is_stored(self, v: Value) -> bool:
        """Whether v is an output, or a kernel reads it or a view of it."""
        shown = [v]
        for u in shown:
            readers = self.readers.get(u, ())
            if u in self.outputs or not self.taken.isdisjoint(readers):
                return True
            if any(isinstance(n.op.lower, KernelOp | Contraction | Scan | Cond) for n in readers):
                return True
            shown += [n.results[0] for n in readers if isinstance(n.op.lower, View)]
        return False


def fuse_epilogues(graph: Graph, context: Context) -> Graph:
    """See the module."""
    chosen, every = _Chains(graph, context.cost), _Chains(graph)
    with_loops = _fused(graph, chosen)
    more = chosen.by_last != every.by_last and excess(with_loops, context)
    return _fused(graph, every) if more else with_loops


def _fused(graph: Graph, chains: _Chains) -> Graph:
    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        shape, given = node.results[0].type.shape, {}
        low, high, activation = 0.0, 0.0, ""
        for part in reversed(chains.by_last[node]):
            if part.kind == "limits":
                low, high = part.node.op.limits(part.node.attrs)
                activation = part.node.op.name
            else:
                given[part.kind] = operands[1 - part.index]
            product = _whole(operands[part.index]).node
            operands = product.operands
        y = product.results[0].type.shape
        if "bias_before_scale" in given:
            (scaling,) = [p.node.origin for p in chains.by_last[node] if p.kind == "scale"]
            with building_as(scaling):
                shift = with_shape(given.pop("bias_before_scale"), y[-1:]) * with_shape(
                    given["scale"], y[-1:]
                )
                if "bias" in given:
                    shift = shift + with_shape(given["bias"], y[-1:])
                given["bias"] = with_role(shift, "shift")
        for kind, v in given.items():
            wanted = y if kind == "residual" else y[-1:]
            given[kind] = with_shape(v, wanted)
        names = tuple(name for name in _ORDER if name in given)
        op = _finished(product)
        assert op is not None
        made = apply(
            op.name,
            *operands,
            *(given[name] for name in names),
            **product.attrs,
            epilogue=names,
            activation=activation,
            low=low,
            high=high,
        )
        if node.origin.phase != BACKWARD and not node.origin.labels:
            made = with_role(made, node.op.name)
        return (with_shape(made, shape),)

    return rewritten(graph, rewrite, chains.by_last)
