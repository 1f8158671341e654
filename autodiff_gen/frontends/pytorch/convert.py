"""Convert an exported program to calls of our functions, by the table of aten.py.

Sizes that the batch determines are values; a reshape to one such size becomes a reshape to -1.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import zip_longest
from typing import Any

from ...errors import ModelError, listed, quoted
from ...reading.memory import limited_memory
from ..imported.problems import DAMAGED, MALFORMED, Rejected, importing
from ..imported.program import (
    ImportedProgram,
    ProgramCall,
    ValueRef,
    WeightRef,
    frozen_after_detach,
    references,
)
from ..imported.states import with_states
from .aten import CONTROL_FLOW, NAMES, OF_ROWS, TABLE, VIEWS
from .complex_numbers import Complex, is_complex, rule_of
from .graph import OperatorCall
from .in_place import InPlace
from .pt2 import Pt2Program
from .rules import NO_ELEMENTS, Unsupported, is_empty
from .running_statistics import self_computed_statistics, unread_counts, with_new_statistics
from .weights import INTEGERS, read_weights

JOINS = {TABLE["aten.cat"], TABLE["aten.stack"]}  # rules that take tensors without elements
OURS = {"float32": "f32", "bool": "bool", **dict.fromkeys(INTEGERS, "s32")}


def convert(exported: Pt2Program, name: str) -> ImportedProgram:
    """The program in our functions. Raises ModelError that lists all operators without counterpart."""
    with importing(name), limited_memory(name, ModelError):
        return _Conversion(exported, name).run()


def is_known(target: str) -> bool:
    """Whether an operator, such as "aten.relu_.default", has a counterpart."""
    key = ".".join(target.split(".")[:2])
    return key in TABLE or key.removesuffix("_") in TABLE


class _Conversion(InPlace):
    """The conversion of one program."""

    def __init__(self, exported: Pt2Program, name: str) -> None:
        super().__init__(exported, name)
        self.renewing: Collection[str] = ()  # first results of nodes that compute new running statistics

    def run(self) -> ImportedProgram:
        self._check_inputs()
        read_weights(self)
        self.last_read = {
            ref.name: k
            for k, node in enumerate(self.exported.nodes)
            if not node.target.startswith("aten._assert")  # of sizes, which we check ourselves
            for ref in references(tuple(node.arguments.values()))
            if isinstance(ref, ValueRef)
        }
        self.last_read |= {r.name: len(self.exported.nodes) for r in references(self.exported.outputs)}
        same = {n: self.root[n] for n in self.exported.weights}
        self.renewing, self.shown = self_computed_statistics(self.exported.nodes, same, self.exported.outputs)
        names_of = {n: name for n, (_, name, _) in self.exported.weights.items()}
        self.uncounted = unread_counts(self.exported.nodes, names_of, self.exported.outputs)
        for k, node in enumerate(self.exported.nodes):
            self.node, self.position = node, k
            self._convert(node)
        self.node = None
        for name in self.exported.changed:
            self.changed_input(name)
        for name, new in self.exported.updated.items():
            if name not in self.uncounted and self.may_update(name):
                self.change_weight(self.tied.get(name, name), self.value(new))
        self.problems.check(Rejected if self.keeps_gradients else ModelError)
        outputs = tuple(map(self.value, self.exported.outputs))
        self._check_outputs(outputs)
        made = ImportedProgram(
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
        made = with_states(frozen_after_detach(made), self.updates, self.name)
        made.calls = self._size_calls_at_their_readers(made.live)
        return made

    # Inputs and outputs

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

    # Nodes

    def _convert(self, node: OperatorCall) -> None:
        key, in_place = node.key, node.in_place
        rule = TABLE.get(key[:-1] if in_place else key)
        if rule is None:
            if in_place or any(self.is_read_later(r) for r in node.results):
                self._unknown(node.target, key)
            return
        changed = node.arguments.get("self", node.arguments.get("input")) if in_place else None
        changed = node.arguments.get("out", changed)
        if isinstance(changed, ValueRef) and not self.may_change(changed.name):
            return
        if node.results and all(0 in self.exported.shapes.get(r, ()) for r in node.results):
            self.known.update(dict.fromkeys(node.results, NO_ELEMENTS))
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
            if any(self.is_read_later(r) for r in missing):
                raise Unsupported("has further results without counterpart; use only the first")
        except Unsupported as error:
            self.problem(node.target, str(error))
            return
        except MALFORMED:
            self.problem(node.target, DAMAGED)
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
            self.detached[results[0]] = self.with_gradient(arguments["self"])
        if isinstance(changed, ValueRef):
            self.change(node, changed.name, results[0])

    def _unknown(self, target: str, key: str) -> None:
        assert self.node is not None
        if target.startswith("higher_order.wrap_with_autocast"):
            self.problem(target, "computes in half precision; export the network without torch.autocast")
        elif target.startswith("higher_order.") or key in CONTROL_FLOW:
            what = "is control flow that depends on data; use torch.where, or fix the condition before the export"
            self.problem(target, what)
        else:
            name = key.removeprefix("aten.").strip("_")
            self.problems.unknown(key, TABLE, self.place(), NAMES.get(name, name))

    def _size_calls_at_their_readers(self, calls: Sequence[ProgramCall]) -> list[ProgramCall]:
        """The calls, with calls that compute sizes moved into the module that reads the size first: PyTorch records no
        module for them."""
        readers: dict[str, ProgramCall] = {}
        moved: list[ProgramCall] = []
        for call in reversed(calls):
            if not call.frames and call.results and call.results[0] in self.sizes:
                reader = readers.get(call.results[0])
                call = replace(call, frames=reader.frames) if reader else call
            readers.update((r.name, call) for r in call.references if isinstance(r, ValueRef))
            moved.append(call)
        return moved[::-1]
