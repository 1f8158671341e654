"""Post-training static quantisation of a float network, or of a part of one."""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np

from ...errors import ModelError, ShapeError
from ...functional.arguments import as_value
from ...functional.quantized_arguments import array_of, check_convention
from ...ir.build import make_input
from ...ir.interpreter import evaluate
from ...ir.node import CONST, INPUT, STATE, Value, topological
from ...ir.origin import building, current
from ...ir.types import Type, f32
from ...nn.module import Module
from ...ops.quantized.limits import OPEN
from .convert import QuantConversion
from .names import described
from .products import Layers
from .ranges import Ranges, check_calibration, joined, range_of, samples_of, values_of
from .weights import QuantizedWeights

_CHUNK = 32  # samples that are evaluated at once


class Quantized(Module):
    """A part of a network on 8-bit integers: BatchNorm is folded into the weights, which have a scale for each output
    channel, and activations such as ReLU and ReLU6 are limits of the op before them. It takes a float tensor or one
    that is quantised, and returns a float tensor; the part is in evaluation mode.

    Its modules are its layers with weights, under the names that they have in the float network. Their parameters
    `weight`, s8, and `bias`, float, have requires_grad=False, and are then constants. Set requires_grad to train one.

    float_ops: the names of ops that have no form on s8 and are computed in float, if `fallback` allows that.
    clamp_gradient: as for `quantize`.
    """

    def __init__(
        self, module: Module, ranges: Ranges, shape: tuple[int, ...], fallback: bool, clamp_gradient: str
    ) -> None:
        super().__init__()
        self.__dict__["_float"] = module  # no member: its parameters are not the network's
        self.ranges, self.shape, self.fallback = ranges, shape, fallback
        self.clamp_gradient = clamp_gradient
        self.float_ops: tuple[str, ...] = ()
        self._layers: tuple[QuantizedWeights, ...] = ()
        _, conversion = self._converted(make_input("x", Type(f32, (1, *shape))), ())
        self._layers = tuple(conversion.layers.every)
        self._members()[1].update({layer.name: layer for layer in self._layers})

    def forward(self, input: Any) -> Value:
        return self._converted(as_value(input), self._layers)[0]

    def quantized(self, input: Any) -> Value:
        """The result, s8."""
        self._named("parameter", called=True)
        return self._converted(as_value(input), self._layers)[1].quantized_result

    def _converted(self, input: Value, layers: Sequence[QuantizedWeights]) -> tuple[Value, QuantConversion]:
        if input.type.shape[1:] != self.shape:
            raise ModelError(
                f"quantize: the calibration data has samples of shape {list(self.shape)}, the input is {input.type}"
            )
        x = make_input("x", Type(f32, input.type.shape))
        modules = {name for name, _ in self._float.named_modules()}
        traced = _traced(self._float, x)
        conversion = QuantConversion(x, traced, self.ranges, Layers(layers, modules), self.clamp_gradient)
        with np.errstate(all="ignore"):
            result = conversion.run(input)
        self.float_ops = tuple(dict.fromkeys(n.op.name for n in conversion.floats))
        if self.float_ops and not self.fallback:
            where = dict.fromkeys(map(described, conversion.floats))
            raise ModelError(
                f"quantize: no form on s8 of {', '.join(where)}; leave the layer out of the part that is quantised, or "
                "give fallback=True, which computes it in float"
            )
        return result, conversion

    def report(self, x: Any, labels: Any = None) -> str:
        """The loss of accuracy on samples x: the signal-to-quantisation-noise ratio of each tensor, by the layer that
        computes it; the bytes of parameters before and after; with labels, the accuracy before and after."""
        samples = samples_of("report: x", x)
        if samples.shape[1:] != self.shape:
            raise ModelError(
                f"report: x must have samples of shape {list(self.shape)}, as the calibration data had, not "
                f"{list(samples.shape[1:])}"
            )
        given = make_input("given", Type(f32, samples.shape))
        layers = copy.deepcopy(self._layers)  # layers that are converted here are in no model
        for weights in layers:
            weights._named("parameter")
        result, conversion = self._converted(given, layers)
        states = _states(conversion.result)
        feeds = {conversion.input: samples, **states}
        *wanted, before = evaluate([*(v for _, v, _ in conversion.tensors), conversion.result], feeds)
        feeds = {given: samples, **_states(result)}
        *found, after = evaluate([*(q for *_, q in conversion.tensors), result], feeds)
        lines = [f"{'layer':<28} {'SQNR':>6}"]
        for (layer, _, q), exact, integers in zip(conversion.tensors, wanted, found, strict=True):
            lines.append(f"{layer:<28} {_ratio(exact, integers, q):6.1f} dB")
        leaves = [r.type for n in topological([result]) if n.op in (CONST, STATE) for r in n.results]
        bytes_before, bytes_after = sum(a.nbytes for a in states.values()), sum(t.bytes for t in leaves)
        lines.append(f"parameters: {bytes_before:,} bytes in float, {bytes_after:,} quantised")
        if labels is not None:
            classes = array_of(labels)
            if classes.dtype.kind not in "iu" or classes.size != len(samples):
                raise ModelError(
                    f"report: labels must be {len(samples)} class numbers, one for each sample, not "
                    f"{classes.dtype}{list(classes.shape)}"
                )
            classes = classes.reshape(len(samples))
            right = [
                float(np.mean(y.reshape(len(samples), -1).argmax(1) == classes)) for y in (before, after)
            ]
            lines.append(f"accuracy: {right[0]:.2%} in float, {right[1]:.2%} quantised")
        return "\n".join(lines)


