"""Settle the mode: `by_mode` becomes one of its operands, and what `with_updates` asks for is collected.

Models settle training before they differentiate the loss; whatever reaches the pipeline unsettled is evaluation.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import GraphError
from ..ir.build import apply
from ..ir.graph import Graph, State
from ..ir.node import Node, Value, topological
from ..ir.rewrite import replaced, substitute


@dataclass(frozen=True)
class Settled:
    """Values in one mode, free of `by_mode` and `with_updates`.

    updates: the new values of the states that a pass through the roots leaves behind; least_n: the fewest samples
    that it takes.
    """

    roots: list[Value]
    updates: dict[State, Value]
    least_n: int


def settled(roots: Sequence[Value], training: bool) -> Settled:
    """`roots` in training or in evaluation.

    A state that several calls of a module update is updated by one after the other. GraphError when values besides
    depend on such a state: the second call would have to read what the first one left.
    """
    chosen = substitute(roots, lambda node, operands: _choice(node, operands, training))
    chosen = _with_keys(chosen)
    asking = [n for n in topological(chosen) if n.op.name == "with_updates"]
    asking.sort(key=lambda node: int(node.attrs["order"]))
    wishes = [v for node in asking for v in node.operands[1:]]
    bare = substitute([*chosen, *wishes], _stripped)
    values = iter(bare[len(chosen) :])
    updates = [{state: next(values) for state in node.attrs["states"]} for node in asking]
    least_n = max((int(n.attrs["least_n"]) for n in asking), default=1)
    return Settled(bare[: len(chosen)], _in_turn(bare[: len(chosen)], updates), least_n)


def _in_turn(roots: Sequence[Value], updates: Sequence[Mapping[State, Value]]) -> dict[State, Value]:
    """The new value of each state after all updates, each of which begins where those before it ended."""
    wishes: dict[State, set[Value]] = {}
    for wished in updates:
        for state, value in wished.items():
            if value.node.attrs.get("state") is not state:  # else it keeps its value
                wishes.setdefault(state, set()).add(value)
    several = {state for state, values in wishes.items() if len(values) > 1}
    for node in topological(roots) if several else ():
        if node.attrs.get("state") in several:
            raise GraphError(
                f"{node.attrs['state'].name!r} would be updated twice in one step, and is read besides: its module is "
                "called twice; use one module for each call"
            )
    new: dict[State, Value] = {}
    for wished in updates:
        states = {n.attrs["state"]: n.results[0] for n in topological(wished.values()) if "state" in n.attrs}
        before = {old: new[state] for state, old in states.items() if state in several and state in new}
        after = replaced(list(wished.values()), before)
        new |= {
            s: v for s, v, w in zip(wished, after, wished.values(), strict=True) if w is not states.get(s)
        }
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


def _choice(node: Node, operands: tuple[Value, ...], training: bool) -> tuple[Value, ...] | None:
    return (operands[0 if training else 1],) if node.op.name == "by_mode" else None


def _stripped(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...] | None:
    return operands[:1] if node.op.name == "with_updates" else None


def resolve_mode(graph: Graph) -> Graph:
    """The graph in evaluation mode, where nothing has settled it yet; updates that it asks for are not made."""
    return graph.with_roots(settled(graph.roots, training=False).roots)
