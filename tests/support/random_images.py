"""Random networks over images for tests: values stored channels-last, flipped, permuted, cut, rolled and padded.

A network is a function of its seed, and an `ag.Model` of it has all stages of the pipeline, the layouts among them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from random_functions import gaps

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.types import Dim, planned_size

LARGEST = 1500  # elements of a value


class Images:
    """A pool of values of four axes that grows at random."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.batch = self.random.choice((1, 2, 3))
        axis = self.random.choice((0, None))  # None: axis 0 is like the others
        shape = (self.batch, *(self.random.choice((1, 2, 3, 4, 5, 6)) for _ in range(3)))
        self.inputs = [ag.Input("x", shape, batch_axis=axis)]
        self.pool: list[Value] = [*self.inputs]
        self.params = 0

    def param(self, *shape: int) -> Value:
        self.params += 1
        return ag.Param(f"w{self.params}", self.numbers.uniform(-0.7, 0.7, shape).astype("float32"))

    def pick(self, fits: Callable[[Value], bool] = lambda v: True) -> Value:
        """A value of the pool, late ones more often."""
        fitting = [v for v in self.pool if fits(v)]
        if not fitting:
            raise ShapeError("nothing fits")
        return fitting[max(self.random.randrange(len(fitting)), self.random.randrange(len(fitting)))]

    def axes(self, x: Value, most: int = 4) -> list[int]:
        """Some axes whose extent is a number."""
        fixed = [i for i, d in enumerate(x.shape) if not isinstance(d, Dim)]
        return self.random.sample(fixed, self.random.randint(1, min(most, len(fixed))))

    # Layers

    def convolution(self) -> Value:
        x, out = self.pick(), self.random.choice((1, 2, 4, 5))
        inner, height, width = (int(d) for d in x.shape[1:])
        size = tuple(self.random.choice((1, 2, 3)) for _ in range(2))
        padding = tuple(self.random.choice((0, k // 2)) for k in size)
        groups = inner if self.random.random() < 0.3 else 1
        out = inner if groups > 1 else out
        stride = self.random.choice((1, 1, 2))
        if any(d + 2 * p < k for d, p, k in zip((height, width), padding, size, strict=True)):
            raise ShapeError("too small")
        return F.conv2d(
            x, self.param(out, inner // groups, *size), self.param(out), stride, padding, 1, groups
        )

    def transposed_convolution(self) -> Value:
        x = self.pick()
        kernel = self.param(int(x.shape[1]), self.random.choice((1, 3)), 2, self.random.choice((1, 2)))
        return F.conv_transpose2d(x, kernel, stride=self.random.choice((1, 2)))

    def pooling(self) -> Value:
        x = self.pick(lambda v: all(int(d) >= 2 for d in v.shape[2:]))
        return self.random.choice((F.max_pool2d, F.avg_pool2d))(x, 2, self.random.choice((1, 2)))

    def linear(self) -> Value:
        x = self.pick()
        return F.linear(x, self.param(self.random.choice((2, 3)), int(x.shape[-1])))

    # Movement

    def flip(self) -> Value:
        x = self.pick()
        return F.flip(x, self.axes(x))

    def permute(self) -> Value:
        x = self.pick()
        last = self.random.choice([[0, 2, 3, 1], [0, 3, 1, 2], self.random.sample(range(4), 4)])
        y = F.permute(x, last)
        if gaps(y.shape) or isinstance(y.shape[0], Dim) != isinstance(x.shape[0], Dim):
            raise ShapeError("the batch moves")
        return y

    def part(self) -> Value:
        x = self.pick()
        for axis in self.axes(x):
            size = int(x.shape[axis])
            step = self.random.choice((1, 1, 2, 3, -1, -2))
            first = self.random.randrange(size)
            keys: list[Any] = [slice(None)] * 4
            keys[axis] = slice(first, None, step)
            x = x[tuple(keys)]
        return x

    def roll(self) -> Value:
        x = self.pick()
        axes = self.axes(x, 2)
        return F.roll(x, [self.random.randint(-3, 3) for _ in axes], axes)

    def pad(self) -> Value:
        x = self.pick()
        mode = self.random.choice(("constant", "constant", "reflect", "replicate", "circular"))
        sides = [self.random.choice((0, 1, 2)) for _ in range(4)]
        if mode == "constant" and self.random.random() < 0.3:
            sides += [self.random.choice((0, 1)), self.random.choice((0, 2))]
        return F.pad(x, sides, mode)

    def joined(self) -> Value:
        x = self.pick()
        (axis,) = self.axes(x, 1)
        same = [v for v in self.pool if v.ndim == 4 and _but(v, axis) == _but(x, axis)]
        return F.cat([x, *self.random.choices(same, k=self.random.randint(1, 2))], axis)

    def larger(self) -> Value:
        x = self.pick()
        if self.random.random() < 0.5 and int(x.shape[1]) % 4 == 0:
            return F.pixel_shuffle(x, 2)
        return F.interpolate(x, scale_factor=2, mode=self.random.choice(("nearest", "bilinear")))

    # Loops

    def elementwise(self) -> Value:
        return self.random.choice((F.relu, F.hardtanh, F.hardswish, F.square, F.leaky_relu))(self.pick())

    def together(self) -> Value:
        x = self.pick()
        other = self.random.choice([v for v in self.pool if v.shape == x.shape])
        return self.random.choice(
            (lambda: x + other, lambda: x * other, lambda: F.where(x > other, x, -other))
        )()

    def by_channel(self) -> Value:
        x = self.pick()
        channels = (int(x.shape[1]), 1, 1)
        return x * self.param(*channels) + self.param(*channels)

    def centred(self) -> Value:
        x = self.pick()
        return x - F.mean(x, self.random.choice(((2, 3), (1,), (3,))), keepdim=True)

    def grow(self, count: int) -> None:
        movements = [self.flip, self.permute, self.part, self.roll, self.pad, self.joined, self.larger]
        layers = [self.convolution, self.convolution, self.transposed_convolution, self.pooling, self.linear]
        loops = [self.elementwise, self.together, self.by_channel, self.centred]
        made = 0
        while made < count:
            try:
                y = self.random.choice(self.random.choice((movements, movements, layers, loops)))()
            except ShapeError:
                continue
            if planned_size(y.shape) <= LARGEST and not gaps(y.shape):
                self.pool.append(F.hardtanh(y) if self.random.random() < 0.3 else y)
                made += 1


def _but(v: Value, axis: int) -> list[Any]:
    return [d for i, d in enumerate(v.shape) if i != axis]


def random_images(seed: int, size: int) -> ag.Model:
    """A model of a random network: its last values are outputs, and their squares the loss."""
    images = Images(seed)
    images.grow(size)
    made = images.pool[1:]
    chosen = [made[-1], *images.random.sample(made, min(len(made), 2))]
    outputs = {f"y{k}": v for k, v in enumerate(dict.fromkeys(chosen))}
    loss = sum(
        (F.mean(F.square(F.hardtanh(v))) for v in outputs.values()), F.mean(made[-1] * images.param(1))
    )
    rule = images.random.choice((optim.SGD(lr=0.1), optim.SGD(lr=0.1, momentum=0.9), optim.Adam(lr=0.01)))
    guard = images.random.choice((None, "loss", "gradients"))
    return ag.Model(images.inputs, [], outputs, loss, rule, guard=guard)
