"""The nodes that one call of a function of the library made, as one application of it: `layer_norm(x, (6,), w, b)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.names import name_of
from ..ir.node import CONST, Node, Value
from ..ir.op_kinds import Elementwise, Extent, Iota, Reduce, View
from ..ir.origin import FunctionCall, is_late
from ..ir.types import planned_size

PLAIN = (bool, int, float, str)  # arguments that a comment can show
MODE = "training"  # the argument that chooses between two formulas, of which the entry has one


@dataclass(frozen=True)
class Application:
    """A call whose result a step computes from its arguments: nodes, those that it made; arguments, by their
    parameters: values that the step reads or computes, or plain ones."""

    call: FunctionCall
    nodes: frozenset[Node]
    arguments: Mapping[str, Any]

    @property
    def reduces(self) -> bool:
        """Whether it has sums or extremes over axes, other than in products of matrices."""
        reducing = [n for n in self.nodes if isinstance(n.op.lower, Reduce)]
        return len(self.nodes) > 1 and any(n.operands[0].node.op.powers != (1, 1) for n in reducing)

    def text(self, operand: Callable[[Value], str]) -> str:
        """The application as a call in Python: arguments before the first that is left out are without names."""
        texts = []
        positional = iter(self.call.positional)
        for name, value in self.arguments.items():
            if name == MODE:
                continue
            said = operand(value) if isinstance(value, Value) else _plain(value)
            texts.append(said if name == next(positional, None) else f"{name}={said}")
        return f"{self.call.function}({', '.join(texts)})"


def application(v: Value, outer: Mapping[Value, Value]) -> Application | None:
    """The call that returned v, if the step has all nodes between the arguments of the call and v. outer: the values
    outside of the step for the values that the step reads."""
    call = v.node.origin.result_of
    if call is None or is_late(v.node.origin) or not call.given:
        return None
    leaves: list[Value] = []
    parts: list[Value] = []  # arguments that views of the call show in part
    nodes: set[Node] = set()
    pending = [v]
    while pending:
        u = pending.pop()
        if u in outer:
            given = _given(outer[u], call)
            if _is_number(given):
                continue
            if call.contains(given.base.node.origin.call):
                return None
            if given is outer[u]:
                leaves.append(u)
            else:
                parts.append(given)
        elif call.contains(_shown(u, outer).node.origin.call):
            if u.node not in nodes:
                nodes.add(u.node)
                pending += reversed(u.node.operands)
        elif u.node.op is not CONST and not isinstance(u.node.op.lower, (Extent, Iota)):
            leaves.append(u)
    if not {outer.get(leaf, leaf).base for leaf in leaves}.issuperset(part.base for part in parts):
        return None
    arguments = _arguments(call, list(dict.fromkeys(leaves)), outer)
    return None if arguments is None else Application(call, frozenset(nodes), arguments)


def _given(v: Value, call: FunctionCall) -> Value:
    """What a value shows that is a view made by the call, such as the first element along an axis."""
    while isinstance(v.node.op.lower, View) and call.contains(v.node.origin.call):
        v = v.node.operands[0]
    return v


def _is_number(v: Value) -> bool:
    """Whether a value is a number that only the size of the batch decides."""
    lower = v.base.node.op.lower
    if v.base.node.op is CONST:
        return planned_size(v.base.type.shape) == 1
    return isinstance(lower, Extent) or (
        isinstance(lower, Elementwise) and all(map(_is_number, v.base.node.operands))
    )


def _shown(v: Value, outer: Mapping[Value, Value]) -> Value:
    """The value of the step that views show."""
    while isinstance(v.node.op.lower, View) and v not in outer:
        v = v.node.operands[0]
    return v


def _arguments(
    call: FunctionCall, leaves: list[Value], outer: Mapping[Value, Value]
) -> dict[str, Any] | None:
    """The arguments that are known to be these values, and plain ones; None if not all of the values are arguments, or
    if an argument may be either of two values."""
    values = {name: v for name, v in call.given.items() if isinstance(v, Value)}
    found: dict[str, Value] = {}
    for name, v in values.items():
        same = [leaf for leaf in leaves if _same(outer.get(leaf, leaf), v)]
        if len(same) > 1:
            return None
        if same:
            found[name] = same[0]
    plain = [v for k, v in call.given.items() if k not in values]
    if not set(leaves) <= set(found.values()) or not all(map(_is_plain, plain)):
        return None
    may_have_axes = any(isinstance(v, int | tuple) and not isinstance(v, bool) for v in plain)
    if may_have_axes and any(v.type.shape != values[k].type.shape for k, v in found.items()):
        return None  # the stored value has other axes
    return {k: found.get(k, v) for k, v in call.given.items() if k in found or k not in values}


def _same(v: Value, argument: Value) -> bool:
    """Whether a value takes the place of an argument."""
    a, b = v.base, argument.base
    returned = a.node.origin.result_of
    is_result = returned is not None and returned is b.node.origin.result_of
    return (a.node.origin is b.node.origin and a.index == b.index) or is_result or name_of(a) == name_of(b)


def _plain(value: Any) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def _is_plain(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return value is None or isinstance(value, PLAIN)
