"""Calls of kernels, each in a separate function, to fit the cost of each part of a call
(autodiff_gen/kernels/call_parts.py).

    ./scons board=mps2_an386 model=bench/qemu/kernel_calls.py bench
    .venv/bin/python bench/qemu/fit_calls.py mps2_an386 bench/qemu/kernel_calls.py lenet gesture ...

counts them, and prints the section [cost.calls] of a board's file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import autodiff_gen as ag
from autodiff_gen import functional as F

# images, size, input and output channels, taps, stride, padding
CONVOLUTIONS = (
    *((1, 8, 16, 16, 3, 1, 1), (1, 8, 16, 32, 3, 2, 1), (1, 4, 32, 32, 3, 1, 1), (1, 16, 8, 16, 3, 2, 1)),
    *((1, 12, 8, 8, 3, 1, 0), (4, 6, 8, 8, 3, 1, 1), (4, 8, 3, 8, 3, 1, 1), (4, 8, 8, 16, 3, 2, 1)),
    *((1, 14, 1, 8, 3, 1, 1), (2, 10, 2, 6, 3, 1, 1), (1, 8, 6, 12, 3, 1, 1), (1, 10, 12, 20, 1, 1, 0)),
    *((1, 8, 32, 8, 1, 1, 0), (1, 4, 64, 64, 1, 1, 0), (1, 8, 16, 32, 1, 2, 0), (1, 12, 3, 16, 5, 1, 2)),
    *((1, 7, 10, 10, 3, 1, 1), (3, 5, 12, 16, 3, 1, 0), (1, 9, 8, 16, 2, 1, 0), (1, 12, 16, 8, 3, 1, 1)),
)
# images, size, channels, taps, stride, padding
DEPTHWISE = (
    (1, 8, 16, 3, 1, 1),
    (1, 8, 32, 3, 2, 1),
    (4, 6, 24, 3, 1, 1),
    (1, 10, 8, 5, 1, 2),
    (1, 12, 64, 3, 2, 1),
)
POOLING = ((1, 8, 16, 2), (4, 8, 8, 2), (1, 12, 6, 3), (1, 24, 4, 2), (1, 6, 32, 2))
# size, input and output channels, taps
POOLED = ((28, 1, 6, 5), (12, 6, 16, 5), (14, 1, 4, 3), (10, 8, 8, 3), (18, 4, 12, 3))
PRODUCTS = (
    *((1, 10, 32), (1, 32, 784), (4, 10, 64), (8, 84, 120), (32, 60, 3), (2, 16, 16), (16, 32, 5)),
    *((32, 32, 32), (3, 7, 50), (128, 64, 4), (12, 12, 8)),
)


def channels_last(x: Any) -> Any:
    return F.permute(x, (0, 3, 1, 2))


def with_gradients(kind: str, sizes: tuple[int, ...], x: Any, w: Any, y: Any) -> Iterator[ag.Function]:
    y = F.permute(y, (0, 2, 3, 1))
    name, g = "_".join(map(str, sizes)), ag.Input("g", y.shape)
    dx, dw = ag.grad(F.sum(y * g), [x, w])
    for what, inputs, result in (("y", [x, w], y), ("dx", [x, w, g], dx), ("dw", [x, w, g], dw)):
        used = (
            inputs
            if kind == "pooled"
            else [v for v in inputs if what == "y" or v is not (w if what == "dw" else x)]
        )
        yield ag.function(used, [result], name=f"{kind}_{what}_{name}")


def cases() -> Iterator[ag.Function]:
    for n, size, c, o, k, stride, padding in CONVOLUTIONS:
        x, w = ag.Input("x", (n, size, size, c)), ag.Input("w", (o, k, k, c))
        y = F.conv2d(channels_last(x), channels_last(w), stride=stride, padding=padding)
        yield from with_gradients("conv", (n, size, c, o, k, stride, padding), x, w, y)
    for n, size, c, k, stride, padding in DEPTHWISE:
        x, w = ag.Input("x", (n, size, size, c)), ag.Input("w", (k, k, c))
        weights = F.reshape(F.permute(w, (2, 0, 1)), (c, 1, k, k))
        y = F.conv2d(channels_last(x), weights, stride=stride, padding=padding, groups=c)
        yield from with_gradients("depthwise", (n, size, c, k, stride, padding), x, w, y)
    for size, c, o, k in POOLED:
        x, w = ag.Input("x", (1, size, size, c)), ag.Input("w", (o, k, k, c))
        y = F.max_pool2d(F.conv2d(channels_last(x), channels_last(w)), 2)
        yield from with_gradients("pooled", (size, c, o, k), x, w, y)
    for n, size, c, k in POOLING:
        x, g = ag.Input("x", (n, size, size, c)), ag.Input("g", (n, size // k, size // k, c))
        for name, pool in (("max", F.max_pool2d), ("avg", F.avg_pool2d)):
            y = F.permute(pool(channels_last(x), k), (0, 2, 3, 1))
            (dx,) = ag.grad(F.sum(y * g), [x])
            yield ag.function([x], [y], name=f"{name}_{n}_{size}_{c}_{k}")
            yield ag.function([x, g] if name == "max" else [g], [dx], name=f"{name}_dx_{n}_{size}_{c}_{k}")
    for m, n, k in PRODUCTS:
        a, b = ag.Input("a", (m, k)), ag.Input("b", (k, n))
        at, bt = ag.Input("at", (k, m)), ag.Input("bt", (n, k))
        yield ag.function([a, b], [F.matmul(a, b)], name=f"nn_{m}_{n}_{k}")
        yield ag.function([a, bt], [F.matmul(a, bt.T)], name=f"nt_{m}_{n}_{k}")
        yield ag.function([at, b], [F.matmul(at.T, b)], name=f"tn_{m}_{n}_{k}")


functions = list(cases())
