"""Networks, weights and data that every program can make from the same numbers: a linear congruential generator."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.node import Value
from autodiff_gen.optim import Optimizer


def words(count: int, seed: int) -> Any:
    """s <- s * 1664525 + 1013904223 (mod 2^32), the first value after one step from the seed."""
    out, s = np.empty(count, dtype=np.uint32), seed
    for i in range(count):
        s = (s * 1664525 + 1013904223) % 2**32
        out[i] = s
    return out


def units(count: int, seed: int) -> Any:
    """In [0, 1), float64."""
    return (words(count, seed) >> 8) / 2.0**24


def weight(shape: tuple[int, ...], bound: float, seed: int) -> Any:
    return ((2.0 * units(math.prod(shape), seed) - 1.0) * bound).astype(np.float32).reshape(shape)


def data(shape: tuple[int, ...], seed: int) -> Any:
    return units(math.prod(shape), seed).astype(np.float32).reshape(shape)


def labels(count: int, classes: int, seed: int) -> Any:
    return (words(count, seed) >> 16) % classes


class Named:
    """Parameters by name, biases at zero."""

    def __init__(self) -> None:
        self.arrays: dict[str, Any] = {}

    def param(self, name: str, array: Any) -> Value:
        self.arrays[name] = array
        return ag.Param(name, array)

    def pair(self, name: str, shape: tuple[int, ...], bound: float, seed: int) -> tuple[Value, Value]:
        w = self.param(f"{name}.weight", weight(shape, bound, seed))
        return w, self.param(f"{name}.bias", np.zeros(shape[0], np.float32))


def lenet(x: Value) -> Value:
    """W3: two convolutions of 5x5 with pooling, three linear layers; x[n, 1, 28, 28]."""
    p = Named()
    h = F.max_pool2d(F.relu(F.conv2d(x, *p.pair("conv1", (6, 1, 5, 5), 0.2, 3001))), 2)
    h = F.max_pool2d(F.relu(F.conv2d(h, *p.pair("conv2", (16, 6, 5, 5), 0.08164966, 3003))), 2)
    h = F.flatten(h, 1)
    h = F.relu(F.linear(h, *p.pair("f1", (120, 256), 1.0 / 16.0, 3005)))
    h = F.relu(F.linear(h, *p.pair("f2", (84, 120), 0.09128709, 3007)))
    return F.linear(h, *p.pair("f3", (10, 84), 0.10910895, 3009))


def mobile(x: Value) -> Value:
    """W6: three inverted residual blocks with depthwise convolutions and relu6; x[n, 3, 32, 32]."""
    p, layer = Named(), iter(range(10))

    def conv(h: Value, out: int, size: int, stride: int = 1, groups: int = 1) -> Value:
        k, inner = next(layer), int(h.shape[1]) // groups  # type: ignore[arg-type]
        shape = (out, inner, size, size)
        bound = math.sqrt(3.0 / (inner * size * size))
        w, b = p.pair(f"conv{k}", shape, bound, 6001 + 2 * k)
        return F.conv2d(h, w, b, stride, size // 2, groups=groups)

    def block(h: Value, wide: int, out: int, stride: int, residual: bool) -> Value:
        y = F.relu6(conv(h, wide, 1))
        y = F.relu6(conv(y, wide, 3, stride, wide))
        y = conv(y, out, 1)
        return y + h if residual else y

    h = F.relu6(conv(x, 16, 3, 2))
    h = block(h, 48, 16, 1, True)
    h = block(h, 48, 24, 2, False)
    h = block(h, 72, 24, 1, True)
    return F.linear(F.mean(h, (2, 3)), *p.pair("classifier", (10, 24), 0.20412415, 6101))


# Name -> network, shape of one sample, seeds and number of samples, batch, loss before steps 1, 2, 3 and 50 with plain
# SGD of lr 0.01, as PyTorch 2.13 computes it.
CONVOLUTIONAL = {
    "lenet": (lenet, (1, 28, 28), 31, 64, 1, (2.310572, 2.298470, 2.310704, 2.230236)),
    "lenet of 8": (lenet, (1, 28, 28), 31, 64, 8, (2.305544, 2.302616, 2.302368, 2.304837)),
    "mobile": (mobile, (3, 32, 32), 61, 16, 1, (2.529197, 2.176987, 2.492754, 2.293700)),
}


def convolutional(name: str, optimizer: Optimizer) -> ag.Model:
    net, sample, _, _, batch, _ = CONVOLUTIONAL[name]
    x = ag.Input("x", (batch, *sample), batch_axis=0)
    label = ag.Input("label", (batch,), dtype="u8", batch_axis=0)
    scores = net(x)
    return ag.Model([x], [label], {"scores": scores}, F.cross_entropy(scores, label), optimizer)


def samples(name: str) -> tuple[Any, Any]:
    """All inputs and labels of a network; batches are taken in order and cycled."""
    _, sample, seed, count, _, _ = CONVOLUTIONAL[name]
    return data((count, *sample), seed), labels(count, 10, seed + 1)
