"""What follows a product and joins its kernel, in which order, and that results stay as they are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.build import make_input
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.types import Type, f32
from autodiff_gen.passes.calls.fuse_epilogues import fuse_epilogues
from autodiff_gen.passes.context import Context
from autodiff_gen.targets import board

# of y = x w, vectors b, s and t of one number for each channel, and r of y's shape
ROWS: list[tuple[str, Callable[..., Value], tuple[str, ...]]] = [
    ("a bias", lambda y, b, s, t, r: y + b, ("bias",)),
    ("a scale and a bias", lambda y, b, s, t, r: y * s + b, ("scale", "bias")),
    ("a bias that is scaled", lambda y, b, s, t, r: (y + b) * s, ("scale", "bias")),
    ("a bias before a scale and another bias", lambda y, b, s, t, r: (y + b) * s + t, ("scale", "bias")),
    ("all of them", lambda y, b, s, t, r: F.relu((b + y) * s + t + r), ("scale", "bias", "residual")),
    ("two scales", lambda y, b, s, t, r: (y * s + b) * t, ()),
]


@pytest.mark.parametrize("what, of, epilogue", ROWS, ids=[row[0] for row in ROWS])
def test_what_joins_a_product(what: str, of: Callable[..., Value], epilogue: tuple[str, ...]) -> None:
    shapes = {"x": (6, 5), "w": (5, 4), "b": (4,), "s": (4,), "t": (4,), "r": (6, 4)}
    inputs = {name: make_input(name, Type(f32, shape)) for name, shape in shapes.items()}
    x, w, b, s, t, r = inputs.values()
    graph = Graph("f", tuple(inputs.values()), {"z": of(F.matmul(x, w), b, s, t, r)})
    after = fuse_epilogues(graph, Context())
    assert [n.attrs["epilogue"] for n in after.nodes if "epilogue" in n.attrs] == [epilogue][: bool(epilogue)]
    rng = np.random.default_rng(1)
    arrays: dict[Value, Any] = {v: rng.standard_normal(v.type.shape) for v in inputs.values()}
    (want,) = evaluate(list(graph.outputs.values()), arrays, float_dtype="float64")
    (got,) = evaluate(list(after.outputs.values()), arrays, float_dtype="float64")
    np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-12)


@pytest.mark.cc
@pytest.mark.torch
def test_a_batch_normalisation_in_evaluation_mode_joins_a_convolution_with_a_bias() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(8, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.ReLU())
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), net, torch.nn.Flatten(), torch.nn.Linear(128, 2))
    x = torch.randn(3, 3, 8, 8)
    net(x)  # statistics other than 0 and 1
    model = ag.Model.supervised(ag.from_torch(net, x), (3, 3, 8, 8), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    text = emit(compile_model(model, "net"))["net.c"]
    predict = text[text.index("int net_predict") :]
    assert ".scale = " in predict and "relu(conv2d(" in " ".join(predict.split())
    found = model.on_host().predict(x.numpy())
    with torch.no_grad():
        want = net.eval()(x).numpy()
    np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "core, limited, other", [("mps2_an386", 0, 1), ("mps3_an547", 1, 0), ("virt_a53", 1, 2)]
)
def test_loops_finish_what_takes_them_less_time(core: str, limited: int, other: int) -> None:
    """On Cortex-M4F all but the output, on Cortex-M55 sums without limits; kernels finish the rest."""
    layers = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 32), nn.Linear(32, 32))
    model = ag.Model.supervised(layers, (8, 32), nn.MSELoss(), optim.SGD(lr=0.1))
    text = emit(compile_model(model, "net", None, board.load(core)))["net.c"]
    finished = [line for line in text.split("int net_predict(")[1].splitlines() if "epilogue = {" in line]
    assert [".high = INFINITY" in line for line in finished] == [*[True] * limited, *[False] * other]
