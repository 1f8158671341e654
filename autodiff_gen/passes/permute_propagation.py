"""How a permute sinks below one node: the node computed in the order of memory, and the form of its results.

Each function takes the forms of the node's operands, at least one of them moved except for views, and gives those of
its results, or None where the operands must be as they are seen.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.node import Node, Value
from ..ir.op_kinds import Assemble, Elementwise, Reduce, View
from ..ir.types import Shape, Size, Type, broadcast, normalise_axes, planned_size
from .permuted_view import (
    Form,
    Moved,
    broadcast_form,
    common_pieces,
    in_shape,
    parts,
    permuted,
    pieces_of,
    reshaped,
    seen,
    value_of,
)


def sunk(node: Node, forms: Sequence[Form]) -> Sequence[Form] | None:
    """See the module."""
    lower = node.op.lower
    if isinstance(lower, View):
        return _window(node, forms[0]) if lower.window else _view(node, forms[0])
    if not any(isinstance(f, Moved) for f in forms):
        return None
    if isinstance(lower, Elementwise):
        return _elementwise(node, forms)
    if isinstance(lower, Reduce):
        return _reduction(node, forms[0])
    if isinstance(lower, Assemble):
        return _assembly(node, forms)
    return None


def _made(node: Node, operands: Sequence[Value], changed: Mapping[str, object]) -> Sequence[Value]:
    """The node on other operands, its types inferred anew."""
    attrs = {**node.attrs, **changed}
    types = node.op.infer(*(v.type for v in operands), **attrs)
    types = types if isinstance(types, tuple) else (types,)
    return Node(node.op, tuple(operands), attrs, types, node.regions, node.hint).results


# Views


def _view(node: Node, form: Form) -> Sequence[Form] | None:
    given, shape = node.operands[0].type.shape, node.results[0].type.shape
    assert isinstance(node.op.lower, View)
    dims = node.op.lower.dims(given, shape, node.attrs)
    if dims is None:
        changed = in_shape(form, shape) if isinstance(form, Moved) else None
        return None if changed is None else [changed]
    repeats = any(d is None and shape[k] != 1 for k, d in enumerate(dims))
    if not repeats and all(d in dims for d, extent in enumerate(given) if extent != 1):
        # A transposed row stays a permute, which products know.
        moving = [d for d in dims if d is not None and (given[d] != 1 or len(given) > 2)]
        if isinstance(form, Value) and moving == sorted(moving):
            return None
        return [permuted(form, dims)]
    return [broadcast_form(form, shape)] if isinstance(form, Moved) else None


def _window(node: Node, form: Form) -> Sequence[Form] | None:
    """A window of the source, where no axis that is cut has several pieces."""
    if not isinstance(form, Moved):
        return None
    shape = list(form.source.type.shape)
    starts, steps = [0] * len(shape), [1] * len(shape)
    windows = zip(node.results[0].type.shape, node.attrs["starts"], node.attrs["steps"], strict=True)
    for group, whole, (taken, start, step) in zip(form.axes, form.shape, windows, strict=True):
        if (taken, start, step) == (whole, 0, 1) or not group:
            continue
        if len(group) > 1:
            return None
        shape[group[0]], starts[group[0]], steps[group[0]] = taken, start, step
    cut = {"shape": tuple(shape), "starts": tuple(starts), "steps": tuple(steps)}
    return [seen(_made(node, [form.source], cut)[0], form.axes)]


# Elementwise ops


def _elementwise(node: Node, forms: Sequence[Form]) -> Sequence[Form] | None:
    """Computed in the order of the largest moved operand, to which the others are turned."""
    shapes = [v.type.shape for v in node.operands]
    shape = broadcast(*shapes)
    leader = _leader(forms)
    if leader.shape != shape and any(isinstance(f, Value) and f.type.shape == shape for f in forms):
        return None  # the large operand stays, and the small one is read by strides
    fine = _pieces(forms, shapes, shape)
    cuts = [_cut(form, fine, len(shape)) for form in (leader, *forms)] if fine is not None else []
    if fine is None or any(cut is None for cut in cuts):
        return None
    led, *operands = (cut for cut in cuts if cut is not None)
    order = _order(led)
    turned = [_without_leading_ones(value_of(permuted(cut, order))) for cut in operands]
    place = {k: i for i, k in enumerate(order)}
    axes, at = [], 0
    for pieces in fine:
        axes.append(tuple(place[at + i] for i in range(len(pieces))))
        at += len(pieces)
    extents = [d for pieces in fine for d in pieces]
    types = tuple(Type(r.type.dtype, tuple(extents[k] for k in order)) for r in node.results)
    made = Node(node.op, tuple(turned), node.attrs, types, node.regions, node.hint)
    return [seen(r, axes) for r in made.results]


def _leader(forms: Sequence[Form]) -> Moved:
    """The largest moved operand, the first of several."""
    return max((f for f in forms if isinstance(f, Moved)), key=lambda f: planned_size(f.shape))


def _order(form: Form) -> list[int]:
    """The axes of a form in the order of memory, those of extent 1 first; none of them has several pieces."""
    _, axes = parts(form)
    return sorted(range(len(axes)), key=lambda k: (axes[k], k))


def _pieces(forms: Sequence[Form], shapes: Sequence[Shape], shape: Shape) -> list[tuple[Size, ...]] | None:
    """For each axis of the broadcast shape the pieces into which it must be cut to suit all operands."""
    out = []
    for k, extent in enumerate(shape):
        splits: list[tuple[Size, ...]] = []
        for form, own in zip(forms, shapes, strict=True):
            axis = k - len(shape) + len(own)
            if axis >= 0 and own[axis] != 1:
                splits.append(pieces_of(form, axis))
        pieces = common_pieces(extent, splits)
        if pieces is None:
            return None
        out.append(pieces)
    return out


def _cut(form: Form, fine: Sequence[tuple[Size, ...]], rank: int) -> Form | None:
    """The form with its axes cut into `fine`, and of full rank."""
    shape = form.shape
    extents: list[Size] = []
    for k, pieces in enumerate(fine):
        axis = k - rank + len(shape)
        extents += (1,) * len(pieces) if axis < 0 or shape[axis] == 1 else pieces
    return in_shape(form, tuple(extents))


def _without_leading_ones(v: Value) -> Value:
    shape = v.type.shape
    first = next((i for i, d in enumerate(shape) if d != 1), len(shape))
    return reshaped(v, shape[first:])


# Reductions and assembled values


def _reduction(node: Node, form: Form) -> Sequence[Form] | None:
    assert isinstance(form, Moved) and isinstance(node.op.lower, Reduce)
    gone = normalise_axes(node.attrs["axes"], len(form.axes))
    walked = tuple(sorted(a for k in gone for a in form.axes[k]))
    if not walked or (node.op.lower.indexed and len(walked) > 1):
        return None
    results = _made(node, [form.source], {"axes": walked, "keepdim": False})
    left = [a for a in range(form.source.ndim) if a not in walked]
    axes = [() if k in gone else tuple(map(left.index, group)) for k, group in enumerate(form.axes)]
    if not node.attrs["keepdim"]:
        axes = [group for k, group in enumerate(axes) if k not in gone]
    return [seen(r, axes) for r in results]


def _assembly(node: Node, forms: Sequence[Form]) -> Sequence[Form] | None:
    """Assembled in the order of the largest moved part."""
    leader = _leader(forms)
    if any(len(group) > 1 for group in leader.axes):
        return None
    order = _order(leader)
    turned = {
        "shape": tuple(node.attrs["shape"][k] for k in order),
        "starts": tuple(tuple(each[k] for k in order) for each in node.attrs["starts"]),
        "steps": tuple(tuple(each[k] for k in order) for each in node.attrs["steps"]),
    }
    (made,) = _made(node, [value_of(permuted(form, order)) for form in forms], turned)
    return [permuted(made, [order.index(k) for k in range(len(order))])]
