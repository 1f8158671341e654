"""Which groups of different layers gain by a common loop nest: where one computes a value and the other reads it in the
same iteration of a loop, the value need not be stored, or is not loaded again. Otherwise each layer has its own steps,
whose loops follow each other in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from ..ir.loop_axes import Labels
from ..ir.node import Node, Value, base
from ..ir.op_kinds import Reduce
from ..ir.types import normalise_axes


def are_of_different_layers(nodes: Collection[Node]) -> bool:
    """Whether the nodes come from different modules, or from different phases of training."""
    return len({(n.origin.phase, n.origin.scope) for n in nodes}) > 1


def pass_values_in_loops(
    first: Collection[Node], nodes: Sequence[Node], labels: Labels, users: Mapping[Value, Sequence[Node]]
) -> bool:
    """Whether one of `nodes`, which are in topological order, reads in a loop what is computed in it, where one of the
    two nodes is in `first`, and the other is not. Values without loops may be read anywhere."""
    kept: dict[
        Node, set[int]
    ] = {}  # the loops around what a node is computed for, without those that are summed over
    first, inside = set(first), set(nodes)
    for n in reversed(nodes):
        loops = {a for r in n.results for a in _kept(r, labels, users, inside)} | kept.pop(n, set())
        for v in n.operands:
            source = base(v).node
            axes = labels.of.get(base(v))
            if axes is None:
                continue
            if (source in first) != (n in first):
                moving = {a for a in axes if a is not None}
                if not moving or moving & loops:
                    return True
            kept.setdefault(source, set()).update(loops)
    return False


def _kept(
    v: Value, labels: Labels, users: Mapping[Value, Sequence[Node]], inside: Collection[Node]
) -> Iterator[int]:
    """The loops over v, but those that every reader sums over. Readers inside do not count: they pass theirs on."""
    lower = v.node.op.lower
    readers = [n for n in users.get(v, ()) if n not in inside or isinstance(lower, Reduce)]
    if not readers and users.get(v):
        return
    summed = [
        normalise_axes(n.attrs["axes"], v.ndim) if isinstance(n.op.lower, Reduce) else () for n in readers
    ]
    for k, a in enumerate(labels.of[v]):
        everywhere = bool(summed) and all(k in axes for axes in summed) and not isinstance(lower, Reduce)
        if a is not None and not everywhere:
            yield a
