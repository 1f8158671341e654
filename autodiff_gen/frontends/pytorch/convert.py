"""Convert an exported program to calls of our functions, by the table of aten.py.

In-place operators are calls like others: what reads the tensor afterwards reads their result. Sizes that the batch
determines are values of their own; a reshape to one such size becomes a reshape to -1.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

import numpy as np

from ...errors import ModelError, listed, quoted
from ...reading.limits import NODES
from ...reading.memory import limited_memory
from ..imported.problems import DAMAGED, MALFORMED, Problems, Rejected, importing
from ..imported.program import (
    BUFFER,
    CONSTANT,
    PARAMETER,
    Call,
    Frame,
    Program,
    Shape,
    ValueRef,
    Weight,
    WeightRef,
    WeightView,
    frozen_after_detach,
    names,
    references,
)
from ..imported.states import with_states
from .aten import CONTROL_FLOW, NAMES, OF_ROWS, TABLE, VIEWS
from .complex_numbers import Complex, is_complex, rule_of
from .graph import Node
from .pt2 import Exported, Stored
from .rules import EMPTY, Unsupported, is_empty
from .running_statistics import read_between, unread_counts, with_new_statistics
from .shared_memory import Elements, steps, views

JOINS = {TABLE["aten.cat"], TABLE["aten.stack"]}  # those of some elements
CHANGED_PART = "changes a part of a detached tensor in place; compute all of it by torch.where"
CHANGED_VIEW = "changes a view in place; save the program after run_decompositions({})"
INTEGERS = ("int64", "int32", "int16", "int8", "uint8")
OURS = {"float32": "f32", "bool": "bool", **dict.fromkeys(INTEGERS, "s32")}


def convert(exported: Exported, name: str) -> Program:
    """The program in our functions. Raises ModelError that lists all operators without counterpart."""
    with importing(name), limited_memory(name, ModelError):
        return _Conversion(exported, name).run()


def is_known(target: str) -> bool:
    """Whether an operator, such as "aten.relu_.default", has a counterpart."""
    key = ".".join(target.split(".")[:2])
    return key in TABLE or key.removesuffix("_") in TABLE


class _Conversion:
    """Of one program. known: what represents a tensor or size of the exported graph: a reference, a number, or a
    tuple."""

    def __init__(self, exported: Exported, name: str) -> None:
        self.exported, self.name = exported, name
        self.problems = Problems(name)
        self.known: dict[str, Any] = {n: ValueRef(n) for n in exported.inputs}
        self.root = {n: n for n in exported.inputs}  # of a view: the tensor whose elements it shows
        self.weights: dict[str, Weight] = {}
        self.tied: dict[str, str] = {}
        self.views: dict[str, WeightView] = {}
        self.updates: dict[str, Any] = {}  # the new values of parameters and buffers
        self.earlier: dict[str, tuple[Any, ...]] = {}  # their new values before the last
        self.detached: dict[Any, Any] = {}  # what is detached -> the tensor with its gradient
        self.hidden: set[str] = set()  # tensors that are detached, and views of them
        self.keeps_gradients = False  # of changed tensors, which run_decompositions() does not
        self.unrecorded: set[str] = set()  # tensors that are made in torch.no_grad()
        self.renewing: Collection[str] = ()  # first results of nodes that compute new running statistics
        self.shown: Mapping[str, str] = {}  # names of running statistics -> the names of these in the graph
        self.zeros: set[str] = set()  # values that are zeros of a shape
        self.calls: list[Call] = []
        self.made: set[str] = set(exported.inputs)  # names of all values
        self.again: Counter[str] = Counter()  # further values by the name of the first
        self.sizes: set[str] = set()  # those of sizes
        self.empty: set[Any] = set()  # values of no meaning, which an operator fills
        self.merged: dict[Any, Shape] = {}  # values whose first axes PyTorch has as one -> these
        self.shapes, self.dtypes = dict(exported.shapes), dict(exported.dtypes)
        self.uncounted: Collection[str] = ()  # numbers of batches that nothing reads
        self.node: Node | None = None
        self.position = 0  # of the node
        self.last_read: dict[str, int] = {}  # the position of the last node that reads a name

    def run(self) -> Program:
        self._check_inputs()
        self._read_weights()
        self.last_read = {
            ref.name: k
            for k, node in enumerate(self.exported.nodes)
            if not node.target.startswith("aten._assert")  # of sizes, which we check ourselves
            for ref in references(tuple(node.arguments.values()))
            if isinstance(ref, ValueRef)
        }
        self.last_read |= {r.name: len(self.exported.nodes) for r in references(self.exported.outputs)}
        same = {n: self.root[n] for n in self.exported.weights}
        self.renewing, self.shown = read_between(self.exported.nodes, same, self.exported.outputs)
        names_of = {n: name for n, (_, name, _) in self.exported.weights.items()}
        self.uncounted = unread_counts(self.exported.nodes, names_of, self.exported.outputs)
        for k, node in enumerate(self.exported.nodes):
            self.node, self.position = node, k
            self._convert(node)
        self.node = None
        for name in self.exported.changed:
            self._changed_input(name)
        for name, new in self.exported.updated.items():
            if name not in self.uncounted and self._may_update(name):
                self._update(self.tied.get(name, name), self.value(new))
        self.problems.check(Rejected if self.keeps_gradients else ModelError)
        outputs = tuple(map(self.value, self.exported.outputs))
        self._check_outputs(outputs)
        made = Program(
            {n: self._input_dtype(n) for n in self.exported.inputs},
            outputs[0] if self.exported.single and len(outputs) == 1 else outputs,
            self.calls,
            self.weights,
            self.shapes,
            tied=self.tied,
            views=self.views,
            keeps_gradients=self.keeps_gradients,
            class_name=self.exported.class_name,
            modules=self.exported.modules,
        )
        made = with_states(frozen_after_detach(made), self.updates, self.earlier, self.name)
        made.calls = self._size_calls_at_their_readers(made.live)
        return made

    # Inputs and weights

    def _check_inputs(self) -> None:
        wrong = [f"{n} has one on axis {axis}" for n, axis in self.exported.symbols if axis]
        if wrong:
            raise ModelError(
                f"{self.name}: only the first axis, the batch, may have a dynamic size; {listed(wrong)}"
            )
        for n in self.exported.inputs:
            self._input_dtype(n)

    def _check_outputs(self, outputs: Any) -> None:
        for ref in references(self.exported.outputs):
            if isinstance(ref, ValueRef) and not (
                ref.name in self.known and ref.name in self.exported.shapes
            ):
                raise ModelError(
                    f"{self.name} returns {ref.name[:80]!r}, which nothing computes; export it anew"
                )
        if is_complex(outputs):
            raise ModelError(f"{self.name} returns complex numbers; return torch.view_as_real of them")
        if is_empty(outputs):
            raise ModelError(f"{self.name} returns a tensor without elements; leave it out")
        if not any(references(outputs)):
            raise ModelError(f"{self.name} returns no tensor")
        constant = next((r.name for r in references(outputs) if isinstance(r, WeightRef)), None)
        if constant is not None:
            raise ModelError(f"{self.name}: the result {quoted(constant)} depends on no input; leave it out")

    def _input_dtype(self, name: str) -> str:
        dtype = self.exported.dtypes[name]
        if dtype not in OURS or dtype == "bool":
            raise ModelError(
                f"{self.name}: the input {quoted(name)} is {dtype}; convert it to float32 or int32 before the export, "
                "and a network in another dtype by net.float()"
            )
        return OURS[dtype]

    def _read_weights(self) -> None:
        roles = {
            name: PARAMETER if kind == "parameter" else BUFFER if persistent else CONSTANT
            for kind, name, persistent in self.exported.weights.values()
        }
        missing = next((name for name in roles if name not in self.exported.stored), None)
        if missing is not None:
            raise ModelError(f"{self.name}: the weight {quoted(missing)} is missing in the file")
        shown = views(self.exported.stored, roles, self.name)
        for graph_name, (_, name, _) in self.exported.weights.items():
            stored, role = self.exported.stored[name], roles[name]
            if name in shown:
                continue
            if stored.dtype == "complex64" and role != PARAMETER:
                self._read_complex(graph_name, name, stored)
                continue
            self.weights[name] = Weight(self._array(name, stored, role), role, stored.requires_grad)
            self.known[graph_name] = WeightRef(name)
            self.root[graph_name] = graph_name
        for graph_name, (_, name, _) in self.exported.weights.items():
            if name in shown:
                self._read_view(graph_name, name, *shown[name])

    def _read_view(self, graph_name: str, name: str, base: str, elements: Elements) -> None:
        """A weight that is a view of another one: the same parameter, or a value that is computed of it."""
        stored, of = self.exported.stored[name], self.exported.stored[base]
        ref: ValueRef | WeightRef = WeightRef(base)
        is_same = stored.where == of.where and stored.requires_grad == of.requires_grad
        if is_same:
            self.tied[name] = base
        else:
            self.views[name] = WeightView(base, elements, stored.requires_grad)
            for function, *args in steps(of.array.shape, elements):
                place = f"{graph_name}.elements"
                if isinstance(args[0], np.ndarray):
                    self.weights[place] = Weight(args[0], CONSTANT)
                    args = [WeightRef(place)]
                ref = self._emit(f"{graph_name}.view", function, (ref, *args))
            if not stored.requires_grad and of.requires_grad:
                ref = self._emit(f"{graph_name}.view", "detach", (ref,))
            self.shapes[ref.name], self.dtypes[ref.name] = elements.shape, stored.dtype
        self.known[graph_name] = ref
        same = (n for n, (_, other, _) in self.exported.weights.items() if other == base)
        self.root[graph_name] = next(same) if is_same else graph_name

    def _read_complex(self, graph_name: str, name: str, stored: Stored) -> None:
        """Complex constants and buffers, which no training changes."""
        parts = {f"{name}.{part}": getattr(stored.array, part).copy() for part in ("real", "imag")}
        self.weights |= {part: Weight(array, CONSTANT) for part, array in parts.items()}
        self.known[graph_name] = Complex(*map(WeightRef, parts))
        self.root[graph_name] = graph_name

    def _array(self, name: str, stored: Stored, role: str) -> Any:
        array = stored.array
        if stored.dtype == "bool" and role != PARAMETER:
            return array
        if stored.dtype in INTEGERS and role != PARAMETER:
            if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
                raise ModelError(f"{self.name}: {quoted(name)} has integers that do not fit into 32 bits")
            return array.astype(np.int32)
        if stored.dtype == "complex64":
            raise ModelError(
                f"{self.name}: the {role} {quoted(name)} is complex; make it torch.view_as_complex of a parameter with "
                "a last axis of 2"
            )
        if stored.dtype == "float64" and role == CONSTANT and not array.shape:
            return array.astype(np.float32)  # a number, which takes the dtype of what it is combined with
        if stored.dtype != "float32":
            raise ModelError(
                f"{self.name}: the {role} {quoted(name)} is {stored.dtype}; convert the network by net.float() before"
            )
        return array

    # Nodes

    def _convert(self, node: Node) -> None:
        key, in_place = node.key, node.in_place
        rule = TABLE.get(key[:-1] if in_place else key)
        if rule is None:
            if in_place or any(self._is_read_later(r) for r in node.results):
                self._unknown(node.target, key)
            return
        changed = node.arguments.get("self", node.arguments.get("input")) if in_place else None
        changed = node.arguments.get("out", changed)
        if isinstance(changed, ValueRef) and not self._may_change(changed.name):
            return
        if node.results and all(0 in self.exported.shapes.get(r, ()) for r in node.results):
            self.known.update(dict.fromkeys(node.results, EMPTY))
            return
        operands = references(tuple(node.arguments.values()))
        if any(self.known.get(ref.name) is None for ref in operands):
            return  # its operand is a problem already
        arguments = {name: self.value(given) for name, given in node.arguments.items()}
        merged = next(
            (self.merged[ref] for ref in references(tuple(arguments.values())) if ref in self.merged), None
        )
        try:
            if any(is_empty(v) for name, v in arguments.items() if rule not in JOINS or name != "tensors"):
                raise Unsupported("computes with a tensor without elements; leave it out")
            if merged and arguments.get(OF_ROWS.get(key, "")) not in self.merged:
                raise Unsupported(
                    "reads an axis in which the batch is not the outermost; use batch_first=True"
                )
            rule = rule_of(key[:-1] if in_place else key, arguments, TABLE) or rule
            renews = bool(node.results) and node.results[0] in self.renewing
            result = with_new_statistics(self, arguments, node) if renews else rule(self, arguments)
            results = result if isinstance(result, list) else [result]
            missing = [r for r, v in zip_longest(node.results, results) if v is None and r is not None]
            if any(self._is_read_later(r) for r in missing):
                raise Unsupported("has further results without counterpart; use the first alone")
        except Unsupported as error:
            self._problem(node.target, str(error))
            return
        except MALFORMED:
            self._problem(node.target, DAMAGED)
            return
        self.unrecorded.update(() if node.recorded else node.results)
        source = next((v.name for v in node.arguments.values() if isinstance(v, ValueRef)), None)
        for r, value in zip(node.results, results, strict=False):
            self.known[r] = value
            self.root[r] = self.root.get(source, source) if key in VIEWS and source else r
            if key == "aten.detach" or (key in VIEWS and source in self.hidden):
                self.hidden.add(r)
            if isinstance(value, ValueRef) and r in self.exported.shapes:
                if merged and key not in VIEWS:
                    self.merged[value] = merged
                    self.shapes[value.name] = (*merged, *self.exported.shapes[r][1:])
                self.shapes.setdefault(value.name, self.exported.shapes[r])
                self.dtypes.setdefault(value.name, self.exported.dtypes[r])
            for part in (value.real, value.imag) if isinstance(value, Complex) else ():
                if isinstance(part, ValueRef):
                    self.shapes.setdefault(part.name, self.exported.shapes[r])
                    self.dtypes[part.name] = "float32"
        if key == "aten.detach":
            self.detached[results[0]] = self._with_gradient(arguments["self"])
        if isinstance(changed, ValueRef):
            self._change(node, changed.name, results[0])

    def _is_read_later(self, name: str) -> bool:
        return self.last_read.get(name, -1) > self.position

    def _with_gradient(self, ref: Any) -> Any:
        """The tensor whose elements a detached one shows; others as they are."""
        return self.detached.get(ref, ref)

    def _change(self, node: Node, name: str, new: Any) -> None:
        """Let all names of a tensor that an operator changed in place mean its new value. What autograd does not
        record, in torch.no_grad() or of a detached tensor, leaves the tensor its gradient."""
        root, before = self.root.get(name, name), self.known[name]
        whole = self._with_gradient(before)
        recorded = (node.recorded and before == whole) or root in self.unrecorded
        weight = self.exported.weights[root][1] if root in self.exported.weights else None
        names = [n for n, r in self.root.items() if r == root and self._with_gradient(self.known[n]) == whole]
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
            self._update(weight, stored)
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
        """Let the running statistic of that name in the graph have a new value from now on."""
        root = self.shown.get(given.name, self.root.get(given.name, given.name))
        self.shapes[new.name], self.dtypes[new.name] = (
            self.exported.shapes[given.name],
            self.exported.dtypes[given.name],
        )
        if root in self.exported.weights:
            self._update(self.exported.weights[root][1], new)
        names = [n for n, r in self.root.items() if r == self.root[given.name]]
        if self._shown_otherwise(given.name, names):
            raise Unsupported(CHANGED_VIEW)
        whole = self._with_gradient(self.known[given.name])
        self.known.update({n: new for n in names if self._with_gradient(self.known.get(n)) == whole})

    def _update(self, weight: str, new: Any) -> None:
        """Let a weight have a new value from now on."""
        if self.updates.get(weight) != new:
            self.earlier[weight] = (*self.earlier.get(weight, ()), *filter(None, [self.updates.get(weight)]))
            self.updates[weight] = new

    def _requires_grad(self, root: str) -> bool:
        return self.exported.stored[self.exported.weights[root][1]].requires_grad

    def _may_change(self, name: str) -> bool:
        """Whether a tensor may be replaced by the result of an in-place operator: nothing else shows its elements."""
        root = self.root.get(name, name)
        if root in self.exported.inputs:
            self._changed_input(root)
            return False
        if root in self.exported.weights:
            weight = self.exported.weights[root][1]
            if weight in self.uncounted or not self._may_update(weight):
                return False
        assert self.node is not None
        others = (n for n, r in self.root.items() if r == root and n != name and n not in self.node.results)
        wrong = self._shown_otherwise(name, others)
        if wrong:
            trained = root not in self.exported.weights or self._requires_grad(root)
            hides = name in self.hidden and trained and not self.hidden.issuperset(wrong)
            self.keeps_gradients = self.keeps_gradients or hides
            self._problem(self.node.target, CHANGED_PART if hides else CHANGED_VIEW)
            return False
        return True

    def _shown_otherwise(self, name: str, others: Iterable[str]) -> list[str]:
        """Those of the names that are needed after the node, and are other elements of a tensor, or in another order,
        than `name`."""
        whole = self._with_gradient(self.known.get(name))
        needed = (n for n in others if self._is_read_later(n) or n in self.exported.weights)
        return [n for n in needed if self._with_gradient(self.known.get(n)) != whole]

    def _may_update(self, weight: str) -> bool:
        """Whether a forward pass may change a parameter or buffer."""
        if weight in self.views:
            what = f"changes {quoted(weight)} in place, which shows the memory of another one; change that"
        elif self.exported.stored[weight].dtype == "bool":
            what = f"changes {quoted(weight)} in place, which is a mask; keep integers in its place"
        else:
            return True
        self._problem("the network", what)
        return False

    def _unknown(self, target: str, key: str) -> None:
        assert self.node is not None
        if target.startswith("higher_order.wrap_with_autocast"):
            self._problem(target, "computes in half precision; export the network without torch.autocast")
        elif target.startswith("higher_order.") or key in CONTROL_FLOW:
            what = "is control flow that depends on data; use torch.where, or fix the condition before the export"
            self._problem(target, what)
        else:
            name = key.removeprefix("aten.").strip("_")
            self.problems.unknown(key, TABLE, self._place(), NAMES.get(name, name))

    def _changed_input(self, name: str) -> None:
        self._problem(
            "the network", f"changes its input {quoted(name)} in place; change a clone() of it instead"
        )

    def _problem(self, op: str, what: str) -> None:
        self.problems.add(op, what, self._place())

    def _place(self) -> str:
        if self.node is None:
            return ""
        return self.node.source or (f"module {self.node.modules[-1][0]!r}" if self.node.modules else "")

    # What rules use

    def value(self, given: Any) -> Any:
        """What represents an argument of a node."""
        if isinstance(given, ValueRef):
            return self.known.get(given.name)
        if isinstance(given, dict) and given.keys() == {"real", "imag"}:
            return Complex(**given)
        if not isinstance(given, tuple):
            return given
        return tuple(map(self.value, given))

    def shape(self, ref: Any) -> Shape:
        """Of a reference; None where the batch determines an extent."""
        if isinstance(ref, WeightRef):
            return tuple(self.weights[ref.name].array.shape)
        return self.shapes[ref.name]

    def dtype(self, ref: Any) -> str:
        """Of a reference, as PyTorch calls it."""
        if isinstance(ref, WeightRef):
            return str(self.weights[ref.name].array.dtype)
        return self.dtypes[ref.name]

    def constant(self, array: Any) -> WeightRef:
        """A reference to an array that is part of the program."""
        assert self.node is not None
        name = self.node.results[0]
        while name in self.weights or name in self.exported.stored:
            name += "_"
        self.weights[name] = Weight(array, CONSTANT)
        return WeightRef(name)

    def names(self) -> tuple[str, ...]:
        """The names of the node's results."""
        assert self.node is not None
        return self.node.results

    def emit(self, function: str, *args: Any, **options: Any) -> ValueRef:
        """Add a call; returns the reference to its result."""
        assert self.node is not None
        return self.emit_all(function, (self._unused(self.node.results[0]),), *args, **options)[0]

    def _unused(self, name: str) -> str:
        """A name for one more value of a node."""
        if name not in self.made:
            return name
        self.again[name] += 1
        return f"{name}.next{self.again[name]}"

    def _emit(self, name: str, function: str, args: tuple[Any, ...]) -> ValueRef:
        """Add a call that is part of no module."""
        name = self._unused(name)
        self.calls.append(Call(function, args, results=(name,)))
        self.made.add(name)
        return ValueRef(name)

    def emit_all(self, function: str, results: Any, *args: Any, **options: Any) -> list[ValueRef]:
        """Add a call with several results, in nested tuples; returns references to them."""
        assert self.node is not None
        frames = tuple(Frame(path, instance, name) for path, instance, name in self.node.modules)
        self.calls.append(Call(function, args, options, results, frames, self.node.source, self.node.target))
        NODES.check(len(self.calls), self.name, ModelError, 1000 * len(self.exported.nodes))
        self.made.update(names(results))
        return [ValueRef(name) for name in names(results)]

    def _size_calls_at_their_readers(self, calls: Sequence[Call]) -> list[Call]:
        """The calls that results depend on, where those that compute sizes are part of the module that reads them
        first: PyTorch records none for them."""
        readers: dict[str, Call] = {}
        moved: list[Call] = []
        for call in reversed(calls):
            if not call.frames and call.results and call.results[0] in self.sizes:
                reader = readers.get(call.results[0])
                call = replace(call, frames=reader.frames) if reader else call
            readers.update((r.name, call) for r in call.references if isinstance(r, ValueRef))
            moved.append(call)
        return moved[::-1]
