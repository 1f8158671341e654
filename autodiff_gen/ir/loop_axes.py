"""Loop axes: for a set of nodes that may share loops, which loop iterates over each axis of each value.

Every axis of a value gets a label; broadcasting and views carry labels from value to value, and values that
are computed together share them. A set of nodes for which no consistent labelling exists cannot share loops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain

from .node import CONST, Node, Value
from .op_kinds import Assemble, Elementwise, Extent, Iota, Leaf, Pick, Reduce, RowContraction, View
from .types import Size, normalise_axes
from .views import pick_axes

Axes = tuple[int | None, ...]  # one label per axis; None for an axis with one index


@dataclass
class Labels:
    """The labelling of a set of nodes: of results (`of`), of the operands of reductions and picks (`operands`), and of
    the operands of nodes that assemble (`pieces`).
    """

    of: dict[Value, Axes] = field(default_factory=dict)
    operands: dict[Node, Axes] = field(default_factory=dict)
    pieces: dict[Node, tuple[Axes, ...]] = field(default_factory=dict)
    extents: list[Size] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    unified: bool = False  # whether any label is an alias of another one now

    def copy(self) -> Labels:
        parts = self.of.copy(), self.operands.copy(), self.pieces.copy(), self.extents[:], self.parents[:]
        return Labels(*parts, self.unified)

    def around(self, node: Node) -> Iterator[Axes]:
        """The labels of a node's results, operands and pieces."""
        yield from (self.of[r] for r in node.results)
        if node in self.operands:
            yield self.operands[node]
        yield from self.pieces.get(node, ())

    def fresh(self, extent: Size) -> int | None:
        if extent == 1:
            return None
        self.extents.append(extent)
        self.parents.append(len(self.parents))
        return len(self.parents) - 1

    def find(self, axis: int) -> int:
        while self.parents[axis] != axis:
            axis = self.parents[axis]
        return axis

    def resolved(self, axes: Axes) -> Axes:
        parents = self.parents
        for a in axes:
            if a is not None and parents[a] != a:
                return tuple([None if a is None else self.find(a) for a in axes])
        return axes

    def unify(self, a: int | None, b: int | None) -> bool:
        if a is None or b is None:
            return True
        a, b = self.find(a), self.find(b)
        if self.extents[a] != self.extents[b]:
            return False
        if a != b:
            self.parents[max(a, b)] = min(a, b)
            self.unified = True
        return True


def through_views(v: Value, labels: Labels) -> Axes | None:
    """The labels of v, a view of a value that is labelled already; None when axes are split or merged on the
    way, or cut where they vary.
    """
    chain = []
    while isinstance(v.node.op.lower, View) and v not in labels.of:
        chain.append(v.node)
        v = v.node.operands[0]
    axes = labels.of[v]
    shape = v.type.shape
    for node in reversed(chain):
        assert isinstance(node.op.lower, View)
        out = node.results[0].type.shape
        dims = node.op.lower.dims(shape, out, node.attrs)
        if dims is None:
            return None
        if node.op.lower.window and any(
            a is not None and not is_whole(d, e, step)
            for a, d, e, step in zip(axes, shape, out, node.attrs["steps"], strict=True)
        ):
            return None
        axes, shape = tuple(None if d is None else axes[d] for d in dims), out
    return axes


def axes_before(view: Node, axes: Axes) -> Axes:
    """The labels of a view's operand, from the labels of the view."""
    assert isinstance(view.op.lower, View)
    (x,) = view.operands
    dims = view.op.lower.dims(x.type.shape, view.results[0].type.shape, view.attrs)
    assert dims is not None
    inner: list[int | None] = [None] * x.ndim
    for out_axis, in_axis in enumerate(dims):
        if in_axis is not None:
            inner[in_axis] = axes[out_axis]
    return tuple(inner)


def axes_of_operands(node: Node, axes: Axes) -> list[tuple[Value, Axes]] | None:
    """The operands of an expression of loops with these axes, each with its own; None if the node is no expression."""
    lower = node.op.lower
    if isinstance(lower, View):
        return [(node.operands[0], axes_before(node, axes))]
    if isinstance(lower, Elementwise):
        shapes = [v.type.shape for v in node.operands]
        own = [zip(s, axes[len(axes) - len(s) :], strict=True) for s in shapes]
        each = [tuple([None if d == 1 else a for d, a in pairs]) for pairs in own]
        return list(zip(node.operands, each, strict=True))
    return [] if isinstance(lower, (Iota, Extent, Leaf)) else None


def moving(axes: Axes) -> set[int]:
    """The loops along which something changes."""
    return {a for a in axes if a is not None}


def is_whole(extent: Size, taken: Size, step: int) -> bool:
    """Whether a window takes all of an axis, in order."""
    return extent == taken and step == 1


