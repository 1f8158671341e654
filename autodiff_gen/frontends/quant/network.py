"""A quantised network as a module: layers that read results of earlier ones by name, as docs/quantization.md describes
their file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ... import functional as F
from ...errors import ModelError, ShapeError
from ...ir.node import Value
from ...ir.quantization import HIGH, LOW
from ...nn.module import Module

Arrays: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Layer:
    """One layer: its op (a key of OPS), the names of the layers whose results it reads, the scale and zero point of its
    result, the limits of the result's integers, and what else the op takes."""

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    scale: float = 0.0
    zero_point: int = 0
    low: int = LOW
    high: int = HIGH
    options: Mapping[str, Any] = field(default_factory=dict)


def _quantize(layer: Layer, arrays: Arrays, x: Value) -> Value:
    return x if x.type.quantization is not None else F.quantize(x, layer.scale, layer.zero_point)


def _weighted(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(layer: Layer, arrays: Arrays, x: Value) -> Value:
        weight = F.quantized_weight(arrays["weight"], arrays["weight_scales"])
        result = {"scale": layer.scale, "zero_point": layer.zero_point, "low": layer.low, "high": layer.high}
        return function(x, weight, arrays.get("bias"), **result, **layer.options)

    return apply


def _pooled(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(layer: Layer, arrays: Arrays, x: Value) -> Value:
        options = {"kernel_size": tuple(x.shape[2:]), **layer.options}  # of the whole image
        return function(x, low=layer.low, high=layer.high, **options)

    return apply


def _of_two(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(layer: Layer, arrays: Arrays, a: Value, b: Value) -> Value:
        return function(a, b, layer.scale, layer.zero_point, layer.low, layer.high)

    return apply


def _flatten(layer: Layer, arrays: Arrays, x: Value) -> Value:
    return F.flatten(x, 1)


def _cat(layer: Layer, arrays: Arrays, *parts: Value) -> Value:
    return F.cat(parts, 1)


OPS: Mapping[str, Callable[..., Value]] = {
    "quantize": _quantize,
    "conv2d": _weighted(F.quantized_conv2d),
    "linear": _weighted(F.quantized_linear),
    "avg_pool2d": _pooled(F.quantized_avg_pool2d),
    "max_pool2d": _pooled(F.quantized_max_pool2d),
    "add": _of_two(F.quantized_add),
    "sub": _of_two(F.quantized_sub),
    "mul": _of_two(F.quantized_mul),
    "flatten": _flatten,
    "cat": _cat,
}
WEIGHTED = ("conv2d", "linear")
ARRAYS = ("weight", "weight_scales", "bias")


class _LayerModule(Module):
    """One layer, so that names in generated C are those of the layers."""

    def __init__(self, layer: Layer, arrays: Arrays) -> None:
        super().__init__()
        self.layer, self.arrays = layer, arrays

    def forward(self, *inputs: Value) -> Value:
        try:
            return OPS[self.layer.op](self.layer, self.arrays, *inputs)
        except ShapeError as error:
            raise ShapeError(f"layer {self.layer.name!r}: {error}") from None


class Network(Module):
    """A quantised network. It takes a float tensor, or one that is quantised as its first layer says, and returns a
    float tensor: the dequantised result of its last layer. Its parameters are constants: nothing of it is trained.

    layers: in the order of execution; arrays: those of each layer by "<layer>.weight" (s8), "<layer>.weight_scales"
    (float, one or one for each output channel) and "<layer>.bias" (s32). Raises ModelError for layers that do not fit
    together and for missing arrays; calling it raises ShapeError.
    """

    def __init__(self, layers: Sequence[Layer], arrays: Arrays) -> None:
        super().__init__()
        if not layers:
            raise ModelError("a quantised network needs at least one layer")
        known: list[str] = []
        for layer in layers:
            unknown = next((name for name in layer.inputs if name not in known), None)
            if layer.op not in OPS:
                raise ModelError(
                    f"layer {layer.name!r}: no quantised op {layer.op!r}; there are {', '.join(OPS)}"
                )
            if unknown is not None:
                raise ModelError(f"layer {layer.name!r} reads {unknown!r}, which is no earlier layer")
            if layer.name in known:
                raise ModelError(f"two layers are called {layer.name!r}")
            own = {k: arrays[f"{layer.name}.{k}"] for k in ARRAYS if f"{layer.name}.{k}" in arrays}
            missing = [k for k in ARRAYS[:2] if layer.op in WEIGHTED and k not in own]
            if missing:
                raise ModelError(
                    f"layer {layer.name!r}: the array {f'{layer.name}.{missing[0]}'!r} is missing"
                )
            known.append(layer.name)
            self._members()[1][layer.name] = _LayerModule(layer, own)
        self.layers = tuple(layers)

    def forward(self, input: Value) -> Value:
        return F.dequantize(self.quantized(input))

    def quantized(self, input: Value) -> Value:
        """The result of the last layer, s8."""
        values: dict[str, Value] = {}
        last: Value = input
        for layer, module in zip(self.layers, self.children(), strict=True):
            given = [values[name] for name in layer.inputs] or [last]
            last = values[layer.name] = module(*given)
        return last
