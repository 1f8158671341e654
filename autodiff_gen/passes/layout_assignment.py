"""Layout assignment: permutes propagate from operands to results of the ops that do not depend on the order of axes,
until two of them cancel, or one ends in the storage order of a parameter.

    entry f(x: f32[2,3,4])                              entry f(x: f32[2,3,4])
      %0: f32[4,2,3] = permute(x, dims=(2, 0, 1))         %0: f32[2,3,4] = tanh(x)
      %1: f32[4,2,3] = tanh(%0)                     ->    %1: f32[6,4] = reshape(%0, shape=(6, 4))
      %2: f32[2,3,4] = permute(%1, dims=(1, 2, 0))        %2: f32[4] = column_sums(%1)
      %3: f32[6,4] = reshape(%2, shape=(6, 4))            y <- %2
      %4: f32[4] = column_sums(%3)
      y <- %4

A convolution computes in NHWC between two permutes; those of neighbours cancel, through elementwise ops, reductions and
views. A weight that kernels read in one other order than its own is stored in that order, and the permute that a
flattened NHWC value needs is applied to the columns of the weight that it is multiplied with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ..ir.build import make_state
from ..ir.graph import Graph, State
from ..ir.module import Module
from ..ir.node import STATE, Node, Value, base, topological
from ..ir.op_kinds import Call, Contraction, Elementwise, View, ViewKind
from ..ir.parameter_layout import Storage
from ..ir.traits import view_kind
from ..ir.types import Type, planned
from ..ir.views import layout
from .commute_pooling import commute_pooling
from .context import Context
from .permute_propagation import sunk
from .permuted_view import Form, Moved, common_pieces, in_shape, parts, pieces_of, reshaped, seen, value_of


@dataclass(frozen=True)
class Layouts:
    """The roots anew, and what stands for each state that is stored in another order: its old value."""

    roots: list[Value]
    states: Mapping[State, Value]


def layout_assignment(module: Module[Graph], context: Context) -> Module[Graph]:
    """All entries of a model at once, since they share its states; functions have transpose_elimination alone."""
    if context.training is None:
        return module
    found = assign_layouts([v for graph in module.entries for v in graph.roots])
    roots = iter(found.roots)
    entries = [graph.with_roots([next(roots) for _ in graph.roots]) for graph in module.entries]
    return Module(tuple(entries), found.states)


def assign_layouts(roots: Sequence[Value]) -> Layouts:
    """The same values with as few permutes on the way as possible, and states stored as their readers want them.

    Poolings come before what may follow them. A graph without a reader that wants its operands dense stays as it is:
    strides cost nothing there.
    """
    if not wants_dense(roots):
        return Layouts(list(roots), {})
    found = propagated(roots)
    return Layouts(commute_pooling(found.roots), found.states)


def wants_dense(roots: Sequence[Value]) -> bool:
    """Whether the order of axes matters to anything below `roots`: a kernel, or a reshape that needs a copy."""
    return any(
        isinstance(n.op.lower, Call) or (isinstance(n.op.lower, View) and layout(n.results[0]) is None)
        for n in topological(roots)
    )


def propagated(roots: Sequence[Value], may_store: bool = True) -> Layouts:
    """As assign_layouts, whatever the graph; `may_store`: whether states may be stored in another order."""
    storage: dict[State, Storage] = {}
    if may_store:
        asking = _Walk(asking=True)
        asking.run(roots)
        for state, (wanted, *others) in asking.wants.items():
            if wanted is not None and all(other == wanted for other in others):
                storage[state] = wanted
    walk = _Walk(storage, may_store=may_store)
    return Layouts(walk.run(roots), walk.states)


class _Walk:
    """One walk from the leaves to the roots, which gives every value a form. `asking`: it is not carried out, but notes
    what readers want of states (None for the logical order)."""

    def __init__(
        self, storage: Mapping[State, Storage] | None = None, asking: bool = False, may_store: bool = True
    ) -> None:
        self.storage, self.asking, self.may_store = storage or {}, asking, may_store
        self.wants: dict[State, list[Storage | None]] = {}
        self.states: dict[State, Value] = {}
        self.forms: dict[Value, Form] = {}
        self.values: dict[Value, Value] = {}
        self.same: set[Value] = set()  # what stands as it is, and views of it

    def run(self, roots: Sequence[Value]) -> list[Value]:
        for node in topological(roots):
            forms = self._forms(node)
            self.forms.update(zip(node.results, forms, strict=True))
            views = isinstance(node.op.lower, View) and node.operands[0] in self.same
            self.same.update(r for r, f in zip(node.results, forms, strict=True) if views or f is r)
        return [self.value(v) for v in roots]

    def value(self, old: Value) -> Value:
        """What stands for a value of the old graph; a view of what did not change is kept."""
        if old not in self.values:
            form = self.forms[old]
            self.values[old] = old if isinstance(form, Moved) and old in self.same else value_of(form)
        return self.values[old]

    def _forms(self, node: Node) -> Sequence[Form]:
        lower = node.op.lower
        if node.op is STATE and node.attrs["state"] in self.storage:
            return [self._stored_state(node)]
        found: Sequence[Form] | None = None
        if isinstance(lower, Contraction):
            found = self._contraction(node)
        elif self.may_store or not self._is_update(node):
            found = sunk(node, [self.forms[v] for v in node.operands])
        if found is not None:
            return found
        if self.asking and isinstance(lower, Call):
            self._ask(node, lower)
        return self._with(node, [self.value(v) for v in node.operands])

    def _is_update(self, node: Node) -> bool:
        """Whether the node computes beside a whole state, which stays in its own order."""
        shape = node.results[0].type.shape
        whole = [self.forms[v] for v in node.operands if v.type.shape == shape]
        return isinstance(node.op.lower, Elementwise) and any(
            isinstance(form, Value) and base(form).node.op is STATE for form in whole
        )

    def _with(self, node: Node, operands: Sequence[Value]) -> Sequence[Value]:
        """The node on other operands of the same types."""
        return node.with_operands(tuple(operands)).results

    def _stored_state(self, node: Node) -> Form:
        old = node.attrs["state"]
        storage = self.storage[old]
        if old not in self.states:
            type = Type(old.type.dtype, storage.shape)
            self.states[old] = make_state(replace(old, type=type, storage=storage))
        pieces = reshaped(self.states[old], tuple(extent for extent, _ in storage.loops))
        split = seen(pieces, [(storage.dims.index(i),) for i in range(len(storage.dims))])
        form = in_shape(split, storage.logical)
        assert form is not None
        return form

    # Contractions

    def _contraction(self, node: Node) -> Sequence[Form] | None:
        """A product over an axis that is shuffled in memory: both factors walk it in memory's order, when that leaves
        both of them views."""
        a, b = (self.forms[v] for v in node.operands[:2])
        rank = node.operands[0].ndim
        shuffled = [f for f, k in ((a, rank - 1), (b, rank - 2)) if len(pieces_of(f, k)) > 1]
        leaders = [f for f in shuffled if not self._is_state(f)] or shuffled
        if leaders and len(node.operands) == 2:
            found = self._shuffled(node, a, b, leaders[0] is b)
            if found is not None:
                return found
        for v in node.operands[:2]:
            self._want(base(self.value(v)), None)
        return None

    def _shuffled(self, node: Node, a: Form, b: Form, by_b: bool) -> Sequence[Value] | None:
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
            if not self._want_columns(other, at_a if by_b else at_b, order):
                return None
        else:
            for form in (new_a, new_b):
                if self._is_state(form):
                    self._want(base(parts(form)[0]), None)
        return node.with_operands((_matrix(new_a), _matrix(new_b))).results

    # What readers want of states

    def _is_state(self, form: Form) -> bool:
        return _state(form) is not None

    def _want(self, source: Value, storage: Storage | None) -> None:
        state = source.node.attrs.get("state")
        if state is not None and state.role == "parameter":
            self.wants.setdefault(state, []).append(storage)

    def _ask(self, node: Node, call: Call) -> None:
        """A kernel wants its operands dense as they are seen."""
        for i, v in enumerate(node.operands):
            form = self.forms[v]
            state = _state(form)
            if i in call.strided or i in call.scalars or state is None:
                continue
            source, axes = parts(form)
            split, dims = planned(source.type.shape), tuple(a for group in axes for a in group)
            logical, shape = planned(state.type.shape), planned(form.shape)
            as_it_is = shape == logical and dims == tuple(range(len(shape)))
            self._want(base(source), None if as_it_is else Storage(logical, split, dims, shape))

    def _want_columns(self, form: Form, first: int, order: Sequence[int]) -> bool:
        """Ask for a state whose contracted axis is stored in `order`; False when it is none that can be asked."""
        state = _state(form)
        source, axes = parts(form)
        if state is None or not self.asking:
            return False
        own = sorted(axes[first + k][0] for k in order)
        dims = list(range(source.ndim))
        for at, k in zip(own, order, strict=True):
            dims[at] = axes[first + k][0]
        logical = planned(state.type.shape)
        self._want(base(source), Storage(logical, planned(source.type.shape), tuple(dims), logical))
        return True


def _state(form: Form) -> State | None:
    """The state that a form shows whole, if it does."""
    source, _ = parts(form)
    below = base(source)
    if below.node.op is not STATE or below.type.bytes != source.type.bytes:
        return None
    at = layout(source)
    state: State = below.node.attrs["state"]
    return state if at is not None and at.dense else None


def _contracted(form: Form, first: int, order: Sequence[int]) -> Form:
    """The pieces of the contracted axis, which begin at axis `first`, merged in another order."""
    source, axes = parts(form)
    merged = tuple(a for k in order for a in axes[first + k])
    return seen(source, (*axes[:first], merged, *axes[first + len(order) :]))


def _matrix(form: Form) -> Value:
    """The value as a factor of a product; a transposed row is a permute, which products know, not a reshape."""
    v = value_of(form)
    if v.ndim == 2 and view_kind(v.node) is ViewKind.RESHAPE:
        below = v.node.operands[0]
        if below.type.shape == v.type.shape[::-1] and 1 in v.type.shape:
            from ..ops.contraction import transposed

            return transposed(below)
    return v
