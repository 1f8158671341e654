"""scan: a step that is repeated along the time axis, as one node with the step as its region.

Operands are the carries' first values, what is walked along its first axis (xs), and captures. Results are the last
carries, then one stack per further result of the region: what the step gives out (ys), the old carries, and the
products inside, of which the backward pass reads some. A pass drops the stacks that nothing reads.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir.build import apply
from ..ir.closures import close
from ..ir.node import OPS, Node, Region, Value, users
from ..ir.op_kinds import Call, Contraction, Elementwise
from ..ir.types import Dim, Shape, Type
from ..ir.views import layout


def make_scan(
    init: Sequence[Value],
    xs: Sequence[Value],
    params: Sequence[Value],
    carries: Sequence[Value],
    ys: Sequence[Value],
    length: int,
    reverse: bool,
    hint: str = "",
) -> Node:
    """The node of a traced step: `params` stand for carries and elements of xs, from which the new `carries` and
    `ys` were computed.
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
    return Node(OPS["scan"], (*init, *xs, *closed.captures), attrs, tuple(types), (region,), hint)


def products(region: Region) -> list[list[Value]]:
    """What is not computed again on the way back: every result of a kernel, and behind it the elementwise values of its
    shape that are computed from it alone and then from each other. Any of a chain may stand for those before it.
    """
    nodes = region.nodes
    readers = users(nodes)
    chains = []
    for node in nodes:
        for r in node.results if isinstance(node.op.lower, Contraction | Call) else ():
            chain = [r]
            while len(readers.get(chain[-1], ())) == 1:
                (reader,) = readers[chain[-1]]
                if not isinstance(reader.op.lower, Elementwise) or reader.results[0].type != r.type:
                    break
                chain.append(reader.results[0])
            chains.append(chain)
    return chains


def _batch_first(x: Value) -> bool:
    """Whether the samples of x, an operand that is walked along its first axis, lie further apart than its times."""
    at = layout(x)
    return at is not None and len(at.shape) > 2 and at.strides[1] > at.strides[0]


def stack_axis(shape: Shape, batch_first: bool) -> int:
    """Where the time axis of a stack stands: behind the batch, so that the rows of all samples and times lie evenly
    whatever the batch, or first.
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