def label(nodes: Sequence[Node], inside: Collection[Value], known: Labels | None = None) -> Labels | None:
    """Labels for `nodes`, given in topological order; `inside` are the values (views aside) that they
    compute. known: the labels of some of the nodes, which read nothing of the others. None when no consistent labelling
    exists.
    """
    out = Labels() if known is None else known.copy()
    added = [n for n in nodes if not isinstance(n.op.lower, View) and n.results[0] not in out.of]
    for node in added:
        if not _label_node(node, inside, out):
            return None
    if out.unified:
        out.of = {v: out.resolved(axes) for v, axes in out.of.items()}
        out.operands = {n: out.resolved(axes) for n, axes in out.operands.items()}
        out.pieces = {n: tuple(map(out.resolved, each)) for n, each in out.pieces.items()}
        out.unified = False
        changed = {*out.of.values(), *out.operands.values(), *chain.from_iterable(out.pieces.values())}
    else:
        changed = {axes for n in added for axes in out.around(n)}
    return out if all(map(_are_different, changed)) else None


def _are_different(axes: Axes) -> bool:
    """Whether no loop iterates over two of the axes."""
    if len(axes) < 2:
        return True
    moving = [a for a in axes if a is not None]
    return len(set(moving)) == len(moving)


def _operand(v: Value, inside: Collection[Value], out: Labels) -> Axes | None:
    """Labels of an operand. An operand from outside has none, and neither has an Iota, which one node may read along
    two axes. None if loops cannot be shared: the result of an assembly is read from memory."""
    source = v.base
    if source not in inside or isinstance(source.node.op.lower, Iota):
        return (None,) * len(v.type.shape)
    if isinstance(source.node.op.lower, Assemble):
        return None
    return out.of[v] if v is source else through_views(v, out)


def _label_node(node: Node, inside: Collection[Value], out: Labels) -> bool:
    lower = node.op.lower
    operands = []
    for v in node.operands:
        axes = _operand(v, inside, out)
        if axes is None:
            return False
        operands.append(axes)
    if isinstance(lower, Reduce):
        return _label_reduce(node, operands[0], out)
    if isinstance(lower, Elementwise):
        return _label_elementwise(node, operands, out)
    for r in node.results:
        out.of[r] = tuple([out.fresh(d) for d in r.type.shape])
    mine = out.of[node.results[0]]
    if isinstance(lower, Pick):
        out.operands[node] = operands[0]
        for axes, results in zip(operands, pick_axes(node), strict=True):
            moving = zip(axes, results, strict=True)
            if not all(out.unify(a, mine[k]) for a, k in moving if k is not None):
                return False
    elif isinstance(lower, Assemble):
        return _label_pieces(node, operands, out)
    elif not isinstance(lower, (Iota, RowContraction)):
        return isinstance(lower, Extent) or node.op is CONST
    return True


def _label_elementwise(node: Node, operands: Sequence[Axes], out: Labels) -> bool:
    """The result has the labels of the operands, and new ones along axes where no operand has a label."""
    (y,) = node.results
    shape = y.type.shape
    axes: list[int | None] = [None] * len(shape)
    for given in operands:
        for i, a in enumerate(given, len(shape) - len(given)):
            if axes[i] is None:
                axes[i] = a
            elif axes[i] != a and not out.unify(axes[i], a):
                return False
    out.of[y] = tuple([out.fresh(d) if a is None else a for a, d in zip(axes, shape, strict=True)])
    return True


def _label_pieces(node: Node, operands: Sequence[Axes], out: Labels) -> bool:
    """Pieces share the loops over the axes that each of them fills, and have their own over the others."""
    (y,) = node.results
    mine = out.of[y]
    partial = set()
    for v, steps in zip(node.operands, node.attrs["steps"], strict=True):
        for i, (d, taken, step) in enumerate(zip(y.type.shape, v.type.shape, steps, strict=True)):
            if not is_whole(d, taken, step):
                partial.add(i)
    pieces = []
    for v, given in zip(node.operands, operands, strict=True):
        piece = []
        for i, (a, d) in enumerate(zip(given, v.type.shape, strict=True)):
            if i in partial:
                piece.append(out.fresh(d) if a is None else a)
            else:
                if not out.unify(a, mine[i]):
                    return False
                piece.append(mine[i])
        pieces.append(tuple(piece))
    out.pieces[node] = tuple(pieces)
    return True


def _label_reduce(node: Node, given: Axes, out: Labels) -> bool:
    (x,) = node.operands
    reduced = tuple(out.fresh(d) if a is None else a for a, d in zip(given, x.type.shape, strict=True))
    gone = normalise_axes(node.attrs["axes"], len(reduced))
    out.operands[node] = reduced
    kept = [a for i, a in enumerate(reduced) if i not in gone]
    if node.attrs["keepdim"]:
        kept = [None if i in gone else a for i, a in enumerate(reduced)]
    for r in node.results:
        out.of[r] = tuple(kept)
    return True
