"""The weights of an exported program: parameters, buffers and constants, views of others, and complex numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ModelError, quoted
from ..imported.program import BUFFER, CONSTANT, PARAMETER, ValueRef, Weight, WeightRef, WeightView
from .complex_numbers import Complex
from .pt2_weights import StoredTensor
from .values import ExportedValues
from .weight_views import Elements, steps, views

INTEGERS = ("int64", "int32", "int16", "int8", "uint8")


def read_weights(c: ExportedValues) -> None:
    """Let names of the graph mean the weights of the file. Raises ModelError."""
    roles = {
        name: PARAMETER if kind == "parameter" else BUFFER if persistent else CONSTANT
        for kind, name, persistent in c.exported.weights.values()
    }
    missing = next((name for name in roles if name not in c.exported.stored), None)
    if missing is not None:
        raise ModelError(f"{c.name}: the weight {quoted(missing)} is missing in the file")
    shown = views(c.exported.stored, roles, c.name)
    for graph_name, (_, name, _) in c.exported.weights.items():
        stored, role = c.exported.stored[name], roles[name]
        if name in shown:
            continue
        if stored.dtype == "complex64" and role != PARAMETER:
            _read_complex(c, graph_name, name, stored)
            continue
        c.weights[name] = Weight(_array(c, name, stored, role), role, stored.requires_grad)
        c.known[graph_name] = WeightRef(name)
        c.root[graph_name] = graph_name
    for graph_name, (_, name, _) in c.exported.weights.items():
        if name in shown:
            _read_view(c, graph_name, name, *shown[name])


def _read_view(c: ExportedValues, graph_name: str, name: str, base: str, elements: Elements) -> None:
    """A weight that is a view of another weight: the same parameter, or a value computed from it."""
    stored, of = c.exported.stored[name], c.exported.stored[base]
    ref: ValueRef | WeightRef = WeightRef(base)
    is_same = stored.where == of.where and stored.requires_grad == of.requires_grad
    if is_same:
        c.tied[name] = base
    else:
        c.views[name] = WeightView(base, elements, stored.requires_grad)
        for function, *args in steps(of.array.shape, elements):
            place = f"{graph_name}.elements"
            if isinstance(args[0], np.ndarray):
                c.weights[place] = Weight(args[0], CONSTANT)
                args = [WeightRef(place)]
            ref = c.emit_outside(f"{graph_name}.view", function, (ref, *args))
        if not stored.requires_grad and of.requires_grad:
            ref = c.emit_outside(f"{graph_name}.view", "detach", (ref,))
        c.shapes[ref.name], c.dtypes[ref.name] = elements.shape, stored.dtype
    c.known[graph_name] = ref
    same = (n for n, (_, other, _) in c.exported.weights.items() if other == base)
    c.root[graph_name] = next(same) if is_same else graph_name


def _read_complex(c: ExportedValues, graph_name: str, name: str, stored: StoredTensor) -> None:
    """Complex constants and buffers, which no training changes."""
    parts = {f"{name}.{part}": getattr(stored.array, part).copy() for part in ("real", "imag")}
    c.weights |= {part: Weight(array, CONSTANT) for part, array in parts.items()}
    c.known[graph_name] = Complex(*map(WeightRef, parts))
    c.root[graph_name] = graph_name


def _array(c: ExportedValues, name: str, stored: StoredTensor, role: str) -> Any:
    array = stored.array
    if stored.dtype == "bool" and role != PARAMETER:
        return array
    if stored.dtype in INTEGERS and role != PARAMETER:
        if array.size and (array.min() < -(2**31) or array.max() >= 2**31):
            raise ModelError(f"{c.name}: {quoted(name)} has integers that do not fit into 32 bits")
        return array.astype(np.int32)
    if stored.dtype == "complex64":
        raise ModelError(
            f"{c.name}: the {role} {quoted(name)} is complex; make it torch.view_as_complex of a parameter with "
            "a last axis of 2"
        )
    if stored.dtype == "float64" and role == CONSTANT and not array.shape:
        return array.astype(np.float32)  # a number, which takes the dtype of the other operand
    if stored.dtype != "float32":
        raise ModelError(
            f"{c.name}: the {role} {quoted(name)} is {stored.dtype}; convert the network by net.float() before"
        )
    return array
