"""The data that the proposed benchmark of training learns from. Each source is a function of the shape of a sample, the
number of classes and the number of samples; the tables show the first line of its docstring."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from importlib import import_module

import numpy as np
from numpy.typing import NDArray

from autodiff_gen import datasets
from autodiff_gen.targets import installation

SEED = 1
Samples = tuple[NDArray[np.float32], NDArray[np.uint8]]  # inputs [count, ...] and classes [count]


def digits(shape: tuple[int, ...], classes: int, count: int) -> Samples:
    """real: MNIST digits"""
    found = datasets.load_digits()
    x = found.images[:count].reshape(-1, *shape).astype(np.float32) / 255.0
    return x, found.labels[:count]


def photographs(shape: tuple[int, ...], classes: int, count: int) -> Samples:
    """real: crops of photographs"""
    sys.path.append(str(installation.examples() / "visual_int8"))
    crops = import_module("crops")
    rng, (_, photos) = np.random.default_rng(SEED), crops.photographs()
    y = rng.integers(0, classes, count)
    x = np.stack([crops.crop(photos[k], crops.LEARNED, rng, shape[-1]) for k in y])
    return (x.transpose(0, 3, 1, 2) / 127.5 - 1.0).astype(np.float32), y.astype(np.uint8)


def words(shape: tuple[int, ...], classes: int, count: int) -> Samples:
    """synthetic: ten words of twenty voices

    The voices are made of formants."""
    sys.path.append(str(installation.examples() / "keywords"))
    made, rng = import_module("words"), np.random.default_rng(SEED)
    spoken, y = made.spoken_by(rng, made.adults(rng, 20), count)
    return made.features(spoken), y


def waves(shape: tuple[int, ...], classes: int, count: int) -> Samples:
    """synthetic: waves in noise

    A class is a frequency in each channel and along each axis, at most a quarter of the rate of samples; phases are
    random."""
    rng, (channels, *sides) = np.random.default_rng(SEED), shape
    at = np.stack(np.meshgrid(*map(np.arange, sides), indexing="ij"))
    frequency = rng.uniform(0.0, 0.25, (classes, channels, len(sides)))
    y = rng.integers(0, classes, count)
    cycles = np.tensordot(frequency[y], at, 1)  # [count, channels, *sides]
    cycles += rng.uniform(0.0, 1.0, (count, channels, *(1 for _ in sides)))
    x = np.sin(2 * math.pi * cycles) + rng.normal(size=cycles.shape)
    return x.astype(np.float32), y.astype(np.uint8)


SOURCES: dict[str, Callable[[tuple[int, ...], int, int], Samples]] = {
    source.__name__: source for source in (digits, photographs, words, waves)
}


def kind(source: str) -> str:
    """A source in words: real or synthetic, and its content."""
    return str(SOURCES[source].__doc__).splitlines()[0]
