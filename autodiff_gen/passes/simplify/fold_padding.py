"""Fold padding: what reads a padded image, and pads images itself, reads the image and pads it by as much more.

    entry f(x: f32[1,4,4,2], w: f32[2,3,3,2])
      %0: f32[1,5,5,2] = assemble(x, shape=(1, 5, 5, 2), starts=((0, 0, 0, 0),), steps=((1, 1, 1, 1),), fill=0.0)
      %1: f32[1,2,2,2] = conv2d(%0, w, stride=(2, 2), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      y <- %1
    ->
    entry f(x: f32[1,4,4,2], w: f32[2,3,3,2])
      %0: f32[1,2,2,2] = conv2d(x, w, stride=(2, 2), padding=(0, 1, 0, 1), dilation=(1, 1), groups=1)
      y <- %0

So neither the padded image nor its gradient is stored where a network pads by an op of its own: causal convolutions,
and those that keep the size of an image in TensorFlow's way. An image that others read as well stays padded.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from ...errors import ShapeError
from ...ir.build import apply, apply_node, with_shape
from ...ir.graph import Graph
from ...ir.node import Node, Value
from ...ir.op_kinds import Assemble, Call, ViewKind
from ...ir.rewrite import rewritten
from ...ir.traits import view_kind
from ...ir.types import Shape
from ..context import Context

_VIEWS = (ViewKind.RESHAPE, ViewKind.PERMUTE)


@dataclass(frozen=True)
class _Padded:
    """A value of `inside` and so many elements before and after it along each axis; `whole` assembles it."""

    whole: Node
    inside: Value
    sides: tuple[tuple[int, int], ...]


def fold_padding(graph: Graph, context: Context) -> Graph:
    """See the module."""
    while True:
        found = {n: image for n in graph.of(Call) if (image := _border(n, n.operands)) is not None}
        alone = [n for n, image in found.items() if _is_read_by(found, image.whole.results[0], graph)]
        if not alone:
            return graph
        graph = rewritten(graph, _folded, alone)


def _is_read_by(found: Collection[Node], v: Value, graph: Graph) -> bool:
    """Whether these nodes read an image, and nothing else does."""
    return v not in graph.roots and all(
        (n in found and v not in n.operands[1:])
        or (view_kind(n) in _VIEWS and _is_read_by(found, n.results[0], graph))
        for n in graph.users[v]
    )


def _folded(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
    image = _border(node, operands)
    assert image is not None
    return _of_inside(node, operands, image).results


def _border(node: Node, operands: tuple[Value, ...]) -> _Padded | None:
    """Operand 0 without its border, where the op can pad by as much more, with the number that the border has."""
    lower = node.op.lower
    assert isinstance(lower, Call)
    number = lower.border(node.attrs)
    image = None if number is None else _padded(operands[0])
    if image is None or image.whole.attrs["fill"] != number or any((*image.sides[0], *image.sides[3])):
        return None
    try:
        results = _of_inside(node, operands, image).results
    except ShapeError:  # more padding than the op may have
        return None
    return image if [v.type for v in results] == [v.type for v in node.results] else None


def _of_inside(node: Node, operands: tuple[Value, ...], image: _Padded) -> Node:
    more = (*image.sides[1], *image.sides[2])
    padding = tuple([a + b for a, b in zip(node.attrs["padding"], more, strict=True)])
    return apply_node(node.op.name, image.inside, *operands[1:], **{**node.attrs, "padding": padding})


def _padded(v: Value) -> _Padded | None:
    """v, through permutes and reshapes that add or remove axes of extent 1, as an image with a border."""
    node, kind = v.node, view_kind(v.node)
    if isinstance(node.op.lower, Assemble):
        return _of_one_part(node)
    image = _padded(node.operands[0]) if kind in _VIEWS else None
    if image is None:
        return None
    if kind is ViewKind.PERMUTE:
        inside, sides = (
            apply("permute", image.inside, **node.attrs),
            [image.sides[d] for d in node.attrs["dims"]],
        )
        return replace(image, inside=inside, sides=tuple(sides))
    before, after = node.operands[0].type.shape, v.type.shape
    if _longer(before) != _longer(after):
        return None
    left = iter([pair for d, pair in zip(before, image.sides, strict=True) if d != 1])
    sides = [(0, 0) if d == 1 else next(left) for d in after]
    shape = tuple([d - sum(pair) if isinstance(d, int) else d for d, pair in zip(after, sides, strict=True)])
    return replace(image, inside=with_shape(image.inside, shape), sides=tuple(sides))


def _of_one_part(node: Node) -> _Padded | None:
    if len(node.operands) > 1 or any(step != 1 for step in node.attrs["steps"][0]):
        return None
    axes = zip(node.attrs["shape"], node.operands[0].type.shape, node.attrs["starts"][0], strict=True)
    sides = tuple([(start, d - part - start) if d != part else (0, 0) for d, part, start in axes])
    return _Padded(node, node.operands[0], sides)


def _longer(shape: Shape) -> list[object]:
    """The extents of the axes that have more than one element."""
    return [d for d in shape if d != 1]
