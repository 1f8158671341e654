"""Networks of torch.nn for tests of the importer, by name: (module, input). The architectures follow their papers
and of MLPerf Tiny, with the module names of torchvision where it has them, narrow and on small images."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def conv_bn(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, groups: int = 1, act: Any = nn.ReLU
) -> Any:
    layers = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([act()] if act else []))


class DSCNN(nn.Module):
    """MLPerf Tiny's keyword spotting: a convolution, depthwise separable blocks, the mean."""

    def __init__(self, width: int = 8, blocks: int = 2) -> None:
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv2d(1, width, (10, 4), 2, (5, 1), bias=False), nn.BatchNorm2d(width), nn.ReLU()
        )
        self.dropout1 = nn.Dropout(0.2)
        pairs = [(conv_bn(width, width, groups=width), conv_bn(width, width, 1)) for _ in range(blocks)]
        self.blocks = nn.Sequential(*(layer for pair in pairs for layer in pair))
        self.fc = nn.Linear(width, 12)

    def forward(self, x: Tensor) -> Tensor:
        x = self.blocks(self.dropout1(self.first(x)))
        x = F.avg_pool2d(x, x.shape[2:])
        return self.fc(x.flatten(1))


def mobilenet_v1(width: int = 4) -> nn.Module:
    """MLPerf Tiny's person detection, with fewer blocks."""
    layers = [conv_bn(3, width, stride=2)]
    for k, stride in enumerate((1, 2, 1)):
        channels = width << k
        layers += [
            conv_bn(channels, channels, stride=stride, groups=channels),
            conv_bn(channels, 2 * channels, 1),
        ]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8 * width, 2))


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = nn.Conv2d(inputs, outputs, 1, stride) if stride > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        y = self.relu(self.bn1(self.conv1(x)))
        y = self.bn2(self.conv2(y))
        y += x if self.downsample is None else self.downsample(x)
        return self.relu(y)


