"""Slice propagation: an elementwise op of which only slices are read is computed on slices of its operands, so that the
parts (the gates of a cell) are computed where they are used and the whole is never stored.

    entry f(a: f32[4], b: f32[4])
      %0: f32[4] = add(a, b)
      %1: f32[2] = slice(%0, shape=(2,), starts=(0,), steps=(1,))
      %2: f32[2] = tanh(%1)
      y <- %2
    ->
    entry f(a: f32[4], b: f32[4])
      %0: f32[2] = slice(a, shape=(2,), starts=(0,), steps=(1,))
      %1: f32[2] = slice(b, shape=(2,), starts=(0,), steps=(1,))
      %2: f32[2] = add(%0, %1)
      %3: f32[2] = tanh(%2)
      y <- %3

Parts must not overlap: nothing is computed twice. Some values of which all parts are read are computed whole: a
gradient that can take the memory of an operand as large, as do those of concatenations; and what only products read,
such as queries, keys and values: kernels read a part of a matrix where it is stored.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from ...ir.graph import Graph
from ...ir.node import Node, Value, inferred
from ...ir.op_kinds import Contraction, Elementwise, Leaf, View
from ...ir.origin import Origin, is_late
from ...ir.rewrite import rewritten
from ...ir.types import Dim, Shape, planned_size
from ...ops.movement.slices import window
from ..context import Context

MOST_PARTS = (
    8  # every part is a loop of its own: a limit of the C's length and of compile time, not of the target
)

Window: TypeAlias = tuple[Shape, tuple[int, ...], tuple[int, ...]]  # extents, starts, steps


def slice_propagation(graph: Graph, context: Context) -> Graph:
    """See the module."""
    windows = list(filter(_is_window, graph.of(View)))
    if not windows:
        return graph
    readers = graph.users
    roots = set(graph.roots)
    parts: dict[Value, list[Window]] = {}
    for node in reversed(graph.of(Elementwise)):
        if node.results[0] not in roots:
            found = _parts(node.results[0], readers, parts)
            if found is not None:
                parts[node.results[0]] = found
    made: dict[tuple[Value, Window], Value] = {}

    def part(old: Value, new: Value, at: Window) -> Value:
        """A part of an operand: computed as such, or cut from the whole."""
        if (old, at) in made:
            return made[old, at]
        return new if at[0] == new.type.shape and set(at[2]) <= {1} else window(new, *at)

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if _is_window(node) and node.operands[0] in parts:
            return (made[node.operands[0], _of(node)],)
        result = node.results[0]
        for at in parts.get(result, ()):
            cut = [
                part(v, new, _within(v.type.shape, result.type.shape, at))
                for v, new in zip(node.operands, operands, strict=True)
            ]
            types = inferred(node.op, [v.type for v in cut], node.attrs)
            origin = Origin(node.origin.scope, node.origin.phase)
            made[result, at] = Node(node.op, tuple(cut), node.attrs, types, origin=origin).results[0]
        return None

    cut = [n for n in windows if n.operands[0] in parts]
    return rewritten(graph, rewrite, [*cut, *(v.node for v in parts)])


def _is_window(node: Node) -> bool:
    return isinstance(node.op.lower, View) and node.op.lower.window


def _of(node: Node) -> Window:
    return node.results[0].type.shape, node.attrs["starts"], node.attrs["steps"]


def _parts(
    v: Value, users: Mapping[Value, Sequence[Node]], parts: dict[Value, list[Window]]
) -> list[Window] | None:
    """The windows through which alone v is read, or None when it is read in another way or parts overlap."""
    readers = users.get(v, ())
    found: dict[Window, None] = {}
    for node in readers:
        if _is_window(node):
            found[_of(node)] = None
        elif node.results[0] in parts:
            y = node.results[0]
            found.update((_within(v.type.shape, y.type.shape, at), None) for at in parts[y])
        else:
            return None
    whole = any(at[0] == v.type.shape for at in found)
    if not found or whole or len(found) > MOST_PARTS:
        return None
    if any(not _apart(a, b) for a, b in itertools.combinations(found, 2)):
        return None
    if sum(planned_size(at[0]) for at in found) < planned_size(v.type.shape):
        return list(found)
    by_products = all(_is_for_products(node, users) for node in readers)
    reused = (u for u in v.node.operands if u.type == v.type and not isinstance(u.base.node.op.lower, Leaf))
    takes_memory = is_late(v.node.origin) and next(reused, None) is not None
    return None if takes_memory or by_products else list(found)


def _is_for_products(node: Node, users: Mapping[Value, Sequence[Node]]) -> bool:
    """Whether nothing but products reads a view."""
    readers = [n for v in node.results for n in users.get(v, ())]
    return isinstance(node.op.lower, View) and all(
        isinstance(n.op.lower, Contraction) or _is_for_products(n, users) for n in readers
    )


def _within(operand: Shape, result: Shape, at: Window) -> Window:
    """A window of a result as one of an operand that broadcasts to it."""
    added = len(result) - len(operand)
    shape, starts, steps = at[0][added:], at[1][added:], at[2][added:]
    stretched = [d == 1 for d in operand]
    return (
        tuple(1 if s else d for s, d in zip(stretched, shape, strict=True)),
        tuple(0 if s else k for s, k in zip(stretched, starts, strict=True)),
        tuple(1 if s else k for s, k in zip(stretched, steps, strict=True)),
    )


def _apart(a: Window, b: Window) -> bool:
    for da, sa, ka, db, sb, kb in zip(*a, *b, strict=True):
        if isinstance(da, Dim) or isinstance(db, Dim):
            continue
        if set(range(sa, sa + da * ka, ka)).isdisjoint(range(sb, sb + db * kb, kb)):
            return True
    return False
