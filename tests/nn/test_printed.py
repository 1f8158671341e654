"""Layers and optimizers print as PyTorch's do."""

from __future__ import annotations

import inspect
import re

import pytest
import torch
from torch_changes import installed

from autodiff_gen import nn, optim

LAYERS = """\
Linear(4, 8)
Linear(4, 8, bias=False)
Bilinear(2, 3, 4)
Embedding(10, 3)
Embedding(10, 3, padding_idx=2)
Identity()
Flatten()
Flatten(0, 2)
Unflatten(1, (2, 3))
Sigmoid()
Tanh()
ReLU()
ReLU(inplace=True)
ReLU6()
ReLU6(inplace=True)
Hardtanh()
Hardtanh(-2.0, 2.0, inplace=True)
LeakyReLU(0.2)
LeakyReLU(inplace=True)
ELU()
ELU(0.5, inplace=True)
SELU()
SELU(True)
GELU()
GELU('tanh')
SiLU()
SiLU(True)
Mish()
Softplus()
Softplus(2, 10)
Softsign()
Hardsigmoid()
Hardswish()
LogSigmoid()
Softmax(dim=1)
LogSoftmax(dim=-1)
Softmin(dim=1)
CELU()
CELU(0.5)
GLU()
Hardshrink()
Softshrink(0.3)
Threshold(0.1, 20)
Threshold(0.1, 20, inplace=True)
PReLU()
PReLU(3)
Conv1d(3, 8, 5)
Conv2d(3, 8, 3)
Conv2d(4, 8, 3, 2, 1, 2, groups=4, bias=False)
Conv2d(4, 8, (3, 1), padding='same', padding_mode='reflect')
ConvTranspose1d(3, 8, 5)
ConvTranspose2d(3, 8, 3, 2, 1, 1)
BatchNorm1d(8)
BatchNorm2d(8, eps=1e-3, momentum=0.2, affine=False)
BatchNorm2d(8, track_running_stats=False)
InstanceNorm1d(8)
InstanceNorm2d(8, affine=True)
LayerNorm(8)
LayerNorm((2, 3), eps=1e-6, elementwise_affine=False)
RMSNorm(8)
RMSNorm(8, eps=1e-6)
GroupNorm(2, 8)
GroupNorm(2, 8, affine=False)
LocalResponseNorm(2)
MaxPool1d(2)
MaxPool2d(2)
MaxPool2d((3, 2), stride=(2, 1), padding=1, dilation=2, ceil_mode=True)
AvgPool1d(2)
AvgPool2d(2)
AvgPool2d(3, 2, 1, True)
AdaptiveAvgPool1d(4)
AdaptiveAvgPool2d((1, 2))
AdaptiveAvgPool2d(1)
AdaptiveMaxPool1d(4)
AdaptiveMaxPool2d(4)
ZeroPad1d(2)
ZeroPad2d(2)
ZeroPad2d((1, 2, 3, 4))
ConstantPad1d(2, 3.5)
ConstantPad2d(2, 3.5)
ReflectionPad1d(1)
ReflectionPad2d(1)
ReplicationPad1d(1)
ReplicationPad2d(1)
CircularPad1d(1)
CircularPad2d(1)
Dropout()
Dropout(0.1)
Dropout1d()
Dropout2d(0.25)
Upsample(scale_factor=2)
Upsample(size=(4, 4), mode='bilinear')
UpsamplingNearest2d(scale_factor=2)
UpsamplingBilinear2d(size=4)
PixelShuffle(2)
PixelUnshuffle(2)
ChannelShuffle(2)
CosineSimilarity()
PairwiseDistance()
RNN(4, 8)
RNN(4, 8, nonlinearity='relu')
LSTM(4, 8, 2, batch_first=True, dropout=0.1)
LSTM(4, 8, bias=False, bidirectional=True)
GRU(4, 8)
GRU(4, 8, num_layers=2)
RNNCell(4, 8)
RNNCell(4, 8, bias=False)
RNNCell(4, 8, nonlinearity='relu')
LSTMCell(4, 8)
GRUCell(4, 8, False)
Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
ModuleList([nn.Linear(4, 8), nn.Linear(4, 8), nn.ReLU()])
ModuleDict({'a': nn.Linear(4, 8)})
CrossEntropyLoss()
CrossEntropyLoss(label_smoothing=0.1)
NLLLoss()
MSELoss()
MultiLabelSoftMarginLoss()
MultiMarginLoss()
PoissonNLLLoss()
SoftMarginLoss()
L1Loss()
SmoothL1Loss()
HuberLoss()
BCELoss()
BCEWithLogitsLoss()
KLDivLoss()
CTCLoss()
GaussianNLLLoss()
MarginRankingLoss()
TripletMarginLoss()
CosineEmbeddingLoss()
HingeEmbeddingLoss()
""".splitlines()
# Their parts have other classes in PyTorch, or another order; lists of parameters print no values here.
COMPOSED = {"MultiheadAttention", "ParameterDict", "ParameterList", "TripletMarginWithDistanceLoss"}
COMPOSED |= {name for name in dir(nn) if name.startswith("Transformer")}


@pytest.mark.torch
def test_layers_print_as_in_pytorch(subtests: pytest.Subtests) -> None:
    for call in LAYERS:
        with subtests.test(call):
            ours = repr(eval(f"nn.{call}"))
            if "Norm" in call and installed() < (2, 10):  # which prints no bias
                ours = re.sub(", bias=(True|False)", "", ours)
            assert ours == repr(eval(f"nn.{call}", {"nn": torch.nn}))


def test_every_layer_is_in_the_table() -> None:
    tested = {call.partition("(")[0] for call in LAYERS} | COMPOSED
    classes = {name: getattr(nn, name) for name in nn.__all__ if inspect.isclass(getattr(nn, name))}
    layers = {name for name, made in classes.items() if issubclass(made, nn.Module)}
    assert sorted(layers - tested - {"Module"}) == []


def test_optimizers_print_their_options() -> None:
    rule = optim.SGD([{"params": "fc1", "lr": 0.1}, {"params": "fc2"}], lr=0.01, momentum=0.9)
    lines = repr(rule).split("\n")
    assert lines[:2] == ["SGD (", "Parameter Group 0"] and lines[-1] == ")"
    assert "    lr: 0.1" in lines and "    lr: 0.01" in lines and lines.count("    momentum: 0.9") == 2
    theirs = repr(torch.optim.SGD([torch.zeros(1)], lr=0.01, momentum=0.9)).split("\n")
    ours = repr(optim.SGD(lr=0.01, momentum=0.9)).replace(": 0.0\n", ": 0\n").split("\n")
    assert {*ours} <= {*theirs}
