"""Operators that change a tensor in place: nodes that read the tensor afterwards read the operator's result, and a
weight has a new value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ...errors import quoted
from ..imported.program import ValueRef
from .graph import OperatorCall
from .pt2 import Pt2Program
from .rules import Unsupported
from .values import ExportedValues

CHANGED_PART = "changes a part of a detached tensor in place; compute all of it by torch.where"
CHANGED_VIEW = "changes a view in place; save the program after run_decompositions({})"


class InPlace(ExportedValues):
    """Values that operators may change in place."""

    def __init__(self, exported: Pt2Program, name: str) -> None:
        super().__init__(exported, name)
        self.updates: dict[str, Any] = {}  # the new values of parameters and buffers
        self.detached: dict[Any, Any] = {}  # a detached tensor -> the tensor with its gradient
        self.hidden: set[str] = set()  # tensors that are detached, and views of them
        self.keeps_gradients = False  # whether run_decompositions() would lose gradients of changed tensors
        self.unrecorded: set[str] = set()  # tensors that are made in torch.no_grad()
        self.shown: Mapping[str, str] = {}  # name of a running statistic -> its weight's name in the graph
        self.uncounted: Collection[str] = ()  # buffers that count batches and that nothing reads
        self.position = 0  # of the node
        self.last_read: dict[str, int] = {}  # the position of the last node that reads a name

    def is_read_later(self, name: str) -> bool:
        return self.last_read.get(name, -1) > self.position

    def with_gradient(self, ref: Any) -> Any:
        """The tensor with gradient that a detached tensor was made of; other tensors are returned as they are."""
        return self.detached.get(ref, ref)

    def change(self, node: OperatorCall, name: str, new: Any) -> None:
        """Let all names of a tensor that an operator changed in place mean its new value. A change that autograd does
        not record, in torch.no_grad() or of a detached tensor, does not change the tensor's gradient."""
        root, before = self.root.get(name, name), self.known[name]
        whole = self.with_gradient(before)
        recorded = (node.recorded and before == whole) or root in self.unrecorded
        weight = self.exported.weights[root][1] if root in self.exported.weights else None
        names = [n for n, r in self.root.items() if r == root and self.with_gradient(self.known[n]) == whole]
        with_gradient = [n for n in (*names, name) if self.known[n] == whole]
        self.root[node.results[0]] = root
        shape, dtype = self.exported.shapes[node.results[0]], self.exported.dtypes[node.results[0]]
        stored = new
        if not recorded and dtype == "float32":
            stored = new = self.emit("detach", new)
            if weight is None or self._requires_grad(root):
                self.keeps_gradients = True
                gradient = self.emit("gradient_of", stored)
                new = self.emit("custom_gradient", stored, gradient, (whole,), (gradient,))
        if weight is not None:
            self.change_weight(weight, stored)
        self.known.update(dict.fromkeys((*with_gradient, node.results[0]), new))
        hidden = [n for n in names if n not in with_gradient]
        if hidden and dtype == "float32":
            stored = self.emit("detach", new) if stored is new else stored
            self.known.update(dict.fromkeys(hidden, stored))
        if stored is not new:
            self.detached[stored] = new
        for ref in (stored, new):
            if isinstance(ref, ValueRef):
                self.shapes[ref.name], self.dtypes[ref.name] = shape, dtype

    def update(self, given: ValueRef, new: ValueRef) -> None:
        """Let the running statistic `given` of the graph have a new value from now on."""
        root = self.shown.get(given.name, self.root.get(given.name, given.name))
        self.shapes[new.name], self.dtypes[new.name] = (
            self.exported.shapes[given.name],
            self.exported.dtypes[given.name],
        )
        if root in self.exported.weights:
            self.change_weight(self.exported.weights[root][1], new)
        names = [n for n, r in self.root.items() if r == self.root[given.name]]
        if self._shown_otherwise(given.name, names):
            raise Unsupported(CHANGED_VIEW)
        whole = self.with_gradient(self.known[given.name])
        self.known.update({n: new for n in names if self.with_gradient(self.known.get(n)) == whole})

    def change_weight(self, weight: str, new: Any) -> None:
        """Let a weight have a new value from now on."""
        self.updates[weight] = new

    def _requires_grad(self, root: str) -> bool:
        return self.exported.stored[self.exported.weights[root][1]].requires_grad

    def may_change(self, name: str) -> bool:
        """Whether a tensor may be replaced by the result of an in-place operator: no tensor that is read later shows
        its elements in another way. Otherwise adds a problem."""
        root = self.root.get(name, name)
        if root in self.exported.inputs:
            self.changed_input(root)
            return False
        if root in self.exported.weights:
            weight = self.exported.weights[root][1]
            if weight in self.uncounted or not self.may_update(weight):
                return False
        assert self.node is not None
        others = (n for n, r in self.root.items() if r == root and n != name and n not in self.node.results)
        wrong = self._shown_otherwise(name, others)
        if wrong:
            trained = root not in self.exported.weights or self._requires_grad(root)
            hides = name in self.hidden and trained and not self.hidden.issuperset(wrong)
            self.keeps_gradients = self.keeps_gradients or hides
            self.problem(self.node.target, CHANGED_PART if hides else CHANGED_VIEW)
            return False
        return True

    def _shown_otherwise(self, name: str, others: Iterable[str]) -> list[str]:
        """The names that are needed after the node, and show other elements than `name`, or in another order."""
        whole = self.with_gradient(self.known.get(name))
        needed = (n for n in others if self.is_read_later(n) or n in self.exported.weights)
        return [n for n in needed if self.with_gradient(self.known.get(n)) != whole]

    def may_update(self, weight: str) -> bool:
        """Whether a forward pass may change a parameter or buffer; otherwise adds a problem."""
        if weight in self.views:
            what = f"changes {quoted(weight)} in place, which shows the memory of another one; change that"
        elif self.exported.stored[weight].dtype == "bool":
            what = f"changes {quoted(weight)} in place, which is a mask; keep integers in its place"
        else:
            return True
        self.problem("the network", what)
        return False

    def changed_input(self, name: str) -> None:
        self.problem(
            "the network", f"changes its input {quoted(name)} in place; change a clone() of it instead"
        )
