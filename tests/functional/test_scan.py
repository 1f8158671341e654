"""F.scan: forward, gradients and gradients of gradients beside PyTorch's loop, in the interpreter and in C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.errors import ShapeError
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.types import Dim, Type, f32, s32

T, B, N, H = 5, 3, 4, 6


class Torch:
    """torch, with scan as a Python loop."""

    def __getattr__(self, name: str) -> Any:
        import torch

        return getattr(torch, name)

    def scan(self, f: Any, init: Any, xs: Any = None, length: int = 0, reverse: bool = False) -> Any:
        import torch

        lists = isinstance(xs, tuple | list)
        times = range(length or (xs[0] if lists else xs).shape[0])
        ys: list[Any] = [None] * len(times)
        for t in reversed(times) if reverse else times:
            x = None if xs is None else [v[t] for v in xs] if lists else xs[t]
            init, ys[t] = f(init, x)
        if ys[0] is None:
            return init, None
        if isinstance(ys[0], tuple):
            return init, tuple(torch.stack([y[i] for y in ys]) for i in range(len(ys[0])))
        return init, torch.stack(ys)


Loop = Callable[..., Any]
LOOPS: dict[str, tuple[Loop, list[tuple[int, ...]]]] = {
    "recurrent": (
        lambda F, x, h, w, v, b: F.scan(
            lambda h, x: ((new := F.tanh(x @ w.T + h @ v.T + b)), new * 2.0), h, x
        ),
        [(T, B, N), (B, H), (H, N), (H, H), (H,)],
    ),
    "backwards": (
        lambda F, x, h, w: F.scan(lambda h, x: (F.sin(h @ w + x), h), h, x, reverse=True),
        [(T, B, H), (B, H), (H, H)],
    ),
    "two carries": (
        lambda F, x, a, b, w: F.scan(
            lambda c, x: ((F.tanh(c[0] @ w + x), c[1] * 0.5 + c[0]), (c[0] * c[1], x)), (a, b), x
        ),
        [(T, B, H), (B, H), (B, H), (H, H)],
    ),
    "two inputs": (
        lambda F, x, y, h, w: F.scan(lambda h, xs: (F.sigmoid(h * xs[0] + xs[1] @ w), h), h, [x, y]),
        [(T, B, H), (T, B, N), (B, H), (N, H)],
    ),
    "without xs": (
        lambda F, h, w: F.scan(lambda h, _: (F.sin(h @ w), h[None] if False else h), h, length=T),
        [(B, H), (H, H)],
    ),
    "only ys": (
        lambda F, x, w: F.scan(lambda _, x: (None, F.exp(x @ w)), None, x),
        [(T, B, N), (N, H)],
    ),
    "scalars": (
        lambda F, x, h, a: F.scan(lambda h, x: (F.sin(h * a + x), h * x), h, x),
        [(T,), (), ()],
    ),
    "vectors": (
        lambda F, x, h, a, w: F.scan(lambda h, x: (F.tanh(F.matmul(w, h) + a * x), F.sum(h)), h, x),
        [(T, H), (H,), (H,), (H, H)],
    ),
    "weight used twice": (
        lambda F, x, h, w: F.scan(lambda h, x: (F.tanh(h @ w + (x @ w.T) @ w), None), h, x),
        [(T, B, H), (B, H), (H, H)],
    ),
    "scaled by a capture": (
        lambda F, x, h, s: F.scan(lambda h, x: (F.tanh(h * F.exp(s) + x), h), h, x),
        [(T, B, H), (B, H), (B, H)],
    ),
    "one step": (
        lambda F, x, h, w: F.scan(lambda h, x: (F.tanh(x + h @ w), h), h, x),
        [(1, B, H), (B, H), (H, H)],
    ),
    "unused parts": (
        lambda F, x, h, w: F.scan(lambda c, x: ((F.tanh(c[0] @ w), c[1] + x), c[1]), (h, h), x),
        [(T, B, H), (B, H), (H, H)],
    ),
    "a loop in a loop": (
        lambda F, x, h, w: F.scan(
            lambda h, x: F.scan(lambda h, _: (F.tanh(h @ w + x), F.sum(h * x)), h, length=2), h, x
        ),
        [(T, B, H), (B, H), (H, H)],
    ),
}


def arrays_of(shapes: list[tuple[int, ...]]) -> list[Any]:
    rng = np.random.default_rng(3)
    return [np.asarray(rng.normal(size=s) * 0.5, dtype=np.float32) for s in shapes]


def flat(out: Any) -> list[Any]:
    if out is None:
        return []
    return [v for part in out for v in flat(part)] if isinstance(out, tuple | list) else [out]


def outputs(run: Loop, shapes: list[tuple[int, ...]], order: int) -> tuple[list[Any], list[Any]]:
    """The graph's inputs, and its results, with gradients of sum(y^3), and their own gradients' for order 2."""
    inputs = [make_input("abcdefgh"[i], Type(f32, s)) for i, s in enumerate(shapes)]
    ys = flat(run(F, *inputs))
    found = ag.grad(sum((F.sum(y * y * y) for y in ys), start=F.sum(ys[0] * 0.0)), inputs)
    outs = [*ys, *found]
    if order == 2:
        outs += ag.grad(sum((F.sum(g * g) for g in found), start=F.sum(ys[0] * 0.0)), inputs)
    return inputs, outs


def torch_outputs(run: Loop, arrays: list[Any], kind: str, order: int) -> list[Any]:
    import torch

    leaves = [torch.tensor(a.astype(kind), requires_grad=True) for a in arrays]
    ys = flat(run(Torch(), *leaves))
    found = torch.autograd.grad(
        sum((y**3).sum() for y in ys), leaves, create_graph=True, allow_unused=True, materialize_grads=True
    )
    outs = [*ys, *found]
    if order == 2:
        outs += torch.autograd.grad(
            sum((g * g).sum() for g in found), leaves, allow_unused=True, materialize_grads=True
        )
    return [o.detach().numpy() for o in outs]


def assert_close(got: list[Any], want: list[Any], tolerance: float) -> None:
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert np.shape(a) == np.shape(b)
        scale = max(1.0, float(np.max(np.abs(b))))
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * scale)


@pytest.mark.torch
@pytest.mark.parametrize("name", LOOPS)
def test_values_gradients_and_second_gradients_in_float64(name: str) -> None:
    run, shapes = LOOPS[name]
    arrays = arrays_of(shapes)
    inputs, outs = outputs(run, shapes, order=2)
    got = evaluate(outs, dict(zip(inputs, arrays, strict=True)), float_dtype="float64")
    assert_close(got, torch_outputs(run, arrays, "float64", order=2), 1e-10)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", LOOPS)
def test_values_and_gradients_in_c(name: str) -> None:
    run, shapes = LOOPS[name]
    arrays = arrays_of(shapes)
    order = 2 if name in ("recurrent", "two carries", "a loop in a loop") else 1
    inputs, outs = outputs(run, shapes, order)
    got = ag.function(inputs, outs).on_host()(*arrays)
    assert_close(got, torch_outputs(run, arrays, "float32", order), 2e-5)


def source(length: int) -> str:
    run, shapes = LOOPS["recurrent"]
    inputs, outs = outputs(run, [(length, B, N), *shapes[1:]], order=1)
    from autodiff_gen.codegen.compiler import compile_function
    from autodiff_gen.codegen.files import emit

    text: str = emit(compile_function(ag.function(inputs, outs), "f"))["f.c"]
    return text


def test_the_code_does_not_grow_with_the_length() -> None:
    short, long = source(20).splitlines(), source(64).splitlines()  # sums of a few terms are written out
    assert len(short) == len(long)
    assert any("< 64;" in line for line in long) and any("= 63;" in line for line in long)


REJECTED: list[tuple[Callable[[Any, Any], Any], str]] = [
    (
        lambda x, h: F.scan(lambda h, x: (h @ x.T, None), h, x),
        r"^scan: the carry begins as f32\[3,6\], but the",
    ),
    (lambda x, h: F.scan(lambda c, x: ((c[0], c[1] @ x.T), None), (h, h), x), r"^scan: carry 1 begins as "),
    (
        lambda x, h: F.scan(lambda h, x: ((h, h), None), h, x),
        r"^scan: the carry is \*, but the step returns \(\*, \*\)",
    ),
    (lambda x, h: F.scan(lambda h, x: h, h, x), r"^scan: the step must return \(carry, y\)"),
    (lambda x, h: F.scan(lambda h, x: (h, x), h), r"^scan: without xs, length="),
    (
        lambda x, h: F.scan(lambda h, x: (h, x), h, x, length=4),
        r"length=4: the first axes must be equally long$",
    ),
    (lambda x, h: F.scan(lambda h, x: (h, None), h, [x, h]), r"the first axes must be equally long$"),
    (lambda x, h: F.scan(lambda h, x: (h, None), h, F.sum(x)), r"a scalar has none$"),
    (lambda x, h: F.scan(lambda h, x: (h, None), h, length=0), r"^scan: length=0 must be"),
    (lambda x, h: F.scan(lambda h, x: (h, "y"), h, x), r"^scan: 'y' is neither a graph value"),
    (lambda x, h: F.scan(lambda c, x: (None, None), None, x), r"^scan: the step returns neither"),
    (
        lambda x, h: F.scan(lambda h, x: (h, x), h, make_input("z", Type(f32, (Dim(1, 4), 2)))),
        r"the first axis of xs is the time, not the batch n; use F.transpose\(x, 0, 1\)$",
    ),
]


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[Any, Any], Any], message: str) -> None:
    x, h = make_input("x", Type(f32, (T, B, H))), make_input("h", Type(f32, (B, H)))
    with pytest.raises(ShapeError, match=message):
        build(x, h)


class Recurrent(nn.Module):
    """tanh units over x[n, T, N]; the scores of the last step."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(1)
        self.weight = nn.Parameter(rng.normal(size=(H, N)) * 0.5)
        self.recurrent = nn.Parameter(rng.normal(size=(H, H)) * 0.5)
        self.bias = nn.Parameter(rng.normal(size=H) * 0.5)

    def forward(self, x: Any) -> Any:
        inputs = F.transpose(F.linear(x, self.weight), 0, 1)
        zeros = F.broadcast_to(0.0, (x.shape[0], H))
        step = lambda h, x: (F.tanh(x + h @ self.recurrent.T + self.bias), None)
        return F.scan(step, zeros, inputs)[0]


