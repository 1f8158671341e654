"""Elementwise values in the order of sums: what sums of columns and other results are computed of is kept for a block
of columns at a time, or not at all, where it would be stored as a whole."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.codegen.compiler import compile_functions
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import _Compiled
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.passes.loops import shared_nests
from autodiff_gen.targets import board

Make = Callable[[Any, Any], list[Any]]
SHAPE = (6, 5, 48)
BLOCK = 4 * 6 * 5 * 16  # bytes of the most columns for which sums are in registers


def gated(x: Any, g: Any) -> list[Any]:
    """The sum needs the sigmoid, and so do two results that it does not read."""
    s = F.sigmoid(x * 2.0 + 0.5)
    return [F.sum(g * (x * s), (0, 1)), s * x * 3.0, s + x * s * (1.0 - s)]


def largest(x: Any, g: Any) -> list[Any]:
    """As in the gradient of a maximum: all elements are compared with it once it is known."""
    y = F.relu(F.round(x) * 0.7 + g)
    most = F.amax(y, (0, 1), keepdim=True)
    ties = F.where(F.eq(y, most), 1.0, 0.0)
    return [most, ties, F.sum(ties, (0, 1)), F.where(y <= 0.0, 0.0, 1.0)]


def later(x: Any, g: Any) -> list[Any]:
    """A result that needs the finished sum reads the function again."""
    s = F.tanh(x + 0.25)
    return [s - F.sum(g * s, (0, 1)) * 0.01, s * x]


def of_rows(x: Any, g: Any) -> list[Any]:
    """Sums of rows are in the order of memory as they are."""
    s = F.exp(x * 0.5)
    return [s / F.sum(s, 2, keepdim=True), F.sum(s * g, 2)]


@pytest.mark.cc
@pytest.mark.parametrize(
    "make, most, before",
    [(gated, 0, True), (largest, BLOCK, True), (later, BLOCK, True), (of_rows, 192, False)],
)
def test_scratch(
    make: Make, most: int, before: bool, monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    """The bytes that a nest keeps while it runs, also in the order of memory, and the same bits in both."""
    x, g = ag.Input("x", SHAPE), ag.Input("g", SHAPE)
    outputs = make(x, g)
    function = ag.function([x, g], outputs, name="f")
    whole = 4 * int(np.prod(SHAPE))

    def compiled() -> tuple[int, list[Any]]:
        program = compile_functions([function], "m", ["ref"], board.load("stm32"))
        (entry,) = program.entries
        scratch = max(s.nest.scratch_bytes for s in entry.plan.steps if s.nest is not None)
        return scratch, _Compiled(program, Compiler(find_compiler()), True).run(entry, arrays)

    arrays = [rng.uniform(-2, 2, SHAPE).astype(np.float32) for _ in range(2)]
    scratch, got = compiled()
    expected = evaluate(outputs, dict(zip((x, g), arrays, strict=True)), float_dtype="float64")
    for y, e in zip(got, expected, strict=True):
        np.testing.assert_allclose(y, e, rtol=1e-5, atol=1e-5)
    monkeypatch.setattr(shared_nests, "has_wide_vectors", lambda cost: True)
    in_order_of_memory, same = compiled()
    assert scratch <= most and (in_order_of_memory >= whole) == before
    for y, e in zip(got, same, strict=True):
        np.testing.assert_array_equal(y, e)


@pytest.mark.cc
@pytest.mark.torch
def test_the_gradient_is_pytorchs(rng: np.random.Generator) -> None:
    """Of a maximum over points that share it, whose operand is read elsewhere too."""
    import torch

    x, w = ag.Input("x", (1, 40, 12)), ag.Input("w", (1, 1, 12))
    y = F.relu(x * w)
    loss = F.sum(F.amax(y, 1) ** 2) + F.sum(F.sigmoid(y) * 0.1)
    function = ag.function([x, w], [loss, *ag.grad(loss, [x, w])], name="f")
    arrays = [np.round(rng.uniform(-2, 2, v.shape)).astype(np.float32) for v in (x, w)]
    program = compile_functions([function], "m", ["ref"], board.load("stm32"))
    got = _Compiled(program, Compiler(find_compiler()), True).run(program.entries[0], arrays)
    tx, tw = (torch.tensor(a, requires_grad=True) for a in arrays)
    ty = torch.relu(tx * tw)
    expected = (ty.amax(1) ** 2).sum() + (torch.sigmoid(ty) * 0.1).sum()
    expected.backward()
    for mine, theirs in zip(got, (expected.detach(), tx.grad, tw.grad), strict=True):
        assert theirs is not None
        np.testing.assert_allclose(mine.reshape(theirs.shape), theirs, rtol=1e-5, atol=1e-5)
