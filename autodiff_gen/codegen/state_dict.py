"""Arrays of a program's states by name, as in PyTorch's state_dict: conversion in both directions, and errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import ModelError, ShapeError, listed
from ..ir.parameter_layout import PartialStorage
from .program import Program, Slot


def state_dict(program: Program, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays of all slots and of frozen states, in the order of a state_dict."""
    return {
        name: arrays[name] if name in arrays else program.frozen[name].copy() for name in program.state_names
    }


def check_state(program: Program, what: str, state: Mapping[str, Any], strict: bool) -> None:
    """Raise ModelError for a state that `load_state_dict` rejects: another value of a frozen state; if `strict`,
    missing parameters and buffers, and unexpected names. The optimizer's state may be left out as a whole, as in
    PyTorch's state_dict of a module."""
    check_frozen(program, state)
    own = [s.name for s in program.slots if s.role in ("parameter", "buffer")]
    others = [s.name for s in program.slots if s.role not in ("parameter", "buffer")]
    needed = [*own, *others] if any(n in state for n in others) else own
    wrong = {
        "missing": [n for n in needed if n not in state],
        "unexpected": [n for n in state if n not in program.state_names and n not in program.tied],
    }
    if strict and any(wrong.values()):
        parts = [f"{kind} {listed(names)}" for kind, names in wrong.items() if names]
        raise ModelError(
            f"{what}: names differ: {'; '.join(parts)}; the model has {listed(own)}; strict=False, or push --partial, "
            "moves those that both have"
        )


def check_frozen(program: Program, state: Mapping[str, Any]) -> None:
    """Raise ModelError if a frozen state, or the frozen part of a state, has another value than in the program."""
    for name, array in program.frozen.items():
        if name not in state:
            continue
        numbers = _numbers(state[name], array.dtype)
        if numbers is None or not np.array_equal(numbers, array, equal_nan=array.dtype.kind == "f"):
            raise ModelError(
                f"{name} is frozen: a constant of the program; give its value to the network before the model is "
                "built, or train it"
            )
    for slot in program.slots:
        storage = slot.state.storage
        if isinstance(storage, PartialStorage) and slot.name in state:
            numbers = _numbers(state[slot.name], slot.type.dtype.numpy)
            whole = numbers is not None and numbers.shape == storage.logical
            if whole and not storage.has_the_rest_of(numbers):
                raise ModelError(
                    f"{slot.name}: channels that do not train have other values than the program's constants; give "
                    "them to the network before the model is built, or train these channels too"
                )


def given(slot: Slot, what: str, value: Any) -> Any:
    """An array or a tensor of PyTorch as a value of the state, in the logical shape. Raises ShapeError for another
    shape or dtype, and for integers that do not fit."""
    array, type = _array(value), slot.state.logical
    if array.shape != tuple(type.shape):
        raise ShapeError(f"{what}: {slot.name} has shape {list(type.shape)}, got {list(array.shape)}")
    if array.dtype.kind not in ("fiub" if type.dtype.kind == "f" else "iub"):
        raise ShapeError(f"{what}: {slot.name} is {type}, got an array of {array.dtype}")
    result = array.astype(type.dtype.numpy)
    if type.dtype.kind != "f" and not np.array_equal(result, array):
        wrong = array[result != array].flat[0]
        raise ShapeError(f"{what}: {slot.name} is {type}, got {wrong}")
    return result


def _array(value: Any) -> Any:
    """An array or a tensor of PyTorch as an array; for lists of different lengths, an array without numbers."""
    try:
        return np.asarray(value.detach().cpu().numpy() if hasattr(value, "detach") else value)
    except ValueError:
        return np.asarray(None)


def _numbers(value: Any, dtype: Any) -> Any:
    """An array or a tensor of PyTorch as an array of this dtype; None for arrays without real numbers."""
    array = _array(value)
    with np.errstate(invalid="ignore"):
        return array.astype(dtype) if array.dtype.kind in "fiub" else None
