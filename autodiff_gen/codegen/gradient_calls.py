"""Gradients of first arguments of calls, as applications: `layer_norm_backward(d_y, x, weight, mean, inv_std)`."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations

from ..ir.names import PART
from ..ir.node import CONST, Node, Value
from ..ir.op_kinds import Extent, Iota, Reduce, View
from ..ir.origin import BACKWARD, FunctionCall, Origin
from ..ir.types import planned_size
from .library_calls import Application, computed, is_number, same, shown

MOST = 6  # operations of a gradient that is shown as a formula


def gradient_call(v: Value, nodes: Sequence[Node], outer: Mapping[Value, Value]) -> Application | None:
    """The application `f_backward(...)` that computes v: the gradient of the first argument of a call of f, or a term
    of this gradient. None unless the step computes v by a long formula from one gradient, arguments of the call
    and values that the call saved. nodes: of the step;
    outer: as for `application`."""
    label = v.node.origin.labels.get(v.index)
    if label is None or label.gradient_of is None or not _is_gradient(v.node.origin):
        return None
    for call in _from_outermost(v.node.origin.call):
        given = [a for a in call.given.values() if isinstance(a, Value)]
        if any(same(a, b) for a, b in combinations(given, 2)):
            continue  # values of one module, as if they were one argument
        if not given or not _is_term(label.gradient_of, given[0]):
            continue
        read = _read(v, call, outer)
        if read is not None and _is_only_term(v, call, nodes, outer):
            names = [str(k) for k in range(len(read))]
            said = FunctionCall(f"{call.function}_backward", positional=names)
            return Application(said, frozenset(), dict(zip(names, read, strict=True)), (), {})
    return None


def _read(v: Value, call: FunctionCall, outer: Mapping[Value, Value]) -> list[Value] | None:
    """The operands of the gradient v of an argument of a call: the gradient of the call's result, arguments in their
    order, and values that the call saved. None if the formula is short or reads anything else."""
    gradients: dict[Value, None] = {}
    arguments: dict[int, Value] = {}
    parts: set[int] = set()  # arguments that are read in part
    saved: dict[Value, None] = {}
    nodes: set[Node] = set()
    given = [a for a in call.given.values() if isinstance(a, Value)]
    pending = [v]
    while pending:
        u = pending.pop()
        source = outer[u] if u in outer else shown(u, outer)
        if is_number(source) or isinstance(source.node.op.lower, (Extent, Iota)) or source.node.op is CONST:
            continue
        origin = (computed(source.base) if u in outer else source).base.node.origin
        inside = call.contains(origin.call)
        if u not in outer and inside:
            if u.node not in nodes:
                nodes.add(u.node)
                pending += reversed(u.node.operands)
        elif _is_gradient(origin):
            if inside:
                return None
            gradients[u] = None
        elif inside:
            saved[u] = None
        else:
            place = next((k for k, a in enumerate(given) if same(source, a)), None)
            if place is None:
                return None
            if planned_size(u.type.shape) == planned_size(given[place].type.shape):
                arguments[place] = u
            else:
                parts.add(place)
    if len(gradients) != 1 or not parts <= arguments.keys() or not _is_long(nodes):
        return None
    return [*gradients, *(arguments[k] for k in sorted(arguments)), *saved]


def _is_only_term(v: Value, call: FunctionCall, nodes: Sequence[Node], outer: Mapping[Value, Value]) -> bool:
    """Whether v is a whole gradient, or the step adds v only to terms that other calls made."""
    while (label := v.node.origin.labels.get(v.index)) is not None and label.role == PART:
        sums = [n for n in nodes if _is_sum(n) and v in n.operands]
        if len(sums) != 1:
            return False
        for term in sums[0].operands:
            if term is not v and any(call.contains(t.origin.call) for t in _terms(term, outer)):
                return False
        (v,) = sums[0].results
    return label is not None


def _terms(v: Value, outer: Mapping[Value, Value]) -> Iterator[Node]:
    """The nodes that compute the terms of a sum."""
    source = computed(outer[v].base) if v in outer else shown(v, outer)
    if _is_sum(source.node):
        for u in source.node.operands:
            yield from _terms(u, outer)
    else:
        yield source.base.node


def _is_sum(node: Node) -> bool:
    return set(node.op.signs) == {1}


def _is_long(nodes: Collection[Node]) -> bool:
    """Whether the gradient has more than MOST operations, and at least one of them reduces an axis."""
    own = [n for n in nodes if not isinstance(n.op.lower, View) and _is_gradient(n.origin)]
    return len(own) > MOST and any(isinstance(n.op.lower, Reduce) for n in own)


def _is_gradient(origin: Origin) -> bool:
    return origin.phase == BACKWARD and not origin.recomputed


def _from_outermost(call: FunctionCall | None) -> Iterator[FunctionCall]:
    if call is not None:
        yield from _from_outermost(call.within)
        yield call


def _is_term(v: Value, total: Value) -> bool:
    """Whether `total` is v, or a sum with v as a term: both have the same gradient."""
    pending = [total]
    while pending:
        u = pending.pop()
        if same(u, v):
            return True
        if isinstance(u.node.op.lower, View) or _is_sum(u.node):
            pending += u.node.operands
    return False
