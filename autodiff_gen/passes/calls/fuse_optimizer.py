"""Fuse updates with gradients: the kernel that computes a gradient adds it to the state, and no weight gradient is
stored.

    entry f(a: f32[4,2], b: f32[2,3], lr: f32[])      entry f(a: f32[4,2], b: f32[2,3], lr: f32[])
      %0: f32[4,3] = matmul(a, b)                       %0: f32[4,3] = accumulate(a, b, w, lr, beta=1.0, negate=True)
      %1: f32[4,3] = mul(lr, %0)                  ->    w' <- %0
      %2: f32[4,3] = sub(w, %1)
      w' <- %2

The same holds for v' = mu * v + (a . b) with beta = mu, and for every op with a form that adds to memory (`conv2d_dw`
and `conv2d_dw_into`). W' = W - lr * v', where v' is stored, becomes axpby(v', W, lr, beta=1, negate=True). Under any
other elementwise rule the gradient is completed a few rows at a time, and each row updates a row of the state
(`gradient_rows`), until it is known which gradients the arena has room for (`whole_gradients`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...ir.added_terms import added, adding_op
from ...ir.build import apply, constant, with_shape
from ...ir.graph import Graph, State
from ...ir.node import STATE, Node, Value, base
from ...ir.op_kinds import Contraction, KernelOp
from ...ir.origin import building_as
from ...ir.rewrite import replaced
from ...ir.traits import changes, uniform
from ...ir.types import f32, planned_size
from ...ir.views import whole_views
from ...targets.cost_table import CostTable
from ..context import Context
from ..costs import addition_is_inlined
from .gradient_rows import gradient_rows


def _product(
    v: Value, wanted: Callable[[Value], object] = lambda v: adding_op(v.node)
) -> tuple[list[Value], Value | None] | None:
    """v as scalar * product: the values from v down to the product, and the scalar (None for 1). None when there is no
    `wanted` product.
    """
    way = whole_views(v)
    if wanted(way[-1]):
        return way, None
    if way[-1].node.op.powers == (1, 1):
        operands = way[-1].node.operands
        for x, s in (operands, operands[::-1]):
            below = whole_views(x)
            if wanted(below[-1]) and s.type.shape == ():
                return [*way, *below], s
    return None


def _scaled_state(v: Value, state: State) -> float | None:
    """beta when v is beta * (old value of state), beta a constant."""
    if v.node.op is STATE and v.node.attrs["state"] is state:
        return 1.0
    if v.node.op.powers == (1, 1):
        for x, s in (v.node.operands, v.node.operands[::-1]):
            if x.node.op is STATE and x.node.attrs["state"] is state and uniform(s) is not None:
                return float(uniform(s))  # type: ignore[arg-type]
    return None


def _accumulating(state: State, new: Value, readers: Mapping[Value, Sequence[Node]]) -> Value | None:
    """The accumulate node that computes `new`, when its rule has that form and nothing else reads the
    gradient.
    """
    for old, change, negate in changes(new.node):
        beta, found = _scaled_state(old, state), _product(change)
        if beta is None or found is None:
            continue
        way, scale = found
        if way[-1].type.bytes != state.type.bytes:
            continue  # one row is added to all
        if any(len(readers.get(v, ())) != 1 for v in way):
            return None
        product = way[-1]
        leaf = old if old.node.op is STATE else next(v for v in old.node.operands if v.node.op is STATE)
        with building_as(product.node.origin):
            return with_shape(added(product, leaf, scale, beta, negate), state.type.shape)
    return None


def fuse_optimizer(graph: Graph, context: Context) -> Graph:
    """See the module."""
    graph = _with_updates(graph, _accumulated(graph))
    graph = _with_updates(graph, _added_from_memory(graph, context.cost))
    return graph if graph.inner else gradient_rows(graph, context)


def _with_updates(graph: Graph, instead: Mapping[Value, Value]) -> Graph:
    """The graph with new states replaced, for all their readers."""
    return graph.with_roots(replaced(graph.roots, instead)) if instead else graph


def _accumulated(graph: Graph) -> dict[Value, Value]:
    """Replacements for new states that are products added to memory. New states that others read, as a weight reads its
    momentum, are replaced only if no product that is added to memory depends on one of them."""
    readers = graph.users
    outputs = set(graph.outputs.values())
    found = {
        new: made
        for state, new in graph.updates.items()
        if new not in outputs and (made := _accumulating(state, new, readers)) is not None
    }
    dependents: set[Value] = set()
    pending = [new for new in found if new in readers]
    while pending:
        later = {r for node in readers.get(pending.pop(), ()) for r in node.results} - dependents
        dependents |= later
        pending += later
    if all(dependents.isdisjoint(base(made).node.operands) for made in found.values()):
        return found
    return {new: made for new, made in found.items() if new not in readers}


def _added_from_memory(graph: Graph, cost: CostTable) -> dict[Value, Value]:
    """Replacements for new states that are the old states plus a multiple of a value that a kernel has stored."""
    readers = graph.users
    outputs = set(graph.outputs.values())
    found: dict[Value, Value] = {}
    for state, new in graph.updates.items():
        if new in outputs or new in readers:
            continue
        for old, change, negate in changes(new.node):
            term = _product(change, lambda v: isinstance(v.node.op.lower, KernelOp | Contraction))
            if _scaled_state(old, state) != 1.0 or term is None:
                continue
            way, scale = term
            size = planned_size(state.type.shape)
            if state.type.dtype is not f32 or way[-1].type.bytes != state.type.bytes:
                continue
            if addition_is_inlined(cost, size):
                continue
            alpha = scale if scale is not None else constant(1.0, f32)
            vectors = (with_shape(v, (size,)) for v in (way[-1], old))
            result = apply("axpby", *vectors, alpha, beta=1.0, negate=negate)
            found[new] = with_shape(result, state.type.shape)
            break
    return found
