"""Every element type at every rank as an input, a parameter, a state and an output of a compiled function and model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim
from autodiff_gen.host.trainer import host_trainer
from autodiff_gen.ir.types import DTYPES

pytestmark = pytest.mark.cc

TYPES = [dtype for dtype in DTYPES.values() if dtype.name != "f64"]  # which no generated C holds
SHAPES = [(), (3,), (2, 3), (2, 1, 3), (2, 3, 1, 2)]
CASES = [(f"{t.name}_{len(s)}", t, s) for t in TYPES for s in SHAPES]


def numbers(dtype: Any, shape: tuple[int, ...]) -> Any:
    """0, 1 and, but for masks, -1 or 2."""
    values = np.resize([1, 0, -1 if dtype.kind in "fi" else 2], shape)
    return (values % 2 if dtype.kind == "b" else values).astype(dtype.numpy)


def as_float(x: Any) -> Any:
    return x if x.dtype.kind == "f" else F.to(x, "f32")


def test_inputs_and_outputs_of_functions() -> None:
    inputs = [ag.Input(name, shape, dtype=dtype.name) for name, dtype, shape in CASES]
    arrays = [numbers(dtype, shape) for _, dtype, shape in CASES]
    found = ag.function(inputs, [*inputs, *map(as_float, inputs)]).on_host()(*arrays)
    for (name, dtype, _), given, got, floats in zip(
        CASES, arrays, found[: len(CASES)], found[len(CASES) :], strict=True
    ):
        assert got.dtype == dtype.numpy, name
        np.testing.assert_array_equal(got, given, err_msg=name, strict=True)
        np.testing.assert_array_equal(floats, given.astype(np.float32), err_msg=name, strict=True)


def test_a_mask_without_axes_chooses() -> None:
    c, x, y = ag.Input("c", (), dtype="bool"), ag.Input("x", (2,)), ag.Input("y", (2,))
    f = ag.function([c, x, y], [F.where(c, x, y)]).on_host()
    for value in (True, False, 1, 0, np.bool_(True), np.array(False)):
        np.testing.assert_array_equal(f(value, [1, 2], [3, 4])[0], [1, 2] if value else [3, 4])
    assert "uint8_t c" in f.source["function.h"]


def test_inputs_states_and_outputs_of_models() -> None:
    inputs = [ag.Input(f"x_{name}", shape, dtype=dtype.name) for name, dtype, shape in CASES]
    kept = [(name, dtype, shape) for name, dtype, shape in CASES if dtype.name in ("f32", "s32", "bool")]
    buffers = [ag.Buffer(f"b_{name}", numbers(dtype, shape), dtype.name) for name, dtype, shape in kept]
    weights = [ag.Param(f"w_{len(shape)}", np.full(shape, 0.5)) for shape in SHAPES]
    total: Any = 0.0
    for x in [*inputs, *buffers]:
        total = total + F.sum(as_float(x) * weights[x.ndim])
    trainer = host_trainer(
        ag.Model(
            inputs=inputs,
            targets=[],
            outputs={"total": total, **{f"y_{x.name}": x for x in inputs}},
            loss=total,
            optimizer=optim.SGD(lr=1.0),
        ),
        opt="-O0",
    )
    arrays = [numbers(dtype, shape) for _, dtype, shape in CASES]
    held = [numbers(dtype, shape) for _, dtype, shape in kept]
    want = sum(float(np.sum(a.astype("f4"))) for a in [*arrays, *held]) / 2
    assert trainer.train_step(*arrays) == pytest.approx(want)
    for shape in SHAPES:
        gradient = sum(a.astype("f4") for a in [*arrays, *held] if a.shape == shape)
        np.testing.assert_allclose(trainer.state_dict()[f"w_{len(shape)}"], 0.5 - gradient)
    found = trainer.predict(*arrays)
    for (name, _, _), given in zip(CASES, arrays, strict=True):
        np.testing.assert_array_equal(found[f"y_x_{name}"], given, err_msg=name, strict=True)
