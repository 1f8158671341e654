"""A quantised network as a module: layers that read results of earlier ones by name, as docs/quantization.md describes
their file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from ... import functional as F
from ...errors import ModelError, ShapeError, quoted
from ...functional.arguments import as_value
from ...functional.quantized_arguments import check_convention, check_limits, quantization_of
from ...ir.node import Value
from ...ir.quantization import HIGH, LOW
from ...nn.module import Module
from ...ops.quantized.limits import OPEN
from ...ops.quantized.softmax import PROBABILITIES
from .weights import QuantizedWeights

Arrays: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Layer:
    """One layer: its op (a key of OPS), the names of the layers whose results it reads, the scale and zero point of its
    result, the limits of the result's integers, and the op's further arguments."""

    name: str
    op: str
    inputs: tuple[str, ...] = ()
    scale: float = 0.0
    zero_point: int = 0
    low: int = LOW
    high: int = HIGH
    options: Mapping[str, Any] = field(default_factory=dict)


def _quantize(layer: Layer, arrays: Arrays, x: Value) -> Value:
    if x.type.quantization is None:
        return F.quantize(x, layer.scale, layer.zero_point)
    of = quantization_of("quantize", layer.scale, layer.zero_point)
    if x.type.quantization != of:
        raise ShapeError(f"the input is quantised as {x.type.quantization}, the layer as {of}")
    return x


def _weighted(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(layer: Layer, arrays: Arrays, x: Value, **more: Any) -> Value:
        result = {"scale": layer.scale, "zero_point": layer.zero_point, "low": layer.low, "high": layer.high}
        return function(x, arrays["weight"], arrays.get("bias"), **result, **layer.options, **more)

    return apply


def _pooled(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(layer: Layer, arrays: Arrays, x: Value, **more: Any) -> Value:
        options = {"kernel_size": tuple(x.shape[2:]), **layer.options, **more}  # of the whole image
        return function(x, low=layer.low, high=layer.high, **options)

    return apply


def _of_two(function: Callable[..., Value]) -> Callable[..., Value]:
    def apply(layer: Layer, arrays: Arrays, a: Value, b: Value, **more: Any) -> Value:
        return function(a, b, layer.scale, layer.zero_point, layer.low, layer.high, **more)

    return apply


def _softmax(layer: Layer, arrays: Arrays, x: Value) -> Value:
    return F.quantized_softmax(x, **layer.options)


def _flatten(layer: Layer, arrays: Arrays, x: Value) -> Value:
    return F.flatten(x, 1)


def _cat(layer: Layer, arrays: Arrays, *parts: Value) -> Value:
    return F.cat(parts, 1)


@dataclass(frozen=True)
class LayerOp:
    """build: (layer, its arrays, its operands) -> s8; for layers with limits it also takes clamp_gradient. keys: the
    entries of a layer in addition to name, op and inputs; operands: their number, None: one or more; arrays: names of
    arrays; the first `required` arrays must be given; scale: the result's scale if it is always the same."""

    build: Callable[..., Value]
    keys: tuple[str, ...] = ()
    operands: int | None = 1
    arrays: tuple[str, ...] = ()
    required: int = 0
    scale: float | None = None


SCALE, LIMITS = ("scale", "zero_point"), ("low", "high")
WINDOWS, POOLING = ("stride", "padding", "dilation", "groups"), ("kernel_size", "stride", "padding")
WEIGHTS: Mapping[str, Any] = {"arrays": ("weight", "weight_scales", "bias"), "required": 2}
OPS: Mapping[str, LayerOp] = {
    "quantize": LayerOp(_quantize, SCALE),
    "conv2d": LayerOp(_weighted(F.quantized_conv2d), SCALE + LIMITS + WINDOWS, **WEIGHTS),
    "linear": LayerOp(_weighted(F.quantized_linear), SCALE + LIMITS, **WEIGHTS),
    "avg_pool2d": LayerOp(_pooled(F.quantized_avg_pool2d), LIMITS + POOLING),
    "max_pool2d": LayerOp(_pooled(F.quantized_max_pool2d), LIMITS + POOLING),
    "add": LayerOp(_of_two(F.quantized_add), SCALE + LIMITS, operands=2),
    "sub": LayerOp(_of_two(F.quantized_sub), SCALE + LIMITS, operands=2),
    "mul": LayerOp(_of_two(F.quantized_mul), SCALE + LIMITS, operands=2),
    "softmax": LayerOp(_softmax, ("dim",), scale=PROBABILITIES.scale),
    "flatten": LayerOp(_flatten),
    "cat": LayerOp(_cat, operands=None),
}


def check_keys(name: Any, op: Any, keys: Collection[str]) -> None:
    """Raises ModelError for an unknown op, and for a key that a layer of this op does not take."""
    known = OPS.get(op) if isinstance(op, str) else None
    if known is None:
        raise ModelError(f"layer {quoted(name)}: no quantised op {quoted(op)}; there are {', '.join(OPS)}")
    unknown = next((k for k in keys if k not in known.keys), None)
    if unknown is not None:
        raise ModelError(
            f"layer {quoted(name)}: {op} takes no {quoted(unknown)}; it takes {', '.join(known.keys) or 'nothing'}"
        )


