"""Convolutions whose result only a pooling by maximum reads: one kernel, and the image between them nowhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from graph_stages import rewritten

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.codegen.compiler import compile_function, compile_model
from autodiff_gen.codegen.files import emit
from autodiff_gen.ir.build import apply, apply_node, make_input
from autodiff_gen.ir.graph import Graph
from autodiff_gen.ir.interpreter import evaluate
from autodiff_gen.ir.node import Value, topological
from autodiff_gen.ir.types import Dim, Type, f32
from autodiff_gen.ops.images.convolution import convolving
from autodiff_gen.ops.images.max_pooling import pooling
from autodiff_gen.passes.context import Context
from autodiff_gen.passes.simplify.commute_pooling import commute_pooling

# image, weights, convolution, pooling
CASES = [
    ((2, 9, 8, 3), (4, 3, 2, 3), convolving(), pooling((2, 2), (2, 2))),
    ((1, 12, 12, 1), (6, 5, 5, 1), convolving(), pooling((2, 2), (2, 2))),
    ((2, 7, 8, 2), (3, 3, 3, 2), convolving((2, 1), (1, 1, 1, 1)), pooling((2, 3), (2, 3))),
    ((1, 8, 9, 2), (2, 2, 3, 2), convolving((1, 1), (0, 2, 1, 0), (2, 1)), pooling((1, 2), (3, 2))),
    ((1, 6, 6, 1), (2, 2, 2, 1), convolving(), pooling((2, 2), (2, 2), ceil_mode=True)),
    ((2, 4, 4, 2), (2, 3, 3, 2), convolving(), pooling((2, 2), (2, 2))),
]
KEPT = {
    "overlapping": ((1, 8, 8, 2), (3, 3, 3, 2), convolving(), pooling((3, 3), (2, 2))),
    "padded": ((1, 8, 8, 2), (3, 3, 3, 2), convolving(), pooling((2, 2), (2, 2), (1, 1, 1, 1))),
    "groups": ((1, 8, 8, 2), (4, 3, 3, 1), convolving(groups=2), pooling((2, 2), (2, 2))),
}


def built(case: Any, batch: int | None = None, relu: bool = True) -> tuple[list[Value], list[Value]]:
    """x, w, b, and [relu(max(conv(x, w) + b)), gradients of the sum of its squares], all in NHWC."""
    image, weights, conv, pool = case
    shape = image if batch is None else (Dim(1, batch), *image[1:])
    x, w = make_input("x", Type(f32, shape)), make_input("w", Type(f32, weights))
    b = make_input("b", Type(f32, weights[:1]))
    y = apply("conv2d", x, w, **conv) + b
    y = apply_node("max_pool2d", F.relu(y) if relu else y, **pool).results[0]
    (y,) = commute_pooling(Graph("f", (x, w, b), {"y": y}), Context()).roots
    return [x, w, b], [y, *grad(F.sum(F.square(y)), [x, w, b])]


def test_an_activation_after_a_pooling_is_still_a_part_of_its_call() -> None:
    x = make_input("x", Type(f32, (1, 4, 4, 2)))
    pooled = apply_node("max_pool2d", F.relu(x), **pooling((2, 2), (2, 2))).results[0]
    (y,) = commute_pooling(Graph("f", (x,), {"y": pooled}), Context()).roots
    assert y.node.op.name == "relu"
    assert y.node.origin.call is pooled.node.operands[0].node.origin.call is not None


def numbers(inputs: list[Value], rows: int | None = None) -> list[Any]:
    rng = np.random.default_rng(3)
    shapes = [tuple(rows if isinstance(d, Dim) else d for d in v.shape) for v in inputs]
    return [rng.uniform(-1, 1, s).astype(np.float32) for s in shapes]


def pytorchs(case: Any, arrays: list[Any], dtype: Any) -> list[Any]:
    _, _, conv, pool = case
    x, w, b = (torch.tensor(a, dtype=dtype, requires_grad=True) for a in arrays)
    top, bottom, left, right = conv["padding"]
    wide = torch.nn.functional.pad(x.permute(0, 3, 1, 2), (left, right, top, bottom))
    y = torch.nn.functional.conv2d(wide, w.permute(0, 3, 1, 2), b, conv["stride"], 0, conv["dilation"])
    y = torch.nn.functional.max_pool2d(y.relu(), pool["kernel"], pool["stride"], ceil_mode=pool["ceil_mode"])
    y = y.permute(0, 2, 3, 1)
    return [v.detach().numpy() for v in (y, *torch.autograd.grad(y.square().sum(), [x, w, b]))]


def names(values: Any) -> set[str]:
    return {n.op.name for n in topological(values)}


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=str)
def test_float64_equals_pytorch(case: Any) -> None:
    inputs, outputs = built(case)
    graph = rewritten(Graph("f", tuple(inputs), {f"out{i}": v for i, v in enumerate(outputs)}))
    assert {"conv2d_pool", "conv2d_pool_dx", "conv2d_pool_dw"} <= names(graph.roots)
    assert not {"conv2d", "max_pool2d", "max_pool2d_dx"} & names(graph.roots)
    arrays = numbers(inputs)
    found = evaluate(
        list(graph.outputs.values()), dict(zip(inputs, arrays, strict=True)), float_dtype="float64"
    )
    for got, want in zip(found, pytorchs(case, arrays, torch.float64), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=str)
def test_c_equals_pytorch(case: Any) -> None:
    inputs, outputs = built(case)
    arrays = numbers(inputs)
    found = ag.function(inputs, outputs).on_host()(*arrays)
    for got, want in zip(found, pytorchs(case, arrays, torch.float64), strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 * max(1.0, float(np.abs(want).max())))


@pytest.mark.cc
@pytest.mark.parametrize("rows", [1, 3])
def test_any_batch(rows: int) -> None:
    inputs, outputs = built(CASES[0], batch=3)
    arrays = numbers(inputs, rows)
    whole, fixed = built(((rows, *CASES[0][0][1:]), *CASES[0][1:]))
    found = ag.function(inputs, outputs).on_host()(*arrays)
    want = evaluate(fixed, dict(zip(whole, arrays, strict=True)))
    for got, expected in zip(found, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("case", KEPT.values(), ids=KEPT)
def test_what_does_not_fit_stays_apart(case: Any) -> None:
    inputs, outputs = built(case)
    graph = rewritten(Graph("f", tuple(inputs), {"y": outputs[0]}))
    assert "conv2d_pool" not in names(graph.roots) and "max_pool2d_values" in names(graph.roots)


@pytest.mark.cc
def test_an_index_that_nothing_reads_is_not_computed() -> None:
    """predict has no gradient, which would read it; the values are those that train_step computes."""
    pool = nn.MaxPool2d(3, 2, 1)
    net = nn.Sequential(nn.Conv2d(2, 5, 3), nn.Tanh(), pool, nn.Flatten(), nn.Linear(80, 3))
    model = ag.Model.supervised(net, (2, 2, 9, 9), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    stored = {
        e.name: {v.type.dtype.name for b in e.plan.placed for v in b.values}
        for e in compile_model(model, "net").entries
    }
    assert stored == {"train_step": {"f32", "u8"}, "predict": {"f32"}}
    x, label = np.random.default_rng(5).standard_normal((2, 2, 9, 9), np.float32), np.array([0, 2])
    trainer = model.on_host()
    scores = trainer.predict(x).astype(np.float64)
    logarithms = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    assert trainer.train_step(x, label) == pytest.approx(-logarithms[range(2), label].mean(), rel=1e-5)


@pytest.mark.parametrize("own", ["max_pool2d_f32", "max_pool2d_values_f32"])
def test_a_backend_without_a_kernel_for_the_values_alone_serves_predict(tmp_path: Path, own: str) -> None:
    (tmp_path / "pool.c").write_text(symbol := f"ag_{own}_mine")
    row = f'[[kernel]]\nname = "{own}"\nsymbol = "{symbol}"\nsource = "pool.c"\n'
    (tmp_path / "kernels.toml").write_text("schema = 1\ncflags = []\n" + row)
    net = nn.Sequential(nn.MaxPool2d(3, 2, 1), nn.Flatten(), nn.Linear(50, 3))
    model = ag.Model.supervised(net, (1, 2, 9, 9), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    (predict,) = (e for e in compile_model(model, "m", [str(tmp_path), "ref"]).entries if e.name == "predict")
    assert symbol in {k.symbol for step in predict.plan.steps for _, k in step.calls.values()}


def test_a_result_alone_is_named_as_one_of_several() -> None:
    x, w = ag.Input("x", (1, 4, 9, 9)), ag.Input("w", (4, 4, 3, 3))
    text = emit(compile_function(ag.function([x, w], [F.conv2d(F.max_pool2d(x, 3, 2), w)]), "f"))["f.c"]
    assert "float *const max_pool2d = " in text


def test_a_result_that_others_read_is_computed() -> None:
    image, weights, conv, pool = CASES[0]
    x, w = make_input("x", Type(f32, image)), make_input("w", Type(f32, weights))
    y = apply("conv2d", x, w, **conv)
    graph = rewritten(Graph("f", (x, w), {"y": y, "z": apply_node("max_pool2d", y, **pool).results[0]}))
    assert "conv2d_pool" not in names(graph.roots)


@pytest.mark.parametrize("activation", [nn.ReLU, nn.ReLU6, nn.LeakyReLU, nn.Tanh])
def test_pooling_comes_before_what_does_not_fall(activation: Any) -> None:
    """The image before the pooling is never stored; tanh, whose float32 may fall by an ulp, stays where it is."""
    net = nn.Sequential(nn.Conv2d(1, 8, 3), activation(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(288, 2))
    model = ag.Model.supervised(
        net, input=(2, 1, 14, 14), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )
    (entry,) = (e for e in compile_model(model, "net").entries if e.name == "train_step")
    largest = max(b.bytes for b in entry.plan.placed)
    assert (largest == 2 * 6 * 6 * 8 * 4) == (activation is not nn.Tanh)
