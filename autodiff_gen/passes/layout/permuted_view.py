"""Values whose axes are stored in another order than they are read in: the algebra of permutes that are not applied
yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.node import Value
from ...ir.op_kinds import ViewKind
from ...ir.traits import view_kind
from ...ir.types import Dim, Shape, Size, product

Axes: TypeAlias = tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class PermutedView:
    """The value whose axis k merges the axes `axes[k]` of `source`, the first of them outermost; an empty tuple is an
    axis of extent 1.

    Every axis of `source` is named once and is longer than 1; `axes` as made by `simplified` are as few as can be.
    """

    source: Value
    axes: Axes

    @cached_property
    def shape(self) -> Shape:
        return tuple(product(tuple(self.source.type.shape[a] for a in group)) for group in self.axes)


Permuted: TypeAlias = Value | PermutedView


def reshaped(v: Value, shape: Shape) -> Value:
    """v in another shape; two reshapes in a row become one."""
    if v.type.shape == shape:
        return v
    if view_kind(v.node) is ViewKind.RESHAPE:
        below = v.node.operands[0]
        if below.type.shape == shape:
            return below
        try:
            return apply("reshape", below, shape=shape)
        except ShapeError:  # some reshapes around the batch axis are only possible in two steps
            pass
    return apply("reshape", v, shape=shape)


def value_of(view: Permuted) -> Value:
    """The value, built by views of the source."""
    if isinstance(view, Value):
        return view
    dims = tuple(a for group in view.axes for a in group)
    return reshaped(apply("permute", view.source, dims=dims), view.shape)


def parts(view: Permuted) -> tuple[Value, Axes]:
    """Source and axes of a value or permuted view."""
    if isinstance(view, PermutedView):
        return view.source, view.axes
    return view, tuple((i,) for i in range(view.ndim))


def simplified(source: Value, axes: Sequence[Sequence[int]]) -> Permuted:
    """`PermutedView(source, axes)` simplified: axes of extent 1 dropped, adjacent axes that stay adjacent merged, and a
    plain value when the order is the source's."""
    extents = source.type.shape
    nontrivial = [i for i, d in enumerate(extents) if d != 1]
    follower = dict(pairwise(nontrivial))
    runs: list[list[list[int]]] = []
    for group in axes:
        runs.append([])
        for a in group:
            if extents[a] == 1:
                continue
            last = runs[-1][-1] if runs[-1] else None
            if last is not None and follower.get(last[-1]) == a and isinstance(extents[a], int):
                last.append(a)
            else:
                runs[-1].append([a])
    ordered = sorted(run for group in runs for run in group)
    place = {run[0]: i for i, run in enumerate(ordered)}
    merged = tuple(product(tuple(extents[a] for a in run)) for run in ordered)
    renumbered = tuple(tuple(place[run[0]] for run in group) for group in runs)
    if [a for group in renumbered for a in group] == list(range(len(ordered))):
        return reshaped(source, tuple(product(tuple(merged[a] for a in group)) for group in renumbered))
    return PermutedView(reshaped(source, merged), renumbered)


def permuted(view: Permuted, dims: Sequence[int | None]) -> Permuted:
    """Axis k of the result is axis dims[k] of the view; None is a new axis of extent 1."""
    source, axes = parts(view)
    return simplified(source, [() if d is None else axes[d] for d in dims])


def in_shape(view: Permuted, shape: Shape) -> Permuted | None:
    """The view's elements, in row-major order, in another shape. None where a new axis and an axis of the source
    overlap and the extent of neither divides the other."""
    if isinstance(view, Value):
        return reshaped(view, shape)
    extents = view.source.type.shape
    blocks = [a for group in view.axes for a in group]
    pieces: dict[int, list[Size]] = {a: [] for a in blocks}  # innermost first
    groups: list[list[tuple[int, int]]] = []
    at, rest = -1, 1  # type: tuple[int, Size]
    for extent in reversed(shape):
        groups.append([])
        due: Size = extent
        while due != 1:
            if rest == 1:
                if not blocks:
                    return None
                at = blocks.pop()
                rest = extents[at]
            piece = _common(due, rest)
            if piece is None:
                return None
            groups[-1].append((at, len(pieces[at])))
            pieces[at].append(piece)
            due, rest = _over(due, piece), _over(rest, piece)
    if blocks or rest != 1:
        return None
    first, split = {}, []  # type: tuple[dict[int, int], list[Size]]
    for a in range(len(extents)):
        first[a] = len(split)
        split += reversed(pieces[a])
    axes = [[first[a] + len(pieces[a]) - 1 - k for a, k in reversed(group)] for group in reversed(groups)]
    return simplified(reshaped(view.source, tuple(split)), axes)


def _common(a: Size, b: Size) -> Size | None:
    """The smaller of two extents, when it divides the other."""
    if a == b:
        return a
    if isinstance(a, Dim) or isinstance(b, Dim):
        dim, small = (a, b) if isinstance(a, Dim) else (b, a)
        assert isinstance(dim, Dim)
        return small if isinstance(small, int) and dim.coef % small == 0 else None
    return min(a, b) if max(a, b) % min(a, b) == 0 else None


def _over(a: Size, b: Size) -> Size:
    return 1 if a == b else a // b  # type: ignore[operator]


def broadcast_view(view: Permuted, shape: Shape) -> Permuted:
    """The view broadcast to `shape`."""
    source, axes = parts(view)
    extents = source.type.shape
    added = len(shape) - len(axes)
    new: list[Size] = []  # repeated axes are outermost
    where: dict[int, int] = {}
    for k, d in enumerate(shape):
        if d != 1 and (k < added or all(extents[a] == 1 for a in axes[k - added])):
            where[k] = len(new)
            new.append(d)
    repeats = len(new)
    ones = reshaped(source, (*((1,) * repeats), *extents))
    wide = apply("broadcast_to", ones, shape=(*new, *extents)) if repeats else source
    out = [
        (where[k],) if k in where else () if k < added else tuple(repeats + a for a in axes[k - added])
        for k in range(len(shape))
    ]
    return simplified(wide, out)


def pieces_of(view: Permuted, axis: int) -> tuple[Size, ...]:
    source, axes = parts(view)
    return tuple(source.type.shape[a] for a in axes[axis])


def common_pieces(extent: Size, several: Sequence[tuple[Size, ...]]) -> tuple[Size, ...] | None:
    """The fewest pieces of one axis into which all given splits of the axis can be cut. None when there are no such
    pieces, as for splits (2, 3) and (3, 2)."""
    cuts: set[int] = set()
    for split in several:
        step: Size = 1
        for d in reversed(split):
            step = step * d
            if step != extent and isinstance(step, int):
                cuts.add(step)
            elif step != extent:
                return None
    ordered = sorted(cuts)
    out: list[Size] = []
    below = 1
    for cut in ordered:
        if cut % below:
            return None
        out.append(cut // below)
        below = cut
    count = extent.coef if isinstance(extent, Dim) else extent
    if count % below:
        return None
    last: Size = extent // below
    out.append(last)
    return tuple(d for d in reversed(out) if d != 1)
