"""Weights, data and labels of the benchmark's workloads, and what its networks share. All data come from one generator:

s <- s * 1664525 + 1013904223 (mod 2^32), first value after one step from the seed;  u = (s >> 8) / 2^24
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import autodiff_gen as ag
from autodiff_gen import nn, optim


def states(n: int, seed: int) -> np.ndarray:
    """The first n states after `seed`, u32[n]: s_k = a^k seed + c (a^(k-1) + ... + 1), all modulo 2^32."""
    powers = np.cumprod(np.full(n, 1664525, dtype=np.uint32), dtype=np.uint32)
    earlier = np.concatenate([np.ones(1, dtype=np.uint32), powers[:-1]])
    sums = np.cumsum(earlier, dtype=np.uint32)
    return powers * np.uint32(seed) + np.uint32(1013904223) * sums


def data(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """f32 numbers u in [0, 1), row by row."""
    u = (states(math.prod(shape), seed) >> np.uint32(8)).astype(np.float32) * np.float32(2.0**-24)
    return u.reshape(shape)


def weight(shape: tuple[int, ...], bound: float, seed: int) -> np.ndarray:
    """f32 numbers (2u - 1) * bound."""
    return (np.float32(2) * data(shape, seed) - np.float32(1)) * np.float32(bound)


def labels(n: int, classes: int, seed: int) -> np.ndarray:
    """u8[n]: (s >> 16) mod classes."""
    return ((states(n, seed) >> np.uint32(16)) % np.uint32(classes)).astype(np.uint8)


def linear(weights: np.ndarray, bias: bool = False) -> nn.Linear:
    """A layer with the given weights [out, in], and biases of 0 if any."""
    layer = nn.Linear(weights.shape[1], weights.shape[0], bias=bias)
    layer.weight = nn.Parameter(weights)
    if bias:
        layer.bias = nn.Parameter(np.zeros(weights.shape[0], dtype=np.float32))
    return layer


def convolution(weights: np.ndarray, **geometry: int) -> nn.Conv2d:
    """A layer with the given weights [out, in / groups, k, k], and biases of 0."""
    outputs, inputs, kernel, _ = weights.shape
    layer = nn.Conv2d(inputs * geometry.get("groups", 1), outputs, kernel, **geometry)
    layer.weight = nn.Parameter(weights)
    layer.bias = nn.Parameter(np.zeros(outputs, dtype=np.float32))
    return layer


def cycled(step: int, batch: int, *arrays: np.ndarray) -> list[np.ndarray]:
    """The batch of a step (counted from 0): rows in order, cyclically."""
    rows = (np.arange(batch) + step * batch) % len(arrays[0])
    return [a[rows] for a in arrays]


# Networks. Each is a function of the library of its layers, autodiff_gen.nn or torch.nn, which have the same names.


@dataclass(frozen=True)
class Task:
    """A network that classifies samples of `shape`: cross-entropy, initial weights of
    autodiff_gen.nn, SGD 0.001 if no other optimizer is given."""

    network: Callable[[Any], Any]
    shape: tuple[int, ...]
    classes: int

    def model(self, size: int, optimizer: Any = None) -> ag.Model:
        """The model that trains it in batches of `size`."""
        return ag.Model.supervised(
            self.network(nn),
            input=(size, *self.shape),
            loss=nn.CrossEntropyLoss(),
            optimizer=optimizer or optim.SGD(lr=0.001),
        )

    def batches(self, size: int) -> Callable[[int], list[np.ndarray]]:
        """The inputs and labels of a step, counted from 0, in batches of `size`."""
        x, y = data((16, *self.shape), 71), labels(16, self.classes, 72)

        def batch(step: int) -> list[np.ndarray]:
            return cycled(step, size, x, y)

        return batch


def conv_norm(nn: Any, inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> list[Any]:
    """A convolution without biases, padding kernel / 2, and a batch normalisation."""
    geometry = {"stride": stride, "padding": kernel // 2, "groups": groups}
    return [nn.Conv2d(inputs, outputs, kernel, bias=False, **geometry), nn.BatchNorm2d(outputs)]


def separable(nn: Any, inputs: int, outputs: int, stride: int = 1) -> list[Any]:
    """A depthwise 3x3 and a pointwise convolution, each with batch normalisation and relu."""
    depthwise = conv_norm(nn, inputs, inputs, 3, stride, groups=inputs)
    return [*depthwise, nn.ReLU(), *conv_norm(nn, inputs, outputs, 1), nn.ReLU()]