class LayerModule(QuantizedWeights):
    """The module of one layer of a Network."""

    def __init__(self, layer: Layer, arrays: Arrays, x_scale: float | None, clamp_gradient: str) -> None:
        super().__init__(layer.name, arrays, x_scale, layer.options.get("groups", 1))
        self.layer, self.clamp_gradient = layer, clamp_gradient

    def forward(self, *inputs: Value) -> Value:
        op = OPS[self.layer.op]
        convention = {"clamp_gradient": self.clamp_gradient} if {*LIMITS} <= {*op.keys} else {}
        try:
            return op.build(self.layer, self.taken(), *inputs, **convention)
        except ShapeError as error:
            raise ShapeError(f"layer {quoted(self.name)}: {error}") from None


def _check_layer(layer: Layer, known: Sequence[str]) -> None:
    """Raises ModelError unless a layer has a new name, reads as many earlier layers as its op takes, and has a scale,
    zero point and limits in their ranges."""
    if not isinstance(layer.name, str) or not layer.name:
        raise ModelError(f"layer {quoted(layer.name)}: the name must be a string of at least one character")
    if layer.name in known:
        raise ModelError(f"two layers are called {quoted(layer.name)}; rename one")
    unknown = next((name for name in layer.inputs if name not in known), None)
    if unknown is not None:
        raise ModelError(f"layer {quoted(layer.name)} reads {quoted(unknown)}, which is no earlier layer")
    count, wanted = len(layer.inputs) or 1, OPS[layer.op].operands
    if wanted is not None and count != wanted:
        raise ModelError(f"layer {quoted(layer.name)}: {count} inputs are given, {layer.op} has {wanted}")
    try:
        check_limits(layer.op, layer.low, layer.high)
        if "scale" in OPS[layer.op].keys:
            quantization_of(layer.op, layer.scale, layer.zero_point)
    except ShapeError as error:
        raise ModelError(f"layer {quoted(layer.name)}: {error}") from None


class Network(Module):
    """A quantised network. It takes a float tensor, or one that is quantised as its first layer says, and returns a
    float tensor: the dequantised result of its last layer. Its layers are modules under their names; their parameters
    `weight` and `bias` have requires_grad=False, and are then constants. Set requires_grad to train one.

    layers: in the order of execution; arrays: the arrays of each layer by `<layer>.weight` (s8),
    `<layer>.weight_scales` (float, one or one for each output channel) and `<layer>.bias` (s32); clamp_gradient: "open"
    or "closed", which gradients pass the limits of results (docs/quantization.md). Raises ModelError for layers that do
    not fit together, for missing arrays and for another clamp_gradient; calling it raises ShapeError.
    """

    source = ""  # the file that it was loaded from

    def __init__(self, layers: Sequence[Layer], arrays: Arrays, clamp_gradient: str = OPEN) -> None:
        super().__init__()
        check_convention("a quantised network", clamp_gradient, ModelError)
        if not layers or not all(isinstance(layer, Layer) for layer in layers):
            raise ModelError("a quantised network needs a sequence of at least one quant.Layer")
        known: list[str] = []
        read: set[str] = set()
        scale: dict[str, float | None] = {}
        for layer in layers:
            check_keys(layer.name, layer.op, layer.options)
            _check_layer(layer, known)
            op = OPS[layer.op]
            names = {k: f"{layer.name}.{k}" for k in op.arrays}
            own = {k: arrays[name] for k, name in names.items() if name in arrays}
            missing = next((names[k] for k in op.arrays[: op.required] if k not in own), None)
            if missing is not None:
                raise ModelError(f"layer {quoted(layer.name)}: the array {quoted(missing)} is missing")
            known.append(layer.name)
            read.update(names.values())
            x_scale = scale.get(layer.inputs[0] if layer.inputs else known[-2] if known[1:] else "")
            scale[layer.name] = layer.scale if "scale" in op.keys else op.scale or x_scale
            self._members()[1][layer.name] = LayerModule(layer, own, x_scale, clamp_gradient)
        unread = next((name for name in arrays if name not in read), None)
        if unread is not None:
            raise ModelError(
                f"no layer reads the array {quoted(unread)}; conv2d and linear read <layer>.weight, "
                "<layer>.weight_scales and <layer>.bias"
            )
        self.layers = tuple(layers)

    def forward(self, input: Any) -> Value:
        return F.dequantize(self.quantized(input))

    def quantized(self, input: Any) -> Value:
        """The result of the last layer, s8."""
        values: dict[str, Value] = {}
        last = as_value(input)
        for layer, module in zip(self.layers, self.children(), strict=True):
            given = [values[name] for name in layer.inputs] or [last]
            try:
                last = values[layer.name] = module(*given)
            except ShapeError as error:
                raise ShapeError(f"{self.source}: {error}" if self.source else str(error)) from None
        return last
