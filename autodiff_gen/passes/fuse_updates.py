"""Updates become contractions that accumulate into the state, so that no weight gradient is ever stored.

W' = W - lr * (a . b)         ->  W' = accumulate(a, b, W, -lr, beta=1) v' = mu * v + (a . b)         ->
v' = accumulate(a, b, v, 1, beta=mu) any other elementwise rule    ->  the product is completed row by row
in one row of scratch (`matmul_rows`), and the rule is
                                  the epilogue that reads the row and writes the state
"""

from __future__ import annotations

from ..ir import STATE, Graph, Node, State, Value, apply, constant, substitute, topological, users
from ..op import OPS, Elementwise
from .fold_constants import uniform


def _product(v: Value) -> tuple[Value, Value | None] | None:
    """v as scalar * (a . b): the product and the scalar (None for 1), or None when it is something else."""
    if v.node.op.name == "matmul":
        return v, None
    if v.node.op.name == "mul":
        for x, s in (v.node.operands, v.node.operands[::-1]):
            if x.node.op.name == "matmul" and s.type.shape == ():
                return x, s
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
    if new.node.op.name not in ("add", "sub") or len(state.type.shape) != 2:
        return None
    left, right = new.node.operands
    sides = [(left, right)] if new.node.op.name == "sub" else [(left, right), (right, left)]
    for old, change in sides:
        beta, found = _scaled_state(old, state), _product(change)
        if beta is None or found is None:
            continue
        product, scale = found
        if len(readers[product]) != 1 or len(readers.get(change, ())) != 1:
            return None
        alpha = scale if scale is not None else constant(1.0, state.type.dtype)
        leaf = old if old.node.op is STATE else next(v for v in old.node.operands if v.node.op is STATE)
        a, b = product.node.operands
        return apply("accumulate", a, b, leaf, alpha, beta=beta, negate=new.node.op.name == "sub")
    return None


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
