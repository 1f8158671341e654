"""Divide the samples of a data set among boards."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DataError

Indices = NDArray[np.intp]


def held_out(part: Indices, share: float, seed: tuple[int, ...]) -> tuple[Indices, Indices]:
    """Divide the samples of a board: the samples to train on, at least one, and a share to test on."""
    order = np.random.default_rng(seed).permutation(part)
    test = min(round(share * len(part)), len(part) - 1)
    return np.sort(order[test:]), np.sort(order[:test])


def batches(part: Indices, size: int, seed: tuple[int, ...]) -> Indices:
    """The samples of a board in rows of `size` samples, drawn at random; a smaller rest is left out."""
    order = np.random.default_rng(seed).permutation(part)
    return np.sort(order[: len(part) // size * size].reshape(-1, size))


def split(samples: int, boards: int, seed: int, labels: Any = None, alpha: float = 0.0) -> list[Indices]:
    """The samples of each board, at least one; each sample is on one board. Without `alpha` the samples are divided
    evenly at random. Otherwise each class is divided by proportions from Dirichlet(alpha), as in Hsu, Qi, Brown (2019):
    the smaller alpha, the fewer classes a board has. labels: an integer for each sample. Raises DataError."""
    if boards > samples:
        raise DataError(f"{boards:,} boards for {samples:,} samples: each needs one at least")
    rng = np.random.default_rng(seed)
    if alpha <= 0.0:
        return [np.sort(part) for part in np.array_split(rng.permutation(samples), boards)]
    if labels is None:
        raise DataError("--alpha divides classes: the model has no labels; leave it out")
    pieces = []  # of each class, for each board
    for label in np.unique(labels):
        own = rng.permutation(np.flatnonzero(labels == label))
        ends = (np.cumsum(rng.dirichlet(np.full(boards, alpha))) * len(own)).round().astype(int)[:-1]
        pieces.append(np.split(own, ends))
    found = [np.concatenate(own) for own in zip(*pieces, strict=True)]
    for k, part in enumerate(found):
        if len(part) == 0:  # the largest one gives a sample
            giver = max(range(boards), key=lambda i: len(found[i]))
            found[k], found[giver] = found[giver][:1], found[giver][1:]
    return [np.sort(part) for part in found]
