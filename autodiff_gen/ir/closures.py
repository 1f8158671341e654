"""Regions of scan and cond: a traced sub-graph is closed over the values of the enclosing graph that it uses.

Values that depend on none of the region's parameters are computed once, outside, and captured; constants, counts and
broadcasts stay inside, since they cost nothing there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .build import make_input
from .names import name_of
from .node import CONST, INPUT, STATE, Node, Region, Value, base, topological
from .op_kinds import Extent, Iota, View, ViewKind
from .rewrite import replaced
from .traits import view_kind
from .types import Type


@dataclass(frozen=True)
class Closed:
    """A region without free variables; `captures` are the outer values for the params after the given ones."""

    region: Region
    captures: tuple[Value, ...]


def param(name: str, type: Type, source: Value | None = None) -> Value:
    """A parameter of a region, called `name` in generated code; `source` is the outer value whose elements it shows."""
    return make_input(name, type, inner=True, source=source)


def close(params: Sequence[Value], results: Sequence[Value], captured: Sequence[Value] = ()) -> Closed:
    """The region of `results` over `params`; `captured` come first among the captures."""
    captures = dict.fromkeys((*captured, *_frontier(params, results)))
    inside = {v: param(name_of(base(v)), v.type) for v in captures}
    region = Region((*params, *inside.values()), tuple(replaced(results, inside)))
    return Closed(region, tuple(captures))


def _frontier(params: Sequence[Value], results: Sequence[Value]) -> list[Value]:
    """The outer values that the region reads, in order of first use."""
    own = {v.node for v in params}
    order = topological(results, stop=own.__contains__)
    inside: set[Node] = set()
    for node in order:
        dependent = node in own or any(v.node in inside for v in node.operands)
        if dependent or _is_constant(node, inside):
            inside.add(node)
    needed = set(results)
    for node in reversed(order):
        if node in inside or (view_kind(node) is ViewKind.BROADCAST and node.results[0] in needed):
            inside.add(node)  # a broadcast of an outer value is done again inside, where it costs nothing
            needed.update(node.operands)
    read = [v for n in order if n in inside and n not in own for v in n.operands]
    return list(dict.fromkeys(v for v in (*read, *results) if v.node not in inside))


def read_from_outside(results: Sequence[Value], since: int) -> list[Value]:
    """The values from outside that nodes below `results` read, or that are results themselves. From outside are inputs,
    states, and results of nodes whose serial number is less than `since`, except constants."""

    def outside(node: Node) -> bool:
        return node.op in (INPUT, STATE) or node.serial < since

    order = topological(results, stop=outside)
    inside: set[Node] = set()
    for node in order:
        if not outside(node) or _is_constant(node, inside):
            inside.add(node)
    read = [v for n in order if n in inside for v in n.operands]
    return list(dict.fromkeys(v for v in (*read, *results) if v.node not in inside))


def _is_constant(node: Node, inside: set[Node]) -> bool:
    if node.op is CONST or isinstance(node.op.lower, Iota | Extent):
        return True
    return isinstance(node.op.lower, View) and node.operands[0].node in inside