def _ratio(exact: Any, integers: Any, q: Value) -> float:
    """The signal-to-quantisation-noise ratio in dB."""
    of = q.type.quantization
    assert of is not None
    noise = np.sum((exact - of.scale * (integers.astype(np.float64) - of.zero_point)) ** 2)
    return float(10 * np.log10(np.sum(exact.astype(np.float64) ** 2) / noise)) if noise else math.inf


def _states(result: Value) -> dict[Value, Any]:
    """The parameters and buffers of a graph, with their values."""
    nodes = (n for n in topological([result]) if n.op is STATE)
    return {n.results[0]: n.attrs["state"].init.array().astype(n.results[0].type.dtype.numpy) for n in nodes}


def quantize(
    module: Module,
    calibration: Any,
    method: str = "minmax",
    fallback: bool = False,
    clamp_gradient: str = OPEN,
) -> Quantized:
    """The module on 8-bit integers.

    calibration: samples of its input, [samples, ...], from which the range of each tensor follows. method: "minmax",
    the whole range; "percentile", without the outermost 0.01 % at either end; "mse", the range with the least squared
    error.
    fallback: compute ops that have no form on s8 in float. clamp_gradient: "open", gradients stop where a result is one
    of its limits, or "closed", where it was beyond them before it was limited (docs/quantization.md). Raises ModelError
    for calibration data that is empty, constant or not finite, for ops without a form on s8, for an input of another
    shape and for another clamp_gradient; ShapeError for data that the module does not take.
    """
    check_convention("quantize", clamp_gradient, ModelError)
    if not isinstance(module, Module):
        given = f"the class {module.__name__}: call it" if isinstance(module, type) else type(module).__name__
        raise ModelError(f"quantize: the first argument must be an object of nn.Module, not {given}")
    x = check_calibration(calibration, method)
    found: dict[int, list[tuple[float, float]]] = {}
    for start in range(0, len(x), _CHUNK):
        chunk = x[start : start + _CHUNK]
        given = make_input("x", Type(f32, chunk.shape))
        try:
            values = values_of(_traced(module, given))
        except ShapeError as error:
            shape = list(x.shape[1:])
            raise ShapeError(
                f"quantize: the module does not take the calibration data's samples of shape {shape}: {error}"
            ) from None
        states = _states(values[-1])
        kept = [(i, v) for i, v in enumerate(values) if v.type.dtype is f32 and v.node.op is not STATE]
        with np.errstate(all="ignore"):
            arrays = evaluate([v for _, v in kept], {given: chunk, **states})
        for (i, _), array in zip(kept, arrays, strict=True):
            found.setdefault(i, []).append(range_of(array, method))
    return Quantized(module, {i: joined(r) for i, r in found.items()}, x.shape[1:], fallback, clamp_gradient)


def _traced(module: Module, x: Value) -> Value:
    """The result of the module in evaluation mode; its own mode stays."""
    name, scope = type(module).__name__, current().scope
    try:
        signature(module.forward).bind(x)
    except TypeError:
        raise ModelError(f"quantize: {name} must take one tensor, its forward is another function") from None
    modes = {m: m.training for _, m in module.named_modules()}
    module.eval()
    with building(scope, paths={id(m): name for name, m in module.named_modules(scope)}):
        result = module(x)
    for m, training in modes.items():
        m.training = training
    if not isinstance(result, Value):
        raise ModelError(f"quantize: {name} must return one tensor, not {type(result).__name__}")
    inputs = {n.results[0] for n in topological([result]) if n.op is INPUT}
    if x not in inputs:
        raise ModelError(f"quantize: the result of {name} does not depend on its input")
    if len(inputs) > 1:
        other = next(v.name for v in inputs if v is not x)
        raise ModelError(f"quantize: {name} reads {other!r}; it may read only its own input")
    return result
