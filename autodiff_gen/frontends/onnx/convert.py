"""Convert an ONNX graph to calls of our functions, by the table of table.py.

Each call is made at once on values of our graph, which gives the shape and dtype of its result. Values that depend only
on constants and sizes are computed here (folding.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ...errors import ModelError, quoted
from ...ir.build import make_input
from ...ir.node import Value
from ...ir.types import Dim, Type, dtype
from ...reading.limits import MEMORY, NODES
from ...reading.memory import limited_memory
from ..imported.input_names import identifier
from ..imported.problems import DAMAGED, MALFORMED, Problems, importing
from ..imported.program import ImportedProgram, ValueRef
from ..imported.rules import Unsupported
from . import folding
from .elementwise import ELEMENTWISE
from .folding import ConstantTensor
from .graph import OnnxNode, attributes_of, expand, inputs_of, roles_of, unread
from .loops import MOST, LoopBody, renamed
from .table import TABLE
from .tying import WeightOrigin, tied
from .values import OnnxValues

# Ops without a rule -> their names in torch, for the alternatives that messages tell.
ALSO = {
    "Col2Im": "fold",
    "DFT": "fft",
    "LpPool": "lp_pool2d",
    "MaxUnpool": "max_unpool2d",
}
# Ops that a program computes from a parameter in each step, since the parameter trains.
COMPUTED = {op for op in TABLE if op in ELEMENTWISE or op.startswith(("Reduce", "Gather"))} | {
    "Expand",
    "Tile",
}
COMPUTED -= {"Cast", "CastLike", "Identity"}
LARGEST_BATCH = 4  # the largest batch of the values on which calls are made


def convert(model: Any, name: str) -> ImportedProgram:
    """The program in our functions. Raises ModelError that lists all ops without counterpart.

    An op that cannot be converted is replaced by the ops that define it in ONNX, if there are any.
    """
    with importing(name), limited_memory(name, ModelError, model.ByteSize()):
        first = OnnxConversion(model, name)
        try:
            return _with_shared_weights(first)
        except ModelError:
            expanded = expand(model, {op for op, _ in first.problems.found})
            if expanded is None:
                raise
            with contextlib.suppress(ModelError):
                return _with_shared_weights(OnnxConversion(expanded, name))
            raise


def _with_shared_weights(first: OnnxConversion) -> ImportedProgram:
    """The program of a conversion; of a second one if initializers are read in several layouts."""
    program = first.run()
    names = tied(first.uses)
    return OnnxConversion(first.model, first.name, names).run() if names else program


class OnnxConversion(OnnxValues):
    """The conversion of one graph."""

    def __init__(self, model: Any, name: str, tied: Mapping[str, str] | None = None) -> None:
        super().__init__(model, tied or {})
        self.model, self.name = model, name
        self.problems = Problems(name)
        self.inputs: dict[str, str] = {}
        self.size = model.ByteSize()
        self.nodes = 0  # that were converted
        self.bytes = 0  # of folded arrays
        self.elements = 0  # of the initializers that were read
        self.readers: dict[str, list[Any]] = {}
        self.unknown: set[str] = set()  # results of nodes that are problems
        self.joined: set[str] = set()  # results of nodes that the call of an earlier one computes too

    def run(self) -> ImportedProgram:
        graph = self.model.graph
        self._read_constants(graph.initializer, roles_of(graph))
        self._read_inputs([i for i in graph.input if i.name not in self.known])
        self._count_readers(graph.node, [o.name for o in graph.output])
        self._convert_nodes(graph.node)
        self.problems.check()
        outputs = tuple(self._output(o.name) for o in graph.output)
        shapes = {
            n: tuple(None if isinstance(d, Dim) else d for d in v.shape)
            for n, v in self.values.items()
            if isinstance(v, Value)
        }
        return ImportedProgram(
            self.inputs,
            outputs[0] if len(outputs) == 1 else outputs,
            self.calls,
            self.weights,
            shapes,
            modules=tuple(dict.fromkeys(self.paths.order)),
            integers=frozenset(o.name for o in outputs if self.dtype(o) != "f32"),
        )

    # Inputs, constants, outputs

    def _read_constants(self, tensors: Iterable[Any], roles: Mapping[str, bool] | None = None) -> None:
        """Note initializers as constants. roles: name -> whether the file says that it is a parameter, or is none."""
        for tensor in tensors:
            array, role = folding.array_of(tensor, self.name), (roles or {}).get(tensor.name)
            learned = role is True and array.dtype == np.float32
            origin = None
            if role is not False and array.dtype == np.float32 and array.size > 1:
                places = np.arange(self.elements, self.elements + array.size).reshape(array.shape)
                origin, self.elements = WeightOrigin((tensor.name,), places), self.elements + array.size
            self.known[tensor.name] = ConstantTensor(
                array, tensor.name, role is not False, learned, origin=origin
            )

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
        if name not in self.known:
            raise ModelError(f"{self.name}: no node computes the output {quoted(name)}")
        ref = self.known[name]
        if not isinstance(ref, ValueRef):
            raise ModelError(
                f"{self.name}: the output {quoted(name)} is a constant; remove it from the graph"
            )
        return ref

    def _count_readers(self, nodes: Iterable[Any], results: Iterable[str]) -> None:
        for node in nodes:
            for name in node.input:
                self.readers.setdefault(name, []).append(node)
            for attribute in node.attribute:  # of branches and loops
                self._count_readers(attribute.g.node, [o.name for o in attribute.g.output])
        for name in results:
            self.readers.setdefault(name, []).append(None)

    # Nodes

    def _convert_nodes(self, nodes: Iterable[Any]) -> None:
        for k, proto in enumerate(nodes):
            self.count(1)
            if any(proto.output) and not self.joined.intersection(proto.output):
                self.node = OnnxNode(proto, k)
                self._convert(self.node)

    def count(self, nodes: int) -> None:
        """Count nodes that are converted. Raises ModelError for more than a file of this size may have."""
        self.nodes += nodes
        NODES.check(self.nodes, self.name, ModelError, self.size)

    def _convert(self, node: OnnxNode) -> None:
        given = [self.known.get(n) if n else None for n in node.proto.input]
        missing = [n for n, x in zip(node.proto.input, given, strict=True) if n and x is None]
        for name in missing:
            if name not in self.unknown:
                self.problems.add(
                    node.key, f"reads {quoted(name)}, which no earlier node computes", node.place
                )
        self.unknown.update(node.proto.output)  # until the node is converted
        if missing:
            return
        try:
            result = self._result(node, given)
        except Unsupported as error:
            self.problems.add(node.key, str(error), node.place)
            return
        except MALFORMED:
            self.problems.add(node.key, DAMAGED, node.place)
            return
        if result is None:
            return
        results = result if isinstance(result, list) else [result]
        for name in node.proto.output[len(results) :]:
            if self.is_read(name):
                self.problems.add(node.key, f"has no result {quoted(name)} here; leave it out", node.place)
        self.known.update(zip(node.proto.output, results, strict=False))
        self.unknown.difference_update(node.proto.output)

    def _result(self, node: OnnxNode, given: Sequence[Any]) -> Any:
        """The representation of the results; None if the results or a problem are noted already. Raises Unsupported."""
        given = [self.shared(x) if self._is_computed_with(x, node) else x for x in given]
        folded = folding.fold(node, given, self)
        if folded is not None:
            self.bytes += sum(x.array.nbytes for x in folded if isinstance(x, ConstantTensor))
            MEMORY.check(self.bytes, self.name, ModelError, self.size)
            return folded
        if node.op == "If":
            return self._branch(node, given[0])
        if node.op == "Loop":
            return self._loop(node, given)
        if node.op == "Scan":
            raise Unsupported(
                "is a loop; export the network with unroll=True (Keras), or with layers LSTM, GRU, RNN"
            )
        rule = TABLE.get(node.key)
        if rule is None:
            name = ALSO.get(node.op, node.op.lower())
            return self.problems.unknown(node.key, TABLE, node.place, name)
        arguments = attributes_of(node, given, self.opset.get(node.domain, 1))
        result = rule(self, arguments)
        for name in unread(arguments):
            raise Unsupported(f"has {name}, which is not supported; leave it out")
        return result

    def _is_computed_with(self, given: Any, node: OnnxNode) -> bool:
        """Whether an operand is a parameter that the node computes with in each step. A transpose that only one node
        reads belongs to a layer, which stores its weight transposed, unless that node computes with the result."""
        if isinstance(given, ConstantTensor) and given.name in self.tied:
            return True
        if not isinstance(given, ConstantTensor) or not given.learned:
            return False
        shared = len(self.readers[given.name]) > 1 or self.readers[given.name][0] is not node.proto
        after = self.readers.get(node.proto.output[0], [])
        shared = shared or any(reader is None or reader.op_type in COMPUTED for reader in after)
        return node.op in COMPUTED or (node.op == "Transpose" and shared)

    def _branch(self, node: OnnxNode, condition: Any) -> None:
        """Convert the branch of an If that its known condition selects."""
        if not isinstance(condition, ConstantTensor):
            raise Unsupported("is control flow that depends on data; use Where")
        graphs = {a.name: a.g for a in node.proto.attribute}
        graph = graphs["then_branch" if condition.array.any() else "else_branch"]
        self._read_constants(graph.initializer)
        self._convert_nodes(graph.node)
        self.known.update(
            (name, self.known[o.name])
            for name, o in zip(node.proto.output, graph.output, strict=True)
            if o.name in self.known
        )

    def _loop(self, node: OnnxNode, given: Sequence[Any]) -> list[Any] | None:
        """Convert all iterations of a Loop whose number of iterations is known; returns its results."""
        body = LoopBody(node.proto)
        count, go, *carried = given
        if count is None and go is None:
            raise Unsupported("has neither a count nor a condition; give it a count")
        least = min(MOST, MOST if count is None else int(self.number(count, "a count")))
        self._read_constants(body.graph.initializer)
        inside = dict(zip(body.carried, carried, strict=True))
        self.known.update((name, inside[name]) for name in body.kept)
        self._convert_nodes(body.once)
        condition: Any = True if go is None else bool(self.number(go, "a condition"))
        stacked: list[list[Any]] = [[] for _ in body.results[1 + len(carried) :]]
        k = 0
        while condition and k < least:
            names = body.names(k)
            self.known[names[body.counter]] = ConstantTensor(np.asarray(k, np.int64))
            self.known[names[body.condition]] = ConstantTensor(np.asarray(True))
            self.known.update((names[n], inside[n]) for n in body.carried if n not in body.kept)
            self.count(body.inner)
            nodes = renamed(body.each, names)
            self._count_readers(nodes, [names.get(r, r) for r in body.results])
            self._convert_nodes(nodes)
            ends = [self.known.get(names.get(r, r)) for r in body.results]
            if any(end is None for end in ends):
                return None  # it is a problem already
            self.node = node
            condition = bool(self.number(ends[0], "a condition"))
            inside = dict(zip(body.carried, ends[1:], strict=False))
            for part, end in zip(stacked, ends[1 + len(carried) :], strict=True):
                part.append(self.operand(end))
            k += 1
        self.node = node
        if k == MOST or (stacked and k == 0):
            raise Unsupported(f"has {k} iterations; export the network with layers LSTM, GRU, RNN")
        return [*(inside[n] for n in body.carried), *(self.emit("stack", tuple(part), 0) for part in stacked)]

    # Methods for rules, in addition to OnnxValues

    def only_reader(self) -> Any:
        """The node that reads the result of this one, if nothing else does."""
        assert self.node is not None
        readers = self.readers.get(self.node.proto.output[0], [])
        return readers[0] if len(readers) == 1 else None

    def is_read(self, name: str) -> bool:
        """Whether a node reads a tensor, or the network returns it."""
        return bool(name and self.readers.get(name))

    def join(self, node: Any, ref: ValueRef) -> None:
        """Note that a call computes a later node too."""
        self.joined.add(node.output[0])
        self.known[node.output[0]] = ref
