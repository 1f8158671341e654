"""Groups of different layers that gain by a common loop nest. They gain if one group computes a value and the other
reads it in the same iteration of a loop: the value need not be stored, or is not loaded again. Otherwise each layer has
its own steps, whose loops follow each other in any case.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from ...ir.loop_axes import Labels, moving
from ...ir.node import Node, Value
from ...ir.op_kinds import Reduce
from ...ir.types import normalise_axes


def are_of_different_layers(nodes: Collection[Node]) -> bool:
    """Whether the nodes come from different modules, or from different phases of training."""
    return len({(n.origin.phase, n.origin.scope) for n in nodes}) > 1


def pass_values_in_loops(
    first: Collection[Node], nodes: Sequence[Node], labels: Labels, users: Mapping[Value, Sequence[Node]]
) -> bool:
    """Whether a node reads a value in the loop that computes it, and only one of the two nodes is in `first`. `nodes`
    are in topological order. Values without loops may be read anywhere."""
    outer: dict[Node, set[int]] = {}  # node -> the outermost loops around its readers
    first, inside = set(first), set(nodes)
    for n in reversed(nodes):
        loops = _outermost(n, labels, users, inside) | outer.pop(n, set())
        for v in n.operands:
            source = v.base.node
            axes = labels.of.get(v.base)
            if axes is None:
                continue
            loops_of_value = moving(axes)
            passes = not loops_of_value or loops_of_value & loops
            if passes and (source in first) != (n in first):
                return True
            outer.setdefault(source, set()).update(loops)
    return False


def _outermost(
    node: Node, labels: Labels, users: Mapping[Value, Sequence[Node]], inside: Collection[Node]
) -> set[int]:
    """The loops over a node's results, except loops that every reader sums over inside other loops. A sum over
    everything has the loops of its operand. Readers in `inside` do not count: they pass their loops on."""
    own = tuple(a for r in node.results for a in labels.of[r])
    if isinstance(node.op.lower, Reduce):
        return moving(own) or moving(labels.operands[node])
    readers = [n for r in node.results for n in users.get(r, ())]
    outside = [n for n in readers if n not in inside]
    if readers and not outside:
        return set()
    inner = [set(_summed(n)) for n in outside]
    common = set.intersection(*inner) if inner else set()
    return {a for k, a in enumerate(own) if a is not None and k not in common}


def _summed(node: Node) -> Collection[int]:
    """The axes of its operand that a sum reduces inside loops over the others."""
    if not isinstance(node.op.lower, Reduce):
        return ()
    shape = node.operands[0].type.shape
    axes = normalise_axes(node.attrs["axes"], len(shape))
    return axes if any(d != 1 and k not in axes for k, d in enumerate(shape)) else ()
