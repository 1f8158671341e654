"""Functions, losses and layers where their gradients have a step, overflow or meet equal numbers, as PyTorch has it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated_c import host_functions
from kinks import Case, cases, differences
from row_groups import by_first

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.autodiff import grad
from autodiff_gen.ir.interpreter import evaluate


@pytest.mark.torch
@by_first(cases())
def test_derivatives_at_kinks_against_torch(rows: list[Case]) -> None:
    found = {f"{case.name} {case.options}": differences(case) for case in rows}
    assert not any(found.values()), {name: lines for name, lines in found.items() if lines}


# A number and two limits that are tensors; the gradients of all three.
LIMITS = {
    (0, 1, 1): (0, 1, 0),
    (0, 1, 2): (0, 1, 0),
    (0, 2, 1): (0, 0, 1),
    (1, 1, 1): (1, 0, 0),
    (1, 1, 2): (0.5, 0.5, 0),
    (1, 2, 1): (0, 0, 1),
    (1, 2, 2): (0, 1, 0),
    (2, 1, 1): (0, 0, 1),
    (2, 1, 2): (0.5, 0, 0.5),
    (2, 2, 2): (1, 0, 0),
    (3, 1, 2): (0, 0, 1),
}
LINE = [0, 1, 2, 3, 4]
NO_SLOPE = [0, 0, 0, 0, 0]
ONES = [1, 1, 1]
UNIT = [[1, 0], [0, 1], [0, 0]]

# An expression, its operands, and their gradients, which older versions of PyTorch have otherwise (torch_changes.py).
GRADIENTS: list[tuple[str, Callable[..., Any], list[Any], list[Any]]] = [
    ("clamp", lambda a: F.clamp(a, 1, 3), [LINE], [[0, 0, 1, 0, 0]]),
    ("clamp_min", lambda a: F.clamp(a, min=1), [LINE], [[0, 0, 1, 1, 1]]),
    ("clamp_min_0", lambda a: F.clamp(a, min=0), [LINE], [[0, 1, 1, 1, 1]]),
    ("clamp_max", lambda a: F.clamp(a, max=3), [LINE], [[1, 1, 1, 0, 0]]),
    ("clamp_to_one", lambda a: F.clamp(a, 2, 2), [LINE], [NO_SLOPE]),
    ("clamp_crossed", lambda a: F.clamp(a, 3, 1), [LINE], [NO_SLOPE]),
    ("clamp_infinite", lambda a: F.clamp(a, -np.inf, np.inf), [LINE], [[1, 1, 1, 1, 1]]),
    ("clamp_tensors", F.clamp, list(zip(*LIMITS, strict=True)), list(zip(*LIMITS.values(), strict=True))),
    ("clamp_min_tensor", lambda a, b: F.clamp(a, min=b), [[0, 1, 2], ONES], [[0, 0.5, 1], [1, 0.5, 0]]),
    ("clamp_max_tensor", lambda a, b: F.clamp(a, max=b), [[0, 1, 2], ONES], [[1, 0.5, 0], [0, 0.5, 1]]),
    ("clamp_number_and_tensor", lambda a, b: F.clamp(a, 0.0, b), [[0, 1, 2], ONES], [[0.5, 0.5, 0], [0, 0.5, 1]]),
    ("margin_ranking", lambda a, b: F.margin_ranking_loss(a, b, ONES, 1.0, reduction="sum"), [[0, 1, 2], [0, 0, 0]],
     [[-1, 0, 0], [1, 0, 0]]),
    ("hinge", lambda a: F.hinge_embedding_loss(a, [-1.0, -1, -1], reduction="sum"), [[0, 1, 2]], [[-1, 0, 0]]),
    ("multi_margin", lambda a: F.multi_margin_loss(a, [0], reduction="sum"), [[[1, 0, 1]]], [[[-1 / 3, 0, 1 / 3]]]),
    ("triplet", lambda a, b, c: F.triplet_margin_loss(a, b, c, p=1, eps=0.0, reduction="sum"),
     [[[0, 0]], [[0, 1]], [[2, 0]]], [[[0, 0]]] * 3),
    ("cosine", lambda a, b: F.cosine_embedding_loss(a, b, [-1.0, -1, -1], reduction="sum"), [UNIT, UNIT[1:] + UNIT[:1]],
     [np.zeros((3, 2))] * 2),
]  # fmt: skip


@pytest.mark.cc
def test_gradients_at_limits_and_margins() -> None:
    """Interpreted, and in one C function."""
    inputs: list[Any] = []
    gradients: list[Any] = []
    arrays: list[Any] = []
    expected: list[tuple[str, Any]] = []
    for name, expression, operands, wanted in GRADIENTS:
        given = [np.float32(v) for v in operands]
        xs = [ag.Input(f"{name}_{k}", v.shape) for k, v in enumerate(given)]
        inputs += xs
        arrays += given
        gradients += grad(F.sum(expression(*xs)), xs)
        expected += [(f"{name} {k}", v) for k, v in enumerate(wanted)]
    interpreted = evaluate(gradients, dict(zip(inputs, arrays, strict=True)))
    (function,) = host_functions([ag.function(inputs, gradients)])
    for (name, want), a, b in zip(expected, interpreted, function(*arrays), strict=True):
        np.testing.assert_allclose(a, want, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(b, want, rtol=1e-6, err_msg=f"{name} in C")
