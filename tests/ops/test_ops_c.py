"""Every op of the registry as generated C, value and gradient, against the interpreter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from generated_c import host_functions
from op_cases import GRADIENT_ROWS, SAMPLED, case
from op_tables import BATCHED, REDUCTIONS, ROWS_OF_SPECIALS, SPECIAL_OPS, special_operands

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
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


@dataclass(frozen=True)
class Row:
    """A C function, and the arrays of each of its calls."""

    name: str
    inputs: list[Any]
    outputs: list[Any]
    calls: list[list[Any]]
    tolerance: dict[str, float] = field(default_factory=lambda: TOLERANCE)


def compare(subtests: pytest.Subtests, rows: list[Row]) -> None:
    """Every call of the functions of the rows, which are compiled together."""
    functions = host_functions([ag.function(row.inputs, row.outputs) for row in rows])
    for row, function in zip(rows, functions, strict=True):
        with subtests.test(row.name):
            for arrays in row.calls:
                want = evaluate(row.outputs, dict(zip(row.inputs, arrays, strict=True)))
                for v, a, b in zip(row.outputs, function(*arrays), want, strict=True):
                    assert np.shape(a) == np.shape(b)
                    np.testing.assert_allclose(np.asarray(a, b.dtype), b, **row.tolerance, err_msg=repr(v))


def some_at_a_time(rows: list[Any], name: Callable[[Any], str] = str) -> Any:
    """Parametrizes a test by the rows, ten in each of its items, whose id has all names."""
    groups = [rows[k : k + 10] for k in range(0, len(rows), 10)]
    return pytest.mark.parametrize("rows", groups, ids=["+".join(map(name, group)) for group in groups])


def of_samples(name: str) -> Row:
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
    return Row(name, inputs, outputs, [arrays])


@some_at_a_time(SAMPLED)
def test_samples(subtests: pytest.Subtests, rows: list[str]) -> None:
    """All samples of an op in one C function: values, then gradients of sum(value * dy)."""
    compare(subtests, [of_samples(name) for name in rows])


def of_a_batch(name: str, operands: list[Any], attrs: dict[str, Any]) -> Row:
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
    return Row(name, inputs, [front, *gradients], calls)


@some_at_a_time(BATCHED, lambda row: row[0])
def test_batch_of_any_size(subtests: pytest.Subtests, rows: list[Any]) -> None:
    compare(subtests, [of_a_batch(*row) for row in rows])


def of_special_numbers(name: str) -> Row:
    arrays = special_operands(OPS[name])
    inputs = [ag.Input("ab"[i], a.shape) for i, a in enumerate(arrays)]
    y = apply(name, *inputs, **OPS[name].samples[0].attrs)
    return Row(name, inputs, [y], [arrays], {"rtol": 2e-6, "atol": 1e-44})


@some_at_a_time(SPECIAL_OPS)
def test_special_numbers(subtests: pytest.Subtests, rows: list[str]) -> None:
    """Zeros of both signs, infinities, NaN, a subnormal and nearly the largest float, in all pairs."""
    compare(subtests, [of_special_numbers(name) for name in rows])


def of_a_reduction(name: str) -> Row:
    array = np.array(ROWS_OF_SPECIALS, dtype=np.float32)
    x = ag.Input("x", array.shape)
    outputs = list(apply_node(name, x, axes=(1,), keepdim=False).results)
    return Row(name, [x], outputs, [[array]], {"rtol": 0.0, "atol": 0.0})


@some_at_a_time(REDUCTIONS)
def test_reductions_of_special_numbers(subtests: pytest.Subtests, rows: list[str]) -> None:
    compare(subtests, [of_a_reduction(name) for name in rows])
