"""The 8-bit networks of Lin et al. 2022, "On-Device Training Under 256KB Memory", which train in part: biases of the
last convolutions, weights of fractions of the input channels of some, and a float classifier of 10 classes.

The networks that were trained on ImageNet are read from $AUTODIFF_DATA/mcunet, if they are there; weights are random
numbers otherwise. Shapes and the plan of memory do not depend on them; MCUNet with random numbers takes 5 % fewer
instructions of a step and 3 % fewer bytes of text.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import cycled, data, labels, states

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim, quant

SIDE, FIRST, CLASSES = 128, 16, 10
RELU6 = {"y_scale": 6 / 255, "y_zero": -128}
LINEAR = {"y_scale": 0.05, "y_zero": 0}


@dataclass(frozen=True)
class SparseUpdate:
    """A network and what of it trains. file: its name in $AUTODIFF_DATA/mcunet; blocks: the channels after the
    expansion (0: none), the rows of the depthwise filters, the stride, the output channels, and whether the input is
    added; biases: of so many last convolutions; fractions: of the input channels, by the number of the convolution."""

    file: str
    blocks: Sequence[tuple[int, int, int, int, int]]
    biases: int
    fractions: Mapping[int, float]

    def backbone(self) -> quant.Network:
        """All but the classifier, its last layer."""
        path = Path(os.environ.get("AUTODIFF_DATA", "")) / "mcunet" / f"{self.file}.npz"
        if "AUTODIFF_DATA" not in os.environ or not path.is_file():
            return quant.load(self._random())
        with np.load(path) as file:
            arrays = {name: file[name] for name in file.files}
        layers = json.loads(str(arrays["layers"]))
        last = layers.pop()
        arrays = {k: v for k, v in arrays.items() if not k.startswith(f"{last['name']}.")}
        return quant.load({**arrays, "layers": json.dumps(layers)})

    def model(self) -> ag.Model:
        """The model that trains it, one image at a time."""
        net = _Classifier(self.backbone(), self.blocks[-1][3])
        layers = [m for m in net.backbone.children() if list(m.parameters())]
        for layer in layers[len(layers) - self.biases :]:
            layer.bias.requires_grad = True
        for k, fraction in self.fractions.items():
            nn.update_channels(layers[k], fraction)
        return ag.Model.supervised(
            net, input=(1, 3, SIDE, SIDE), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.01)
        )

    def batch(self, step: int) -> list[np.ndarray]:
        """The image and the label of a step, counted from 0."""
        return cycled(step, 1, data((2, 3, SIDE, SIDE), 71), labels(2, CLASSES, 72))

    def _random(self) -> dict[str, Any]:
        arrays: dict[str, Any] = {}
        layers: list[dict[str, Any]] = []
        inputs, of_x = 3, {"x_scale": 1 / 127.5, "x_zero": 0}

        def convolution(name: str, outputs: int, kernel: int, stride: int, groups: int, of_y: Any) -> None:
            nonlocal inputs, of_x
            shape = (outputs, inputs // groups, kernel, kernel)
            numbers = (states(math.prod(shape), 1 + len(layers)) >> np.uint32(16)) % np.uint32(255)
            scale = math.sqrt(6 / math.prod(shape[1:])) / 127  # of a variance of 2 / fan-in
            arrays[f"{name}.weight"] = (numbers.astype(np.int32) - 127).astype(np.int8).reshape(shape)
            arrays[f"{name}.w_scales"] = np.full(outputs, scale, np.float32)
            arrays[f"{name}.bias"] = np.zeros(outputs, np.int32)
            geometry = {"kernel": kernel, "stride": stride, "groups": groups}
            layers.append({"name": name, "kind": "conv", **geometry, **of_x, **of_y})
            inputs, of_x = outputs, {"x_scale": of_y["y_scale"], "x_zero": of_y["y_zero"]}

        convolution("first_conv", FIRST, 3, 2, 1, RELU6)
        for k, (wide, kernel, stride, outputs, is_added) in enumerate(self.blocks):
            before = of_x
            if wide:
                convolution(f"blocks.{k}.pointwise1", wide, 1, 1, 1, RELU6)
            convolution(f"blocks.{k}.depthwise", inputs, kernel, stride, inputs, RELU6)
            convolution(f"blocks.{k}.pointwise2", outputs, 1, 1, 1, LINEAR)
            if is_added:
                layers.append({"name": f"blocks.{k}.residual", "kind": "add", **before, **LINEAR})
        layers.append({"name": "avgpool", "kind": "global average pool"})
        return {**arrays, "layers": json.dumps(layers)}


class _Classifier(nn.Module):
    def __init__(self, backbone: quant.Network, channels: int) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(channels, CLASSES)

    def forward(self, x: Any) -> Any:
        return self.head(F.flatten(self.backbone(x), 1))
