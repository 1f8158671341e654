"""Weights of a program that are views of another weight's memory: they stay one parameter.

d.weight = nn.Parameter(e.weight.t())    ->    d.weight is the value permute(e.weight, (1, 0))
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelError
from ..imported.program import PARAMETER
from .pt2_weights import StoredTensor

Elements = NDArray[Any]  # for each element of a weight its position in memory


def views(
    stored: Mapping[str, StoredTensor], roles: Mapping[str, str], network: str
) -> dict[str, tuple[str, Elements]]:
    """For each weight that is a view of another: that weight, and for each element its position in that weight.

    stored: weights by name; roles: roles of the weights that the network uses, in order. Raises ModelError for weights
    that have only a part of their memory in common, and for a parameter whose elements share memory.
    """
    found: dict[str, tuple[str, Elements]] = {}
    for names in _in_one_memory(stored, list(roles)):
        elements = {n: elements_of(*stored[n].where[1:]) for n in names}
        for n, own in elements.items():
            if np.unique(own).size < own.size and roles[n] == PARAMETER:
                raise ModelError(
                    f"{network}: elements of the parameter {n!r} share memory; make it of a clone() of the tensor"
                )
        # Larger weights are not views of smaller ones. Among weights of one size a parameter that trains is first.
        names.sort(key=lambda n: (-elements[n].size, roles[n] != PARAMETER, not stored[n].requires_grad))
        bases: list[str] = []
        for n in names:
            common = [b for b in bases if np.intersect1d(elements[b], elements[n]).size]
            base = next((b for b in common if np.isin(elements[n], elements[b]).all()), None)
            if len(common) > 1 or (common and base is None):
                raise ModelError(
                    f"{network}: the weights {n!r} and {common[0]!r} have a part of their memory in common; make each "
                    "of a clone(), or compute both in forward from one parameter"
                )
            if base is None:
                bases.append(n)
            else:
                found[n] = base, within(elements[base], elements[n])
    return found


def within(base: Elements, elements: Elements) -> Elements:
    """For each of `elements` its position in `base`, which has all of them."""
    order = np.argsort(base, axis=None)
    found: Elements = order[np.searchsorted(base.ravel()[order], elements)]
    return found


def _in_one_memory(stored: Mapping[str, StoredTensor], names: Sequence[str]) -> list[list[str]]:
    """The groups of weights that are stored in one entry; also single weights whose elements share memory."""
    files: dict[Any, list[str]] = {}
    for n in names:
        if n in stored:
            files.setdefault(stored[n].where[0], []).append(n)
    return [found for found in files.values() if len(found) > 1 or _repeats(stored[found[0]])]


def _repeats(weight: StoredTensor) -> bool:
    _, _, shape, strides = weight.where
    return any(d > 1 and s == 0 for d, s in zip(shape, strides, strict=True))


def elements_of(offset: int, shape: Sequence[int], strides: Sequence[int]) -> Elements:
    """For each element of a tensor its position in memory."""
    places = np.full(shape, offset)
    for k, (d, s) in enumerate(zip(shape, strides, strict=True)):
        places += (np.arange(d) * s).reshape(-1, *(1,) * (len(shape) - k - 1))
    return places


def steps(base: tuple[int, ...], elements: Elements) -> list[tuple[Any, ...]]:
    """The calls that make a view from a weight of shape `base`: each a function and its arguments after the first."""
    count = math.prod(base)
    if elements.size == count:
        own = np.arange(count).reshape(base)
        for order in itertools.permutations(range(len(base))):
            if (own.transpose(order).ravel() == elements.ravel()).all():
                permuted = [own.shape[k] for k in order]
                moved = [("permute", order)] if order != tuple(range(len(base))) else []
                return moved + ([("reshape", elements.shape)] if permuted != list(elements.shape) else [])
    chosen = ("{}[{}]", elements.ravel().astype(np.int32))
    return [("reshape", (count,)), chosen, ("reshape", elements.shape)]
