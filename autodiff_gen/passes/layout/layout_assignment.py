"""Layout assignment: permutes propagate from operands to results of the ops that do not depend on the order of axes,
until two of them cancel, or one ends in the storage order of a parameter.

    entry f(x: f32[2,3,4])                              entry f(x: f32[2,3,4])
      %0: f32[4,2,3] = permute(x, dims=(2, 0, 1))         %0: f32[2,3,4] = tanh(x)
      %1: f32[4,2,3] = tanh(%0)                     ->    %1: f32[6,4] = reshape(%0, shape=(6, 4))
      %2: f32[2,3,4] = permute(%1, dims=(1, 2, 0))        %2: f32[4] = column_sums(%1)
      %3: f32[6,4] = reshape(%2, shape=(6, 4))            y <- %2
      %4: f32[4] = column_sums(%3)
      y <- %4

A convolution computes in NHWC between two permutes. The permutes of neighbouring convolutions cancel, through
elementwise ops, reductions and views. If all kernels read a weight in the same other order, it is stored in that order.
The permute that a flattened NHWC value needs is applied to the columns of the weight that it is multiplied with.
Initial values and `state_dict` keep PyTorch's layout. An input in NHWC is free too: the permute(x, (0, 3, 1, 2)) before
it cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...ir.build import make_state
from ...ir.graph import Graph, State
from ...ir.module import IRModule
from ...ir.node import STATE, Node, Value, base, topological
from ...ir.op_kinds import Contraction, KernelOp, View, ViewKind
from ...ir.parameter_layout import Storage
from ...ir.strides import dense
from ...ir.traits import view_kind
from ...ir.types import planned
from ...ir.views import layout
from ...ops.products.contraction import transposed
from ..context import Context
from .copies import unreadable
from .permute_propagation import propagate
from .permuted_view import (
    Permuted,
    PermutedView,
    common_pieces,
    in_shape,
    parts,
    pieces_of,
    reshaped,
    simplified,
    value_of,
)


@dataclass(frozen=True)
class Layouts:
    """The new roots, and for each state that is stored in another order its new old value."""

    roots: list[Value]
    states: Mapping[State, Value]


def layout_assignment(module: IRModule[Graph], context: Context) -> IRModule[Graph]:
    """Assign layouts to all entries of a model at once, since the entries share its states. A function without a model
    has its parameters as arguments, which stay in PyTorch's layout."""
    roots = [v for graph in module.entries for v in graph.roots]
    found = assign_layouts(roots, may_store=context.training is not None)
    new = iter(found.roots)
    entries = [graph.with_roots([next(new) for _ in graph.roots]) for graph in module.entries]
    return IRModule(tuple(entries), found.states)


def assign_layouts(roots: Sequence[Value], may_store: bool = True) -> Layouts:
    """The same values with as few permutes between as possible. may_store: states may be stored in the order that their
    readers need.

    A graph stays as it is unless fewer bytes are copied: strides cost nothing.
    """
    found = propagated(roots, may_store)
    saves = _bytes_copied(found.roots) < _bytes_copied(roots)
    return found if saves else Layouts(list(roots), {})


def _bytes_copied(roots: Sequence[Value]) -> int:
    """The bytes of the operands that nodes cannot read in place, and of all operands of kernel calls that are not
    dense."""
    copied = {node.operands[i] for node in topological(roots) for i in unreadable(node, node.operands)}
    for node in topological(roots):
        if isinstance(node.op.lower, KernelOp):
            copied.update(v for v in node.operands if layout(v) != dense(v.type.shape))
    return sum(v.type.bytes for v in copied)


def propagated(roots: Sequence[Value], may_store: bool = True) -> Layouts:
    """The same as assign_layouts, also if no fewer bytes are copied."""
    storage: dict[State, Storage] = {}
    if may_store:
        collecting = _Propagation({}, collecting=True)
        collecting.run(roots)
        for state, (wanted, *others) in collecting.requests.items():
            if wanted is not None and all(other == wanted for other in others):
                storage[state] = wanted
    propagation = _Propagation(storage)
    return Layouts(propagation.run(roots), propagation.states)


