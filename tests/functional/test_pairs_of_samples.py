"""Values of extent n x n, n the batch: similarities and distances of all pairs of samples, and losses of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.codegen.compiler import compile_function
from autodiff_gen.errors import ShapeError
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import HostFunction
from autodiff_gen.ir.types import Dim, bound, planned

LARGEST = 5


def info_nce(F: Any, x: Any, y: Any) -> Any:
    scores = F.normalize(x, dim=1) @ F.normalize(y, dim=1).T / 0.5
    target = F.arange(x.shape[0])
    return F.cross_entropy(scores, target) + F.cross_entropy(scores.T, target)


def mmd(F: Any, x: Any, y: Any) -> Any:
    def kernel(a: Any, b: Any) -> Any:
        return F.mean(F.exp(-F.square(F.cdist(a, b))))

    return kernel(x, x) + kernel(y, y) - 2.0 * kernel(x, y)


def nt_xent(F: Any, x: Any, y: Any) -> Any:
    """As in SimCLR, within one view: the pairs of a sample with itself do not count."""
    scores = F.where(F.eq(F.eye(x.shape[0]), 1.0), -1e9, x @ x.T)
    return F.mean(F.logsumexp(scores, 1) - F.sum(x * y, 1))


def sim_clr(F: Any, x: Any, y: Any) -> Any:
    """As it is written for PyTorch: both views in one array [2 n, d]."""
    n = x.shape[0]
    z = F.cat([x, F.tanh(y)], dim=0)
    scores = F.masked_fill(
        z @ z.T, F.eye(2 * n).to(F.bool) if hasattr(F, "bool") else F.eye(2 * n, dtype="bool"), -1e9
    )
    scores = F.log_softmax(scores, dim=1)
    first, second = z.chunk(2, 0)
    positives = F.cat([F.sum(first * second, -1), F.sum(second * first, -1)])
    return F.mean(positives) - F.mean(scores[:n] @ F.ones_like(z)) + F.sum(z[n:] * x)


def three_views(F: Any, x: Any, y: Any) -> Any:
    n = x.shape[0]
    z = F.cat((F.cat((x, y)), x * y))
    a, b = F.split(z, (n, 2 * n))
    rows = F.reshape(z, (3, n, 3)) * F.reshape(F.arange(9.0), (3, 1, 3))
    return (
        F.sum(F.square(rows))
        + F.sum(F.reshape(rows, (-1, 3)) * F.sin(z))
        + F.sum(a * b[n:])
        + F.sum(F.narrow(b, 0, 0, n))
    )


LOSSES: dict[str, Callable[..., Any]] = {
    "info_nce": info_nce,
    "mmd": mmd,
    "nt_xent": nt_xent,
    "sim_clr": sim_clr,
    "three_views": three_views,
    "smoothing": lambda F, x, y: F.cross_entropy(x @ y.T, F.arange(x.shape[0]), label_smoothing=0.2),
    "probabilities": lambda F, x, y: F.cross_entropy(x @ y.T, F.softmax(y @ y.T, 1), label_smoothing=0.1),
    "nll": lambda F, x, y: F.nll_loss(F.log_softmax(F.tanh(x @ y.T), 1), F.arange(y.shape[0])),
    "attention": lambda F, x, y: F.sum(F.square(F.softmax(x @ y.T, 1) @ y)),
    "both orders": lambda F, x, y: F.sum(F.softmax(x @ y.T, 0) * F.softmax((y @ x.T), 1)),
    "variance": lambda F, x, y: F.var(F.cdist(x, y, 1.0)),
    "largest": lambda F, x, y: F.sum(F.amax(x @ y.T, 1) * F.sum(x, 1)) + F.sum(F.max(x @ x.T, 0)[0]),
    "numbers": lambda F, x, y: (
        F.sum(x * y) * (1.0 / x.shape[0])
        - F.sum(x**2) / (x.shape[0] - 0.5)
        + F.sum(y**3) * (0.5 * x.shape[0]) ** -0.5
        + F.sum(x) * 2 ** (x.shape[0] / 4)
        + F.sum(y) * (3 - x.shape[0] + 0.25)
    ),
    "rows": lambda F, x, y: F.sum((x @ y.T)[F.arange(x.shape[0]), F.arange(y.shape[0])] ** 2),
}


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("kernels, opt", [("ref", "-O0"), ("host,ref", "-O0")])
def test_losses_of_pairs_against_torch(kernels: str, opt: str) -> None:
    """All in one function for up to 5 samples, given 2 to 5, and with the batch fixed. Memory between the rows of fewer
    samples is NaN."""
    import torch
    from against_torch import TorchFunctions

    functions = {}
    for fixed in (None, 4):
        x, y = (
            ag.Input(name, (fixed or LARGEST, 3), batch_axis=0 if fixed is None else None) for name in "xy"
        )
        outputs = [v for f in LOSSES.values() for loss in [f(F, x, y)] for v in (loss, *grad(loss, [x, y]))]
        program = compile_function(ag.function([x, y], outputs), "pairs", tuple(kernels.split(",")))
        functions[fixed] = HostFunction(program, Compiler(find_compiler(), opt), poison=True)
    for fixed, n in ((None, 2), (None, 3), (None, 5), (4, 4)):
        rng = np.random.default_rng(n)
        arrays = [rng.uniform(-1, 1, (n, 3)).astype(np.float32) for _ in "xy"]
        got = iter(functions[fixed](*arrays))
        for name, f in LOSSES.items():
            a, b = (torch.tensor(v, requires_grad=True) for v in arrays)
            loss = f(TorchFunctions(), a, b)
            for want in (loss, *torch.autograd.grad(loss, [a, b])):
                np.testing.assert_allclose(
                    next(got), want.detach().numpy(), rtol=2e-5, atol=2e-6, err_msg=f"{name}, {n} samples"
                )


@pytest.mark.cc
@pytest.mark.torch
def test_a_contrastive_model_learns_as_in_torch() -> None:
    import torch
    from against_torch import TorchFunctions

    def network(nn: Any) -> Any:
        return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))

    net, twin = network(nn), network(torch.nn)
    x, y = ag.Input("x", (LARGEST, 4), batch_axis=0), ag.Input("y", (LARGEST, 4), batch_axis=0)
    a, b = net(x), net(y)
    model = ag.Model([x, y], [], {"z": a}, info_nce(F, a, b), optim.SGD(lr=0.1), guard="gradients")
    trainer = model.on_host()
    trainer.load_state_dict(twin.state_dict())
    step = torch.optim.SGD(twin.parameters(), lr=0.1)
    rng = np.random.default_rng(3)
    for n in (5, 2, 3, 5):
        arrays = [rng.normal(size=(n, 4)).astype(np.float32) for _ in "xy"]
        loss = info_nce(TorchFunctions(), *(twin(torch.tensor(v)) for v in arrays))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(*arrays) == pytest.approx(loss.item(), rel=1e-5)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value.numpy(), rtol=1e-4, atol=1e-5)


def test_products_of_extents() -> None:
    n = Dim(1, 8)
    assert (
        n * n == Dim(1, 8, 2)
        and 3 * n * (2 * n) == Dim(6, 8, 2)
        and repr(6 * n * n) == "6n^2"
        and sum([n, 2 * n]) == Dim(3, 8)
    )
    assert planned((n, 2 * n * n)) == (8, 128) and bound((n, 2 * n * n), 3) == (3, 18)
    assert (2 * n * n) + n * n == Dim(3, 8, 2) and (4 * n * n) // 2 == Dim(2, 8, 2)
    for wrong in (lambda: n * n + n, lambda: n * Dim(1, 4)):
        with pytest.raises(ShapeError):
            wrong()


@pytest.mark.cc
def test_labels_of_two_views_are_joined() -> None:
    label = ag.Input("label", (4,), dtype="u8", batch_axis=0)
    f = ag.function([label], [F.to(F.cat([label, label]), "s32")]).on_host()
    np.testing.assert_array_equal(f(np.uint8([7, 255, 0]))[0], [7, 255, 0, 7, 255, 0])


SCORES = ag.Input("x", (LARGEST, 3), batch_axis=0) @ ag.Input("y", (LARGEST, 3), batch_axis=0).T

ROWS = SCORES.shape[0]
REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.nll_loss(SCORES, ag.Input("t", (LARGEST,), "s32", 0)), "of an axis that follows the batch must be"),
    (lambda: F.pick(SCORES, F.argmax(F.exp(SCORES[:, None])[:, 0] * 2.0, 0) * 2), "F.arange of the batch$"),
    (lambda: F.cat([SCORES.T, SCORES.T], 1), "all extents except|of a batch that varies, the first axis of floats"),
    (lambda: F.cat([F.arange(ROWS), F.arange(ROWS)]), r"^cat\(s32\[n\]\): of a batch that varies, the first axis"),
    (lambda: F.cat([SCORES, SCORES])[:ROWS, :2], "axis 1 is the batch axis, which can only be taken whole"),
    (lambda: F.chunk(F.cat([SCORES[:, :ROWS]] * 2), 3), "axis 0 is the batch axis"),
    (lambda: F.split(F.cat([SCORES] * 2), [ROWS]), r"the sections \[n\] must add up to 2n$"),
    (lambda: F.cat([SCORES] * 2)[2 * ROWS :], "axis 0 is the batch axis, which can only be taken whole"),
    (lambda: F.arange(2, SCORES.shape[0]), "^arange: of the batch n, start must be 0 and step 1$"),
    (lambda: F.arange(3, 2), "^arange: there is no number from 3 to 2 in steps of 1$"),
    (lambda: F.arange("a"), r"^arange: start, end and step must be numbers, step not 0; got \(0, 'a', 1\)$"),
]  # fmt: skip


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        build()