class KerasBlock(nn.Module):
    """Of ResNet-8: a projection without normalisation where the stride is 2, and padding as Keras has it, after."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.padding = (0, 1, 0, 1) if stride == 2 else (1, 1, 1, 1)
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs, 1e-3, 0.01)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding="same")
        self.bn2 = nn.BatchNorm2d(outputs, 1e-3, 0.01)
        self.projection = nn.Conv2d(inputs, outputs, 1, stride) if stride == 2 else None

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(F.pad(x, self.padding))))
        y = self.bn2(self.conv2(y))
        return F.relu(y + (x if self.projection is None else self.projection(x)))


def resnet8() -> nn.Module:
    """MLPerf Tiny's image classification as it is: stacks of 16, 32 and 64 channels, all convolutions with biases
    (mlcommons/tiny, benchmark/training/image_classification/keras_model.py), without the softmax at its end."""
    stacks = [KerasBlock(16, 16, 1), KerasBlock(16, 32, 2), KerasBlock(32, 64, 2)]
    first = [nn.Conv2d(3, 16, 3, padding="same"), nn.BatchNorm2d(16, 1e-3, 0.01), nn.ReLU()]
    return nn.Sequential(*first, *stacks, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(64, 10))


class ResNet(nn.Module):
    """torchvision's ResNet-18 but for its width and depth."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        self.layer1 = nn.Sequential(ResidualBlock(width, width, 1), ResidualBlock(width, width, 1))
        self.layer2 = nn.Sequential(ResidualBlock(width, 2 * width, 2))
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(2 * width, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.avgpool(self.layer2(self.layer1(x)))
        return self.fc(torch.flatten(x, 1))


def autoencoder() -> nn.Module:
    """MLPerf Tiny's anomaly detection."""
    sizes = [20, 16, 16, 4, 16, 16]
    layers: list[nn.Module] = []
    for a, b in pairwise(sizes):
        layers += [nn.Linear(a, b), nn.BatchNorm1d(b), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(sizes[-1], 20))


class InvertedResidual(nn.Module):
    """MobileNetV2's, with squeeze and excitation MobileNetV3's and EfficientNet's."""

    def __init__(
        self, inputs: int, outputs: int, stride: int, expand: int, act: Any = nn.ReLU6, squeeze: Any = None
    ) -> None:
        super().__init__()
        hidden = inputs * expand
        self.use_res_connect = stride == 1 and inputs == outputs
        layers = [conv_bn(inputs, hidden, 1, act=act)] if expand > 1 else []
        layers.append(conv_bn(hidden, hidden, 3, stride, hidden, act))
        layers += [squeeze(hidden)] if squeeze else []
        self.conv = nn.Sequential(*layers, nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.conv(x) if self.use_res_connect else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        settings = [(8, 1, 1), (8, 2, 6), (8, 1, 6), (12, 2, 6)]
        features, channels = [conv_bn(3, 8, 3, 2, act=nn.ReLU6)], 8
        for outputs, stride, expand in settings:
            features.append(InvertedResidual(channels, outputs, stride, expand))
            channels = outputs
        self.features = nn.Sequential(*features, conv_bn(channels, 32, 1, act=nn.ReLU6))
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(32, 10))

    def forward(self, x: Tensor) -> Tensor:
        x = self.features(x)
        x = nn.functional.adaptive_avg_pool2d(x, (1, 1))
        return self.classifier(torch.flatten(x, 1))


class SqueezeExcitation(nn.Module):
    def __init__(self, channels: int, act: Any = nn.ReLU, scale: Any = nn.Hardsigmoid) -> None:
        super().__init__()
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc1, self.fc2 = nn.Conv2d(channels, 4, 1), nn.Conv2d(4, channels, 1)
        self.activation, self.scale_activation = act(), scale()

    def forward(self, x: Tensor) -> Tensor:
        scale = self.activation(self.fc1(self.avgpool(x)))
        return self.scale_activation(self.fc2(scale)) * x


def mobilenet_v3() -> nn.Module:
    return nn.Sequential(
        conv_bn(3, 8, 3, 2, act=nn.Hardswish),
        InvertedResidual(8, 8, 1, 2, nn.Hardswish, SqueezeExcitation),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(1),
        nn.Sequential(
            nn.Linear(8, 16), nn.Hardswish(inplace=True), nn.Dropout(0.2, inplace=True), nn.Linear(16, 5)
        ),
    )


class MBConv(nn.Module):
    """EfficientNet's block with stochastic depth, as torchvision draws it."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.block = InvertedResidual(
            channels, channels, 1, 2, nn.SiLU, lambda c: SqueezeExcitation(c, nn.SiLU, nn.Sigmoid)
        )

    def forward(self, x: Tensor) -> Tensor:
        y = self.block.conv(x)
        noise = torch.empty([x.shape[0], 1, 1, 1], dtype=x.dtype, device=x.device)
        noise = noise.bernoulli_(0.8)
        noise.div_(0.8)
        return y * noise + x


class ShuffleUnit(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        depthwise = conv_bn(half, half, 3, 1, half, None)
        self.branch2 = nn.Sequential(conv_bn(half, half, 1), depthwise, conv_bn(half, half, 1))

    def forward(self, x: Tensor) -> Tensor:
        x1, x2 = x.chunk(2, dim=1)
        out = torch.cat((x1, self.branch2(x2)), dim=1)
        n, c, h, w = out.size()
        return out.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, c, h, w)


class Fire(nn.Module):
    """SqueezeNet's."""

    def __init__(self) -> None:
        super().__init__()
        self.squeeze, self.act = nn.Conv2d(8, 4, 1), nn.ReLU(inplace=True)
        self.expand1x1, self.expand3x3 = nn.Conv2d(4, 8, 1), nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.act(self.squeeze(x))
        return torch.cat([self.act(self.expand1x1(x)), self.act(self.expand3x3(x))], 1)


def small(*blocks: nn.Module, channels: int = 8) -> nn.Module:
    """Blocks of 8 channels between a convolution and a classifier."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, 2, 1), *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 4)
    )


class Spotter(nn.Module):
    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.rnn = getattr(nn, kind)(6, 8, batch_first=True, **options)
        self.fc = nn.Linear(16 if options.get("bidirectional") else 8, 5)

    def forward(self, x: Tensor) -> Tensor:
        y, _ = self.rnn(x)
        return self.fc(y[:, -1])


class Cells(nn.Module):
    """A loop over cells, with and without a first state, and a state that the network returns."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.lstm, self.fc = nn.GRUCell(4, 4), nn.LSTMCell(4, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        s, state = torch.zeros(x.shape[0], 4), None
        for t in range(x.shape[1]):
            s = self.gru(x[:, t], s)
            state = self.lstm(s, state)
        return self.fc(state[0]), state[1]


class Transformer(nn.Module):
    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.embed, self.position = nn.Linear(6, 8), nn.Parameter(torch.randn(1, 7, 8) * 0.1)
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)
        self.encoder, self.fc = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc(self.encoder(self.embed(x) + self.position).mean(1))