class _Propagation:
    """One traversal from the leaves to the roots, which makes every value a value or permuted view of the new graph.
    `collecting`: nothing is rewritten, but the storage that readers request of states is noted (None for the logical
    order)."""

    def __init__(self, storage: Mapping[State, Storage], collecting: bool = False) -> None:
        self.storage, self.collecting = storage, collecting
        self.requests: dict[State, list[Storage | None]] = {}
        self.states: dict[State, Value] = {}
        self.views: dict[Value, Permuted] = {}
        self.values: dict[Value, Value] = {}
        self.same: set[Value] = set()  # unchanged values, and views of them

    def run(self, roots: Sequence[Value]) -> list[Value]:
        for node in topological(roots):
            views = self._views(node)
            self.views.update(zip(node.results, views, strict=True))
            of_same = isinstance(node.op.lower, View) and node.operands[0] in self.same
            self.same.update(r for r, f in zip(node.results, views, strict=True) if of_same or f is r)
        return [self.value(v) for v in roots]

    def value(self, old: Value) -> Value:
        """The new value for a value of the old graph; a view of an unchanged value stays."""
        if old not in self.values:
            view = self.views[old]
            self.values[old] = old if isinstance(view, PermutedView) and old in self.same else value_of(view)
        return self.values[old]

    def _views(self, node: Node) -> Sequence[Permuted]:
        lower = node.op.lower
        if node.op is STATE and node.attrs["state"] in self.storage:
            return [self._stored_state(node)]
        found: Sequence[Permuted] | None = None
        if isinstance(lower, Contraction):
            found = self._contraction(node)
        else:
            found = propagate(node, [self.views[v] for v in node.operands])
        if found is not None:
            return found
        if self.collecting and isinstance(lower, KernelOp):
            self._request_dense(node, lower)
        return self._with(node, [self.value(v) for v in node.operands])

    def _with(self, node: Node, operands: Sequence[Value]) -> Sequence[Value]:
        """The node on other operands of the same types."""
        return node.with_operands(tuple(operands)).results

    def _stored_state(self, node: Node) -> Permuted:
        old = node.attrs["state"]
        storage = self.storage[old]
        if old not in self.states:
            type = old.type.moved(storage.stored, storage.shape)
            self.states[old] = make_state(replace(old, type=type, storage=storage))
        pieces = reshaped(self.states[old], tuple(extent for extent, _ in storage.loops))
        split = simplified(pieces, [(storage.dims.index(i),) for i in range(len(storage.dims))])
        view = in_shape(split, storage.logical)
        assert view is not None
        return view

    # Contractions

    def _contraction(self, node: Node) -> Sequence[Permuted] | None:
        """A product over an axis that is permuted in memory: both factors index it in memory's order, when that leaves
        both of them views."""
        a, b = (self.views[v] for v in node.operands[:2])
        rank = node.operands[0].ndim
        shuffled = [f for f, k in ((a, rank - 1), (b, rank - 2)) if len(pieces_of(f, k)) > 1]
        leaders = [f for f in shuffled if not self._is_state(f)] or shuffled
        if leaders and len(node.operands) == 2:
            found = self._shuffled(node, a, b, leaders[0] is b)
            if found is not None:
                return found
        for v in node.operands[:2]:
            self._request(base(self.value(v)), None)
        return None

    def _shuffled(self, node: Node, a: Permuted, b: Permuted, by_b: bool) -> Sequence[Value] | None:
        x, y = node.operands
        at_a, at_b = x.ndim - 1, y.ndim - 2
        fine = common_pieces(x.type.shape[at_a], [pieces_of(a, at_a), pieces_of(b, at_b)])
        if fine is None:
            return None
        cut_a = in_shape(a, (*x.type.shape[:at_a], *fine))
        cut_b = in_shape(b, (*y.type.shape[:at_b], *fine, y.type.shape[-1]))
        if cut_a is None or cut_b is None:
            return None
        leading = cut_b if by_b else cut_a
        first = at_b if by_b else at_a
        _, axes = parts(leading)
        order = sorted(range(len(fine)), key=lambda k: axes[first + k][0])
        new_a, new_b = _contracted(cut_a, at_a, order), _contracted(cut_b, at_b, order)
        if len(pieces_of(new_b if not by_b else new_a, at_b if not by_b else at_a)) > 1:
            other = cut_a if by_b else cut_b
            if not self._request_columns(other, at_a if by_b else at_b, order):
                return None
        else:
            for view in (new_a, new_b):
                if self._is_state(view):
                    self._request(base(parts(view)[0]), None)
        return node.with_operands((_matrix(new_a), _matrix(new_b))).results

    # The storage that readers request of states

    def _is_state(self, view: Permuted) -> bool:
        return _state(view) is not None

    def _request(self, source: Value, storage: Storage | None) -> None:
        state = source.node.attrs.get("state")
        if state is not None and state.role == "parameter":
            self.requests.setdefault(state, []).append(storage)

    def _request_dense(self, node: Node, call: KernelOp) -> None:
        """Request that the states that a kernel reads are stored dense, in the order in which the kernel reads them."""
        for i, v in enumerate(node.operands):
            view = self.views[v]
            state = _state(view)
            if i in call.strided or state is None:
                continue
            source, axes = parts(view)
            split, dims = planned(source.type.shape), tuple(a for group in axes for a in group)
            logical, shape = planned(state.type.shape), planned(view.shape)
            as_it_is = shape == logical and dims == tuple(range(len(shape)))
            self._request(base(source), None if as_it_is else Storage(logical, split, dims, shape))

    def _request_columns(self, view: Permuted, first: int, order: Sequence[int]) -> bool:
        """Request that the contracted axis of a state is stored in `order`. False when the view is of no state, or when
        no requests are collected."""
        state = _state(view)
        source, axes = parts(view)
        if state is None or not self.collecting:
            return False
        own = sorted(axes[first + k][0] for k in order)
        dims = list(range(source.ndim))
        for at, k in zip(own, order, strict=True):
            dims[at] = axes[first + k][0]
        logical = planned(state.type.shape)
        self._request(base(source), Storage(logical, planned(source.type.shape), tuple(dims), logical))
        return True


def _state(view: Permuted) -> State | None:
    """The state that a view shows completely, if there is one."""
    source, _ = parts(view)
    below = base(source)
    if below.node.op is not STATE or below.type.bytes != source.type.bytes:
        return None
    at = layout(source)
    state: State = below.node.attrs["state"]
    return state if at is not None and at.dense else None


def _contracted(view: Permuted, first: int, order: Sequence[int]) -> Permuted:
    """The view with the pieces of the contracted axis merged in another order. The pieces begin at axis `first`."""
    source, axes = parts(view)
    merged = tuple(a for k in order for a in axes[first + k])
    return simplified(source, (*axes[:first], merged, *axes[first + len(order) :]))


def _matrix(view: Permuted) -> Value:
    """The value as a factor of a product; a transposed row is a permute, which products know, not a reshape."""
    v = value_of(view)
    if v.ndim == 2 and view_kind(v.node) is ViewKind.RESHAPE:
        below = v.node.operands[0]
        if below.type.shape == v.type.shape[::-1] and 1 in v.type.shape:
            return transposed(below)
    return v
