"""Reverse-mode differentiation: one traversal of the graph in reverse topological order, from the loss to the inputs.

The VJP (vector-Jacobian product) of each node maps the gradients of its results to gradients of its operands. Gradients
are graph values, so they can be differentiated again. The gradient of a value with k uses is the sum of k terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from .errors import GraphError
from .ir.build import apply, constant, filled
from .ir.names import set_gradient, set_part
from .ir.node import Node, Value, topological
from .ir.op_kinds import Leaf
from .ir.origin import BACKWARD, FunctionCall, building


def zeros_like(v: Value) -> Value:
    return filled(0.0, v.type.gradient or v.type)


@overload
def grad(y: Value, xs: Value, dy: Value | None = None) -> Value: ...
@overload
def grad(y: Value, xs: Sequence[Value], dy: Value | None = None) -> list[Value]: ...


def grad(y: Value, xs: Value | Sequence[Value], dy: Value | None = None) -> Value | list[Value]:
    """The gradient of `y` with respect to each of `xs`: one value per x, of x's shape and dtype, zeros if y does not
    depend on x. The gradient of a quantised x is f32, with respect to the real numbers that x represents.

    `y` is a scalar unless `dy`, the gradient of y, is given; `dy` has y's shape and dtype. Raises GraphError for a y
    that is not a scalar without dy, for a dy of another type, for a y or an x that is neither a float nor quantised,
    and for an op without a gradient on the path from an x to y; the message names the path.
    """
    variables = [xs] if isinstance(xs, Value) else list(xs)
    if dy is None:
        if y.type.shape != ():
            raise GraphError(
                f"grad: y is {y.type}, not a scalar; reduce it (F.sum, F.mean) or give dy= of its shape"
            )
        dy = constant(1.0, y.type.dtype)
    elif dy.type != y.type:
        raise GraphError(f"grad: dy is {dy.type}, but y is {y.type}")
    for v in (y, *variables):
        if v.type.gradient is None:
            raise GraphError(f"grad: {v!r} is neither a float nor quantised; only these have gradients")

    gradients = pull_back([y], [dy], variables)
    results = [zeros_like(x) if g is None else g for x, g in zip(variables, gradients, strict=True)]
    return results[0] if isinstance(xs, Value) else results


def pull_back(ys: Sequence[Value], dys: Sequence[Value], xs: Sequence[Value]) -> list[Value | None]:
    """The gradient of sum(ys * dys) with respect to each of `xs`; None if no y depends on it."""
    grads = _all_gradients(ys, dys, xs)
    return [grads.get(x) for x in xs]


def where_it_stops(y: Value, x: Value) -> str:
    """The path from x to an op that propagates no gradient of the scalar `y`, though y depends on x through it:
    `weight -> matmul -> argmax`.
    """
    order = topological([y])
    active = downstream(order, [x])
    read = {y, *(v for node in order for v in node.operands)}
    grads = _all_gradients([y], [constant(1.0, y.type.dtype)], [x])
    for node in order:
        results = read.intersection(node.results)
        passes = active.intersection(results) - grads.keys()
        if not passes and any(v in active and v not in grads for v in node.operands):
            return _path(node, [x])
    raise AssertionError("a gradient reaches x, or y does not depend on it")


def _all_gradients(ys: Sequence[Value], dys: Sequence[Value], xs: Sequence[Value]) -> dict[Value, Value]:
    """The gradient of sum(ys * dys) with respect to every value between xs and ys."""
    order = topological(ys)
    active = downstream(order, xs)
    grads: dict[Value, Value] = {}
    for y, dy in zip(ys, dys, strict=True):
        if y in active:
            grads[y] = apply("add", grads[y], dy) if y in grads else dy
    through: dict[Value, Value] = {}
    for node in reversed(order):
        for r in node.results:
            if r in grads:
                set_gradient(grads[r], r)
        needed = [v in active for v in node.operands]
        if any(needed):
            call = node.origin.call or FunctionCall(node.op.name)
            with building(node.origin.scope, BACKWARD, call=call):
                _pull_back(node, needed, grads, xs, through)
    return grads


def downstream(order: Sequence[Node], xs: Sequence[Value]) -> set[Value]:
    """The values that depend on one of xs and have gradients."""
    active = set(xs)
    for node in order:
        if any(v in active for v in node.operands):
            active.update(r for r in node.results if r.type.gradient is not None)
    return active


def _pull_back(
    node: Node,
    needed: Sequence[bool],
    grads: dict[Value, Value],
    xs: Sequence[Value],
    through: dict[Value, Value],
) -> None:
    """Add the terms that a node contributes to the gradients of its operands. through: value -> the result that the
    only term of its gradient so far comes from."""
    dys = [grads.get(r) for r in node.results]
    if all(d is None for d in dys) or isinstance(node.op.lower, Leaf):
        return
    if node.op.vjp is None:
        raise GraphError(f"{node.op.name} has no gradient; it is on the path {_path(node, xs)}")
    if node.attrs.get("exact") and _is_bypassed(node, xs):
        terms = [*dys, *[None] * (len(node.operands) - len(dys))]
    else:
        terms = [*node.op.vjp(dys, node.operands, node.results, node.attrs, needed)]
    for v, needs, d in zip(node.operands, needed, terms, strict=True):
        if d is None or not needs:
            continue
        if d.type != v.type.gradient:
            raise AssertionError(f"the VJP of {node.op.name} gives {d.type} for an operand of type {v.type}")
        if v in grads:
            set_part(grads[v], v, through.pop(v, None))
            set_part(d, v, node.results[0])
            d = apply("add", grads[v], d)
        else:
            through[v] = node.results[0]
        grads[v] = d


def _is_bypassed(node: Node, xs: Sequence[Value]) -> bool:
    """Whether a path from xs to the results of a node with an exact derivative avoids the inputs of that derivative.
    Then the computation of the results is differentiated instead. Example: a loss states its derivative with respect to
    the scores, but xs are the log-probabilities."""
    count = len(node.results)
    inputs = set(node.operands[2 * count : (2 * count + len(node.operands)) // 2])
    active = set(xs) - inputs
    for n in topological(node.operands[:count]):
        if any(v in active for v in n.operands):
            active.update(set(n.results) - inputs)
    return not active.isdisjoint(node.operands[:count])


def _path(node: Node, xs: Sequence[Value]) -> str:
    """The names of the ops from one of xs to `node`, for an error message."""
    previous: dict[Value, Node] = {}
    reached = set(xs)
    for n in topological(node.results):
        source = next((v for v in n.operands if v in reached), None)
        if source is not None:
            for r in n.results:
                if r not in reached:
                    reached.add(r)
                    previous[r] = n
    steps: list[str] = []
    value = next((v for v in node.operands if v in reached), None)
    while value is not None and value not in xs:
        n = previous[value]
        steps.append(n.op.name)
        value = next(v for v in n.operands if v in reached)
    start = (value.name or "x") if value is not None else "x"
    return " -> ".join([start, *reversed(steps), node.op.name])
