"""A keyword spotter on 8-bit integers learns two new words by a new voice: the backbone, quantised after training in
float, is constant; the classifier is float and is trained, one word at a time."""

from pathlib import Path

import numpy as np
from net import CHANNELS, Backbone, network_input

import autodiff_gen as ag
from autodiff_gen import nn, optim, quant

FOLDER = Path(__file__).parent
NEW_WORDS = 2

weights = dict(np.load(FOLDER / "weights.npz"))
words = np.load(FOLDER / "words.npz")

features = Backbone()
features.load_state_dict({k.removeprefix("0."): v for k, v in weights.items() if k.startswith("0.")})
backbone = quant.quantize(features, network_input(words["calibration"]))

known = len(weights["1.bias"])
classifier = nn.Linear(CHANNELS, known + NEW_WORDS)
classifier.load_state_dict(
    {
        "weight": np.pad(weights["1.weight"], ((0, NEW_WORDS), (0, 0))),
        "bias": np.pad(weights["1.bias"], (0, NEW_WORDS)),
    }
)

model = ag.Model.supervised(
    nn.Sequential(backbone, classifier),
    input=(1, 1, 49, 10),
    loss=nn.CrossEntropyLoss(),
    optimizer=optim.SGD(lr=0.05),
)
