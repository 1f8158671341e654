"""Conversion of a float graph to quantised tensors.

Every value of the float graph is a number that does not depend on the input (weights, and what is computed of them), a
pending result, a function of one quantised tensor, such a tensor, or a float (forms.py). A pending result absorbs what
follows it alone: a product the scale and shift of each of its channels, as those of BatchNorm and of a bias, and every
op its limits, as those of ReLU. It becomes a tensor when anything else reads it. Values that only move elements have
one range, so that their parts agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np

from ... import functional as F
from ...errors import ModelError
from ...ir.build import apply, constant
from ...ir.interpreter import evaluate
from ...ir.names import set_output
from ...ir.node import INPUT, STATE, Node, Value, topological, users
from ...ir.op_kinds import Assemble, Elementwise, View
from ...ir.origin import building
from ...ir.quantization import HIGH, LOW, Quantization
from ...ir.traits import is_sum
from ...ir.types import f32, planned, s8
from ...ops.quantized_forms import Pooling, Product, form_of
from ...ops.quantized_pooling import pooling_s8
from .forms import Form, Function, Pending, Static, Sums, Tensor
from .products import absorbed, quantized_product
from .ranges import covering, integer, quantized
from .shared_ranges import is_identity, shared

Ranges: TypeAlias = Mapping[int, tuple[float, float]]  # of a graph's values, by their position in it


@dataclass
class Conversion:
    """One conversion of the graph that computes `result` of `input`. ranges: by the position of a value in the graph.
    Afterwards `finished` has the layer, the float value and the s8 value of each tensor, and `floats` the nodes that
    have no form on s8."""

    input: Value
    result: Value
    ranges: Ranges
    forms: dict[Value, Form] = field(default_factory=dict)
    finished: list[tuple[str, Value, Value]] = field(default_factory=list)
    floats: list[Node] = field(default_factory=list)

    def run(self, given: Value) -> Value:
        """The float result, for `given` in the place of the input."""
        nodes = [n for n in topological([self.result]) if n.op is not INPUT]
        for node in nodes:
            if node.results[0].type.quantization is not None:
                raise ModelError(f"quantize: layer {node.origin.scope or 'input'!r} is quantised already")
        self.readers = users(nodes)
        self.position = {r: i for i, r in enumerate(values_of(self.result))}
        self._find_statics(nodes)
        dynamic = [v for v in self.position if not isinstance(self.forms.get(v), Static)]
        self.range = shared(
            dynamic, {v: self.ranges[i] for v, i in self.position.items() if i in self.ranges}
        )
        if given.type.quantization is not None:
            self.forms[self.input] = Tensor(s8=given)
        else:
            of = self._quantization(self.input)
            self.forms[self.input] = Tensor(s8=F.quantize(given, of.scale, of.zero_point))
        self.finished.append(("input", self.input, self._s8(self.input)))
        for node in nodes:
            if node.results[0] not in self.forms:
                with building(node.origin.scope):
                    found = self._form(node)
                    if found is not None:
                        self.forms[node.results[0]] = found
                        continue
                    self.floats.append(node)
                    made = self._as_float(node)
                self.forms.update((v, Tensor(float=r)) for v, r in zip(node.results, made, strict=True))
        return self._float(self.result)

    # What does not depend on the input, and ranges

    def _find_statics(self, nodes: Sequence[Node]) -> None:
        dynamic = {self.input}
        for node in nodes:
            if any(v in dynamic for v in node.operands):
                dynamic.update(node.results)
        states = {n.results[0]: n.attrs["state"].init.array() for n in nodes if n.op is STATE}
        known = [n.results[0] for n in nodes if n.results[0] not in dynamic]
        arrays = evaluate(known, states)
        self.forms.update((v, Static(a)) for v, a in zip(known, arrays, strict=True))

    def _quantization(self, v: Value) -> Quantization:
        if v not in self.range:
            raise ModelError(
                f"quantize: no range of {v!r} of layer {v.node.origin.scope or 'input'!r}: it is no float that the "
                "calibration computed"
            )
        return covering(*self.range[v])

    # A value as s8 or as a float

    def _s8(self, v: Value) -> Value:
        form = self.forms[v]
        if isinstance(form, Tensor) and form.s8 is not None:
            return form.s8
        layer = form.layer if isinstance(form, Pending) else v.node.origin.scope
        with building(layer):
            made = self._made(v, form)
        set_output(made, layer)
        self.forms[v] = Tensor(made, form.float if isinstance(form, Tensor) else None)
        self.finished.append((layer or "input", v, made))
        return made

    def _made(self, v: Value, form: Form) -> Value:
        """The s8 value of v, which has this form."""
        of = self._quantization(v)
        if isinstance(form, Pending):
            low, high = (integer(limit, of) for limit in form.limits)
            affine = () if form.factor is None else (form.factor, form.shift)
            made = form.build(of, low, high, *affine)
            for view in form.views:
                made = apply(view.op.name, made, **view.attrs)
        elif isinstance(form, Static):
            made = constant(quantized(form.array, of), s8, of)
        elif isinstance(form, Function):
            table = constant(quantized(form.numbers, of), s8, role="table")
            index = apply("to_s32", self._s8(form.source)) - LOW
            made = apply("lookup_s8", table, index, quantization=of)
        else:
            made = F.quantize(self._float(v), of.scale, of.zero_point)
        return made

    def _float(self, v: Value) -> Value:
        form = self.forms[v]
        if isinstance(form, Static):
            return constant(form.array)
        if isinstance(form, Tensor) and form.float is not None:
            return form.float
        if isinstance(form, Sums):
            made = F.dequantize(form.mean) * float(form.count)
            self.forms[v] = Tensor(float=made)
            return made
        if v.type.dtype is not f32:  # a mask
            return self._as_float(v.node)[v.index]
        made = F.dequantize(self._s8(v))
        self.forms[v] = Tensor(self._s8(v), made)
        return made

    def _as_float(self, node: Node) -> Sequence[Value]:
        """The results of the node on floats."""
        return node.with_operands(tuple(map(self._float, node.operands))).results

    # Forms on s8

    def _form(self, node: Node) -> Form | None:
        """What computes the node on s8; None where nothing does."""
        for v in node.operands:
            if v.type.dtype is not f32 and not isinstance(self.forms[v], Static | Function):
                return None  # an index, or a mask of several tensors
        if is_identity(node):
            return self._alone(node.operands[0])
        if isinstance(node.op.lower, View):
            return self._view(node)
        if isinstance(node.op.lower, Assemble):
            return self._assembled(node)
        low, high = node.op.limits(node.attrs)
        if low < high:
            return self._limited(node, low, high)
        if is_sum(node):
            return self._sums(node)
        form = form_of(node.op)
        if isinstance(form, Pooling):
            attrs = form.attributes(node.attrs)
            return None if attrs is None else Tensor(s8=apply(form.op, self._s8(node.operands[0]), **attrs))
        if isinstance(form, Product):
            return self._product(node, form)
        if len(node.operands) == 2 and (node.op.signs or node.op.powers):
            return self._of_two(node)
        return self._function(node)

    def _alone(self, v: Value) -> Form:
        """The form of v; a pending one only where a single node reads v."""
        form = self.forms[v]
        if isinstance(form, Pending) and len(self.readers.get(v, ())) > 1:
            self._s8(v)
        return self.forms[v]

    def _view(self, node: Node) -> Form:
        form = self._alone(node.operands[0])
        if isinstance(form, Pending):
            return replace(form, views=(*form.views, node))
        return Tensor(s8=apply(node.op.name, self._s8(node.operands[0]), **node.attrs))

    def _assembled(self, node: Node) -> Form | None:
        parts = [self._s8(v) for v in node.operands]
        of = parts[0].type.quantization
        if of is None or any(p.type.quantization != of for p in parts) or node.attrs["fill"]:
            return None
        return Tensor(s8=apply(node.op.name, *parts, **{**node.attrs, "fill": of.zero_point}))

    def _limited(self, node: Node, low: float, high: float) -> Form | None:
        form = self._alone(node.operands[0])
        if isinstance(form, Function):
            return self._function(node)
        if isinstance(form, Pending):
            limits = max(low, form.limits[0]), min(high, form.limits[1])
            return replace(form, limits=limits)
        q = self._s8(node.operands[0])
        of = q.type.quantization
        assert of is not None
        return Tensor(s8=apply("clamp_s8", q, low=integer(low, of), high=integer(high, of)))

    def _sums(self, node: Node) -> Form | None:
        """Sums, as the means of whole images."""
        x, axes = node.operands[0], sorted(node.attrs["axes"])
        if axes[0] == 0:
            return None
        rank, shape = x.ndim, x.type.shape
        extents = planned(shape)
        count, after = math.prod(extents[a] for a in axes), [a for a in range(1, rank) if a not in axes]
        q = apply("permute", self._s8(x), dims=(0, *axes, *after))
        q = apply("reshape", q, shape=(shape[0], count, 1, math.prod(extents[a] for a in after)))
        mean = apply("avg_pool2d_s8", q, **pooling_s8((count, 1), (count, 1)))
        return Sums(apply("reshape", mean, shape=node.results[0].type.shape), count)

    def _product(self, node: Node, form: Product) -> Form | None:
        weights = self.forms[node.operands[1]]
        if not isinstance(weights, Static) or weights.array.ndim != form.rank:
            return None
        x, w = self._s8(node.operands[0]), weights.array.astype(np.float64)
        channels = w.shape[form.channels]

        def build(of: Quantization, low: int, high: int, factor: Any, shift: Any) -> Value:
            return quantized_product(x, w, form, node.attrs, of, low, high, factor, shift)

        shape = planned(node.results[0].type.shape)
        return Pending(
            node.origin.scope, build, factor=np.ones(channels), shift=np.zeros(channels), shape=shape
        )

    def _of_two(self, node: Node) -> Form | None:
        """A sum or a product of two values; that of a pending product and a number for each channel is absorbed."""
        for k, v in enumerate(node.operands):
            other = self.forms[node.operands[1 - k]]
            if not isinstance(other, Static):
                continue
            form = self._alone(v)
            if (
                isinstance(form, Sums)
                and node.op.powers == (1, 1)
                and np.allclose(form.count * other.array, 1.0)
            ):
                return Tensor(s8=form.mean)
            if isinstance(form, Pending) and form.factor is not None and form.limits == (-math.inf, math.inf):
                changed = absorbed(node, k, form, other.array)
                if changed is not None:
                    return changed
        same = self._function(node)
        if same is not None:
            return same
        if node.op.signs == (1, 1):
            function = F.quantized_add
        elif node.op.powers == (1, 1):
            function = F.quantized_mul
        else:
            return None
        a, b = (self._operand(v) for v in node.operands)
        return Pending(
            node.origin.scope, lambda of, low, high: function(a, b, of.scale, of.zero_point, low, high)
        )

    def _function(self, node: Node) -> Form | None:
        """An elementwise node whose operands are numbers and functions of one quantised tensor."""
        if not isinstance(node.op.lower, Elementwise):
            return None
        forms = [self.forms[v] for v in node.operands]
        sources = {
            form.source if isinstance(form, Function) else v
            for v, form in zip(node.operands, forms, strict=True)
            if not isinstance(form, Static)
        }
        if len(sources) != 1 or any(isinstance(form, Static) and form.array.size > 1 for form in forms):
            return None
        (source,) = sources
        of = self._s8(source).type.quantization
        assert of is not None
        integers = of.scale * (np.arange(LOW, HIGH + 1) - of.zero_point)
        arrays = [
            form.array.reshape(())
            if isinstance(form, Static)
            else form.numbers
            if isinstance(form, Function)
            else integers
            for form in forms
        ]
        with np.errstate(all="ignore"):
            return Function(source, node.op.ref(*arrays, **node.attrs))

    def _operand(self, v: Value) -> Value:
        """s8; an array has a range of its own."""
        form = self.forms[v]
        if isinstance(form, Static):
            of = covering(float(form.array.min()), float(form.array.max()))
            return constant(quantized(form.array, of), s8, of)
        return self._s8(v)


def values_of(result: Value) -> list[Value]:
    """The values of a graph in an order that depends on its structure alone."""
    return [v for node in topological([result]) for v in node.results]
