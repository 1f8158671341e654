"""Settle the mode: `by_mode` becomes one of its operands, and what `with_updates` asks for is collected.

Models settle training before they differentiate the loss; whatever reaches the pipeline unsettled is evaluation.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..errors import GraphError
from ..ir import Graph, Node, State, Value, apply, substitute, topological


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
    """`roots` in training or in evaluation. GraphError when one state would be updated twice."""
    chosen = substitute(roots, lambda node, operands: _choice(node, operands, training))
    chosen = _with_keys(chosen)
    asking = [n for n in topological(chosen) if n.op.name == "with_updates"]
    new: dict[State, Value] = {}
    for node in asking:
        for state, value in zip(node.attrs["states"], node.operands[1:], strict=True):
            if value.node.attrs.get("state") is state:
                continue  # it keeps its value
            if new.setdefault(state, value) is not value:
                raise GraphError(
                    f"{state.name!r} would be updated twice in one step: its module is called twice; "
                    "use one module for each call"
                )
    bare = substitute([*chosen, *new.values()], _stripped)
    least_n = max((int(n.attrs["least_n"]) for n in asking), default=1)
    return Settled(bare[: len(chosen)], dict(zip(new, bare[len(chosen) :], strict=True)), least_n)


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


def specialise(graph: Graph) -> Graph:
    """The graph in evaluation mode, where nothing has settled it yet; updates that it asks for are not made."""
    return graph.with_roots(settled(graph.roots, training=False).roots)
