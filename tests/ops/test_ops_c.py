"""Every op of the registry as generated C, value and gradient, against the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_cases import GRADIENT_ROWS, SAMPLED, case
from op_tables import BATCHED, REDUCTIONS, ROWS_OF_SPECIALS, SPECIAL_OPS, special_operands

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.host.trainer import host_function
from autodiff_gen.ir.build import apply, apply_node
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import OPS

pytestmark = pytest.mark.cc

# float32 against float32: a few roundings apart, and sums in another order.
TOLERANCE = {"rtol": 2e-6, "atol": 2e-6}


def as_input(name: str, shape: Any, kind: str, batch_axis: int | None = None) -> tuple[Any, Any]:
    """An input, and the value of the operand: C functions take masks as bytes."""
    given = ag.Input(name, shape, dtype="u8" if kind == "bool" else kind, batch_axis=batch_axis)
    return given, F.ne(given, 0) if kind == "bool" else given


def compare(inputs: list[Any], outputs: list[Any], tolerance: dict[str, float], *calls: list[Any]) -> None:
    """One C function, called with each of the lists of arrays."""
    function = host_function(ag.function(inputs, outputs), opt="-O0")
    for arrays in calls:
        want = evaluate(outputs, dict(zip(inputs, arrays, strict=True)))
        for v, a, b in zip(outputs, function(*arrays), want, strict=True):
            assert np.shape(a) == np.shape(b)
            np.testing.assert_allclose(np.asarray(a, b.dtype), b, **tolerance, err_msg=repr(v))


@pytest.mark.parametrize("name", SAMPLED)
def test_samples(name: str) -> None:
    """All samples of an op in one C function: values, then gradients of sum(value * dy)."""
    inputs: list[Any] = []
    outputs: list[Any] = []
    arrays: list[Any] = []
    for i, sample in enumerate(OPS[name].samples):
        c = case(name, i)
        pairs = [as_input(f"x{i}_{k}", s, sample.dtypes.get(k, "f32")) for k, s in enumerate(sample.inputs)]
        operands = [operand for _, operand in pairs]
        outs = apply_node(name, *operands, **sample.attrs).results
        dys = [ag.Input(f"dy{i}_{k}", v.shape) for k, v in enumerate(c.float_outs)]
        inputs += [given for given, _ in pairs]
        arrays += list(c.arrays)
        outputs += outs
        if (name, i) in GRADIENT_ROWS:
            inputs += dys
            arrays += list(c.dys)
            floats = [v for v in outs if v.dtype.kind == "f"]
            total = F.sum(floats[0] * dys[0])
            outputs += grad(total, [v for v in operands if v.dtype.kind == "f"])
    compare(inputs, outputs, TOLERANCE, arrays)


@pytest.mark.parametrize("name, operands, attrs", BATCHED)
def test_batch_of_any_size(name: str, operands: list[Any], attrs: dict[str, Any]) -> None:
    calls: list[list[Any]] = [[np.zeros(rows, np.float32)] for rows in (1, 3, 4)]
    generators = [np.random.default_rng(len(arrays[0])) for arrays in calls]
    inputs: list[Any] = [ag.Input("rows", 4, batch_axis=0)]  # says n where no operand does
    values = []
    for i, operand in enumerate(operands):
        shape, kind = operand if isinstance(operand[-1], str) else (operand, "f32")
        axis = next((k for k, d in enumerate(shape) if not isinstance(d, int)), None)
        first = shape if axis is None else (4, *shape[:axis], *shape[axis + 1 :])
        given = ag.Input("ab"[i], first, dtype=kind, batch_axis=None if axis is None else 0)
        inputs.append(given)
        back = np.argsort([axis, *(k for k in range(len(shape)) if k != axis)]) if axis else ()
        values.append(F.permute(given, [int(k) for k in back]) if axis else given)
        for arrays, rng in zip(calls, generators, strict=True):
            actual = first if axis is None else (len(arrays[0]), *first[1:])
            integers = rng.integers(0, 3, actual).astype(np.uint8)
            arrays.append(integers if kind != "f32" else rng.uniform(0.5, 2.0, actual).astype(np.float32))
    y = apply_node(name, *values, **attrs).results[0]
    xs = [v for v in inputs[1:] if v.dtype.kind == "f"]
    gradients = grad(F.sum(F.square(y)), xs) if y.dtype.kind == "f" else []
    axis = next((k for k, d in enumerate(y.shape) if not isinstance(d, int)), 0)
    front = F.permute(y, [axis, *(k for k in range(y.ndim) if k != axis)]) if axis else y
    compare(inputs, [front, *gradients], TOLERANCE, *calls)


@pytest.mark.parametrize("name", SPECIAL_OPS)
def test_special_numbers(name: str) -> None:
    """Zeros of both signs, infinities, NaN, a subnormal and nearly the largest float, in all pairs."""
    arrays = special_operands(OPS[name])
    inputs = [ag.Input("ab"[i], a.shape) for i, a in enumerate(arrays)]
    y = apply(name, *inputs, **OPS[name].samples[0].attrs)
    compare(inputs, [y], {"rtol": 2e-6, "atol": 1e-44}, arrays)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_reductions_of_special_numbers(name: str) -> None:
    array = np.array(ROWS_OF_SPECIALS, dtype=np.float32)
    x = ag.Input("x", array.shape)
    outputs = list(apply_node(name, x, axes=(1,), keepdim=False).results)
    compare([x], outputs, {"rtol": 0.0, "atol": 0.0}, [array])
