"""The parameters of a quantised layer: its 8-bit weights and its bias."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from ... import functional as F
from ... import init
from ...errors import ModelError, ShapeError
from ...functional.quantized_arguments import array_of
from ...ir.build import constant
from ...ir.node import Value
from ...nn.convolution import channel_axis
from ...nn.module import Module
from ...nn.parameter import Parameter, QuantizedParameter


class QuantizedWeights(Module):
    """The parameters of a quantised layer: `weight`, s8 [out, in / groups, ...], and `bias`, the real numbers that the
    integers of `arrays` represent. They train only if requires_grad is set. Raises ModelError for arrays of wrong types
    or shapes.

    arrays: "weight" (s8), "weight_scales" (float, one or one for each output channel) and "bias" (s32); without weights
    there are no parameters. x_scale: the scale of the layer's input, None where it is not known before the network is
    called."""

    def __init__(self, name: str, arrays: Mapping[str, Any], x_scale: float | None, groups: int = 1) -> None:
        super().__init__()
        self.name, self.arrays, self.x_scale, self.groups = name, arrays, x_scale, groups
        self._given: dict[str, Any] = {}  # the initial values of parameters
        if "weight" not in arrays:
            return
        try:
            weight = QuantizedParameter(arrays["weight"], arrays["weight_scales"], requires_grad=False)
        except ShapeError as error:
            raise ModelError(f"layer {name!r}: {error}") from None
        self.weight: Parameter = weight
        if arrays.get("bias") is not None:
            out, bias = weight.start.shape[:1], array_of(arrays["bias"])
            if bias.dtype != np.int32 or bias.shape != out:
                raise ModelError(
                    f"layer {name!r}: the bias must be int32{list(out)}, not {bias.dtype}{list(bias.shape)}"
                )
            if x_scale is not None:
                scales = np.asarray(arrays["weight_scales"], np.float64)
                self.bias = Parameter(bias * (x_scale * scales), requires_grad=False)
        self._given = {k: p.start for k, p in self._members()[0].items() if p is not None}

    @property
    def channel_axis(self) -> int | None:
        """The axis of the input channels in the weight; None for groups of several channels, and without a weight."""
        weight = self._members()[0].get("weight")
        if weight is None:
            return None
        outputs, inputs, *_ = init.initialiser("weight", weight.start, 0).shape
        return channel_axis(self.groups, inputs * self.groups, outputs)

    def use_master_copy(self) -> Self:
        """Keep the weights as floats, which are rounded to s8 wherever they are used: small updates add up exactly, for
        five times the memory. Returns the layer. Raises ModelError for a layer without weights."""
        weight = self._members()[0].get("weight")
        if not isinstance(weight, QuantizedParameter):
            raise ModelError(f"layer {self.name!r} has no 8-bit weights to copy")
        of = weight.quantization
        integers = init.initialiser("weight", weight.start, 0).array()
        copied = Parameter(integers * of.along(integers.shape), weight.requires_grad)
        copied.channels = weight.channels
        self.weight = copied
        return self

    def taken(self, x_scale: float | None = None) -> dict[str, Any]:
        """The arrays as the op takes them: the weight is a graph value, and so are arrays that train. x_scale: the
        scale of the layer's input, if it may differ from the scale that the layer was made for."""
        own = {k: self._taken(k, p, x_scale) for k, p in self._members()[0].items() if p is not None}
        if "weight" in own and not isinstance(own["weight"], Value):
            own["weight"] = F.quantized_weight(own["weight"], self.arrays["weight_scales"])
        return {**self.arrays, **own}

    def _taken(self, name: str, parameter: Parameter, x_scale: float | None) -> Any:
        """A parameter as the op takes it. One that does not train is a constant: the integers of `arrays` as long as no
        other values were loaded."""
        value: Any = getattr(self, name)
        if not parameter.requires_grad:
            parameter.fix()
            units = name != "bias" or x_scale in (None, self.x_scale)
            if units and parameter.start is self._given.get(name):
                return self.arrays[name]
            array = init.initialiser(name, parameter.start, 0).array()
            if isinstance(parameter, QuantizedParameter):
                return array.astype(np.int8)
            value = constant(array)
        if name == "bias" or isinstance(parameter, QuantizedParameter):
            return value
        scales = np.asarray(self.arrays["weight_scales"])
        return F.quantize(value, scales, axis=0 if scales.ndim else None)
