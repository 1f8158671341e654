"""Resolve the mode: `by_mode` becomes one of its operands, and the new values of states that `with_updates` names are
collected.

    entry f(x: f32[4])                 entry f(x: f32[4])
      %0: f32[4] = mul(x, 2.0)           y <- x
      %1: f32[4] = by_mode(%0, x)  ->
      y <- %1

Models are resolved for training before the loss is differentiated; a graph that is not resolved earlier is one for
evaluation, as here.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...errors import ModelError
from ...ir.build import apply, broadcast_to, filled
from ...ir.graph import Graph, State
from ...ir.node import Node, Value, topological
from ...ir.op_kinds import Moded, Reduce, View
from ...ir.rewrite import replaced, substitute
from ..context import Context


@dataclass(frozen=True)
class Resolved:
    """Values in one mode, free of `by_mode` and `with_updates`.

    updates: the new values of the states that one forward pass of the roots computes; least_n: the fewest samples
    that it takes.
    """

    roots: list[Value]
    updates: dict[State, Value]
    least_n: int


def resolved(roots: Sequence[Value], training: bool) -> Resolved:
    """`roots` in training or in evaluation.

    If several calls of a module update a state, the calls update it one after the other. ModelError when other values
    depend on such a state: the second call would have to read the value that the first call left.
    """
    chosen = _in_mode(roots, training)
    chosen = _with_keys(chosen)
    updating = [n for n in topological(chosen) if _has_updates(n)]
    updating.sort(key=lambda node: int(node.attrs["order"]))
    new_values = [v for node in updating for v in node.operands[1:]]
    bare = substitute([*chosen, *new_values], _stripped)
    values = iter(bare[len(chosen) :])
    updates = [{state: next(values) for state in node.attrs["states"]} for node in updating]
    least_n = max((int(n.attrs["least_n"]) for n in updating), default=1)
    return Resolved(bare[: len(chosen)], _in_turn(bare[: len(chosen)], updates), least_n)


def _in_turn(roots: Sequence[Value], updates: Sequence[Mapping[State, Value]]) -> dict[State, Value]:
    """The new value of each state after all updates; each update reads the results of the updates before it."""
    requested: dict[State, set[Value]] = {}
    for requested_by_call in updates:
        for state, value in requested_by_call.items():
            if value.node.attrs.get("state") is not state:  # else it keeps its value
                requested.setdefault(state, set()).add(value)
    several = {state for state, values in requested.items() if len(values) > 1}
    for node in topological(roots) if several else ():
        if node.attrs.get("state") in several:
            raise ModelError(
                f"{node.attrs['state'].name!r} would be updated twice in one step, and is read elsewhere: its module "
                "is called twice; use one module for each call"
            )
    new: dict[State, Value] = {}
    for requested_by_call in updates:
        changed = {s: v for s, v in requested_by_call.items() if v.node.attrs.get("state") is not s}
        if not several.isdisjoint(changed):
            leaves = [n for n in topological(changed.values()) if n.attrs.get("state") in several]
            before = {n.results[0]: new[n.attrs["state"]] for n in leaves if n.attrs["state"] in new}
            changed = dict(zip(changed, replaced(list(changed.values()), before), strict=True))
        new |= changed
    return new


def _with_keys(roots: Sequence[Value]) -> list[Value]:
    """Each draw of random numbers without a key gets one, by its position; before equal nodes are merged, so that two
    draws of one shape differ."""
    count = 0

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        nonlocal count
        if node.attrs.get("key", 0) is not None:
            return None
        count += 1
        return (apply(node.op.name, *operands, **{**node.attrs, "key": position_key(count)}),)

    return substitute(roots, rewrite)


def position_key(k: int) -> int:
    """The key of the k-th draw in a model, from 1."""
    return zlib.crc32(f"random {k}".encode())


def _in_mode(roots: Sequence[Value], training: bool) -> list[Value]:
    """The operands that `by_mode` chooses. The gradient of the other operands is zero: its products and its terms in
    sums are left out, so that gradients in training read no state that only evaluation uses."""
    zeros: set[Value] = set()

    def rewrite(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
        lower, zero = node.op.lower, [v in zeros for v in operands]
        if isinstance(lower, Moded) and not lower.updates:
            if "training" not in node.attrs:
                return (operands[0 if training else 1],)
            if node.attrs["training"] == training:
                return operands
        elif not any(zero):
            return None
        elif not _is_zero(node, zero):
            signs = zip(operands, node.op.signs, strict=False)
            terms = [(v, sign) for v, sign in signs if v not in zeros]
            if len(terms) != 1:
                return None
            ((term, sign),) = terms
            return (broadcast_to(term if sign > 0 else apply("neg", term), node.results[0].type.shape),)
        none = filled(0.0, node.results[0].type)
        zeros.add(none)
        return (none,)

    return substitute(roots, rewrite)


def _is_zero(node: Node, zero: Sequence[bool]) -> bool:
    """Whether the result of a node is zero. zero: for each operand, whether it is zero."""
    op = node.op
    if op.signs or isinstance(op.lower, View) or (isinstance(op.lower, Reduce) and op.lower.sums):
        return all(zero)
    return any(power > 0 and is_zero for power, is_zero in zip(op.powers, zero, strict=False))


def _has_updates(node: Node) -> bool:
    return isinstance(node.op.lower, Moded) and node.op.lower.updates


def _stripped(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
    return operands[:1] if _has_updates(node) else None


def resolve_mode(graph: Graph, context: Context) -> Graph:
    """See the module. A graph in training has the updates that its calls request. A graph in evaluation has none of
    these updates, and only the inputs that it still reads."""
    found = resolved(graph.roots, graph.training)
    least_n = max(graph.least_n, found.least_n)
    updates = {**graph.updates, **found.updates} if graph.training else graph.updates
    made = replace(graph.with_roots(found.roots), updates=updates, training=False)
    graph = made if graph.training else made.with_read_inputs()
    return graph if least_n == graph.least_n else replace(graph, least_n=least_n)
