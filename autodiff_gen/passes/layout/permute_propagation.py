"""How a permute propagates through one node: the node is computed in the order of memory, and its results are permuted
views.

Each function takes the node's operands as values or permuted views. At least one operand is permuted, unless the node
is a view. The function returns the results in the same form, or None where the operands must be in the order in which
they are read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...ir.node import Node, Value, inferred
from ...ir.op_kinds import Assemble, Composite, Elementwise, Pick, Reduce, View
from ...ir.types import Shape, Size, broadcast, normalise_axes, planned_size
from .permuted_view import (
    Permuted,
    PermutedView,
    broadcast_view,
    common_pieces,
    in_shape,
    parts,
    permuted,
    pieces_of,
    reshaped,
    simplified,
    value_of,
)


def propagate(node: Node, views: Sequence[Permuted]) -> Sequence[Permuted] | None:
    """See the module."""
    lower = node.op.lower
    if isinstance(lower, View):
        return _window(node, views[0]) if lower.window else _view(node, views[0])
    if not any(isinstance(f, PermutedView) for f in views):
        return None
    if isinstance(lower, Elementwise) or (isinstance(lower, Composite) and lower.elementwise):
        return _elementwise(node, views)
    if isinstance(lower, Reduce):
        return _reduction(node, views[0])
    if isinstance(lower, Assemble):
        return _assembly(node, views)
    if isinstance(lower, Composite) and "axes" in node.attrs:
        return _composite(node, views)
    if isinstance(lower, Pick):
        return _selection(node, views)
    return None


def _made(node: Node, operands: Sequence[Value], changed: Mapping[str, object]) -> Sequence[Value]:
    """The node on other operands, with inferred types."""
    attrs = {**node.attrs, **changed}
    types = inferred(node.op, [v.type for v in operands], attrs)
    return Node(node.op, tuple(operands), attrs, types, node.regions, node.origin).results


# Views


def _view(node: Node, view: Permuted) -> Sequence[Permuted] | None:
    given, shape = node.operands[0].type.shape, node.results[0].type.shape
    assert isinstance(node.op.lower, View)
    dims = node.op.lower.dims(given, shape, node.attrs)
    if dims is None:
        changed = in_shape(view, shape) if isinstance(view, PermutedView) else None
        return None if changed is None else [changed]
    repeats = any(d is None and shape[k] != 1 for k, d in enumerate(dims))
    if not repeats and all(d in dims for d, extent in enumerate(given) if extent != 1):
        # A transposed row stays a permute, which products know.
        moving = [d for d in dims if d is not None and (given[d] != 1 or len(given) > 2)]
        if isinstance(view, Value) and moving == sorted(moving):
            return None
        return [permuted(view, dims)]
    return [broadcast_view(view, shape)] if isinstance(view, PermutedView) else None


def _window(node: Node, view: Permuted) -> Sequence[Permuted] | None:
    """A window of the source, where no axis that is cut has several pieces."""
    if not isinstance(view, PermutedView):
        return None
    shape = list(view.source.type.shape)
    starts, steps = [0] * len(shape), [1] * len(shape)
    windows = zip(node.results[0].type.shape, node.attrs["starts"], node.attrs["steps"], strict=True)
    for group, whole, (taken, start, step) in zip(view.axes, view.shape, windows, strict=True):
        if (taken, start, step) == (whole, 0, 1) or not group:
            continue
        if len(group) > 1:
            return None
        shape[group[0]], starts[group[0]], steps[group[0]] = taken, start, step
    cut = {"shape": tuple(shape), "starts": tuple(starts), "steps": tuple(steps)}
    return [simplified(_made(node, [view.source], cut)[0], view.axes)]


# Elementwise ops


def _elementwise(node: Node, views: Sequence[Permuted]) -> Sequence[Permuted] | None:
    """The node computed in the order of the largest permuted operand; the other operands are permuted to this order."""
    shapes = [v.type.shape for v in node.operands]
    shape = broadcast(*shapes)
    leader = _leader(views)
    if leader.shape != shape and any(isinstance(f, Value) and f.type.shape == shape for f in views):
        return None  # the large operand stays, and the small one is read by strides
    fine = _pieces(views, shapes, shape)
    cuts = [_cut(view, fine, len(shape)) for view in (leader, *views)] if fine is not None else []
    if fine is None or any(cut is None for cut in cuts):
        return None
    led, *operands = (cut for cut in cuts if cut is not None)
    order = _order(led)
    ordered_operands = [_without_leading_ones(value_of(permuted(cut, order))) for cut in operands]
    place = {k: i for i, k in enumerate(order)}
    axes, at = [], 0
    for pieces in fine:
        axes.append(tuple(place[at + i] for i in range(len(pieces))))
        at += len(pieces)
    extents = [d for pieces in fine for d in pieces]
    types = tuple(r.type.with_shape(tuple(extents[k] for k in order)) for r in node.results)
    made = Node(node.op, tuple(ordered_operands), node.attrs, types, node.regions, node.origin)
    return [simplified(r, axes) for r in made.results]


def _leader(views: Sequence[Permuted]) -> PermutedView:
    """The largest permuted operand, the first of several."""
    return max((f for f in views if isinstance(f, PermutedView)), key=lambda f: planned_size(f.shape))


def _order(view: Permuted) -> list[int]:
    """The axes of a view in the order of memory, axes of extent 1 first. The first piece of an axis decides."""
    _, axes = parts(view)
    return sorted(range(len(axes)), key=lambda k: (axes[k], k))


def _pieces(
    views: Sequence[Permuted], shapes: Sequence[Shape], shape: Shape
) -> list[tuple[Size, ...]] | None:
    """For each axis of the broadcast shape, the pieces into which it must be cut to suit all operands. None where no
    pieces suit all of them."""
    out = []
    for k, extent in enumerate(shape):
        splits: list[tuple[Size, ...]] = []
        for view, own in zip(views, shapes, strict=True):
            axis = k - len(shape) + len(own)
            if axis >= 0 and own[axis] != 1:
                splits.append(pieces_of(view, axis))
        pieces = common_pieces(extent, splits)
        if pieces is None:
            return None
        out.append(pieces)
    return out


def _cut(view: Permuted, fine: Sequence[tuple[Size, ...]], rank: int) -> Permuted | None:
    """The view with its axes cut into `fine`, and of full rank."""
    shape = view.shape
    extents: list[Size] = []
    for k, pieces in enumerate(fine):
        axis = k - rank + len(shape)
        extents += (1,) * len(pieces) if axis < 0 or shape[axis] == 1 else pieces
    return in_shape(view, tuple(extents))


def _without_leading_ones(v: Value) -> Value:
    shape = v.type.shape
    first = next((i for i, d in enumerate(shape) if d != 1), len(shape))
    return reshaped(v, shape[first:])


# Reductions, assembled values and selections


def _reduction(node: Node, view: Permuted) -> Sequence[Permuted] | None:
    assert isinstance(view, PermutedView) and isinstance(node.op.lower, Reduce)
    gone = normalise_axes(node.attrs["axes"], len(view.axes))
    reduced_axes = tuple(sorted(a for k in gone for a in view.axes[k]))
    if not reduced_axes or (node.op.lower.indexed and len(reduced_axes) > 1):
        return None
    results = _made(node, [view.source], {"axes": reduced_axes, "keepdim": False})
    left = [a for a in range(view.source.ndim) if a not in reduced_axes]
    axes = [() if k in gone else tuple(map(left.index, group)) for k, group in enumerate(view.axes)]
    if not node.attrs["keepdim"]:
        axes = [group for k, group in enumerate(axes) if k not in gone]
    return [simplified(r, axes) for r in results]


def _assembly(node: Node, views: Sequence[Permuted]) -> Sequence[Permuted] | None:
    """The value assembled in the order of the largest permuted part. An axis of several pieces, such as an axis of an
    upsampled image, is placed where its first piece is."""
    order = _order(_leader(views))
    attrs = {
        "shape": tuple(node.attrs["shape"][k] for k in order),
        "starts": tuple(tuple(each[k] for k in order) for each in node.attrs["starts"]),
        "steps": tuple(tuple(each[k] for k in order) for each in node.attrs["steps"]),
    }
    (made,) = _made(node, [value_of(permuted(view, order)) for view in views], attrs)
    return [permuted(made, [order.index(k) for k in range(len(order))])]


def _selection(node: Node, views: Sequence[Permuted]) -> Sequence[Permuted] | None:
    """Elements that an index picks along one axis of the source. The axes of the index replace that axis."""
    (view, index), lower = views, node.op.lower
    assert isinstance(lower, Pick)
    of_x, of_index = lower.axes(node.operands[0].type.shape, node.operands[1].type.shape, node.attrs)
    if not isinstance(view, PermutedView) or isinstance(index, PermutedView) or set(of_x) & set(of_index):
        return None
    chosen, rank = view.axes[of_x.index(None)], len(of_index)
    if len(chosen) != 1:
        return None
    (at,) = chosen

    def moved(a: int) -> int:
        return a if a < at else a + rank - 1

    axes: dict[int, tuple[int, ...]] = {of_index[i]: (at + i,) for i in range(rank)}
    axes |= {k: tuple(map(moved, group)) for k, group in zip(of_x, view.axes, strict=True) if k is not None}
    results = _made(node, [view.source, index], {"dim": at})
    return [simplified(r, [axes[k] for k in range(len(axes))]) for r in results]


def _composite(node: Node, views: Sequence[Permuted]) -> Sequence[Permuted] | None:
    """The node computed in the order of operand 0; the other operands are permuted to this order."""
    leader, *others = views
    if not isinstance(leader, PermutedView) or any(len(group) > 1 for group in leader.axes):
        return None
    order = _order(leader)[-leader.source.ndim :]
    rank = len(leader.axes)
    axes = normalise_axes(node.attrs["axes"], rank)
    if node.results[0].type.shape != leader.shape and not all(leader.axes[k] for k in axes):
        return None  # an axis that gets more elements than one
    operands = []
    for view in others:
        whole = in_shape(view, (*(1,) * (rank - len(view.shape)), *view.shape))
        assert whole is not None
        operands.append(_without_leading_ones(value_of(permuted(whole, order))))
    moved = tuple(i for i, k in enumerate(order) if k in axes)
    results = _made(node, [leader.source, *operands], {"axes": moved})
    return [simplified(r, leader.axes) for r in results]
