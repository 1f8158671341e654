"""scan: a step that is repeated along the time axis, as one node whose region is the step.

Operands: the initial carries, the sequences that are indexed along their first axis (xs), and captures. Results: the
final carries, then one stack for each further result of the region: the outputs of the step (ys), the old carries, and
the products. The backward pass reads some of them; dead-code elimination removes unused stacks.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.build import apply
from ...ir.closures import close
from ...ir.node import OPS, Node, Region, Value, users
from ...ir.op_kinds import Contraction, Elementwise, KernelOp
from ...ir.types import Dim, Shape, Type
from ...ir.views import layout


def make_scan(
    init: Sequence[Value],
    xs: Sequence[Value],
    params: Sequence[Value],
    carries: Sequence[Value],
    ys: Sequence[Value],
    length: int,
    reverse: bool,
) -> Node:
    """The node of a traced step: `params` are the placeholders of carries and elements of xs from which the new
    `carries` and `ys` were computed.
    """
    old = params[: len(init)]
    closed = close(params, (*carries, *ys, *old))
    results = list(closed.region.results)
    results += [v for chain in products(closed.region) for v in chain if v not in results[len(init) :]]
    region = type(closed.region)(closed.region.params, tuple(results))
    batch_first = any(_batch_first(x) for x in xs)
    axes = tuple(stack_axis(v.type.shape, batch_first) for v in results[len(init) :])
    types = [v.type for v in results[: len(init)]]
    types += [stacked(v.type, length, axis) for v, axis in zip(results[len(init) :], axes, strict=True)]
    attrs = {"carries": len(init), "xs": len(xs), "length": length, "reverse": reverse, "axes": axes}
    return Node(OPS["scan"], (*init, *xs, *closed.captures), attrs, tuple(types), (region,))


def shortened(node: Node, operands: tuple[Value, ...], length: int) -> Node:
    """The scan with another number of iterations; the sequences among `operands` have this length."""
    types = [v.type for v in node.results[: node.attrs["carries"]]]
    for v, axis in zip(node.results[len(types) :], node.attrs["axes"], strict=True):
        shape = v.type.shape
        types.append(Type(v.type.dtype, (*shape[:axis], length, *shape[axis + 1 :])))
    attrs = {**node.attrs, "length": length}
    return Node(node.op, operands, attrs, tuple(types), node.regions, node.origin)


def products(region: Region) -> list[list[Value]]:
    """The values that the backward pass does not recompute, as chains: a kernel's result, followed by elementwise
    values of its shape, each computed from the previous one, whose only user it is. Storing one value of a chain
    replaces storing those before it.
    """
    nodes = region.nodes
    readers = users(nodes)
    chains = []
    for node in nodes:
        for r in node.results if isinstance(node.op.lower, Contraction | KernelOp) else ():
            chain = [r]
            while len(readers.get(chain[-1], ())) == 1:
                (reader,) = readers[chain[-1]]
                if not isinstance(reader.op.lower, Elementwise) or reader.results[0].type != r.type:
                    break
                chain.append(reader.results[0])
            chains.append(chain)
    return chains


def _batch_first(x: Value) -> bool:
    """Whether the batch stride of x, an operand indexed along its first axis, is larger than its time stride."""
    strided = layout(x)
    return strided is not None and len(strided.shape) > 2 and strided.strides[1] > strided.strides[0]


def stack_axis(shape: Shape, batch_first: bool) -> int:
    """The position of a stack's time axis: after the batch axis, so that the rows of all samples and times have one
    stride for any batch size, or first.
    """
    return int(bool(shape) and (isinstance(shape[0], Dim) or (batch_first and len(shape) > 1)))


def stacked(type: Type, length: int, axis: int) -> Type:
    return Type(type.dtype, (*type.shape[:axis], length, *type.shape[axis:]))


def time_first(v: Value, axis: int) -> Value:
    """A stack as [time, ...]; a view."""
    if axis == 0:
        return v
    rank = len(v.type.shape)
    return apply("permute", v, dims=(axis, *(i for i in range(rank) if i != axis)))
