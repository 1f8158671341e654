"""The small examples print the output in their READMEs, and their numbers are PyTorch's."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from example_output import MEMORY, check_sizes, printed, shown
from firmware_build import copy_of_the_project, once, scons
from torch_weights import with_weights_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.check.gradcheck import check
from autodiff_gen.ir.node import STATE, topological
from autodiff_gen.model.loader import load_file, load_model

PRINTED = ("attention", "scalar", "tanh4", "tanh_matmul", "xor")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return once(tmp_path_factory, "tree", copy_of_the_project)


NUMBER = re.compile(r"-?\d+\.\d+")


@pytest.mark.slow
@pytest.mark.qemu
@pytest.mark.cc
@pytest.mark.parametrize("example", ["attention", "tanh_matmul"])
def test_the_boards_own_kernels_print_the_same_but_for_last_digits(example: str, tree: Path) -> None:
    said = scons(tree, "board=stm32", f"model={example}", "run")
    said = MEMORY.sub("", printed(said, example, "stm32"))
    wanted = shown(example)
    assert NUMBER.sub("", said).split() == NUMBER.sub("", wanted).split()
    ours, theirs = ([float(x) for x in NUMBER.findall(text)] for text in (said, wanted))
    np.testing.assert_allclose(ours, theirs, rtol=1e-3, atol=2e-4)


@pytest.mark.slow
@pytest.mark.qemu
@pytest.mark.cc
@pytest.mark.parametrize("board", ["host", "stm32"])
@pytest.mark.parametrize("example", PRINTED)
def test_the_readme_shows_what_is_printed_and_the_memory(
    example: str, board: str, tree: Path, pytestconfig: pytest.Config
) -> None:
    said = scons(tree, f"board={board}", f"model={example}", "kernels=ref", "run")
    said = printed(said, example, board)
    assert MEMORY.sub("", said).rstrip() == shown(example)
    if board == "host":
        assert not MEMORY.findall(said)
    else:
        check_sizes(example, said, pytestconfig)


# ---- attention


def test_the_block_answers_and_the_linear_model_does_not() -> None:
    """From the README, which test_the_readme_shows_what_is_printed compares with the output."""
    rows = re.findall(r"^ *(\d+) +[\d.]+ +([\d.]+) % +([\d.]+) %$", shown("attention"), re.MULTILINE)
    assert len(rows) == 8 and rows[-1][0] == "400"
    assert float(rows[-1][1]) >= 99.0
    assert all(20.0 < float(linear) < 30.0 for _, _, linear in rows)


# ---- xor


@pytest.fixture(scope="module")
def xor() -> Any:
    return load_file("xor")


@pytest.mark.cc
@pytest.mark.torch
def test_xor_has_pytorchs_loss_curve(xor: Any) -> None:
    import torch

    x, label = xor.samples["x"], xor.samples["label"]
    trainer = xor.made.on_host()
    layers = (torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    twin = with_weights_of(torch.nn.Sequential(*layers), trainer.state_dict())
    update = torch.optim.SGD(twin.parameters(), lr=0.5)
    for _ in range(500):
        wanted = torch.nn.functional.cross_entropy(
            twin(torch.tensor(x)), torch.tensor(label, dtype=torch.int64)
        )
        update.zero_grad()
        wanted.backward()
        update.step()
        loss = trainer.train_step(x, label)
        assert loss == pytest.approx(wanted.item(), rel=1e-5)
    assert loss <= 0.005
    assert trainer.predict(x).argmax(1).tolist() == label.tolist()


@pytest.mark.torch
def test_xor_after_ten_steps_has_all_42_gradients_right(xor: Any) -> None:
    report, good = check(xor.made, "xor", data=xor.samples, steps=10)
    assert good and "kink" not in report, report
    rows = re.findall(r"finite differences +(\d+) of (\d+) +(\S+) .* ok$", report, re.MULTILINE)
    assert [sum(int(row[k]) for row in rows) for k in (0, 1)] == [42, 42]
    assert max(float(row[2]) for row in rows) <= 1e-6
    assert report.count(" PyTorch ") == 4 + 1


@pytest.mark.torch
def test_xor_starts_on_kinks_which_are_named(xor: Any) -> None:
    report, good = check(xor.made, "xor", data=xor.samples, steps=0)
    assert good, report
    assert "0.bias: 8 at a kink, the gradient between the one-sided differences: 0.bias[0], " in report
    assert re.search(r"0\.bias +\[8\] +finite differences +0 of 8 ", report)


# ---- tanh4


@pytest.mark.cc
@pytest.mark.torch
def test_tanh4_has_pytorchs_loss_and_gradients_at_each_step() -> None:
    import torch
    from torch import nn

    file = load_file("tanh4")
    model, x, target = file.made, file.samples["x"], file.samples["target"]
    assert isinstance(model, ag.Model)
    trainer = model.on_host()
    leaves = {n.results[0].name: n.results[0] for n in topological([model.loss]) if n.op is STATE}
    parameters = [leaves[name] for name in trainer.state_dict()]
    inputs = [*model.inputs, *model.targets, *parameters]
    gradients = ag.function(inputs, [model.loss, *ag.grad(model.loss, parameters)]).on_host()

    layers = (nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1), nn.Tanh())
    twin = with_weights_of(nn.Sequential(*layers), trainer.state_dict())
    update = torch.optim.SGD(twin.parameters(), lr=0.05)
    for _ in range(50):
        ours = gradients(x, target, *trainer.state_dict().values())
        wanted = ((twin(torch.tensor(x)) - torch.tensor(target)) ** 2).sum()
        update.zero_grad()
        wanted.backward()
        theirs = [wanted.detach(), *(p.grad for p in twin.parameters())]
        largest = max(float(g.abs().max()) for g in theirs[1:])
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(a, b.numpy(), rtol=1e-5, atol=1e-6 * max(1.0, largest))
        assert trainer.train_step(x, target) == pytest.approx(wanted.item(), rel=1e-5)
        update.step()


# ---- scalar

GRID = [(0.25, 2.0), (1.0, 1.0), (2.5, 0.5), (0.75, -1.5), (3.0, 3.0)]
SCALARS: dict[str, Any] = {
    "polynomial": lambda x, y, sqrt: 3 * x + x**2 - sqrt(x),
    "quotient": lambda x, y, sqrt: (x + 2 * y) / (x * y + 1),
    "power": lambda x, y, sqrt: x**y + 2**x + y**-1.5,
    "twice": lambda x, y, sqrt: (s := x * y + sqrt(x)) * s - (s - y) / s + (y - s) * s**y,
}


def agree(function: Any, expression: Any, points: list[tuple[float, float]]) -> None:
    """Value and derivatives in C equal PyTorch's in float64, infinities and NaN included."""
    import torch

    for point in points:
        leaves = [torch.tensor(p, dtype=torch.float64, requires_grad=True) for p in point]
        y = expression(*leaves, torch.sqrt)
        used = leaves[: len(function.program.entries[0].plan.graph.inputs)]
        wanted = [y.detach(), *torch.autograd.grad(y, used, allow_unused=True)]
        for a, b in zip(function(*point[: len(used)]), wanted, strict=True):
            np.testing.assert_allclose(a, 0.0 if b is None else b.numpy(), rtol=2e-6, atol=1e-6)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", SCALARS)
