"""Unroll loops whose number of iterations is known: the nodes of the body are copied for each iteration, with other
names.

    h_end, hs = Loop(3, true, h) { i, go, h -> go, tanh(h), tanh(h) }    ->    h.0 = tanh(h); h.1 = tanh(h.0); ...

Nodes that do not depend on values that change between iterations are computed once, so that weights that are sliced or
converted in the body stay one parameter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

MOST = 10_000  # iterations at most


class LoopBody:
    """The body of a Loop node. carried: names in the body of the values that an iteration hands to the next; once:
    nodes that are computed before the first iteration; each: nodes of an iteration; inner: the number of nodes inside
    `each`; kept: names in `carried` whose values never change."""

    def __init__(self, proto: Any) -> None:
        (self.graph,) = (a.g for a in proto.attribute if a.name == "body")
        self.counter, self.condition, *self.carried = (i.name for i in self.graph.input)
        self.results = [o.name for o in self.graph.output]
        after = self.results[1 : 1 + len(self.carried)]
        self.kept = {a for a, b in zip(self.carried, after, strict=True) if a == b}
        changing = {self.counter, self.condition, *self.carried} - self.kept
        self.once: list[Any] = []
        self.each: list[Any] = []
        for node in self.graph.node:
            if changing.intersection(names_read(node)):
                changing.update(node.output)
                self.each.append(node)
            else:
                self.once.append(node)
        self.inner = sum(map(nodes_inside, self.each))
        self.made = {name for node in self.each for name in node.output if name}

    def names(self, k: int) -> dict[str, str]:
        """Names in the body -> names in iteration k, for the values that the iteration makes or takes from the previous
        iteration."""
        own = {*self.made, self.counter, self.condition, *self.carried} - self.kept
        return {name: f"{name}.{k}" for name in own}


def nodes_inside(node: Any) -> int:
    """The number of nodes in the branches and bodies of a node."""
    inner = [n for attribute in node.attribute for n in attribute.g.node]
    return len(inner) + sum(map(nodes_inside, inner))


def names_read(node: Any) -> set[str]:
    """Names that a node reads, in its branches too."""
    found = set(node.input)
    for attribute in node.attribute:
        for inner in attribute.g.node:
            found |= names_read(inner)
        found.update(o.name for o in attribute.g.output)
    return found - {""}


def renamed(nodes: Iterable[Any], names: Mapping[str, str]) -> list[Any]:
    """Copies of nodes with values renamed."""
    return [_renamed(node, names) for node in nodes]


def _renamed(node: Any, names: Mapping[str, str]) -> Any:
    made = type(node)()
    made.CopyFrom(node)
    made.input[:] = [names.get(n, n) for n in node.input]
    made.output[:] = [names.get(n, n) for n in node.output]
    for attribute in made.attribute:
        inner = renamed(attribute.g.node, names)
        del attribute.g.node[:]
        attribute.g.node.extend(inner)
        for output in attribute.g.output:
            output.name = names.get(output.name, output.name)
    return made
