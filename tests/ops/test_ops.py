"""Every op x sample of the registry in the interpreter: types, gradients against finite differences, and which are
built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from op_cases import (
    DIFFERENTIABLE,
    EDGES,
    GRADIENT_ROWS,
    INTERNAL,
    NOT_IN_TORCH,
    ROWS,
    SAMPLED,
    Case,
    case,
    edge_error,
    gradient_error,
)  # fmt: skip
from op_tables import BATCHED
from row_groups import by_first, each_row, in_groups

from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.build import apply, apply_node, make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import OPS, register
from autodiff_gen.ir.op_kinds import KernelOp
from autodiff_gen.ir.types import Type, bound, dtype, f32

TOLERANCE = 1e-7  # of float64 gradients against central differences with steps of 1e-6


def test_every_op_has_samples_and_a_torch_expression() -> None:
    for name in SAMPLED:
        assert OPS[name].samples, f"{name} has no samples"
        assert OPS[name].torch or name in NOT_IN_TORCH, f"{name} has no PyTorch expression"
    for name in INTERNAL & set(OPS):
        assert OPS[name].vjp is None


def test_a_name_cannot_be_registered_twice() -> None:
    with pytest.raises(ValueError, match="'exp' is registered twice"):
        register(OPS["exp"])


@by_first(ROWS)
@each_row
def test_sample(row: tuple[str, int]) -> None:
    c = case(*row)
    the_reference_has_the_inferred_type(c)
    if row not in GRADIENT_ROWS:
        return
    only_wanted_gradients_are_built(c)
    if c.op.name != "detach":
        xs = [c.inputs[i] for i in c.wanted]
        assert gradient_error(c.weighted(), c.feeds, xs) < TOLERANCE
        twice = c.weighted() + 3.0 * c.weighted(c.again())
        assert gradient_error(twice, c.feeds, xs) < TOLERANCE, "every input is used twice"


def the_reference_has_the_inferred_type(c: Case) -> None:
    raw = c.op.ref(*c.arrays, **c.sample.attrs)
    for out, value in zip(raw if isinstance(raw, tuple) else (raw,), c.outs, strict=True):
        assert np.shape(out) == value.shape
        assert np.asarray(out).dtype.kind == value.dtype.kind


def only_wanted_gradients_are_built(c: Case) -> None:
    assert c.op.vjp is not None
    dys = [v if v.dtype.kind == "f" else None for v in c.outs]
    for k in range(len(c.inputs)):
        wanted = [i == k for i in range(len(c.inputs))]
        found = c.op.vjp(dys, c.inputs, c.outs, c.sample.attrs, wanted)
        assert len(found) == len(c.inputs)
        assert all(g is None for g, want in zip(found, wanted, strict=True) if not want)


OF_ONE_SHAPE = [
    name
    for name in DIFFERENTIABLE
    if len(OPS[name].samples[0].inputs) == 2
    and not OPS[name].samples[0].dtypes
    and not OPS[name].samples[0].attrs
    and not isinstance(OPS[name].lower, KernelOp)
]


@pytest.mark.parametrize("name", OF_ONE_SHAPE)
def test_gradient_where_both_operands_are_one_value(name: str) -> None:
    low, high = OPS[name].samples[0].domain
    x, dy = make_input("x", Type(f32, (2, 2))), make_input("dy", Type(f32, (2, 2)))
    rng = np.random.default_rng(1)
    feeds = {x: rng.uniform(low, high, (2, 2)), dy: rng.uniform(0.5, 1.5, (2, 2))}
    y = F.sum(apply(name, x, x) * dy)
    assert gradient_error(y, feeds, [x]) < TOLERANCE


@in_groups(EDGES)
@each_row
def test_edges(row: Any) -> None:
    assert edge_error(row) < 1e-6


@pytest.mark.parametrize("name, operands, attrs", BATCHED)
def test_batch_of_any_size(name: str, operands: list[Any], attrs: dict[str, Any]) -> None:
    """A graph over n equals the graph over that many rows, value and gradient."""

    def build(size: int | None) -> tuple[list[Any], list[Any]]:
        fixed = (lambda s: s) if size is None else (lambda s: bound(s, size))
        inputs = []
        for i, operand in enumerate(operands):
            shape, kind = operand if isinstance(operand[-1], str) else (operand, "f32")
            inputs.append(make_input("ab"[i], Type(dtype(kind), fixed(shape))))
        resolved = {k: fixed(v) if k == "shape" else v for k, v in attrs.items()}
        y = apply_node(name, *inputs, **resolved).results[0]
        xs = [v for v in inputs if v.dtype.kind == "f"]
        gradients = grad(F.sum(F.square(y)), xs) if y.dtype.kind == "f" else []
        return inputs, [y, *gradients]

    inputs, free = build(None)
    for rows in (1, 3, 4):
        rng = np.random.default_rng(rows)
        plain, fixed = build(rows)
        arrays = [
            rng.integers(0, 3, v.shape) if v.dtype.kind != "f" else rng.uniform(0.5, 2.0, v.shape)
            for v in plain
        ]
        got = evaluate(free, dict(zip(inputs, arrays, strict=True)), n=rows)
        want = evaluate(fixed, dict(zip(plain, arrays, strict=True)))
        for a, b in zip(got, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-6, err_msg=f"{rows} rows")