class Attention(nn.Module):
    """nn.MultiheadAttention with its weights, whose mean it returns."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return self.attention(x, x, x)


class VisionTransformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv_proj = nn.Conv2d(3, 8, 4, 4)
        self.class_token = nn.Parameter(torch.zeros(1, 1, 8))
        self.pos_embedding = nn.Parameter(torch.randn(1, 5, 8) * 0.02)
        self.ln1, self.attention = nn.LayerNorm(8, eps=1e-6), nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
        self.head = nn.Linear(8, 4)

    def forward(self, x: Tensor) -> Tensor:
        n = x.shape[0]
        x = self.conv_proj(x).reshape(n, 8, -1).permute(0, 2, 1)
        x = torch.cat([self.class_token.expand(n, -1, -1), x], dim=1) + self.pos_embedding
        y = self.ln1(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        x = x + self.mlp(x)
        return self.head(x[:, 0])


class LanguageModel(nn.Module):
    """A causal transformer whose embedding is its last layer too."""

    def __init__(self, words: int = 20, length: int = 6, width: int = 8) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(words, width), nn.Embedding(length, width)
        self.norm, self.qkv, self.out = (
            nn.LayerNorm(width),
            nn.Linear(width, 3 * width),
            nn.Linear(width, width),
        )
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.tokens.weight
        self.register_buffer("mask", torch.tril(torch.ones(length, length)).bool(), persistent=False)

    def forward(self, index: Tensor) -> Tensor:
        n, length = index.shape
        x = self.tokens(index) + self.positions(torch.arange(length))
        q, k, v = self.qkv(self.norm(x)).view(n, length, 3, 2, 4).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-2, -1)) * 0.5
        weights = F.softmax(scores.masked_fill(~self.mask, float("-inf")), dim=-1)
        x = x + self.out((weights @ v).transpose(1, 2).reshape(n, length, 8))
        return self.head(x)


class Parts(nn.Module):
    """Views, statistics and elementwise functions."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.rand(4) + 0.5)
        self.register_buffer("shift", torch.rand(4))

    def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor] | tuple[Tensor, ...]:
        a, b = torch.split(x, [1, 3], dim=-1)
        z = torch.stack([a.expand(-1, 4) * self.scale, y.clamp(-1, 1) + self.shift], dim=1)
        z = F.pad(z, (1, 0), value=0.5)[:, :, ::2]
        var, mean = torch.var(z, dim=-1, keepdim=True), z.mean(-1, keepdim=True)
        z = (z - mean) * torch.rsqrt(var + 1e-3)
        w = torch.where(z > 0, z.exp(), 1 - z) + F.softplus(z).square().sum(1, keepdim=True)
        u = w.flip(1).reshape(x.shape[0], -1).index_select(1, torch.tensor([0, 3, 1]))
        return u, F.log_softmax(b, dim=-1), 2 - torch.max(u, dim=1)[0]


Made = tuple[Callable[[], nn.Module], Any]

IMAGE = (1, 3, 8, 8)
NETWORKS: dict[str, Made] = {
    "ds_cnn": (DSCNN, (1, 1, 25, 10)),
    "mobilenet_v1": (mobilenet_v1, (1, 3, 16, 16)),
    "resnet": (ResNet, (1, 3, 16, 16)),
    "resnet8": (resnet8, (1, 3, 32, 32)),
    "autoencoder": (autoencoder, (1, 20)),
    "mobilenet_v2": (MobileNetV2, (1, 3, 32, 32)),
    "mobilenet_v3": (mobilenet_v3, IMAGE),
    "efficientnet": (lambda: small(MBConv(8)), IMAGE),
    "shufflenet": (lambda: small(ShuffleUnit(8), ShuffleUnit(8)), IMAGE),
    "squeezenet": (lambda: small(Fire(), channels=16), IMAGE),
    "gru": (lambda: Spotter("GRU", num_layers=2, dropout=0.1), (1, 7, 6)),
    "lstm": (lambda: Spotter("LSTM", bidirectional=True), (1, 7, 6)),
    "rnn": (lambda: Spotter("RNN", nonlinearity="relu", bias=False), (1, 7, 6)),
    "cells": (Cells, (1, 3, 4)),
    "transformer": (lambda: Transformer(norm_first=True, activation="gelu"), (1, 7, 6)),
    "attention": (Attention, (1, 5, 8)),
    "vit": (VisionTransformer, (1, 3, 8, 8)),
    "language_model": (LanguageModel, torch.zeros(1, 6, dtype=torch.long)),
    "parts": (Parts, (torch.randn(2, 4), torch.randn(2, 4))),
}
