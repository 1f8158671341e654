"""The problems that `check` differentiates: a scalar, its variables, and arrays for all inputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import functional as F
from ..autodiff import grad
from ..errors import ModelError, ShapeError, counted
from ..ir.graph import State
from ..ir.index_checks import valid_inputs
from ..ir.interpreter import evaluate
from ..ir.node import STATE, Value, topological
from ..ir.types import planned
from ..model.function import Function, Functions
from ..model.model import Model

PERTURBATION = 0.05  # largest change of the initial parameters, so that zero biases are tested too


@dataclass(frozen=True, eq=False)
class GradientProblem:
    """d loss / d variable for every variable. `feeds`: arrays for all inputs and states; `n`: their batch size;
    `where`: a description of these arrays for the report."""

    name: str
    loss: Value
    variables: tuple[Value, ...]
    gradients: tuple[Value, ...]
    feeds: dict[Value, Any]
    n: int
    where: str


def problems(
    definition: Model | Functions, name: str, seed: int, data: Mapping[str, Any] | None, steps: int | None
) -> Iterator[GradientProblem]:
    """The model's loss with respect to its parameters; or for each function the weighted sum of its float outputs with
    respect to its float inputs. `data`: arrays by name for some or all inputs, the others are random. `steps`: the
    parameters have their values after this number of training steps in float64; None: their initial values, changed by
    up to PERTURBATION. Raises ModelError, ShapeError."""
    if isinstance(definition, Model):
        yield _of_model(definition, name, seed, data or {}, steps)
        return
    if steps is not None:
        raise ModelError(f"check: {name} defines functions, which cannot be trained for {steps} steps")
    for function in definition:
        yield _of_function(function, f"{name}: {function.name}", seed, data or {})


def _of_model(
    model: Model, name: str, seed: int, data: Mapping[str, Any], steps: int | None
) -> GradientProblem:
    step = model.entries()[0]
    loss = step.outputs["loss"]
    states = _states([*step.outputs.values(), *step.updates.values()])
    variables = tuple(v for v in _states([loss]) if v.node.attrs["state"].trainable)
    n = _rows(data, model.inputs, model.batch)
    inputs = (*model.inputs, *model.targets)

    valid = valid_inputs(inputs, step.checks)

    def feeds(low: float, high: float) -> dict[Value, Any]:
        generator = np.random.default_rng(seed)
        arrays = {}
        for v in states:
            state: State = v.node.attrs["state"]
            first, is_float = state.stored(state.init.array()), v.dtype.kind == "f"
            arrays[v] = first.astype("float64" if is_float else v.dtype.numpy)
            if steps is None and v in variables and is_float:
                change = generator.uniform(-PERTURBATION, PERTURBATION, planned(v.type.shape))
                arrays[v] = arrays[v] + change
        for v in inputs:
            bounds = (low, high) if v in model.inputs else (0.1, 0.9)
            arrays[v] = _data(v, generator, bounds, data, n, valid.get(v))
        if model.lr is not None:
            arrays[model.lr] = model.default_lr
        for _ in range(steps or 0):
            updated = evaluate(list(step.updates.values()), arrays, n, "float64")
            by_state = dict(zip(step.updates, updated, strict=True))
            arrays.update({v: by_state[s] for v in states if (s := v.node.attrs["state"]) in by_state})
        return arrays

    gradients = tuple(grad(loss, list(variables)))
    chosen, where = _finite(loss, feeds, n, all(v.name in data for v in inputs))
    where += "" if steps is None else f", parameters after {counted(steps, 'step')}"
    return GradientProblem(name, loss, variables, gradients, chosen, n, where)


def _of_function(function: Function, name: str, seed: int, data: Mapping[str, Any]) -> GradientProblem:
    inputs = function.graph.inputs
    terms = [F.sum(v * _weights(v)) for v in function.graph.outputs.values() if v.dtype.kind == "f"]
    variables = tuple(v for v in inputs if v.dtype.kind == "f")
    if not terms or not variables:
        raise ModelError(f"check: {name} has no float inputs and outputs to differentiate")
    loss = terms[0]
    for term in terms[1:]:
        loss = loss + term
    n = _rows(data, inputs, function.batch)

    valid = valid_inputs(inputs, function.graph.checks)

    def feeds(low: float, high: float) -> dict[Value, Any]:
        generator = np.random.default_rng(seed)
        return {v: _data(v, generator, (low, high), data, n, valid.get(v)) for v in inputs}

    chosen, where = _finite(loss, feeds, n, all(v.name in data for v in inputs))
    return GradientProblem(name, loss, variables, tuple(grad(loss, list(variables))), chosen, n, where)


def _states(roots: list[Value]) -> list[Value]:
    nodes = [n for n in topological(roots) if n.op is STATE]
    return [n.results[0] for n in sorted(nodes, key=lambda n: n.serial)]


def _weights(v: Value) -> Any:
    """Weights along the last axis of an output, so that the gradient's elements in a row differ."""
    last = v.shape[-1] if v.ndim and isinstance(v.shape[-1], int) else 1
    weights = np.cos(1.0 + np.arange(last)).astype(np.float32)
    return weights if v.ndim and isinstance(v.shape[-1], int) else float(weights[0])


def _rows(data: Mapping[str, Any], inputs: tuple[Value, ...], batch: int) -> int:
    """The batch size: the rows of the samples if they have one number of rows, at most `batch`."""
    counts = {
        len(data[v.name])
        for v in inputs
        if v.name is not None and v.name in data and v.shape != planned(v.shape)
    }
    return min(counts.pop(), batch) if len(counts) == 1 else batch


def _finite(loss: Value, feeds: Any, n: int, given: bool) -> tuple[dict[Value, Any], str]:
    """Arrays for which the loss is finite, and their description for the report: with inputs in [-1, 1), otherwise in
    [0.1, 0.9)."""
    for low, high in ((-1.0, 1.0), (0.1, 0.9)):
        arrays: dict[Value, Any] = feeds(low, high)
        (value,) = evaluate([loss], arrays, n, "float64")
        if np.isfinite(value):
            return (
                arrays,
                "inputs as the file gives them" if given else f"inputs drawn from [{low:g}, {high:g})",
            )
    raise ModelError(
        f"check: the loss is {float(value)} for random inputs in [-1, 1) and in [0.1, 0.9); define `samples` with "
        "arrays for which it is finite"
    )


def _data(
    v: Value,
    generator: np.random.Generator,
    bounds: tuple[float, float],
    data: Mapping[str, Any],
    n: int,
    valid: int | None,
) -> Any:
    shape = tuple(d if isinstance(d, int) else d.at(n) for d in v.type.shape)
    if v.name is not None and v.name in data:
        array = np.asarray(data[v.name])
        if array.shape != shape:
            raise ShapeError(f"samples: {v.name} must have the shape {list(shape)}, not {list(array.shape)}")
        return array
    if v.type.dtype.kind == "f":
        return generator.uniform(*bounds, shape)
    info = np.iinfo(v.type.dtype.numpy)
    classes = valid or v.node.attrs.get("classes")
    return generator.integers(0 if classes else info.min, classes or info.max, shape)
