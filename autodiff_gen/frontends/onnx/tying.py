"""Initializers that a network reads in several layouts: each stays one parameter, and its views are computed in each
step.

    Gather(W, i); MatMul(h, Transpose(W))    ->    embedding(i, W); matmul(h, permute(W, (1, 0)))

A first conversion folds the views, and notes which elements of initializers each weight has. Initializers with an
element in two weights are tied: the second conversion does not fold the nodes that read them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .weight_names import NAME

# Ops whose results are elements of their operands.
VIEWS = {
    "Concat",
    "Expand",
    "Flatten",
    "Gather",
    "GatherElements",
    "Identity",
    "Reshape",
    "Slice",
    "Split",
    "Squeeze",
    "Tile",
    "Transpose",
    "Unsqueeze",
}


class WeightOrigin(NamedTuple):
    """The initializers that an array was made from. places: for each element its number among the elements of all
    initializers; for computed numbers, the numbers of every element that they may depend on."""

    names: tuple[str, ...]
    places: NDArray[Any]


class WeightUse(NamedTuple):
    """A weight that a conversion made from initializers; trained: whether it is a parameter, not a constant."""

    name: str
    origin: WeightOrigin
    trained: bool


def origin_of(constants: Sequence[Any]) -> WeightOrigin | None:
    """The origin of a node's results; None if it computes from several initializers, or from none. Arrays of one
    element are numbers."""
    origins = [x.origin for x in constants if x.array.dtype.kind == "f" and x.array.size > 1]
    if not origins or None in origins or len({o.names for o in origins}) > 1:
        return None
    return WeightOrigin(origins[0].names, np.unique(np.concatenate([o.places.ravel() for o in origins])))


def operands_of_view(op: str, constants: Sequence[Any]) -> list[NDArray[Any]] | None:
    """The operands of a node with the places of elements instead of elements; None if the node does not only move
    elements."""
    floats = [x for x in constants if x.array.dtype.kind == "f"]
    if op not in VIEWS or not floats or any(x.origin is None for x in floats):
        return None
    return [x.origin.places if x.array.dtype.kind == "f" else x.array for x in constants]


def tied(uses: Sequence[WeightUse]) -> dict[str, str]:
    """Initializer that has to stay one parameter -> the parameter's name: initializers with a trained element that is
    in two places, and initializers that share a weight with these."""
    if not any(use.trained for use in uses):
        return {}
    places, counts = np.unique(np.concatenate([u.origin.places.ravel() for u in uses]), return_counts=True)
    trained = np.concatenate([use.origin.places.ravel() for use in uses if use.trained])
    twice = np.intersect1d(places[counts > 1], trained)
    names = {n for use in uses if np.isin(use.origin.places, twice).any() for n in use.origin.names}
    found: dict[str, str] = {}
    for _ in uses:  # until none is added
        for use in uses:
            if use.trained and names.intersection(use.origin.names):
                names.update(use.origin.names)
                for name in use.origin.names:
                    found.setdefault(name, name if re.fullmatch(NAME, name, re.ASCII) else use.name)
    return found
