"""cond: one of two regions is executed, chosen at run time.

Operands: the predicate, then the captures, which are parameters of both regions. Results: the executed region's.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...autodiff import pull_back, zeros_like
from ...ir.build import constant
from ...ir.closures import param, read_from_outside
from ...ir.names import name_of
from ...ir.node import Node, OptionalValues, Region, Value, Values, Wanted, base, define
from ...ir.op_kinds import Attrs, Cond
from ...ir.rewrite import replaced
from ..support import never


def _vjp(dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    """A cond whose branches are the VJPs of the regions. Each branch recomputes the forward values that it needs."""
    node, since = outs[0].node, marker()
    which = [i for i, want in enumerate(wanted) if want and i > 0]
    branches = []
    for region in node.regions:
        given = [(r, dy) for r, dy in zip(region.results, dys, strict=True) if dy is not None]
        sources = [region.params[i - 1] for i in which]
        pulled = pull_back([r for r, _ in given], [dy for _, dy in given], sources)
        grads = [zeros_like(v) if g is None else g for v, g in zip(sources, pulled, strict=True)]
        branches.append(replaced(grads, dict(zip(region.params, inputs[1:], strict=True))))
    backward = make_cond(inputs[0], branches[0], branches[1], since)
    out: list[Value | None] = [None] * len(inputs)
    for i, g in zip(which, backward.results, strict=True):
        out[i] = g
    return out


COND = define("cond", infer=never, ref=never, vjp=_vjp, lower=Cond())


def marker() -> int:
    """A serial number between the numbers of the nodes created before and after this call."""
    return constant(0.0).node.serial


def make_cond(pred: Value, then: Sequence[Value], otherwise: Sequence[Value], since: int) -> Node:
    """The node whose results are `then` if pred is not 0, otherwise `otherwise`; nodes created after `since` are moved
    into the regions."""
    outer = list(dict.fromkeys(v for results in (then, otherwise) for v in read_from_outside(results, since)))
    regions = []
    for results in (then, otherwise):
        inside = {v: param(name_of(base(v)), v.type) for v in outer}
        regions.append(Region(tuple(inside.values()), tuple(replaced(results, inside))))
    return Node(COND, (pred, *outer), {}, tuple(v.type for v in then), tuple(regions))
