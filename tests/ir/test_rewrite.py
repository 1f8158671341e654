"""Rewriting changes the nodes that are chosen and those that read them; all others stay the same nodes."""

from __future__ import annotations

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.build import apply
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.node import Node, Value
from autodiff_gen.ir.op_kinds import Elementwise, Reduce
from autodiff_gen.ir.rewrite import rewritten


def entry() -> Graph:
    x = ag.Input("x", (4,))
    return Graph("f", (x,), {"y": F.exp(F.tanh(x)) + F.sigmoid(x)})


def sine(node: Node, operands: tuple[Value, ...]) -> tuple[Value, ...]:
    return (apply("sin", *operands),)


def test_the_chosen_nodes_and_their_readers_change() -> None:
    graph = entry()
    x, tanh, exp, sigmoid, add = graph.nodes
    new = rewritten(graph, sine, [tanh])
    assert [n.op.name for n in new.nodes] == ["input", "sin", "exp", "sigmoid", "add"]
    assert new.nodes[0] is x
    assert new.nodes[3] is sigmoid
    assert exp not in new.nodes
    assert add not in new.nodes


def test_a_graph_without_chosen_nodes_stays_the_same() -> None:
    graph = entry()
    assert not graph.of(Reduce)
    assert rewritten(graph, sine, graph.of(Reduce)) is graph
    assert rewritten(graph, lambda node, operands: None, graph.of(Elementwise)) is graph
