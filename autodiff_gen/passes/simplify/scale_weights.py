"""Scale weights instead of images: a factor for each channel of a product, such as the scale of BatchNorm in evaluation
mode, multiplies the weights of the channel, if these are fewer than the elements of the result.

    entry f(x: f32[1,4,4,2], w: f32[8,1,1,2], b: f32[8], s: f32[8])
      %0: f32[1,4,4,8] = conv2d(x, w, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %1: f32[1,4,4,8] = add(%0, b)
      %2: f32[1,4,4,8] = mul(%1, s)
      y <- %2
    ->
    entry f(x: f32[1,4,4,2], w: f32[8,1,1,2], b: f32[8], s: f32[8])
      %0: f32[8,1,1,1] = reshape(s, shape=(8, 1, 1, 1))
      %1: f32[8,1,1,2] = mul(w, %0)
      %2: f32[1,4,4,8] = conv2d(x, %1, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1)
      %3: f32[8] = mul(b, s)
      %4: f32[1,4,4,8] = add(%2, %3)
      y <- %4

A trained factor stays where it is if the weights are not trained: otherwise the backward pass would need a gradient of
the weights only for the factor.
The pass precedes the differentiation. So the gradient of the factor is computed from the gradient of the weights, and
the image before the factor is not stored. If neither the weights nor the factor change, their product is a constant.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from ...ir.build import apply, with_shape
from ...ir.graph import Graph, State
from ...ir.module import IRModule
from ...ir.names import with_role
from ...ir.node import CONST, STATE, Node, Value
from ...ir.op_kinds import Range, View
from ...ir.origin import building
from ...ir.rewrite import rewritten
from ...ir.tiles import tile_of
from ...ir.types import f32, planned_size
from ..context import Context
from .fold_constants import is_foldable


def scale_weights(module: IRModule[Graph], context: Context) -> IRModule[Graph]:
    """See the module. A function of the user keeps its operations."""
    training = context.training
    if training is None:
        return module
    trained = {module.state(state) for state, _ in training.trained}
    changed = trained | {state for graph in module.entries for state in graph.updates}
    return module.with_entries(
        *(scale_entry(g, changed, trained if "loss" in g.outputs else frozenset()) for g in module.entries)
    )


def scale_entry(graph: Graph, changed: Set[State] = frozenset(), trained: Set[State] = frozenset()) -> Graph:
    """One entry. changed: the states that an entry changes; trained: the states whose gradients are computed later."""
    return rewritten(graph, _Scaling(graph, changed, trained).rewrite, graph.nodes)


@dataclass(frozen=True)
class _Factor:
    """A vector by which an operation multiplies an image, or divides it. image: the number of the image operand."""

    op: str
    vector: Value
    image: int

    def applied(self, v: Value, axis: int) -> Value:
        """A value times the factor, which is a vector along an axis of the value."""
        if isinstance(v.node.op.lower, View) and (below := _same_axis(v.node, 0, axis)) is not None:
            return apply(v.node.op.name, self.applied(v.node.operands[0], below), **v.node.attrs)
        vector = _along(self.vector, axis, v)
        return apply(self.op, *((v, vector) if self.image == 0 else (vector, v)))


class _Scaling:
    """Moves factors to weights, and replaces the values that the factors multiplied.

    Values of the new graph: single, with one reader; fixed, constant at build time; biased, sums of a product and a
    bias, in this order, and views of them; trained, with a gradient.
    """

    def __init__(self, graph: Graph, changed: Set[State], trained: Set[State]) -> None:
        roots = set(graph.roots)
        self.single = {v for v, readers in graph.users.items() if len(readers) == 1 and v not in roots}
        self.fixed = _fixed(graph.nodes, changed)
        self.trained = _depending(graph.nodes, trained)
        self.biased: set[Value] = set()

    def rewrite(self, node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        for old, new in zip(node.operands, operands, strict=True):
            for known in (self.single, self.fixed, self.trained):
                if old in known:
                    known.add(new)
        y = node.results[0]
        if len(operands) != 2 or y.type.dtype != f32 or not (node.op.signs or node.op.powers):
            return None
        for k, image in enumerate(operands):
            other, found = operands[1 - k], None
            axis = _axis_of(other, y)
            if axis is None or image.type != y.type:
                continue
            if node.op.signs:
                is_biased = node.op.signs[k] == 1 and image in self.biased & self.single
                found = self._with_bias(image, self._signed(node, other, 1 - k), axis) if is_biased else None
            elif node.op.powers and node.op.powers[k] == 1:
                found = self._multiplied(image, axis, _Factor(node.op.name, other, k))
            if found is not None:
                return (found,)
        return None

    def _multiplied(self, v: Value, axis: int, factor: _Factor) -> Value | None:
        """A value times a factor along an axis, computed from weights times the factor; None where it cannot be."""
        way: list[tuple[Node, int, int]] = []  # to the product: node, number of the operand, axis
        while v in self.single and not v.node.op.factors:
            step = self._before(v.node, axis)
            if step is None:
                return None
            way.append((v.node, step[0], axis))
            v, axis = v.node.operands[step[0]], step[1]
        made = self._product(v.node, axis, factor) if v in self.single else None
        if made is None:
            return None
        for node, k, at in reversed(way):
            is_view = isinstance(node.op.lower, View)
            made = self._viewed(node, made) if is_view else self._sum(node, k, made, at, factor)
        return made

    def _before(self, node: Node, axis: int) -> tuple[int, int] | None:
        """The operand of a view, or of a sum with a bias along an axis, that is multiplied instead of the result, and
        its axis; None for other nodes."""
        if isinstance(node.op.lower, View):
            below = _same_axis(node, 0, axis)
            return None if below is None else (0, below)
        y = node.results[0]
        for k, v in enumerate(node.operands if len(node.op.signs) == 2 else ()):
            if v.type == y.type and _axis_of(node.operands[1 - k], y) == axis:
                return k, axis
        return None

    def _viewed(self, view: Node, v: Value) -> Value:
        made = apply(view.op.name, v, **view.attrs)
        self.single.add(v)
        if v in self.biased:
            self.biased.add(made)
        return made

    def _sum(self, node: Node, k: int, image: Value, axis: int, factor: _Factor) -> Value:
        """The sum of a node, times the factor. image: operand k, already times the factor; the other
        operand is a bias."""
        bias = node.operands[1 - k]
        bias = factor.applied(bias, bias.ndim - node.results[0].ndim + axis)
        if node.op.signs[k] == 1:
            return self._with_bias(image, self._signed(node, bias, 1 - k), axis)
        self.single.add(image)
        return apply(node.op.name, bias, image)

    def _signed(self, node: Node, bias: Value, k: int) -> Value:
        return bias if node.op.signs[k] == 1 else apply("neg", bias)

    def _with_bias(self, v: Value, bias: Value, axis: int) -> Value:
        """The sum of a value and a bias along an axis. If the value is such a sum, or a view of one, the biases are
        added first."""
        node = v.node
        if v in self.biased and isinstance(node.op.lower, View):
            below = _same_axis(node, 0, axis)
            if below is not None:
                (of,) = node.operands
                return self._viewed(node, self._with_bias(of, _along(bias, below, of), below))
        elif v in self.biased and _axis_of(node.operands[1], v) == axis:
            v, first = node.operands
            bias = with_role(apply("add", _along(first, axis, v), _along(bias, axis, v)), "biases")
        made = apply("add", v, bias)
        self.single.add(v)
        self.biased.add(made)
        return made

    def _product(self, node: Node, axis: int, factor: _Factor) -> Value | None:
        (y,), operands = node.results, list(node.operands)
        axes = {k: at for k in node.op.factors if (at := _same_axis(node, k, axis)) is not None}
        if factor.vector in self.trained:  # otherwise only the factor would need the gradient of the operand
            axes = {k: at for k, at in axes.items() if operands[k] in self.trained}
        known = {k for k in axes if factor.vector in self.fixed and self._is_replaced(operands[k])}
        sizes = {k: 0 if k in known else planned_size(operands[k].type.shape) for k in axes}
        k = min(sizes, key=lambda k: sizes[k], default=None)
        if k is None or sizes[k] >= planned_size(y.type.shape):
            return None
        is_trained = not self.trained.isdisjoint((operands[k], factor.vector))
        operands[k] = with_role(factor.applied(operands[k], axes[k]), "scaled_weights")
        if is_trained:
            self.trained.add(operands[k])
        if k in known:
            self.fixed.add(operands[k])
            self.single.add(operands[k])
        with building(call=node.origin.call):
            return apply(node.op.name, *operands, **node.attrs)

    def _is_replaced(self, v: Value) -> bool:
        """Whether the product of v and a constant is stored in flash instead of v: v is a constant without other
        readers."""
        return v in self.fixed and {v, v.base} <= self.single


def _axis_of(vector: Value, image: Value) -> int | None:
    """The axis of an image along which a vector is broadcast to the image; None if `vector` has several axes, or one of
    unknown extent."""
    long = [k for k, extent in enumerate(vector.type.shape) if extent != 1]
    if len(long) != 1 or not isinstance(vector.type.shape[long[0]], int):
        return None
    axis: int = image.ndim - vector.ndim + long[0]
    return axis


def _along(vector: Value, axis: int, of: Value) -> Value:
    """A vector, reshaped so that its elements are along an axis of a value."""
    return with_shape(vector, (of.type.shape[axis], *(1,) * (of.ndim - axis - 1)))


def _same_axis(node: Node, operand: int, axis: int) -> int | None:
    """The axis of an operand that matches an axis of the result: they have the same extent, and element i of the result
    depends only on element i of the operand. None where there is no such axis."""
    extent = node.results[0].type.shape[axis]
    assert isinstance(extent, int)
    found: set[int] = set()
    for i in range(extent):
        tile = tile_of(node, Range(axis, i, i + 1))
        at = None if tile is None else tile.ranges.get(operand)
        if at is None or (at.start, at.stop) != (i, i + 1):
            return None
        found.add(at.axis)
    same = [a for a in found if node.operands[operand].type.shape[a] == extent]
    return same[0] if len(found) == 1 and same else None


def _fixed(nodes: Sequence[Node], changed: Set[State]) -> set[Value]:
    """Constants, states that no entry changes, and the values that fold_constants computes from them. Functions such as
    exp are computed on the device."""
    found: set[Value] = set()
    for n in nodes:
        is_leaf = n.op is CONST or (n.op is STATE and n.attrs["state"] not in changed)
        is_fixed = n.operands and found.issuperset(n.operands)
        if is_leaf or (is_fixed and (isinstance(n.op.lower, View) or is_foldable(n))):
            found.update(n.results)
    return found


def _depending(nodes: Sequence[Node], trained: Set[State]) -> set[Value]:
    """The values that depend on these states."""
    found: set[Value] = set()
    for n in nodes:
        if (n.op is STATE and n.attrs["state"] in trained) or not found.isdisjoint(n.operands):
            found.update(n.results)
    return found
