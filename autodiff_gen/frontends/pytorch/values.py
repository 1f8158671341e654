"""The values of a conversion: their properties for rules of the table, and the calls that make new values."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ...errors import ModelError
from ...reading.limits import NODES
from ..imported.problems import Problems
from ..imported.program import (
    CONSTANT,
    ModuleFrame,
    ProgramCall,
    Shape,
    ValueRef,
    Weight,
    WeightRef,
    WeightView,
    names,
)
from .complex_numbers import Complex
from .graph import OperatorCall
from .pt2 import Pt2Program


class ExportedValues:
    """known: name of a tensor or size of the exported graph -> its representation: a reference, a number, a Complex,
    NO_ELEMENTS, or a tuple of these."""

    def __init__(self, exported: Pt2Program, name: str) -> None:
        self.exported, self.name = exported, name
        self.problems = Problems(name)
        self.known: dict[str, Any] = {n: ValueRef(n) for n in exported.inputs}
        self.root = {n: n for n in exported.inputs}  # name -> name of the tensor whose elements it shows
        self.weights: dict[str, Weight] = {}
        self.tied: dict[str, str] = {}
        self.views: dict[str, WeightView] = {}
        self.zeros: set[str] = set()  # names of tensors whose elements are all 0
        self.calls: list[ProgramCall] = []
        self.made: set[str] = set(exported.inputs)  # names of all values
        self.again: Counter[str] = Counter()  # further values by the name of the first
        self.sizes: set[str] = set()  # names of sizes
        self.empty: set[Any] = set()  # tensors without meaningful values, which an operator fills
        self.merged: dict[Any, Shape] = {}  # values whose first axes are one axis in PyTorch -> these axes
        self.shapes, self.dtypes = dict(exported.shapes), dict(exported.dtypes)
        self.node: OperatorCall | None = None

    # Methods for rules

    def value(self, given: Any) -> Any:
        """The representation of a node's argument."""
        if isinstance(given, ValueRef):
            return self.known.get(given.name)
        if isinstance(given, dict) and given.keys() == {"real", "imag"}:
            return Complex(**given)
        if not isinstance(given, tuple):
            return given
        return tuple(map(self.value, given))

    def shape(self, ref: Any) -> Shape:
        """The shape of a reference; an extent that the batch determines is None."""
        if isinstance(ref, WeightRef):
            return tuple(self.weights[ref.name].array.shape)
        return self.shapes[ref.name]

    def dtype(self, ref: Any) -> str:
        """The dtype of a reference, by PyTorch's name."""
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

    def emit_all(self, function: str, results: Any, *args: Any, **options: Any) -> list[ValueRef]:
        """Add a call with several results, in nested tuples; returns references to them."""
        assert self.node is not None
        frames = tuple(ModuleFrame(path, instance, name) for path, instance, name in self.node.modules)
        self.calls.append(
            ProgramCall(function, args, options, results, frames, self.node.source, self.node.target)
        )
        NODES.check(len(self.calls), self.name, ModelError, 1000 * len(self.exported.nodes))
        self.made.update(names(results))
        return [ValueRef(name) for name in names(results)]

    # Methods for conversions

    def emit_outside(self, name: str, function: str, args: tuple[Any, ...]) -> ValueRef:
        """Add a call that is part of no module."""
        name = self._unused(name)
        self.calls.append(ProgramCall(function, args, results=(name,)))
        self.made.add(name)
        return ValueRef(name)

    def _unused(self, name: str) -> str:
        """The name, or a new one if a value has it."""
        if name not in self.made:
            return name
        self.again[name] += 1
        return f"{name}.next{self.again[name]}"

    def problem(self, op: str, what: str) -> None:
        """Note why the operator cannot be imported."""
        self.problems.add(op, what, self.place())

    def place(self) -> str:
        """The place of the node for messages: a line of the network's source, or a module."""
        if self.node is None:
            return ""
        return self.node.source or (f"module {self.node.modules[-1][0]!r}" if self.node.modules else "")
