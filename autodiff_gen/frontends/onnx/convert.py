"""Convert an ONNX graph to calls of our functions, by the table of table.py.

Each call is made at once on values of our graph, which gives the shape and dtype of its result. What depends on
constants and sizes only is computed here (folding.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ... import functional as F
from ...errors import AutodiffError, ModelError
from ...functional.inputs import make_buffer
from ...ir.build import make_input
from ...ir.node import Value
from ...ir.types import Dim, Type, dtype, f32
from ..imported.problems import Problems
from ..imported.program import (
    BUFFER,
    CONSTANT,
    PARAMETER,
    Call,
    Frame,
    Names,
    Program,
    Shape,
    ValueRef,
    Weight,
    WeightRef,
    names,
)
from ..imported.rules import Unsupported
from . import folding
from .folding import BATCH, Constant
from .graph import Node, attributes_of, expand, identifier, inputs_of, unread
from .paths import Paths
from .table import TABLE

LARGEST_BATCH = 4  # of the values on which calls are made


def convert(model: Any, name: str) -> Program:
    """The program in our functions. Raises ModelError that lists all ops without counterpart.

    An op that cannot be converted, and that ONNX defines by other ops, is replaced by those.
    """
    first = Conversion(model, name)
    try:
        return first.run()
    except ModelError:
        expanded = expand(model, {op for op, _ in first.problems.found})
        if expanded is None:
            raise
        with contextlib.suppress(ModelError):
            return Conversion(expanded, name).run()
        raise


class Conversion:
    """Of one graph. known: what stands for a tensor of the graph: a ValueRef, or a Constant."""

    def __init__(self, model: Any, name: str) -> None:
        self.model, self.name = model, name
        self.problems = Problems(name)
        self.known: dict[str, Any] = {}
        self.values: dict[str, Any] = {}  # of calls' results, by name
        self.weights: dict[str, Weight] = {}
        self.stored: dict[Any, WeightRef] = {}  # those of constants, by name, role and order of axes
        self.calls: list[Call] = []
        self.inputs: dict[str, str] = {}
        self.opset = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.paths = Paths(model.graph)
        self.readers: dict[str, list[Any]] = {}
        self.joined: set[str] = set()  # results of nodes that the call of an earlier one computes too
        self.node: Node | None = None

    def run(self) -> Program:
        graph = self.model.graph
        self._read_constants(graph.initializer)
        self._read_inputs([i for i in graph.input if i.name not in self.known])
        self._count_readers(graph)
        self._convert_nodes(graph)
        self.problems.check()
        outputs = tuple(self._output(o.name) for o in graph.output)
        shapes = {
            n: tuple(None if isinstance(d, Dim) else d for d in v.shape)
            for n, v in self.values.items()
            if isinstance(v, Value)
        }
        return Program(
            self.inputs,
            outputs[0] if len(outputs) == 1 else outputs,
            self.calls,
            self.weights,
            shapes,
            modules=tuple(dict.fromkeys(self.paths.order)),
        )

    # Inputs, constants, outputs

    def _read_constants(self, tensors: Iterable[Any]) -> None:
        for tensor in tensors:
            self.known[tensor.name] = Constant(folding.array_of(tensor, self.name), tensor.name, True)

    def _read_inputs(self, inputs: Sequence[Any]) -> None:
        for i in inputs:
            kind, shape = inputs_of(i, self.name)
            own = identifier(i.name, self.inputs)
            free = bool(shape) and shape[0] is None
            sizes = tuple(Dim(1, LARGEST_BATCH) if d is None else d for d in shape)
            self.inputs[own] = "u8" if kind == "bool" else kind
            self.values[own] = make_input(own, Type(dtype(self.inputs[own]), sizes))
            self.known[i.name] = ValueRef(own)
            if free:
                self.batch = ValueRef(own)
            if kind == "bool":
                self.known[i.name] = self._call("to", f"{own}.bool", (ValueRef(own), "bool"), {})

    def _output(self, name: str) -> ValueRef:
        ref = self.known[name]
        if isinstance(ref, Constant):
            raise ModelError(f"{self.name}: the output {name!r} is a constant; remove it from the graph")
        return ref if isinstance(ref, ValueRef) else ValueRef(name)

    def _count_readers(self, graph: Any) -> None:
        for node in graph.node:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
        for output in graph.output:
            self.readers.setdefault(output.name, []).append(None)

    # Nodes

    def _convert_nodes(self, graph: Any) -> None:
        for k, proto in enumerate(graph.node):
            if not self.joined.intersection(proto.output):
                self.node = Node(proto, k)
                self._convert(self.node)

    def _convert(self, node: Node) -> None:
        given = [self.known.get(n) if n else None for n in node.proto.input]
        if any(n and x is None for n, x in zip(node.proto.input, given, strict=True)):
            return  # its operand is a problem already
        folded = folding.fold(node, given, self)
        if folded is not None:
            self.known.update(zip(node.proto.output, folded, strict=False))
            return
        if node.op == "If":
            self._branch(node, given[0])
            return
        rule = TABLE.get(node.key)
        if rule is None:
            self.problems.unknown(node.key, TABLE, node.place)
            return
        try:
            arguments = attributes_of(node, given, self.opset.get(node.domain, 1))
            result = rule(self, arguments)
            for name in unread(arguments):
                raise Unsupported(f"has {name}, which is not supported; leave it out")
        except Unsupported as error:
            self.problems.add(node.key, str(error), node.place)
            return
        results = result if isinstance(result, list) else [result]
        for name in node.proto.output[len(results) :]:
            if name and self.readers.get(name):
                self.problems.add(node.key, f"has no result {name!r} here; leave it out", node.place)
        self.known.update(zip(node.proto.output, results, strict=False))

    def _branch(self, node: Node, condition: Any) -> None:
        """The branch of an If whose condition is known."""
        if not isinstance(condition, Constant):
            self.problems.add("If", "is control flow that depends on data; use Where", node.place)
            return
        graphs = {a.name: a.g for a in node.proto.attribute}
        graph = graphs["then_branch" if condition.array.any() else "else_branch"]
        self._read_constants(graph.initializer)
        self._convert_nodes(graph)
        self.known.update(
            (name, self.known[o.name])
            for name, o in zip(node.proto.output, graph.output, strict=True)
            if o.name in self.known
        )

    # What rules use

    def shape(self, ref: Any) -> Shape:
        """Of a reference or constant; None where the batch determines an extent."""
        if isinstance(ref, Constant):
            return tuple(ref.array.shape)
        if isinstance(ref, WeightRef):
            return tuple(self.weights[ref.name].array.shape)
        return tuple(None if isinstance(d, Dim) else d for d in self.values[ref.name].shape)

    def dtype(self, ref: Any) -> str:
        """Of a reference or constant, as we call it."""
        if isinstance(ref, Constant):
            return folding.dtype_of(ref.array)
        if isinstance(ref, WeightRef):
            return folding.dtype_of(self.weights[ref.name].array)
        return str(self.values[ref.name].dtype.name)

    def sizes(self, ref: Any) -> list[int]:
        """The extents of a value as folding.py computes with them."""
        shape = self.values[ref.name].shape
        return [d.coef * BATCH if isinstance(d, Dim) else d for d in shape]

    def extent(self, size: int) -> Any:
        """A size as an argument: where the batch determines it, it is read from an input."""
        if not folding.is_batch(size):
            return size
        batch = self.emit("{}.shape[0]", self.batch)
        return batch if size == BATCH else self.emit("{} * {}", size // BATCH, batch)

    def reference(self, proto: Any, given: Any) -> Any:
        """The first result of a node in the reference implementation."""
        results = folding.reference(proto, given, self.opset[""])
        assert results is not None
        return results[0]

    def number(self, given: Any, what: str) -> Any:
        """A constant of one element, as a number of Python."""
        array = self.array(given, what)
        if array.size != 1:
            raise Unsupported(f"has {what} of shape {list(array.shape)}; use a number")
        return array.reshape(()).item()

    def array(self, given: Any, what: str) -> Any:
        """The array of an operand that must be known."""
        if not isinstance(given, Constant):
            raise Unsupported(f"has {what} that is computed; make it a constant")
        return given.array

    def numbers(self, given: Any, what: str) -> tuple[int, ...]:
        return tuple(int(n) for n in self.array(given, what).reshape(-1))

    def operand(self, given: Any, role: str | None = None) -> Any:
        """A tensor as an argument: numbers as such; other constants are weights of this node if role names one and
        they are initializers, else constants."""
        if not isinstance(given, Constant):
            return given
        array = given.array
        if array.ndim == 0:
            return array.item()
        if role is not None and given.initializer and array.dtype.kind == "f":
            return self.weight(given, role)
        return self.constant(array)

    def weight(self, given: Any, role: str, order: Any = None, kind: str = PARAMETER) -> Any:
        """A tensor as a parameter or buffer of this node's layer. order: a function that changes the order of its
        elements."""
        if given is None or isinstance(given, ValueRef | WeightRef):
            return given
        key = given.name, role if order else "", kind
        if key not in self.stored or not given.name:
            array = given.array if order is None else np.ascontiguousarray(order(given.array))
            if array.dtype != np.float32:
                raise Unsupported(f"has weights of dtype {array.dtype}; convert the network to float32")
            assert self.node is not None
            name = self.paths.weight(self.node.proto, given.name if order is None else "", role, self.weights)
            self.weights[name] = Weight(array, kind)
            self.stored[key] = WeightRef(name)
        return self.stored[key]

    def constant(self, array: Any) -> WeightRef:
        """A reference to an array that is part of the program."""
        array = folding.ours(array)
        name = f"c{sum(w.role == CONSTANT for w in self.weights.values())}"
        self.weights[name] = Weight(array, CONSTANT)
        return WeightRef(name)

    def names(self) -> tuple[str, ...]:
        """The names of the node's results."""
        assert self.node is not None
        return tuple(self.node.proto.output)

    def maker(self, ref: Any) -> Call | None:
        """The call that a value is the result of."""
        return next(
            (call for call in reversed(self.calls) if call.results == (getattr(ref, "name", ""),)), None
        )

    def is_zero(self, ref: Any) -> bool:
        """Whether a tensor is zeros, of whatever size."""
        if isinstance(ref, Constant):
            return not ref.array.any()
        if isinstance(ref, WeightRef):
            return self.weights[ref.name].role == CONSTANT and not self.weights[ref.name].array.any()
        if not isinstance(ref, ValueRef):
            return bool(ref == 0)
        maker = self.maker(ref)
        return (
            maker is not None and maker.function in ("expand", "broadcast_to") and self.is_zero(maker.args[0])
        )

    def only_reader(self) -> Any:
        """The node that reads the result of this one, if nothing else does."""
        assert self.node is not None
        readers = self.readers.get(self.node.proto.output[0], [])
        return readers[0] if len(readers) == 1 else None

    def join(self, node: Any, ref: ValueRef) -> None:
        """Note that a call computes a later node too."""
        self.joined.add(node.output[0])
        self.known[node.output[0]] = ref

    def emit(self, function: str, *args: Any, **options: Any) -> ValueRef:
        """Add a call; returns the reference to its result."""
        assert self.node is not None
        name = next((n for n in self.node.proto.output if n), "none")
        while name in self.values:
            name += ".next"
        return self._call(function, name, args, options)

    def _call(self, function: str, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> ValueRef:
        return self.emit_all(function, (name,), *args, **options)[0]

    def emit_all(self, function: str, results: Any, *args: Any, **options: Any) -> list[ValueRef]:
        """Add a call with several results; returns references to them. Raises Unsupported if our function rejects
        it."""
        given = [self._made(x) for x in args]
        try:
            if "{" in function:
                texts = [f"v{k}" for k in range(len(given))]
                made = eval(function.format(*texts), dict(zip(texts, given, strict=True)))
            else:
                made = getattr(F, function)(*given, **{k: self._made(x) for k, x in options.items()})
        except AutodiffError as error:
            raise Unsupported(f"cannot be computed: {error}") from None
        return self._add(
            function, results, args, options, made if isinstance(made, tuple | list) else (made,)
        )

    def emit_layer(
        self, function: str, results: Names, shapes: Sequence[Any], *args: Any, **options: Any
    ) -> list[ValueRef]:
        """Add a call that is a layer only, as those of imported/layer_rules.py; shapes: of its results."""
        made = [make_input(n, Type(f32, tuple(s))) for n, s in zip(names(results), shapes, strict=True)]
        return self._add(function, results, args, options, made)

    def _add(
        self,
        function: str,
        results: Names,
        args: tuple[Any, ...],
        options: dict[str, Any],
        made: Sequence[Any],
    ) -> list[ValueRef]:
        node = self.node
        frames: tuple[Frame, ...] = ()
        self.calls.append(
            Call(
                function, args, options, results, frames, node.place if node else "", node.op if node else ""
            )
        )
        self.values.update(zip(names(results), made, strict=True))
        return [ValueRef(n) for n in names(results)]

    def _made(self, given: Any) -> Any:
        """An argument as our functions take it: weights are inputs of their shapes."""
        if isinstance(given, ValueRef):
            return self.values[given.name]
        if isinstance(given, WeightRef):
            weight = self.weights[given.name]
            if weight.role == CONSTANT:
                return weight.array
            if weight.role == BUFFER:
                return make_buffer("w", weight.array, "f32")
            return make_input("w", Type(f32, tuple(weight.array.shape)))
        if isinstance(given, tuple | list):
            return tuple(map(self._made, given))
        return given