def test_scalar_functions_are_torchs(name: str) -> None:
    functions = {f.name: f for f in load_file("scalar").made}
    assert functions.keys() == SCALARS.keys()
    agree(functions[name].on_host(), SCALARS[name], GRID)


OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
ORDERS = ("s {} y", "y {} s", "s {} s", "(s {} y) {} s", "s {} (y {} s)")


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", OPERATORS)
def test_a_shared_value_in_every_operand_order(name: str) -> None:
    """s = xy + sqrt(x) on either side of an operator, and on both, each beside one more use of it."""
    terms = " - ".join(f"({order.replace('{}', OPERATORS[name])})" for order in ORDERS)
    expression = eval(f"lambda x, y, sqrt: (lambda s: {terms})(x * y + sqrt(x))")
    x, y = ag.Input("x", ()), ag.Input("y", ())
    value = expression(x, y, F.sqrt)
    agree(ag.function([x, y], [value, *ag.grad(value, [x, y])]).on_host(), expression, GRID[:3])


# ---- tanh_matmul


@pytest.mark.cc
def test_tanh_matmul_has_the_known_gradients() -> None:
    i, j, k = np.arange(5)[:, None], np.arange(4), np.arange(8)
    a = np.sin(0.1 * i * j + 1)
    b = np.cos(0.2 * j[:, None] - 0.3 * k + 2)
    (step,) = load_file("tanh_matmul").made
    loss, da, db = step.on_host()(a, b)
    assert loss == pytest.approx(np.tanh(a @ b).sum(), rel=1e-6)
    np.testing.assert_allclose(da[0], [0.61269, 0.219674, -0.182099, -0.576613], rtol=5e-6)
    known = [0.147051, 0.777565, 3.37213, 3.06425, 0.656405, 0.126285, 0.0356017, 0.01724]
    np.testing.assert_allclose(db[0], known, rtol=5e-6)


def test_an_example_of_functions_is_no_model() -> None:
    with pytest.raises(ag.AutodiffError, match=r"scalar/model.py defines functions, not a `model`$"):
        load_model("scalar")
