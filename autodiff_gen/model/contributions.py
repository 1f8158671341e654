"""The contribution of each parameter to the training: the squares of its gradient.

A step of gradient descent with a small rate lr decreases the loss by lr times the sum of the squares of the gradients
of the parameters that train. The squares are means over calibration batches, at the first values of the parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import ModelError
from ..ir.graph import State
from ..ir.index_checks import checks_of, valid_inputs
from ..ir.interpreter import evaluate
from ..ir.node import INPUT, STATE, Value
from ..ir.types import planned
from ..passes.training.differentiate import gradient_name
from ..progress import step
from .model import Model


def squares(
    everything: Model, states: Sequence[State], batches: Iterator[Mapping[str, Any]]
) -> dict[State, Any]:
    """For each parameter the squares of its gradient's elements, means over the batches: f64 in its logical shape. The
    gradient of an 8-bit parameter is with respect to the real numbers that it represents. everything: the model in
    which all these parameters train, with all channels; batches: arrays by the names of inputs and targets. Raises
    ModelError if a gradient is not finite, ShapeError for wrong shapes."""
    module = dict(everything.stages)["differentiate"]
    entry = module.entries[0]
    names = [gradient_name(module.state(state)) for state in states]
    held = {v: v.node.attrs["state"] for v in entry.leaves(STATE)}
    feeds = {v: state.stored(state.init.array()) for v, state in held.items()}
    sums = [np.zeros(planned(state.logical.shape)) for state in states]
    count = 0
    for arrays in batches:
        step(f"batch {count + 1}")
        given = {v: arrays[str(v.name)] for v in entry.leaves(INPUT)}
        found = evaluate([entry.outputs[name] for name in names], {**feeds, **given})
        for total, state, gradient in zip(sums, states, found, strict=True):
            total += np.square(module.state(state).restored(gradient).astype(np.float64))
        count += 1
    for state, total in zip(states, sums, strict=True):
        if not np.isfinite(total).all():
            raise ModelError(
                f"plan: the gradient of {state.name!r} is not finite for the calibration data; give other data with "
                "--data"
            )
    return {state: total / count for state, total in zip(states, sums, strict=True)}


def synthetic(model: Model) -> Iterator[dict[str, Any]]:
    """Endless random batches: floats from the normal distribution; classes and other integers equally likely."""
    generator = np.random.default_rng(1)
    inputs = (*model.inputs, *model.targets)
    valid = valid_inputs(inputs, checks_of([model.loss]))
    while True:
        yield {str(v.name): _drawn(v, generator, model.batch, valid.get(v)) for v in inputs}


def _drawn(v: Value, generator: np.random.Generator, n: int, valid: int | None) -> Any:
    shape = tuple(d if isinstance(d, int) else d.at(n) for d in v.type.shape)
    if v.type.dtype.kind == "f":
        return generator.standard_normal(shape)
    info, classes = np.iinfo(v.type.dtype.numpy), valid or v.node.attrs.get("classes")
    return generator.integers(0 if classes else info.min, classes or info.max, shape)
