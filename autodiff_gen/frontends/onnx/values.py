"""The values of a conversion: their properties for rules of the table, and the calls that make new values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ... import functional as F
from ...errors import AutodiffError
from ...functional.inputs import make_buffer
from ...ir.build import make_input
from ...ir.types import Dim, Type, f32
from ..imported.program import (
    BUFFER,
    CONSTANT,
    PARAMETER,
    ModuleFrame,
    Names,
    ProgramCall,
    Shape,
    ValueRef,
    Weight,
    WeightRef,
    names,
)
from ..imported.rules import Unsupported
from . import folding
from .folding import BATCH, ConstantTensor
from .graph import OnnxNode
from .tying import WeightUse
from .weight_names import WeightNames


class OnnxValues:
    """known: name of a tensor of the graph -> its representation, a ValueRef or a ConstantTensor; values: name of a
    ValueRef -> our graph value; stored: weights that were made from constants, by name, role, kind and group; batch: an
    input that has the batch as its first axis; tied: initializer that stays one parameter -> the parameter's name;
    uses: the weights that were made from initializers."""

    def __init__(self, model: Any, tied: Mapping[str, str]) -> None:
        self.tied = tied
        self.uses: list[WeightUse] = []
        self.known: dict[str, Any] = {}
        self.values: dict[str, Any] = {}
        self.weights: dict[str, Weight] = {}
        self.stored: dict[Any, WeightRef] = {}
        self.calls: list[ProgramCall] = []
        self.again: Counter[str] = Counter()  # further values by the name of the first
        self.batch: ValueRef | None = None
        self.opset = {"" if o.domain == "ai.onnx" else o.domain: o.version for o in model.opset_import}
        self.paths = WeightNames(model.graph)
        self.node: OnnxNode | None = None

    # Properties for rules

    def shape(self, ref: Any) -> Shape:
        """The shape of a reference or constant; an extent that the batch determines is None."""
        if isinstance(ref, ConstantTensor):
            return tuple(ref.array.shape)
        if isinstance(ref, WeightRef):
            return tuple(self.weights[ref.name].array.shape)
        return tuple(None if isinstance(d, Dim) else d for d in self.values[ref.name].shape)

    def dtype(self, ref: Any) -> str:
        """The dtype of a reference or constant, by our name."""
        if isinstance(ref, ConstantTensor):
            return folding.dtype_of(ref.array)
        if isinstance(ref, WeightRef):
            return folding.dtype_of(self.weights[ref.name].array)
        return str(self.values[ref.name].dtype.name)

    def sizes(self, ref: Any) -> list[int]:
        """The extents of a value as folding.py computes with them."""
        if not isinstance(ref, ValueRef):
            return [int(d) for d in self.shape(ref) if d is not None]
        shape = self.values[ref.name].shape
        return [d.coef * BATCH if isinstance(d, Dim) else d for d in shape]

    def extent(self, size: int) -> Any:
        """A size as an argument: if the batch determines it, it is read from an input."""
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
        if isinstance(given, WeightRef):
            return self.weights[given.name].array
        if not isinstance(given, ConstantTensor):
            raise Unsupported(f"has {what} that is computed; make it a constant")
        return given.array

    def numbers(self, given: Any, what: str) -> tuple[int, ...]:
        return tuple(int(n) for n in self.array(given, what).reshape(-1))

    def element(self, array: NDArray[Any]) -> Any:
        """The number of an array of one element. Raises Unsupported for one that depends on the batch."""
        if np.isnan(array).any():  # folding.py marks such numbers by NaN
            raise Unsupported("has a size that depends on the batch; use a number")
        return array.item()

    def operand(self, given: Any, role: str | None = None) -> Any:
        """A tensor as an argument. A constant without axes becomes a number; another constant becomes a weight of this
        node if it is an initializer and a role is given, otherwise a constant of the program."""
        if not isinstance(given, ConstantTensor):
            return given
        array = given.array
        if array.ndim == 0:
            return self.element(array)
        if role is not None and given.initializer and array.dtype.kind == "f":
            return self.weight(given, role)
        made = self.constant(array)
        self._note(made.name, given, False)
        return made

    def is_parameter(self, given: Any) -> bool:
        """Whether an operand is a parameter, or an array of floats that becomes one."""
        if isinstance(given, WeightRef):
            return self.weights[given.name].role == PARAMETER
        return isinstance(given, ConstantTensor) and given.array.dtype.kind == "f"

    def _note(self, name: str, given: ConstantTensor, trained: bool) -> None:
        """Note that a weight has elements of an initializer."""
        if given.origin is not None:
            self.uses.append(WeightUse(name, given.origin, trained))

    def shared(self, given: ConstantTensor) -> WeightRef:
        """An initializer as a parameter in the layout of the file, shared by all nodes that read it."""
        name = self.tied.get(given.name)
        if name is None:
            found: WeightRef = self.weight(given, given.name.rpartition(".")[2])
            return found
        key = given.name, "", PARAMETER, None
        if key not in self.stored:
            while name in self.weights:
                name += "_"
            self.weights[name] = Weight(given.array)
            self.stored[key] = WeightRef(name)
        return self.stored[key]

    def weight(
        self, given: Any, role: str, order: Any = None, kind: str = PARAMETER, group: Any = None
    ) -> Any:
        """A tensor as a parameter or buffer of this node's layer. order: a function that changes the order of its
        elements; group: nodes of different groups do not share parameters. A parameter that was made before is shared,
        unless the layer needs another order or kind."""
        if isinstance(given, WeightRef) and (order is not None or kind != PARAMETER):
            given = ConstantTensor(self.weights[given.name].array, given.name, True)
        if given is None or isinstance(given, ValueRef | WeightRef):
            return given
        key = given.name, role if order else "", kind, group
        if key not in self.stored or not given.name:
            array = given.array if order is None else np.ascontiguousarray(order(given.array))
            if array.dtype != np.float32:
                raise Unsupported(f"has weights of dtype {array.dtype}; convert the network to float32")
            assert self.node is not None
            origin = given.name if order is None else given.untransposed if order is np.transpose else ""
            name = self.paths.weight(self.node.proto, origin, role, self.weights)
            self.weights[name] = Weight(array, kind)
            self.stored[key] = WeightRef(name)
            if kind == PARAMETER and group is None:
                self._note(name, given, True)
        return self.stored[key]

    def constant(self, array: Any) -> WeightRef:
        """A reference to an array that is part of the program."""
        array = folding.ours(array)
        name = f"c{sum(w.role == CONSTANT for w in self.weights.values())}"
        self.weights[name] = Weight(array, CONSTANT)
        return WeightRef(name)

    # Calls

    def names(self) -> tuple[str, ...]:
        """The names of the node's results."""
        assert self.node is not None
        return tuple(self.node.proto.output)

    def maker(self, ref: Any) -> ProgramCall | None:
        """The call whose only result is the value; None for others."""
        return next(
            (call for call in reversed(self.calls) if call.results == (getattr(ref, "name", ""),)), None
        )

    def uniform(self, ref: Any) -> Any:
        """The number that all elements of a tensor equal; None if they differ, or are computed."""
        array = ref.array if isinstance(ref, ConstantTensor) else None
        if isinstance(ref, WeightRef) and self.weights[ref.name].role == CONSTANT:
            array = self.weights[ref.name].array
        if array is not None:
            return array.flat[0].item() if array.size and (array == array.flat[0]).all() else None
        if not isinstance(ref, ValueRef):
            return None if isinstance(ref, WeightRef) else ref
        maker = self.maker(ref)
        broadcast = maker is not None and maker.function in ("expand", "broadcast_to")
        return self.uniform(maker.args[0]) if maker is not None and broadcast else None

    def emit(self, function: str, *args: Any, **options: Any) -> ValueRef:
        """Add a call; returns the reference to its result."""
        assert self.node is not None
        name = next((n for n in self.node.proto.output if n), "none")
        first = name
        while name in self.values:
            self.again[first] += 1
            name = f"{first}.next{self.again[first]}"
        return self._call(function, name, args, options)

    def _call(self, function: str, name: str, args: tuple[Any, ...], options: dict[str, Any]) -> ValueRef:
        return self.emit_all(function, (name,), *args, **options)[0]

    def emit_module(self, function: str, *args: Any, **options: Any) -> ValueRef:
        """Add a call that becomes a module, whose mode train() and eval() change."""
        assert self.node is not None
        ref, path = self.emit(function, *args, **options), self.paths.of(self.node.proto)
        self.calls[-1] = replace(self.calls[-1], frames=(ModuleFrame(path, path, ""),))
        return ref

    def emit_all(self, function: str, results: Any, *args: Any, **options: Any) -> list[ValueRef]:
        """Add a call with several results; returns references to them. Raises Unsupported if our function rejects
        it."""
        args = tuple(map(self._argument, args))
        options = {key: self._argument(x) for key, x in options.items()}
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
        """Add a call of a function that exists only as a layer (imported/layer_rules.py). shapes: of its results."""
        args = tuple(map(self._argument, args))
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
        place, op = (self.node.place, self.node.op) if self.node else ("", "")
        self.calls.append(ProgramCall(function, args, options, results, (), place, op))
        self.values.update(zip(names(results), made, strict=True))
        return [ValueRef(n) for n in names(results)]

    def _argument(self, given: Any) -> Any:
        """An argument of a call: constants of the graph become constants of the program."""
        if type(given) in (tuple, list):
            return tuple(map(self._argument, given))
        return self.operand(given)

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
