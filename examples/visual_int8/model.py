"""MobileNetV2 on 8-bit integers learns two new photographs in a new light, one crop at a time. The backbone, quantised
after training in float, is constant but for a sparse update: biases of its last layers and a quarter of the input
channels of two. The classifier is float and is trained. Pixels are bytes, as of a camera."""

from pathlib import Path

import numpy as np
from crops import LEARNED, NEW, SIZE, by_daylight, cut, photographs
from net import FEATURES, Backbone, network_input

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim, quant

CALIBRATION = 24  # crops
TRAINED = ("blocks.15", "blocks.16", "last")  # whose biases are
PROJECTIONS = ("blocks.15.project.0", "blocks.16.project.0")  # some of their weights are

weights = {k: v.astype(np.float32) for k, v in np.load(Path(__file__).with_name("weights.npz")).items()}
known = len(weights["1.bias"])

features = Backbone()
features.load_state_dict({k.removeprefix("0."): v for k, v in weights.items() if k.startswith("0.")})
photos = photographs()[1]
crops = cut(photos, np.arange(CALIBRATION) % known, LEARNED, by_daylight, np.random.default_rng(3))


class Network(nn.Module):
    """Scores of a crop x, u8[1, 96, 96, 3]."""

    def __init__(self):
        super().__init__()
        self.backbone = quant.quantize(features, network_input(crops))
        layers = dict(self.backbone.named_modules())
        for name, layer in layers.items():
            if name.startswith(TRAINED):
                layer.bias.requires_grad = True
        for name in PROJECTIONS:
            nn.update_channels(layers[name], 0.25)
        self.classifier = nn.Linear(FEATURES, known + NEW)
        self.classifier.load_state_dict(
            {
                "weight": np.pad(weights["1.weight"], ((0, NEW), (0, 0))),
                "bias": np.pad(weights["1.bias"], (0, NEW)),
            }
        )

    def forward(self, x):
        image = F.permute(x, (0, 3, 1, 2)).to("f32")
        return self.classifier(self.backbone((image - 128.0) / 64.0))


x = ag.Input("x", (1, SIZE, SIZE, 3), dtype="u8")
label = ag.Input("label", (1,), dtype="u8")
scores = Network()(x)
model = ag.Model([x], [label], {"scores": scores}, nn.CrossEntropyLoss()(scores, label), optim.SGD(lr=0.03))
