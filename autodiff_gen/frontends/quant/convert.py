"""Conversion of a float graph to quantised tensors.

Every value of the float graph has a representation (representations.py): an array that does not depend on the input
(weights, and values computed from them), a pending result, a function of one quantised tensor, a quantised tensor, or a
float. A pending result absorbs the ops that are its only readers: a product absorbs the scale and shift of each of its
channels, such as BatchNorm's and a bias, and every op absorbs limits, such as ReLU's. It becomes a tensor when anything
else reads it. Values that share elements have one range (shared_ranges.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from ... import functional as F
from ...errors import ModelError
from ...functional.quantized import clamped, signed_sum
from ...ir.build import apply, constant
from ...ir.interpreter import evaluate
from ...ir.names import set_output
from ...ir.node import INPUT, STATE, Node, Value, topological, users
from ...ir.op_kinds import Assemble, Elementwise, View
from ...ir.origin import building
from ...ir.quantization import HIGH, LOW, Quantization
from ...ir.traits import is_sum
from ...ir.types import Dim, f32, planned, s8
from ...ops.quantized.equivalents import (
    Pooling,
    Product,
    SoftmaxOperand,
    quantized_equivalent,
    softmax_operand,
)
from ...ops.quantized.pooling import pooling_s8
from ...ops.quantized.softmax import PROBABILITIES
from .names import described, name_of
from .products import Layers, absorbed, product, quantized_weights
from .ranges import Ranges, covering, integer, quantized, values_of
from .representations import IntegerFunction, Pending, QuantizableTensor, Representation, Static, Sums
from .shared_ranges import is_identity, shared
from .tables import looked_up

_LARGEST_PROBABILITY = PROBABILITIES.scale * (HIGH - PROBABILITIES.zero_point)


@dataclass
class QuantConversion:
    """One conversion of the graph that computes `result` from `input`. ranges: by the position of a value in the graph;
    layers: the weights of an earlier conversion, or none yet; clamp_gradient: as for `quantize`. Afterwards `tensors`
    has the name, the float value and the s8 value of each tensor, and `floats` the nodes that have no form on s8."""

    input: Value
    result: Value
    ranges: Ranges
    layers: Layers
    clamp_gradient: str
    representations: dict[Value, Representation] = field(default_factory=dict)
    tensors: list[tuple[str, Value, Value]] = field(default_factory=list)
    floats: list[Node] = field(default_factory=list)
    softmaxes: dict[Node, SoftmaxOperand] = field(default_factory=dict)

    def run(self, given: Value) -> Value:
        """Convert; returns the float result for `given` in place of the input."""
        self.position = {r: i for i, r in enumerate(values_of(self.result))}
        nodes = [n for n in topological([self.result]) if n.op is not INPUT]
        for node in nodes:
            if node.results[0].type.quantization is not None:
                raise ModelError(f"quantize: {described(node)} is quantised already")
        self.readers = users(nodes)
        self._find_softmaxes(nodes)
        self._find_statics(nodes)
        dynamic = [v for v in self.position if not isinstance(self.representations.get(v), Static)]
        ranges = {v: self.ranges[i] for v, i in self.position.items() if i in self.ranges}
        ranges.update((node.results[0], (0.0, _LARGEST_PROBABILITY)) for node in self.softmaxes)
        self.range = shared(dynamic, ranges)
        if given.type.quantization is not None:
            self.representations[self.input] = QuantizableTensor(s8=given)
        else:
            of = self._quantization(self.input)
            self.representations[self.input] = QuantizableTensor(
                s8=F.quantize(given, of.scale, of.zero_point)
            )
        self.tensors.append(("input", self.input, self._s8(self.input)))
        for node in nodes:
            if node.results[0] not in self.representations:
                with building(node.origin.scope):
                    found = self._represent(node)
                    if found is not None:
                        self.representations[node.results[0]] = found
                        continue
                    self.floats.append(node)
                    results = self._as_float(node)
                self.representations.update(
                    (v, QuantizableTensor(float=r)) for v, r in zip(node.results, results, strict=True)
                )
        return self._float(self.result)

    @property
    def quantized_result(self) -> Value:
        """The s8 result of `run`."""
        return self._s8(self.result)

    # Converted values, values that do not depend on the input, and ranges

    def _find_softmaxes(self, nodes: Sequence[Node]) -> None:
        """Find the softmaxes of finite values."""
        for node in nodes:
            softmax = softmax_operand(node.results[0])
            if softmax is not None and self.position[softmax.x] in self.ranges:
                low, high = self.ranges[self.position[softmax.x]]
                if high - low <= np.finfo(np.float32).max:
                    self.softmaxes[node] = softmax

    def _find_statics(self, nodes: Sequence[Node]) -> None:
        dynamic = {self.input}
        for node in nodes:
            if any(v in dynamic for v in node.operands):
                dynamic.update(node.results)
        states = {n.results[0]: n.attrs["state"].init.array() for n in nodes if n.op is STATE}
        known = [n.results[0] for n in nodes if n.results[0] not in dynamic]
        arrays = evaluate(known, states)
        self.representations.update((v, Static(a)) for v, a in zip(known, arrays, strict=True))

    def _quantization(self, v: Value) -> Quantization:
        if v not in self.range:
            raise ModelError(
                f"quantize: no range of {described(v.node)}: it is no float that the calibration computed"
            )
        if not self._is_finite(v):
            raise ModelError(
                f"quantize: {described(v.node)} is not finite on the calibration data; leave it out of the part that "
                "is quantised, or limit its operands"
            )
        return covering(*self.range[v])

    def _is_finite(self, v: Value) -> bool:
        """Whether the range of a static array, or of a tensor on the calibration data, is finite in float32."""
        known = self.representations.get(v)
        low, high = (
            (known.array.min(), known.array.max())
            if isinstance(known, Static)
            else self.range.get(v, (0.0, 0.0))
        )
        return bool(high - low <= np.finfo(np.float32).max)

    # A value as s8 or as a float

    def _s8(self, v: Value) -> Value:
        known = self.representations[v]
        if isinstance(known, QuantizableTensor) and known.s8 is not None:
            return known.s8
        node = known.node if isinstance(known, Pending) else v.node
        scope, name = node.origin.scope, name_of(node)
        with building(scope):
            result = self._quantized_value(v, known)
        if name == scope:
            set_output(result, scope)
        self.representations[v] = QuantizableTensor(
            result, known.float if isinstance(known, QuantizableTensor) else None
        )
        self.tensors.append((name, v, result))
        return result

    def _quantized_value(self, v: Value, known: Representation) -> Value:
        """The s8 value of v."""
        of = self._quantization(v)
        if isinstance(known, Pending):
            low, high = (integer(limit, of) for limit in known.limits)
            affine = () if known.factor is None else (known.factor, known.shift)
            result = known.build(of, low, high, *affine)
            for view in known.views:
                result = apply(view.op.name, result, **view.attrs)
        elif isinstance(known, Static) and not _varies(v):
            result = constant(quantized(known.array, of), s8, of)
        elif isinstance(known, IntegerFunction):
            result = looked_up(v, known, self._s8(known.source), of, self.representations)
        else:
            result = F.quantize(self._float(v), of.scale, of.zero_point)
        return result

    def _float(self, v: Value) -> Value:
        known = self.representations[v]
        if isinstance(known, Static):
            return self._as_float(v.node)[v.index] if _varies(v) else constant(known.array)
        if isinstance(known, QuantizableTensor) and known.float is not None:
            return known.float
        if isinstance(known, Sums):
            result = F.dequantize(known.mean) * float(known.count)
            self.representations[v] = QuantizableTensor(float=result)
            return result
        if v.type.dtype is not f32:  # a mask
            return self._as_float(v.node)[v.index]
        result = F.dequantize(self._s8(v))
        self.representations[v] = QuantizableTensor(self._s8(v), result)
        return result

    def _as_float(self, node: Node) -> Sequence[Value]:
        """The results of the node on floats."""
        return node.with_operands(tuple(map(self._float, node.operands))).results

    # Forms on s8

    def _represent(self, node: Node) -> Representation | None:
        """The representation that computes the node on s8; None if there is none."""
        if node in self.softmaxes:
            return self._softmax(node)
        for v in node.operands:
            if v.type.dtype is not f32 and not isinstance(self.representations[v], Static | IntegerFunction):
                return None  # an index, or a mask of several tensors
        if is_identity(node):
            return self._mergeable(node.operands[0])
        if isinstance(node.op.lower, View):
            return self._view(node)
        if isinstance(node.op.lower, Assemble):
            return self._assembled(node)
        low, high = node.op.limits(node.attrs)
        if low < high:
            return self._limited(node, low, high)
        if is_sum(node):
            return self._sums(node)
        form = quantized_equivalent(node.op)
        if isinstance(form, Pooling):
            attrs = form.attributes(node.attrs)
            return (
                None
                if attrs is None
                else QuantizableTensor(s8=apply(form.op, self._s8(node.operands[0]), **attrs))
            )
        if isinstance(form, Product):
            return self._product(node, form)
        if len(node.operands) == 2 and (node.op.signs or node.op.powers):
            return self._of_two(node)
        return self._function(node)

    def _mergeable(self, v: Value) -> Representation:
        """The representation of v; a pending one, which a node may extend, only where a single node reads v."""
        known = self.representations[v]
        if isinstance(known, Pending) and len(self.readers.get(v, ())) > 1:
            self._s8(v)
        return self.representations[v]

    def _view(self, node: Node) -> Representation:
        known = self._mergeable(node.operands[0])
        if isinstance(known, Pending):
            return replace(known, views=(*known.views, node))
        return QuantizableTensor(s8=apply(node.op.name, self._s8(node.operands[0]), **node.attrs))

    def _assembled(self, node: Node) -> Representation | None:
        parts = [self._s8(v) for v in node.operands]
        of = parts[0].type.quantization
        if of is None or any(p.type.quantization != of for p in parts) or node.attrs["fill"]:
            return None
        return QuantizableTensor(s8=apply(node.op.name, *parts, **{**node.attrs, "fill": of.zero_point}))

    def _limited(self, node: Node, low: float, high: float) -> Representation | None:
        known = self._mergeable(node.operands[0])
        if isinstance(known, IntegerFunction):
            return self._function(node)
        if isinstance(known, Pending):
            limits = max(low, known.limits[0]), min(high, known.limits[1])
            return replace(known, limits=limits)
        q = self._s8(node.operands[0])
        of = q.type.quantization
        assert of is not None
        joined = any(
            isinstance(reader.op.lower, Assemble) for reader in self.readers.get(node.results[0], ())
        )
        if joined and self._quantization(node.results[0]) != of:  # a part has the scale of the whole
            return self._function(node)
        limits = integer(low, of, 1), integer(high, of, 1)
        return QuantizableTensor(s8=clamped(q, *limits, self.clamp_gradient))

    def _sums(self, node: Node) -> Representation | None:
        """Sums over axes, computed as means: an average pooling of whole images."""
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

    def _softmax(self, node: Node) -> Representation:
        softmax = self.softmaxes[node]
        x = self._s8(softmax.x)

        def build(of: Quantization, low: int, high: int) -> Value:
            y = F.quantized_softmax(x, softmax.axis)
            if of != PROBABILITIES:  # the softmax shares elements with a value of another range
                y = F.quantize(F.dequantize(y), of.scale, of.zero_point)
            return y if (low, high) == (LOW, HIGH) else clamped(y, low, high, self.clamp_gradient)

        return Pending(node, build)

    def _product(self, node: Node, form: Product) -> Representation | None:
        weights = self.representations[node.operands[1]]
        if not isinstance(weights, Static) or weights.array.ndim != form.rank:
            return None
        x, w = self._s8(node.operands[0]), form.as_in_pytorch(weights.array.astype(np.float64))
        channels = len(w)

        def build(of: Quantization, low: int, high: int, factor: Any, shift: Any) -> Value:
            layer = self.layers.next(
                name_of(node), x, lambda of_x: quantized_weights(w, of_x, of, factor, shift)
            )
            return product(x, layer, form, node.attrs, of, low, high, self.clamp_gradient)

        shape = planned(node.results[0].type.shape)
        return Pending(node, build, factor=np.ones(channels), shift=np.zeros(channels), shape=shape)

    def _of_two(self, node: Node) -> Representation | None:
        """A sum or a product of two values; a pending product absorbs a number for each channel."""
        for k, v in enumerate(node.operands):
            other = self.representations[node.operands[1 - k]]
            if not isinstance(other, Static):
                continue
            known = self._mergeable(v)
            if (
                isinstance(known, Sums)
                and node.op.powers == (1, 1)
                and np.allclose(known.count * other.array, 1.0)
            ):
                return QuantizableTensor(s8=known.mean)
            if (
                isinstance(known, Pending)
                and known.factor is not None
                and known.limits == (-math.inf, math.inf)
            ):
                changed = absorbed(node, k, known, other.array)
                if changed is not None:
                    return changed
        same = self._function(node)
        if same is not None:
            return same
        if not all(map(self._is_finite, (*node.operands, *node.results))):
            return None
        function: Callable[..., Value]
        if node.op.signs:
            function = partial(signed_sum, node.op.name, node.op.signs)
        elif node.op.powers == (1, 1):
            function = F.quantized_mul
        else:
            return None
        a, b = (self._operand(v) for v in node.operands)

        def build(of: Quantization, low: int, high: int) -> Value:
            return function(a, b, of.scale, of.zero_point, low, high, self.clamp_gradient)

        return Pending(node, build)

    def _function(self, node: Node) -> Representation | None:
        """The function that an elementwise node computes of one quantised tensor; None for operands other than numbers
        and functions of one tensor."""
        if not isinstance(node.op.lower, Elementwise):
            return None
        found = [self.representations[v] for v in node.operands]
        sources = {
            known.source if isinstance(known, IntegerFunction) else v
            for v, known in zip(node.operands, found, strict=True)
            if not isinstance(known, Static)
        }
        if len(sources) != 1 or any(isinstance(known, Static) and known.array.size > 1 for known in found):
            return None
        (source,) = sources
        if not self._is_finite(source):
            return None
        of = self._s8(source).type.quantization
        assert of is not None
        integers = of.scale * (np.arange(LOW, HIGH + 1) - of.zero_point)
        arrays = [
            known.array.reshape(())
            if isinstance(known, Static)
            else known.numbers
            if isinstance(known, IntegerFunction)
            else integers
            for known in found
        ]
        return IntegerFunction(source, node.op.ref(*arrays, **node.attrs))

    def _operand(self, v: Value) -> Value:
        """An operand as s8; the elements of an array determine its range."""
        known = self.representations[v]
        if isinstance(known, Static):
            of = covering(float(known.array.min()), float(known.array.max()))
            if _varies(v):
                return F.quantize(self._float(v), of.scale, of.zero_point)
            return constant(quantized(known.array, of), s8, of)
        return self._s8(v)


def _varies(v: Value) -> bool:
    """Whether the batch of a value varies at run time; the array of such a static value has the largest batch."""
    return any(isinstance(d, Dim) for d in v.type.shape)
