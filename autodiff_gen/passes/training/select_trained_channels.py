"""Select trained channels: if only some channels of a parameter train, these are the state; the others are constants.

    entry train_step(x: f32[1,4])              entry train_step(x: f32[1,4])
      %0: f32[1,4] = mul(w, x)                   %0: f32[4] = index_copy(const(), w, dim=0, index=(1, 3))
      loss <- %0                         ->      %1: f32[1,4] = mul(%0, x)
                                                 loss <- %1

Readers of the parameter read the whole, which is assembled from both where it is used.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...errors import ModelError
from ...init import initialiser
from ...ir.build import apply, constant, make_state
from ...ir.graph import Graph, State
from ...ir.module import IRModule
from ...ir.names import with_role
from ...ir.node import Value
from ...ir.origin import building
from ...ir.parameter_layout import PartialStorage, Storage
from ...ir.rewrite import replaced
from ...ir.types import planned
from ..context import Context


def select_trained_channels(module: IRModule[Graph], context: Context) -> IRModule[Graph]:
    """See the module. Raises ModelError for channels that are not along an axis of memory."""
    stored, wholes = dict(module.stored), {}
    for given, v in context.training.trained if context.training is not None else ():
        if given.channels is None:
            continue
        of, values = given.type.quantization, given.init.array()
        chosen = given.channels.index(values if of is None else values * of.along(values.shape))
        if len(chosen) < planned(given.logical.shape)[given.channels.axis]:
            old = module.old_value(v)
            stored[given], wholes[old] = _split(module.state(given), given, given.channels.axis, chosen)
    if not wholes:
        return module
    entries = [graph.with_roots(replaced(graph.roots, wholes)) for graph in module.entries]
    return replace(module, entries=tuple(entries), stored=stored)


def _split(state: State, given: State, channels: int, chosen: tuple[int, ...]) -> tuple[Value, Value]:
    """The state of the part of a parameter that trains, and the whole. given: the state as the model gives it; chosen:
    which of its channels, along the logical axis `channels`, train."""
    values, storage = given.init.array(), state.storage
    assert storage is None or isinstance(storage, Storage)
    axis, index = _in_memory(state, channels, chosen)
    rest = state.stored(values).astype(state.type.dtype.numpy)
    shape = planned(state.type.shape)
    type = state.type.moved(
        lambda a: np.take(a, index, axis), (*shape[:axis], len(index), *shape[axis + 1 :])
    )
    part = PartialStorage(storage, shape, axis, index, rest, given.type.quantization)
    first = initialiser(state.name, values, 0)
    trained = make_state(replace(state, type=type, init=first, storage=part))
    scope, _, role = state.name.rpartition(".")
    with building(scope):
        constants = constant(rest, state.type.dtype, state.type.quantization, f"{role}_constants")
        whole = with_role(apply("index_copy", constants, trained, dim=axis, index=index), role)
    return trained, whole


def _in_memory(state: State, axis: int, chosen: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
    """The axis of the stored shape that has the channels of a logical axis, and the places of the chosen channels along
    this axis."""
    logical = planned(state.logical.shape)
    labels = state.stored(np.broadcast_to(_along(np.arange(logical[axis]), axis, len(logical)), logical))
    for k, extent in enumerate(labels.shape):
        rows = np.moveaxis(labels, k, 0).reshape(extent, -1)
        if extent == logical[axis] and (rows == rows[:, :1]).all():
            return k, tuple(i for i, label in enumerate(rows[:, 0]) if label in chosen)
    raise ModelError(
        f"update_channels: the channels of {state.name!r} are not stored along one axis; train all of them"
    )


def _along(array: Any, axis: int, rank: int) -> Any:
    return array.reshape(-1, *(1,) * (rank - 1 - axis))
