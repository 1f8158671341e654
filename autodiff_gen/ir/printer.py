"""Graphs as text, for people: `autodiff-gen explain`, `--dump`, and the tests of the passes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from .node import CONST, INPUT, STATE, Node, Value
from .op_kinds import Fused


class _Graph(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def inputs(self) -> Sequence[Value]: ...
    @property
    def nodes(self) -> Sequence[Node]: ...
    @property
    def outputs(self) -> Mapping[str, Value]: ...
    @property
    def updates(self) -> Mapping[Any, Value]: ...
    @property
    def bound(self) -> Value | None: ...
    @property
    def checks(self) -> Sequence[Any]: ...


def show(graph: _Graph) -> str:
    """The graph as text: one line per node, `%7: f32[4,32] = matmul(%1, %2)`; fused nodes with their regions."""
    names: dict[Value, str] = {}
    lines = [f"entry {graph.name}({', '.join(f'{v.name}: {v.type}' for v in graph.inputs)})"]

    def line(node: Node, indent: str) -> None:
        if node.op in (INPUT, STATE):
            names[node.results[0]] = f"{node.results[0].name}"
            return
        if node.op is CONST and node.attrs["value"].ndim == 0:
            names[node.results[0]] = repr(node.attrs["value"].item())
            return
        for r in node.results:
            names[r] = f"%{len(names)}"
        shown = [names[v] for v in node.operands]
        attrs = {k: v for k, v in node.attrs.items() if not isinstance(v, np.ndarray)}
        shown += [
            f"{k}={names.get(v, repr(v)) if isinstance(v, Value) else repr(v)}" for k, v in attrs.items()
        ]
        left = ", ".join(f"{names[r]}: {r.type}" for r in node.results)
        lines.append(f"{indent}{left} = {node.op.name}({', '.join(shown)})")
        for region in node.regions:
            if isinstance(node.op.lower, Fused):
                names.update(zip(region.params, (names[v] for v in node.operands), strict=True))
            else:
                for v in region.params:
                    names[v] = f"%{len(names)}"
                header = ", ".join(f"{names[v]} {v.name}: {v.type}" for v in region.params)
                lines.append(f"{indent}    with {header}")
            for n in region.nodes:
                line(n, indent + "    ")
            lines.append(f"{indent}    yield {', '.join(names[r] for r in region.results)}")

    for node in graph.nodes:
        line(node, "  ")
    lines += [f"  {name} <- {names[v]}" for name, v in graph.outputs.items()]
    lines += [f"  {state.name}' <- {names[v]}" for state, v in graph.updates.items()]
    lines += [
        f"  checked first: {names.get(k.value, repr(k.value))} is from {k.low} to {k.high}"
        for k in graph.checks
    ]
    lines += [] if graph.bound is None else [f"  finite only if all new states are: {names[graph.bound]}"]
    return "\n".join(lines) + "\n"
