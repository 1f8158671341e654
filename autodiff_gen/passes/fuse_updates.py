"""Updates are added to the state by the kernel that computes the gradient, so that no weight gradient is ever stored.

W' = W - lr * (a . b)       ->  W' = accumulate(a, b, W, lr, beta=1, negate=True)
v' = mu * v + (a . b)       ->  v' = accumulate(a, b, v, 1, beta=mu)
W' = W - lr * conv2d_dw(..) ->  W' = conv2d_dw_into(.., W, lr, beta=1, negate=True)

and so on for every op whose record names one that adds to memory. Under any other elementwise rule a product is
completed row by row in one row of scratch (`matmul_rows`), and the rule is the epilogue that reads the row and writes
the state.
"""

from __future__ import annotations

from ..dtypes import Shape
from ..ir import STATE, Graph, Node, State, Value, apply, constant, substitute, topological, users
from ..layout import layout
from ..op import OPS, Call, Contraction, Elementwise, View
from .fold_constants import uniform


def _whole(v: Value) -> list[Value]:
    """v and the values below it, as long as each shows all elements of the next in the same order."""
    out = [v]
    while isinstance(v.node.op.lower, View):
        at, below = layout(v), v.node.operands[0]
        if at is None or not at.dense or v.type.bytes != below.type.bytes:
            break
        v = below
        out.append(v)
    return out


def _added(v: Value) -> str:
    """The name of the op that would add v to memory, if there is one."""
    lower = v.node.op.lower
    if isinstance(lower, Contraction) and v.ndim != 2:
        return ""
    return lower.added if isinstance(lower, Contraction | Call) else ""


def _product(v: Value) -> tuple[list[Value], Value | None] | None:
    """v as scalar * product: the values from v down to the product, and the scalar (None for 1); None when it is
    something else.
    """
    way = _whole(v)
    if _added(way[-1]):
        return way, None
    if way[-1].node.op.name == "mul":
        operands = way[-1].node.operands
        for x, s in (operands, operands[::-1]):
            below = _whole(x)
            if _added(below[-1]) and s.type.shape == ():
                return [*way, *below], s
    return None


def _scaled_state(v: Value, state: State) -> float | None:
    """beta when v is beta * (old value of state), beta a constant."""
    if v.node.op is STATE and v.node.attrs["state"] is state:
        return 1.0
    if v.node.op.name == "mul":
        for x, s in (v.node.operands, v.node.operands[::-1]):
            if x.node.op is STATE and x.node.attrs["state"] is state and uniform(s) is not None:
                return float(uniform(s))  # type: ignore[arg-type]
    return None


def _accumulating(state: State, new: Value, readers: dict[Value, list[Node]]) -> Value | None:
    """The accumulate node that computes `new`, when its rule has that form and nothing else reads the
    gradient.
    """
    if new.node.op.name not in ("add", "sub"):
        return None
    left, right = new.node.operands
    sides = [(left, right)] if new.node.op.name == "sub" else [(left, right), (right, left)]
    for old, change in sides:
        beta, found = _scaled_state(old, state), _product(change)
        if beta is None or found is None:
            continue
        way, scale = found
        if any(len(readers.get(v, ())) != 1 for v in way):
            return None
        product = way[-1]
        alpha = scale if scale is not None else constant(1.0, state.type.dtype)
        leaf = old if old.node.op is STATE else next(v for v in old.node.operands if v.node.op is STATE)
        attrs = {**product.node.attrs, "beta": beta, "negate": new.node.op.name == "sub"}
        seen = _in_shape(leaf, product.type.shape)
        result = apply(_added(product), *product.node.operands, seen, alpha, **attrs)
        return _in_shape(result, state.type.shape)
    return None


def _in_shape(v: Value, shape: Shape) -> Value:
    return v if v.type.shape == shape else apply("reshape", v, shape=shape)


def fuse_updates(graph: Graph) -> Graph:
    """See the module."""
    readers = users(topological(graph.roots))
    roots = list(graph.outputs.values())
    outputs = set(roots)
    for state, new in graph.updates.items():
        fused = None if new in outputs or readers.get(new) else _accumulating(state, new, readers)
        roots.append(fused if fused is not None else new)
    graph = graph.with_roots(roots)
    return graph if graph.inner else _by_rows(graph)


def _by_rows(graph: Graph) -> Graph:
    """Products that only feed elementwise rules of updates of their own shape are computed by rows."""
    readers = users(topological(graph.roots))
    outputs = set(graph.outputs.values())
    updates = set(graph.updates.values())

    def feeds_updates_only(product: Value) -> bool:
        pending, seen = [product], {product}
        while pending:
            v = pending.pop()
            if v in outputs or (not readers.get(v) and v not in updates):
                return False
            for node in readers.get(v, ()):
                (r,) = node.results if len(node.results) == 1 else (None,)
                if (
                    r is None
                    or not isinstance(node.op.lower, Elementwise)
                    or r.type.shape != product.type.shape
                ):
                    return False
                if r not in seen:
                    seen.add(r)
                    pending.append(r)
        return True

    chosen = {
        v.node
        for v in readers
        if v.node.op.name == "matmul" and len(v.type.shape) == 2 and feeds_updates_only(v)
    }

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        if node not in chosen:
            return None
        return Node(OPS["matmul_rows"], operands, node.attrs, (node.results[0].type,), hint=node.hint).results

    return graph.with_roots(substitute(graph.roots, rewrite)) if chosen else graph