@pytest.mark.cc
@pytest.mark.torch
def test_training_with_any_number_of_rows_equals_pytorchs() -> None:
    import torch

    model = ag.Model.supervised(Recurrent(), (4, T, N), nn.CrossEntropyLoss(), optim.Adam(lr=0.02))
    trainer = model.on_host()
    twin = {k: torch.tensor(v, requires_grad=True) for k, v in trainer.state_dict().items() if "." not in k}
    twin = {k: twin[k] for k in ("weight", "recurrent", "bias")}
    adam = torch.optim.Adam(twin.values(), lr=0.02)
    rng = np.random.default_rng(5)
    for k in range(12):
        rows = 1 + k % 4
        x = rng.normal(size=(rows, T, N)).astype(np.float32)
        label = rng.integers(0, H, rows)
        h = torch.zeros(rows, H)
        for t in range(T):
            h = torch.tanh(torch.tensor(x[:, t]) @ twin["weight"].T + h @ twin["recurrent"].T + twin["bias"])
        np.testing.assert_allclose(trainer.predict(x), h.detach().numpy(), atol=1e-5)
        loss = torch.nn.functional.cross_entropy(h, torch.tensor(label))
        adam.zero_grad()
        loss.backward()
        adam.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), abs=1e-5)
    for name, value in twin.items():
        np.testing.assert_allclose(trainer.state_dict()[name], value.detach().numpy(), atol=2e-5)


@pytest.mark.cc
def test_an_index_that_a_loop_iterates_along_is_checked_when_the_function_is_called() -> None:
    i, table = make_input("i", Type(s32, (T, B))), make_input("table", Type(f32, (7, 4)))
    total, _ = F.scan(lambda h, i: (h + F.embedding(i, table), None), np.zeros((B, 4), np.float32), i)
    f = ag.function([i, table], [total]).on_host()
    index = np.random.default_rng(1).integers(0, 7, (T, B))
    weights = np.arange(28, dtype=np.float32).reshape(7, 4)
    np.testing.assert_allclose(f(index, weights)[0], weights[index].sum(0))
    with pytest.raises(ShapeError, match="outside 0 to 6"):
        f(index + 7, weights)


def test_an_index_that_a_loop_carries_is_rejected_where_nothing_brings_it_into_range() -> None:
    x = make_input("x", Type(f32, (3,)))
    with pytest.raises(ShapeError, match=r"the index depends on .* a loop"):
        F.scan(lambda i, _: (i, F.pick(x, i)), make_input("i", Type(s32, ())), length=2)
