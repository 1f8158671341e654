"""Passes that simplify the bodies of loops as they do entries."""

from __future__ import annotations

from graph_stages import rewritten, stages
from graph_text import parsed

from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.op_kinds import Scan
from autodiff_gen.ir.verifier import verify

LOOP = """
entry f(h: f32[4], x: f32[9,4])
  %0: f32[4], %1: f32[9,4] = scan(h, x, length=9, carries=1, xs=1, axes=(0,), reverse=False)
      with %2 h_t: f32[4], %3 x_t: f32[4]
      %4: f32[4] = mul(%3, 1.0)
      %5: f32[4] = add(%2, %4)
      %6: f32[4] = tanh(%5)
      %7: f32[4] = tanh(%5)
      %8: f32[4] = add(%6, %7)
      yield %5, %8
  y <- %0
  z <- %1
"""


def ops(graph: Graph) -> list[str]:
    (loop,) = graph.of(Scan)
    return [n.op.name for n in loop.regions[0].nodes if n.operands]


def test_a_body_is_simplified_with_its_entry() -> None:
    graph = parsed(LOOP)
    found = {name: ops(made) for name, made in stages(graph, until="cse")}
    assert found["fold_constants"] == ["add", "tanh", "tanh", "add"]
    assert found["cse"] == ["add", "tanh", "add"]
    verify(rewritten(graph, until="cse"))


def test_what_stays_as_it_is_stays_the_same_loop() -> None:
    graph = rewritten(parsed(LOOP), until="cse")
    assert rewritten(graph, until="cse").of(Scan) == graph.of(Scan)
