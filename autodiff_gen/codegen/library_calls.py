"""The nodes that one call of a function of the library made, as one application of it: `layer_norm(x, (6,), w, b)`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..ir.names import name_of
from ..ir.node import CONST, STATE, Node, Value
from ..ir.op_kinds import Elementwise, Extent, Fused, Iota, Reduce, View, ViewKind
from ..ir.origin import FunctionCall
from ..ir.traits import view_kind
from ..ir.types import planned_size

PLAIN = (bool, int, float, str)  # arguments that a comment can show
MODE = "training"  # the argument that chooses between two formulas; the entry contains one of them


@dataclass(frozen=True)
class Application:
    """A call whose result a step computes from its arguments. nodes: the nodes that the call made; arguments: by
    parameter, values that the step reads or computes, or plain values; saved: values that other steps computed from the
    arguments, and that this step reads instead of computing them; stored: for values inside of loop nests and for
    arguments that the step reads through views, the values in memory."""

    call: FunctionCall
    nodes: frozenset[Node]
    arguments: Mapping[str, Any]
    saved: tuple[Value, ...]
    stored: Mapping[Value, Value]

    @property
    def says_more(self) -> bool:
        """Whether the call says more than its formula: it made several nodes, and these read positions along an axis,
        or reduce a value other than a product."""
        positions = any(isinstance(v.base.node.op.lower, Iota) for n in self.nodes for v in n.operands)
        reducing = [n for n in self.nodes if isinstance(n.op.lower, Reduce)]
        sums = any(n.operands[0].node.op.powers != (1, 1) for n in reducing)
        return len(self.nodes) > 1 and (positions or sums)

    def text(self, operand: Callable[[Value], str]) -> str:
        """The application as a call in Python; arguments are positional up to the first one that is left out."""
        texts = []
        positional = iter(self.call.positional)
        for name, value in self.arguments.items():
            if name == MODE:
                continue
            said = operand(value) if isinstance(value, Value) else _plain(value)
            texts.append(said if name == next(positional, None) else f"{name}={said}")
        return f"{self.call.function}({', '.join(texts)})"


def application(v: Value, outer: Mapping[Value, Value]) -> Application | None:
    """The call that returned v, if the step has all nodes between the arguments of the call and v, except nodes whose
    results another step has saved. outer: maps values that the step reads to the values outside of the step."""
    call = v.node.origin.result_of
    if call is None or not call.given:
        return None
    found = _Found(call, outer)
    return found.application() if found.follow(v) else None


class _Found:
    """The nodes between the arguments of a call and its result, and the values that they begin with. Nodes of another
    call with the same arguments count too: where both calls computed the same value, only one node is left."""

    def __init__(self, call: FunctionCall, outer: Mapping[Value, Value]) -> None:
        self.call, self.outer = call, dict(outer)
        self.read = {v.base for v in outer.values()}
        self.values = [v for v in call.given.values() if isinstance(v, Value)]
        self.leaves: dict[Value, None] = {}
        self.parts: list[Value] = []  # arguments that views of the call show in part
        self.nodes: set[Node] = set()
        self.saved: dict[Value, None] = {}
        self.stored: dict[Value, Value] = {}

    def follow(self, v: Value) -> bool:
        """Collect the nodes and values that v is computed from. Returns whether they may be an application of the
        call."""
        pending = [v]
        while pending:
            u = pending.pop()
            if u in self.outer:
                source = _given(self.outer[u], self.call)
                if is_number(source):
                    continue
                made = computed(source.base)
                if self._is_made(made.base.node):
                    if made is source.base:
                        return False
                    self._add_saved(source.base)
                    pending.append(made)
                elif source is self.outer[u]:
                    self.leaves[u] = None
                elif planned_size(source.type.shape) == planned_size(u.type.shape):
                    self.leaves[u] = None
                    self.stored[u] = source
                else:
                    self.parts.append(source)
            elif self._is_made(shown(u, self.outer).node) or self._is_reshaped(u):
                if u.node not in self.nodes:
                    self.nodes.add(u.node)
                    pending += reversed(u.node.operands)
            elif u.node.op is not CONST and not isinstance(u.node.op.lower, (Extent, Iota)):
                self.leaves[u] = None
        return {self.outer.get(leaf, leaf).base for leaf in self.leaves}.issuperset(
            p.base for p in self.parts
        )

    def application(self) -> Application | None:
        places = self.outer | self.stored
        leaves = {places.get(leaf, leaf): leaf for leaf in reversed(self.leaves)}
        arguments = _arguments(self.call, list(reversed(leaves.values())), places)
        if arguments is None or any(map(self._may_have_changed, arguments.values())):
            return None
        return Application(self.call, frozenset(self.nodes), arguments, tuple(self.saved), self.stored)

    def _may_have_changed(self, argument: Any) -> bool:
        """Whether an argument is a state that the step does not read, which may have a new value since."""
        state = self.stored[argument].base if argument in self.stored else None
        return state is not None and state.node.op is STATE and state not in self.read

    def _is_reshaped(self, v: Value) -> bool:
        """Whether the call reshapes a value to v."""
        return view_kind(v.node) is ViewKind.RESHAPE and self.call.contains(v.node.origin.call)

    def _is_made(self, node: Node) -> bool:
        """Whether the call made a node, or another call whose arguments include all arguments of the call."""
        other = node.origin.call
        if self.call.contains(other):
            return True
        while other is not None:
            given = [v for v in other.given.values() if isinstance(v, Value)]
            if all(any(same(v, a) for v in given) for a in self.values):
                return True
            other = other.within
        return False

    def _add_saved(self, source: Value) -> None:
        """Record where the values of the loops that compute a saved value are stored."""
        (region,) = source.node.regions
        self.saved[source] = None
        self.outer.update(zip(region.params, source.node.operands, strict=True))
        self.stored.update(zip(region.params, source.node.operands, strict=True))
        self.stored.update(zip(region.results, source.node.results, strict=True))


def computed(v: Value) -> Value:
    """The value inside a loop nest that is stored as v; v itself if no loop nest computes it."""
    return v.node.regions[0].results[v.index] if isinstance(v.node.op.lower, Fused) else v


def _given(v: Value, call: FunctionCall) -> Value:
    """The value that v shows through views that the call made, such as the first element along an axis; otherwise v."""
    while isinstance(v.node.op.lower, View) and call.contains(v.node.origin.call):
        v = v.node.operands[0]
    return v


def is_number(v: Value) -> bool:
    """Whether a value is one number that is known when the size of the batch is: computed from constants and
    extents."""
    lower = v.base.node.op.lower
    if v.base.node.op is CONST:
        return planned_size(v.base.type.shape) == 1
    return isinstance(lower, Extent) or (
        isinstance(lower, Elementwise) and all(map(is_number, v.base.node.operands))
    )


def shown(v: Value, outer: Mapping[Value, Value]) -> Value:
    """The value that v shows through views of the step."""
    while isinstance(v.node.op.lower, View) and v not in outer:
        v = v.node.operands[0]
    return v


def _arguments(
    call: FunctionCall, leaves: list[Value], outer: Mapping[Value, Value]
) -> dict[str, Any] | None:
    """The arguments that are known to be these values, and plain ones. None if a value is no argument, if an argument
    may be either of two values, if a comment cannot show a plain argument, or if axes of a stored value differ."""
    values = {name: v for name, v in call.given.items() if isinstance(v, Value)}
    found: dict[str, Value] = {}
    for name, v in values.items():
        equal = [leaf for leaf in leaves if same(outer.get(leaf, leaf), v)]
        if len(equal) > 1:
            return None
        if equal:
            found[name] = equal[0]
    plain = [v for k, v in call.given.items() if k not in values]
    if not set(leaves) <= set(found.values()) or not all(map(_is_plain, plain)):
        return None
    may_have_axes = any(isinstance(v, int | tuple) and not isinstance(v, bool) for v in plain)
    if may_have_axes and any(outer.get(v, v).type.shape != values[k].type.shape for k, v in found.items()):
        return None  # the stored value has other axes
    return {k: found.get(k, v) for k, v in call.given.items() if k in found or k not in values}


def same(v: Value, argument: Value) -> bool:
    """Whether a value is the argument: both have one origin and index, are results of one call, or have one name."""
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
