"""Fuse two calls where one kernel computes both: a convolution and the pooling by maximum that is its only reader, and
likewise their gradients. The image between them, the largest of a small net, is never stored, and zeros that the
pooling's gradient would hold are never multiplied.

    entry f(x: f32[1,6,6,1], w: f32[4,3,3,1])
      %0: f32[1,4,4,4] = conv2d(x, w, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %1: f32[1,2,2,4], %2: u8[1,2,2,4] = max_pool2d(%0, kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0),
          dilation=(1, 1), ceil_mode=False)
      y <- %1
    ->
    entry f(x: f32[1,6,6,1], w: f32[4,3,3,1])
      %0: f32[4] = broadcast_to(0.0, shape=(4,))
      %1: f32[1,2,2,4], %2: u8[1,2,2,4] = conv2d_pool(x, w, %0, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1),
          groups=1, pool_kernel=(2, 2), pool_stride=(2, 2), pool_padding=(0, 0, 0, 0), pool_dilation=(1, 1),
          pool_ceil_mode=False)
      y <- %1

Ops of the form `TwoOpsInOne` are compositions of two others. Where nothing reads the other results of a call, such as
the indices of a pooling by maximum in `predict`, an op of the form `FirstResultOnly` computes only the first result.
The call stays if the backend of its kernel has no kernel for only the first result.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...ir.build import apply, apply_node, filled, with_shape
from ...ir.graph import Graph
from ...ir.names import with_role
from ...ir.node import OPS, Node, Op, Value, in_form, in_forms
from ...ir.op_forms import FirstResultOnly, TwoOpsInOne
from ...ir.op_kinds import KernelOp, Reduce
from ...ir.rewrite import rewritten
from ...ir.strides import dense
from ...ir.traits import is_by_channel, is_sum
from ...ir.types import normalise_axes
from ...ir.views import layout
from ...kernels.registry import REF
from ..context import Context


@dataclass(frozen=True)
class _Fit:
    """How a node and the call before it become one call of `op` with `attrs`. between: where a bias is added between
    the two calls, the number of the operand of this addition that is the first call's result; None if the second call
    reads the first call's result directly."""

    op: Op
    form: TwoOpsInOne
    attrs: dict[str, Any]
    between: int | None

    def result(self, operands: tuple[Value, ...]) -> Value:
        """The result of the first call, given the operands of the second."""
        v = operands[self.form.operand]
        return v if self.between is None else v.node.operands[self.between]

    def applied(self, operands: tuple[Value, ...]) -> tuple[Value, ...]:
        at, first = self.form.operand, self.result(operands)
        bias = [self._bias(operands[at], first)] if self.form.biased else []
        outer = (*operands[:at], *first.node.operands, *operands[at + 1 :])
        return apply_node(self.op.name, *outer, *bias, **self.attrs).results

    def _bias(self, read: Value, first: Value) -> Value:
        channels = first.type.shape[-1:]
        if self.between is None:
            return filled(0.0, first.type.with_shape(channels))
        return with_shape(read.node.operands[1 - self.between], channels)


def _as_biased(v: Value) -> Iterator[int]:
    """The numbers of the operands of v that are images to which v adds a number for each channel."""
    if v.node.op.signs == (1, 1):
        for k, (image, bias) in enumerate((v.node.operands, v.node.operands[::-1])):
            if image.type.shape == v.type.shape and is_by_channel(bias, v):
                yield k


class _Fusion:
    """The fusions in a graph: how each second call is fused, and which results are then never computed."""

    def __init__(self, graph: Graph) -> None:
        self.roots, self.readers = set(graph.roots), graph.users
        self.fits = {
            n: fit
            for n in graph.of(KernelOp)
            for op in in_forms(n.op, TwoOpsInOne)
            if (fit := self._fit(n, op)) is not None
        }

    def _fit(self, node: Node, op: Op) -> _Fit | None:
        form = op.form
        assert isinstance(form, TwoOpsInOne)
        v = node.operands[form.operand]
        places: list[int | None] = [None, *(_as_biased(v) if form.biased else ())]
        for between in places:
            first = v if between is None else v.node.operands[between]
            if first.node.op is OPS[form.inner] and first.index == 0:
                attrs = form.joined(first.node.attrs, node.attrs)
                return None if attrs is None else _Fit(op, form, attrs, between)
        return None

    def fit(self, node: Node) -> _Fit | None:
        """How the node is fused with the call before it; None where other nodes need that call's result."""
        fit = self.fits.get(node)
        if fit is None:
            return None
        v, first = node.operands[fit.form.operand], fit.result(node.operands)
        is_only_reader = first is v or (first not in self.roots and len(self.readers[first]) == 1)
        return fit if is_only_reader and self.is_never_read(v) else None

    def only_first(self, node: Node) -> Op | None:
        """The op that computes only the first result of a call, if nothing reads the others."""
        unread = all(r not in self.roots and not self.readers.get(r) for r in node.results[1:])
        return in_form(node.op, FirstResultOnly) if unread else None

    def is_never_read(self, v: Value) -> bool:
        """Whether v need not be computed after the fusions: each reader reads values below v instead."""
        return v not in self.roots and all(self._reads_otherwise(n, v) for n in self.readers.get(v, ()))

    def _reads_otherwise(self, node: Node, v: Value) -> bool:
        fit = self.fits.get(node)
        composed = fit is not None and node.operands[fit.form.operand] is v
        return self.is_sum_of_scattered(node) or (composed and node.operands.count(v) == 1)

    def is_sum_of_scattered(self, node: Node) -> bool:
        """Whether a node sums the result of an op that only moves elements along the axes of the sum."""
        if not is_sum(node):
            return False
        (v,) = node.operands
        scatters = v.node.op.scatters
        return bool(scatters) and set(scatters) <= set(normalise_axes(node.attrs["axes"], v.ndim))


def _is_served(node: Node, first: Op, context: Context) -> bool:
    """Whether the backend that serves a call also serves `first`, the op of only the first result. A call that only
    the backend `ref` serves may get any backend."""
    backends = context.backends
    if backends is None:
        return True

    def backend(op: Op) -> str:
        lower, layouts = op.lower, [layout(v) or dense(v.type.shape) for v in node.operands]
        assert isinstance(lower, KernelOp)
        results = node.results if op is node.op else node.results[:1]
        call = lower.choose(layouts, [r.type for r in results], node.attrs)
        return backends.select(call.kernel, call.facts()).backend

    return backend(node.op) in (backend(first), REF)


def fuse_calls(graph: Graph, context: Context) -> Graph:
    """See the module."""
    fusion = _Fusion(graph)
    found = {n: op for n in graph.of(KernelOp) if (op := fusion.only_first(n)) is not None}
    first_only = {n: op for n, op in found.items() if _is_served(n, op, context)}

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        fit = fusion.fit(node)
        if fit is not None:
            return fit.applied(operands)
        if node in first_only:
            first = apply(first_only[node].name, *operands, **node.attrs)
            return (first if node.origin.labels else with_role(first, node.op.name), *node.results[1:])
        if node not in fusion.fits and fusion.is_never_read(node.operands[0]):
            return (apply(node.op.name, operands[0].node.operands[0], **node.attrs),)
        return None

    scattered = filter(fusion.is_sum_of_scattered, graph.of(Reduce))
    return rewritten(graph, rewrite, [*{**fusion.fits, **first_only}, *scattered])
