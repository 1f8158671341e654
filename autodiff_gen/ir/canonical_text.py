"""Graphs as text that describes only their computation: the same for the same model in every process, on every machine
and for every batch size. Programs are identified by it (model/program_id.py).

It has operations, attributes, constants, shapes for one sample, and the names of inputs, states and outputs. It has
neither names of other values nor values of states. A batch of 1 has the text of larger ones: reshapes of all elements
leave no trace, a sum over the samples marks its value as n times as large, and a division by n takes the mark off.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, fields, is_dataclass
from enum import Enum
from typing import Any

import numpy as np

from .graph import ADDED, Graph, State
from .node import CONST, INPUT, STATE, Node, Value
from .op_kinds import Extent, Moded, Reduce, View, ViewKind
from .types import Dim, DType, Type, bound, of_one_sample, planned_size

N = "*n"  # a value that is as many times larger as there are samples


def canonical_text(graphs: Iterable[Graph]) -> str:
    """The text of all graphs, which may share nodes."""
    text = _Text()
    for graph in graphs:
        text.graph(graph)
    return "\n".join(text.lines)


def number_of(text: str) -> int:
    """32 bits of a hash of a text, never 0."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little") or 1


class _Text:
    def __init__(self) -> None:
        self.lines: list[str] = []
        self._names: dict[Value, str] = {}
        self._done: set[Node] = set()
        self._count = 0

    def graph(self, graph: Graph) -> None:
        self.lines.append(f"entry {graph.name} training={graph.training}")
        self.lines += [f"  input {v.name}: {_type(v.type)}{_attributes(v.node)}" for v in graph.inputs]
        for state in graph.states:
            self.lines.append(
                f"  state {state.name}: {state.role} {_type(state.logical)} {_text(state.channels)}"
            )
        self._nodes(graph.nodes)
        self.lines += [f"  {name} <- {self._use(v)}" for name, v in graph.outputs.items()]
        self.lines += [f"  {state.name}' <- {self._use(v)}" for state, v in graph.updates.items()]

    def _nodes(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            if node not in self._done:
                self._done.add(node)
                self._node(node)
        updating = [n for n in nodes if _has_updates(n)]
        updating.sort(key=lambda n: int(n.attrs["order"]))
        self.lines += [f"  then {self._use(n.results[0])}" for n in updating]

    def _node(self, node: Node) -> None:
        names = self._operands(node)
        known = self._leaf(node) or _passed_on(node, names)
        samples = N * _summed_samples(node)
        if known is not None:
            self._names[node.results[0]] = known + samples
            return
        operands = ", ".join(f"{name}: {_type(v.type)}" for name, v in zip(names, node.operands, strict=True))
        results = ", ".join(self._use(r) for r in self._numbered(node.results))
        self.lines.append(f"  {results} = {node.op.name}({operands}){_attributes(node)}")
        self._names[node.results[0]] += samples
        for region in node.regions:
            self.lines.append(f"  with {', '.join(self._use(p) for p in self._numbered(region.params))}")
            self._nodes(region.nodes)
            self.lines.append(f"  yield {', '.join(map(self._use, region.results))}")

    def _numbered(self, values: Sequence[Value]) -> Sequence[Value]:
        for v in values:
            self._names[v] = f"%{self._count}"
            self._count += 1
        return values

    def _use(self, v: Value) -> str:
        """A value with its type: reshaped values have one name, but are not the same."""
        return f"{self._names[v]}: {_type(v.type)}"

    def _leaf(self, node: Node) -> str | None:
        if node.op is INPUT:
            return f"input {node.attrs['name']}"
        if node.op is STATE:
            return f"state {node.attrs['state'].name}"
        if node.op is CONST:
            return _text(node.attrs["value"])
        if isinstance(node.op.lower, Extent):
            extent = node.attrs["extent"]
            power = extent.power if isinstance(extent, Dim) else 0
            return _text(float(extent.at(1) if isinstance(extent, Dim) else extent)) + N * power
        return None

    def _operands(self, node: Node) -> list[str]:
        """The names of the operands. The two of a quotient lose the factor n, as often as both have it."""
        names = [self._names[v] for v in node.operands]
        while node.op.powers == (1, -1) and all(name.endswith(N) for name in names):
            names = [name.removesuffix(N) for name in names]
        return names


def _summed_samples(node: Node) -> int:
    """Over how many axes of samples a node sums."""
    lower = node.op.lower
    if not isinstance(lower, Reduce) or not lower.sums:
        return 0
    return sum(isinstance(node.operands[0].type.shape[axis], Dim) for axis in node.attrs["axes"])


def _passed_on(node: Node, names: Sequence[str]) -> str | None:
    """The name of operand 0, if its elements are the elements of the result for one sample; otherwise None."""
    if len(node.results) != 1 or not node.operands or node.regions:
        return None
    lower, first, result = node.op.lower, node.operands[0], node.results[0]
    if planned_size(bound(first.type.shape, 1)) != planned_size(bound(result.type.shape, 1)):
        return None
    reshapes = isinstance(lower, View) and lower.kind in (ViewKind.RESHAPE, ViewKind.BROADCAST)
    sums = isinstance(lower, Reduce) and lower.sums
    scales = node.op.powers in ((1, 1), (1, -1)) and names[1] == "1.0"
    same = scales and first.type.dtype is result.type.dtype
    return names[0] if reshapes or sums or same else None


def _has_updates(node: Node) -> bool:
    return isinstance(node.op.lower, Moded) and node.op.lower.updates


def _type(t: Type) -> str:
    return repr(of_one_sample(t))


def _attributes(node: Node) -> str:
    left_out = {"name", "order"} if node.op is INPUT or _has_updates(node) else set()
    return "".join(f" {k}={_text(v)}" for k, v in sorted(node.attrs.items()) if k not in left_out)


def _text(v: Any) -> str:
    """An attribute, in the same characters everywhere."""
    if isinstance(v, Dim):
        return str(v.at(1))
    if isinstance(v, State):
        return v.name
    if isinstance(v, Value):
        return v.name or v.node.op.name
    if isinstance(v, Type):
        return _type(v)
    if isinstance(v, Enum):
        return v.name
    if isinstance(v, np.ndarray):
        if v.ndim == 0:
            return _text(v.item())
        data = np.ascontiguousarray(v).astype(v.dtype.newbyteorder("<"), copy=False).tobytes()
        return f"{v.dtype.name}{list(v.shape)} {hashlib.sha256(data).hexdigest()}"
    if isinstance(v, np.generic):
        return _text(v.item())
    if v is None or isinstance(v, bool | int | float | str | DType):
        return repr(v)
    if isinstance(v, list | tuple):
        return f"({', '.join(map(_text, v))})"
    if isinstance(v, Mapping):
        return f"{{{', '.join(sorted(f'{k}: {_text(x)}' for k, x in v.items()))}}}"
    assert is_dataclass(v), f"{v!r} has no text that is the same everywhere"
    return f"{type(v).__name__}({', '.join(_text(getattr(v, f.name)) for f in fields(v) if _counts(v, f))})"


def _counts(v: Any, f: Field[Any]) -> bool:
    """Whether a field is part of the text. A field that a later version added is part of it only if its value is not
    the default, so that the numbers of older programs stay."""
    return not f.metadata.get(ADDED) or getattr(v, f.name) != f.default
