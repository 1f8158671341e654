"""F.cond: both ways, gradients and gradients of gradients beside PyTorch, in the interpreter and in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.types import Type, dtype, f32

B, H = 3, 4
SHAPES = [(B, H), (H, H), (H,)]


class Torch:
    """torch, with cond and scan in Python."""

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)

    def cond(self, pred: Any, true_fn: Any, false_fn: Any, *operands: Any) -> Any:
        return true_fn(*operands) if pred else false_fn(*operands)

    def scan(self, f: Any, init: Any, xs: Any = None, length: int = 0) -> Any:
        import torch

        ys: list[Any] = [None] * length
        for t in range(length):
            init, ys[t] = f(init, None)
        return init, torch.stack(ys)


CHOICES: dict[str, Callable[..., Any]] = {
    "of operands": lambda F, p, x, w, b: F.cond(p, lambda x, b: F.tanh(x @ w) + b, lambda x, b: x * b, x, b),
    "of closures": lambda F, p, x, w, b: F.cond(p, lambda: F.sin(x) @ w, lambda: x),
    "two values": lambda F, p, x, w, b: F.cond(p, lambda x: (F.exp(x), x @ w), lambda x: (x, F.sin(x)), x),
    "the same": lambda F, p, x, w, b: F.cond(p, lambda x: x, lambda x: x, x * b),
    "nested": lambda F, p, x, w, b: F.cond(
        p,
        lambda: F.cond(p, lambda: F.sin(x) * b, lambda: x),
        lambda: F.cond(p, lambda: x, lambda: F.cos(x @ w)),
    ),
    "in a loop": lambda F, p, x, w, b: F.scan(
        lambda h, _: (F.cond(p, lambda: F.tanh(h @ w), lambda: F.sin(h) + b), h), x, length=3
    ),
    "around a loop": lambda F, p, x, w, b: F.cond(
        p, lambda: F.scan(lambda h, _: (F.tanh(h @ w), h), x, length=3)[0], lambda: x * b
    ),
    "by a computed number": lambda F, p, x, w, b: F.cond(
        (p - 0.5) * 2.0 > F.sum(x) * 0.0, lambda: x @ w, lambda: F.cos(x)
    ),
}


def flat(out: Any) -> list[Any]:
    return [v for part in out for v in flat(part)] if isinstance(out, tuple | list) else [out]


def outputs(run: Callable[..., Any], order: int) -> tuple[list[Any], list[Any]]:
    p = make_input("p", Type(f32, ()))
    inputs = [make_input("xwb"[i], Type(f32, s)) for i, s in enumerate(SHAPES)]
    ys = flat(run(F, p, *inputs))
    found = ag.grad(sum((F.sum(y * y * y) for y in ys), start=F.sum(ys[0] * 0.0)), inputs)
    outs = [*ys, *found]
    if order == 2:
        outs += ag.grad(sum((F.sum(g * g) for g in found), start=F.sum(ys[0] * 0.0)), inputs)
    return [p, *inputs], outs


def torch_outputs(run: Callable[..., Any], p: float, arrays: list[Any], kind: str, order: int) -> list[Any]:
    import torch

    leaves = [torch.tensor(a.astype(kind), requires_grad=True) for a in arrays]
    options: Any = {"allow_unused": True, "materialize_grads": True}
    ys = flat(run(Torch(), torch.tensor(p), *leaves))
    found = torch.autograd.grad(sum((y**3).sum() for y in ys), leaves, create_graph=True, **options)
    outs = [*ys, *found]
    if order == 2:
        outs += torch.autograd.grad(sum((g * g).sum() for g in found), leaves, **options)
    return [o.detach().numpy() for o in outs]


def arrays() -> list[Any]:
    rng = np.random.default_rng(4)
    return [np.asarray(rng.normal(size=s) * 0.7, dtype=np.float32) for s in SHAPES]


@pytest.mark.torch
@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("name", CHOICES)
def test_values_gradients_and_second_gradients_in_float64(name: str, p: float) -> None:
    run = CHOICES[name]
    inputs, outs = outputs(run, order=2)
    got = evaluate(outs, dict(zip(inputs, [np.float32(p), *arrays()], strict=True)), float_dtype="float64")
    for a, b in zip(got, torch_outputs(run, p, arrays(), "float64", order=2), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", CHOICES)
def test_values_and_gradients_in_c(name: str) -> None:
    run = CHOICES[name]
    inputs, outs = outputs(run, order=1)
    f = ag.function(inputs, outs).on_host()
    for p in (0.0, 1.0):
        for a, b in zip(f(p, *arrays()), torch_outputs(run, p, arrays(), "float32", order=1), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


@pytest.mark.cc
@pytest.mark.parametrize("kind", ["u8", "s32", "f32"])
def test_any_number_chooses(kind: str) -> None:
    p, x = make_input("p", Type(dtype(kind), ())), make_input("x", Type(f32, (2,)))
    f = ag.function([p, x], [F.cond(p, lambda: x * 2.0, lambda: -x)]).on_host()
    for given, factor in ((0, -1.0), (1, 2.0), (3, 2.0)):
        np.testing.assert_array_equal(f(given, np.array([1.0, -2.0]))[0], factor * np.array([1.0, -2.0]))


def test_a_function_that_is_not_chosen_costs_nothing_in_c() -> None:
    inputs, _ = outputs(CHOICES["of closures"], order=1)
    p, x, w, _ = inputs
    from autodiff_gen.codegen.compiler import compile_function
    from autodiff_gen.codegen.files import emit

    y = F.cond(p, lambda: F.sin(x) @ w, lambda: x)
    lines = emit(compile_function(ag.function([p, x, w], [y]), "f"))["f.c"].splitlines()
    start = next(i for i, line in enumerate(lines) if "if (p_2 != 0.0f)" in line)
    other = next(i for i, line in enumerate(lines) if line == "    } else {")
    for text in ("ag_sinf", "ag_gemm_nn_f32_ref("):
        assert all(start < i < other for i, line in enumerate(lines) if text in line)


X, P = make_input("x", Type(f32, (B, H))), make_input("p", Type(f32, ()))
REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.cond(X, lambda: X, lambda: X), r"^cond\(pred: f32\[3,4\]\): pred must be a scalar; F.where selects"),
    (lambda: F.cond(P, lambda: X, lambda: (X,)), r"^cond: true_fn returns \*, but false_fn returns \(\*\); they must"),
    (lambda: F.cond(P, lambda: X, lambda: X @ X.T), r"^cond: true_fn returns f32\[3,4\], but false"),
    (lambda: F.cond(P, lambda: (X, X), lambda: (X, P)), r"^cond: true_fn returns f32\[3,4\] as value 1, but"),
    (lambda: F.cond(P, lambda: None, lambda: None), r"^cond: the functions return no value; return the same"),
    (
        lambda: F.cond(P, lambda: nn.BatchNorm1d(H)(X), lambda: X),
        r"^cond: a step that differs between training and evaluation",
    ),
]  # fmt: skip


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        build()
