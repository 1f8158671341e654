"""Convolution and pooling beside PyTorch's, images [N, C, H, W]: values and gradients, float64 and generated C."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import Row, check_c_together, check_float64
from rejections import all_rejected
from row_groups import each_row, in_groups

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import nn, optim
from autodiff_gen.autodiff import grad
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.errors import ModelError, ShapeError
from autodiff_gen.ir.interpreter import evaluate


def conv(x: Any, w: Any, **attrs: Any) -> Row:
    text = " ".join(f"{k}={v}" for k, v in attrs.items())
    return f"conv2d {x} {w} {text}", lambda F, a, b, c: F.conv2d(a, b, c, **attrs), [x, w, (w[0],)]


def back(x: Any, w: Any, **attrs: Any) -> Row:
    channels = (w[1] * attrs.get("groups", 1),)
    text = " ".join(f"{k}={v}" for k, v in attrs.items())
    return (
        f"transpose {x} {w} {text}",
        lambda F, a, b, c: F.conv_transpose2d(a, b, c, **attrs),
        [x, w, channels],
    )


def one(name: str, x: Any, *operands: Any, **attrs: Any) -> Row:
    text = " ".join(f"{k}={v}" for k, v in attrs.items())
    return f"{name} {x} {text}", lambda F, *v: getattr(F, name)(*v, **attrs), [x, *operands]


CONVOLUTIONS: list[Row] = [
    conv((2, 3, 5, 6), (4, 3, 3, 2)),
    conv((2, 3, 5, 6), (4, 3, 3, 2), stride=2, padding=1),
    conv((1, 2, 7, 4), (3, 2, 3, 3), stride=(2, 1), padding=(2, 0)),
    conv((1, 2, 7, 9), (3, 2, 3, 2), dilation=(2, 3)),
    conv((1, 2, 7, 9), (3, 2, 2, 4), dilation=2, padding=3, stride=3),
    conv((1, 4, 4, 4), (6, 2, 3, 3), groups=2, padding=1),
    conv((2, 4, 5, 5), (4, 1, 3, 3), groups=4, padding=1),  # depthwise
    conv((2, 4, 5, 5), (4, 1, 3, 3), groups=4, stride=2, dilation=2, padding=2),
    conv((1, 3, 4, 4), (6, 1, 2, 2), groups=3),  # two filters a channel
    conv((2, 3, 4, 5), (5, 3, 1, 1)),
    conv((1, 3, 4, 5), (5, 3, 1, 1), stride=2),
    conv((1, 1, 3, 3), (2, 1, 3, 3)),
    conv((1, 1, 1, 1), (1, 1, 1, 1)),
    conv((1, 2, 5, 6), (2, 2, 3, 2), padding="same", dilation=2),
    conv((1, 2, 6, 6), (2, 1, 3, 4), padding="same", dilation=(1, 2), groups=2),
    conv((1, 2, 5, 6), (2, 2, 3, 3), padding="valid"),
    conv((2, 5, 6), (3, 2, 3, 3)),  # no batch
    ("conv2d without bias", lambda F, a, b: F.conv2d(a, b, padding=1), [(1, 2, 4, 4), (3, 2, 3, 3)]),
    ("conv1d", lambda F, a, b, c: F.conv1d(a, b, c, 2, 1), [(2, 3, 9), (4, 3, 3), (4,)]),
    ("conv1d same", lambda F, a, b: F.conv1d(a, b, None, 1, "same", 3), [(2, 3, 9), (4, 3, 4)]),
    ("conv1d groups", lambda F, a, b: F.conv1d(a, b, stride=(2,), groups=2), [(1, 4, 7), (2, 2, 2)]),
    ("conv1d depthwise, no batch", lambda F, a, b: F.conv1d(a, b, groups=3), [(3, 7), (3, 1, 2)]),
    back((2, 3, 4, 5), (3, 4, 3, 2)),
    back((2, 3, 3, 4), (3, 4, 3, 3), stride=2, padding=1, output_padding=1),
    back((1, 2, 3, 3), (2, 2, 2, 3), stride=(3, 2), output_padding=(2, 1)),
    back((1, 4, 3, 3), (4, 2, 3, 3), groups=2, dilation=2, padding=(1, 2)),
    back((1, 2, 3, 3), (2, 1, 2, 2), stride=2, dilation=3, output_padding=1),
    back((3, 3, 3), (3, 2, 2, 2), stride=2),
    back((1, 2, 3, 3), (2, 1, 2, 2), dilation=3, output_padding=2, padding=(0, 1)),  # zeros after all windows
    ("conv_transpose1d", lambda F, a, b, c: F.conv_transpose1d(a, b, c, 2, 1, 1), [(2, 3, 4), (3, 2, 3), (2,)]),
]  # fmt: skip

POOLS: list[Row] = [
    one("max_pool2d", (2, 3, 6, 4), kernel_size=2),
    one("max_pool2d", (2, 3, 5, 7), kernel_size=2),
    one("max_pool2d", (1, 2, 7, 6), kernel_size=(3, 2), stride=(2, 1), padding=(1, 0)),
    one("max_pool2d", (1, 2, 7, 6), kernel_size=3, stride=2, padding=1, ceil_mode=True),
    one("max_pool2d", (1, 2, 9, 8), kernel_size=2, stride=1, dilation=(3, 2)),
    one("max_pool2d", (2, 5, 4), kernel_size=2),
    one("max_pool2d", (1, 1, 40, 38), kernel_size=(20, 19), stride=(20, 11)),  # more than 256 elements
    one("max_pool1d", (2, 3, 9), kernel_size=3, stride=2, padding=1),
    one("max_pool1d", (3, 8), kernel_size=2, ceil_mode=True),
    one("avg_pool2d", (2, 3, 6, 4), kernel_size=2),
    one("avg_pool2d", (1, 2, 7, 6), kernel_size=3, stride=2, padding=1),
    one("avg_pool2d", (1, 2, 7, 6), kernel_size=3, stride=2, padding=1, count_include_pad=False),
    one("avg_pool2d", (1, 2, 7, 6), kernel_size=(3, 2), stride=2, padding=(1, 1), ceil_mode=True),
    one("avg_pool2d", (1, 2, 8, 6), kernel_size=3, stride=2, ceil_mode=True, count_include_pad=False),
    one("avg_pool2d", (1, 2, 4, 4), kernel_size=2, divisor_override=3),
    one("avg_pool2d", (3, 4, 4), kernel_size=(2, 4)),
    one("avg_pool1d", (2, 3, 9), kernel_size=3, stride=2, padding=1, count_include_pad=False),
    one("avg_pool1d", (3, 8), kernel_size=3, ceil_mode=True),
    one("adaptive_avg_pool2d", (2, 3, 4, 6), output_size=1),
    one("adaptive_avg_pool2d", (2, 3, 4, 6), output_size=(2, 3)),
    one("adaptive_avg_pool2d", (2, 3, 5, 7), output_size=(3, 4)),
    one("adaptive_avg_pool2d", (3, 5, 7), output_size=(None, 2)),
    one("adaptive_avg_pool1d", (2, 3, 7), output_size=3),
    one("adaptive_max_pool2d", (2, 3, 4, 6), output_size=1),
    one("adaptive_max_pool2d", (2, 3, 4, 6), output_size=(2, 3)),
    one("adaptive_max_pool2d", (1, 2, 5, 7), output_size=(3, 4)),
    one("adaptive_max_pool2d", (1, 1, 30, 20), output_size=(1, 2)),
    one("adaptive_max_pool1d", (2, 3, 7), output_size=3),
    one("adaptive_max_pool1d", (1, 2, 300), output_size=1),
]  # fmt: skip

TABLE = [*CONVOLUTIONS, *POOLS]


@pytest.mark.torch
@in_groups(TABLE)
@each_row
def test_float64(row: Row) -> None:
    check_float64(row, 1e-7 if row[0].startswith("adaptive_avg") else 1e-10)  # tables of weights are float32


@pytest.mark.torch
def test_every_stride_padding_and_dilation() -> None:
    """All of a grid in the interpreter; sizes with and without a rest."""
    for (h, w), k, s, p, d in itertools.product(((5, 8), (6, 6)), (1, 3), (1, 2, 3), (0, 1, 2), (1, 2)):
        for channels, filters, groups in ((2, 2, 1), (2, 2, 2)):
            check_float64(conv((1, channels, h, w), (filters, channels // groups, k, 2), stride=(s, 1),
                               padding=(p, 1), dilation=(d, 1), groups=groups))  # fmt: skip


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("rows", [CONVOLUTIONS, POOLS], ids=["convolutions", "pools"])
def test_generated_c(rows: list[Row]) -> None:
    check_c_together(rows)


@pytest.mark.torch
def test_a_hessian_vector_product() -> None:
    """Second derivatives through a convolution, an activation and both kinds of pooling."""
    import torch

    rng = np.random.default_rng(3)
    arrays = [rng.normal(size=s).astype(np.float32) for s in ((2, 2, 6, 6), (4, 2, 3, 3), (4, 1, 2, 2))]
    vs = [rng.normal(size=a.shape).astype(np.float32) for a in arrays]

    def loss(lib: Any, x: Any, w: Any, k: Any) -> Any:
        y = lib.conv2d(x, w, padding=1)
        y = lib.avg_pool2d(lib.max_pool2d(lib.tanh(y), 2), 2, 1)
        return lib.conv2d(y, k, groups=4)

    xs = [ag.Input(f"x{i}", a.shape) for i, a in enumerate(arrays)]
    first = grad(F.sum(F.square(loss(F, *xs))), xs)
    product: Any = 0.0
    for g, v in zip(first, vs, strict=True):
        product = F.sum(g * v) + product
    got = evaluate(grad(product, xs), dict(zip(xs, arrays, strict=True)), float_dtype="float64")

    ts = [torch.tensor(a, dtype=torch.float64, requires_grad=True) for a in arrays]
    lib = type("Lib", (), {"__getattr__": lambda _, n: getattr(torch.nn.functional, n)})()
    firsts = torch.autograd.grad(loss(lib, *ts).square().sum(), ts, create_graph=True)
    hv = sum((g * torch.tensor(v, dtype=torch.float64)).sum() for g, v in zip(firsts, vs, strict=True))
    for a, b in zip(got, torch.autograd.grad(hv, ts), strict=True):
        np.testing.assert_allclose(a, b.numpy(), rtol=1e-9, atol=1e-9 * float(b.abs().max()))


# Whole networks


def test_weights_are_updated_by_the_kernel_that_computes_their_gradient() -> None:
    """No weight gradient is stored, and nothing is copied into another order."""
    net = nn.Sequential(
        nn.Conv2d(2, 6, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 6, 3, padding=1, groups=6), nn.ReLU(),
        nn.Conv2d(6, 3, 1), nn.Flatten(), nn.Linear(27, 40),
    )  # fmt: skip
    rate = optim.SGD(net.parameters(), lr=0.1)
    model = ag.Model.supervised(net, input=(4, 2, 8, 8), loss=nn.CrossEntropyLoss(), optimizer=rate)
    (entry,) = (e for e in compile_model(model, "net").entries if e.name == "train_step")
    steps = [step.node.op.name for step in entry.plan.steps]
    updates = ("conv2d_pool_dw_into", "conv2d_dw_into", "depthwise2d_dw_into")
    assert [steps.count(name) for name in updates] == [1, 1, 1]
    assert steps.count("accumulate") == 1 and not {"conv2d_dw", "depthwise2d_dw", "copy"} & set(steps)
    assert steps.count("conv2d_dx") == 1  # nobody wants the image's gradient


# Layers

LAYERS: dict[str, Callable[[Any], Any]] = {
    "conv_pool": lambda nn: nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 3, 2, bias=False), nn.Flatten()),
    "depthwise": lambda nn: nn.Sequential(
        nn.Conv2d(2, 6, 1), nn.ReLU6(), nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=6), nn.Tanh(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten()),
    "transposed": lambda nn: nn.Sequential(
        nn.Conv2d(2, 3, 3, stride=2), nn.Tanh(), nn.ConvTranspose2d(3, 2, 2, stride=2), nn.AvgPool2d(2), nn.Flatten()),
    "reflect": lambda nn: nn.Sequential(
        nn.Conv2d(2, 3, 3, padding="same", padding_mode="reflect"), nn.AdaptiveMaxPool2d((2, 1)), nn.Flatten()),
    "one axis": lambda nn: nn.Sequential(
        nn.Flatten(2), nn.Conv1d(2, 3, 5, stride=2, padding=2, padding_mode="circular"), nn.MaxPool1d(2),
        nn.ConvTranspose1d(3, 2, 2), nn.AvgPool1d(3, 2), nn.AdaptiveMaxPool1d(3), nn.Flatten()),
}  # fmt: skip


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("name", LAYERS)
def test_steps_of_a_model_equal_pytorchs(name: str) -> None:
    import torch

    net, twin = LAYERS[name](nn), LAYERS[name](torch.nn)
    outputs = twin(torch.zeros(1, 2, 6, 6)).shape[1]
    net, twin = (
        nn.Sequential(net, nn.Linear(outputs, 3)),
        torch.nn.Sequential(twin, torch.nn.Linear(outputs, 3)),
    )
    rate = optim.SGD(net.parameters(), lr=0.1)
    trainer = ag.Model.supervised(
        net, input=(4, 2, 6, 6), loss=nn.CrossEntropyLoss(), optimizer=rate
    ).on_host()
    assert [(k, v.shape) for k, v in trainer.state_dict().items()] == [
        (k, tuple(v.shape)) for k, v in twin.state_dict().items()
    ]
    twin.load_state_dict({k: torch.tensor(v) for k, v in trainer.state_dict().items()})
    step = torch.optim.SGD(twin.parameters(), lr=0.1)
    rng = np.random.default_rng(5)
    for k in range(8):
        rows = 1 + k % 4  # any number of rows up to the batch
        x = rng.normal(size=(rows, 2, 6, 6)).astype(np.float32)
        label = rng.integers(0, 3, rows)
        scores = twin(torch.tensor(x))
        np.testing.assert_allclose(trainer.predict(x), scores.detach().numpy(), rtol=1e-4, atol=1e-5)
        loss = torch.nn.functional.cross_entropy(scores, torch.tensor(label))
        step.zero_grad()
        loss.backward()
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=1e-5, abs=1e-6)
    for key, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[key], value.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.torch
@pytest.mark.parametrize("build", [
    lambda nn: nn.Conv1d(4, 6, 5, groups=2), lambda nn: nn.Conv2d(3, 8, (3, 2)),
    lambda nn: nn.ConvTranspose1d(4, 6, 5, groups=2), lambda nn: nn.ConvTranspose2d(3, 8, 3),
])  # fmt: skip
def test_initial_weights_are_spread_as_pytorchs(build: Callable[[Any], Any]) -> None:
    import torch

    layer, twin = build(nn), build(torch.nn)
    for name, parameter in layer.named_parameters():
        drawn = parameter.node.attrs["state"].init.array(7)
        theirs = np.concatenate([getattr(build(torch.nn), name).detach().numpy().ravel() for _ in range(20)])
        assert drawn.shape == tuple(getattr(twin, name).shape)
        bound = parameter.node.attrs["state"].init.bound
        assert np.abs(theirs).max() <= bound and np.abs(theirs).max() > 0.9 * bound


IMAGE, WEIGHT = np.zeros((1, 2, 5, 5), np.float32), np.zeros((3, 2, 3, 3), np.float32)
WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: F.conv2d(IMAGE[0, 0], WEIGHT), r"the input must be \[N, C, H, W\] or \[C, H, W\]"),
    (lambda: F.conv1d(IMAGE, WEIGHT), r"the input must be \[N, C, L\] or \[C, L\]"),
    (lambda: F.conv2d(IMAGE, WEIGHT[0]), "the weight must have 4 axes of fixed size"),
    (lambda: F.conv2d(IMAGE, WEIGHT, groups=2), "the image has 2 channels, the weights are for 4"),
    (lambda: F.conv2d(IMAGE, WEIGHT, np.zeros(2, np.float32)), r"the bias must have shape \[3\]"),
    (lambda: F.conv2d(IMAGE, WEIGHT, stride=0), r"stride=\(0, 0\): must be integers of at least 1"),
    (lambda: F.conv2d(IMAGE, WEIGHT, stride=(1, 2, 3)), r"stride=\(1, 2, 3\) must be an integer, or 2 of them"),
    (lambda: F.conv2d(IMAGE, WEIGHT, stride=1.5), "stride=1.5 must be an integer"),
    (lambda: F.conv2d(IMAGE, WEIGHT, padding="full"), 'padding=\'full\'; known: numbers, "same", "valid"'),
    (lambda: F.conv2d(IMAGE, WEIGHT, stride=2, padding="same"), r'padding="same" needs a stride of 1, not \(2, 2\)'),
    (lambda: F.conv2d(IMAGE, WEIGHT, dilation=3), "a window of 7 does not fit into 5 with padding 0 and 0 along the"),
    (lambda: F.conv_transpose2d(IMAGE, WEIGHT), "the image has 2 channels, the weight 3"),
    (lambda: F.conv_transpose2d(IMAGE, WEIGHT[:2], output_padding=1), "must be less than the stride or the dilation"),
    (lambda: F.conv_transpose2d(IMAGE, WEIGHT[:2], padding=9), r"the result would have the size \[-11, -11\]"),
    (lambda: F.max_pool2d(IMAGE, 3, return_indices=True), "max_pool2d: the argument 'return_indices' is not supported"),
    (lambda: F.max_pool2d(IMAGE, 2, padding=2), "is more than half of a window, which spans 2"),
    (lambda: F.max_pool2d(IMAGE, 6), "a window of 6 does not fit into 5"),
    (lambda: F.max_pool1d(np.zeros((1, 2, 900), np.float32), 300), "a window of 1 x 300 elements is larger than 256"),
    (lambda: F.avg_pool2d(IMAGE, 2, padding=2), r"padding=\(2, 2, 2, 2\) is more than half of kernel_size=\(2, 2\)"),
    (lambda: F.avg_pool2d(IMAGE, 2, divisor_override=0), "avg_pool2d: divisor_override must not be 0"),
    (lambda: F.adaptive_avg_pool2d(IMAGE, (2, 0)), r"output_size=\(2, 0\) must be 2 integers of at least"),
    (lambda: F.adaptive_max_pool1d(IMAGE[0], 2, return_indices=True), "the argument 'return_indices' is not supported"),
    (lambda: nn.Conv2d(2, 3, 3, groups=2), "Conv2d: groups=2 must divide in_channels=2 and out_channels=3"),
    (lambda: nn.Conv2d(0, 3, 3), "Conv2d: in_channels=0 must be an integer of at least 1"),
    (lambda: nn.Conv1d(2, 3, (3, 3)), r"Conv1d: kernel_size=\(3, 3\) must be an integer of at least"),
    (lambda: nn.Conv2d(2, 3, 3, padding="full"), "Conv2d: padding='full'; known"),
    (lambda: nn.Conv2d(2, 3, 3, padding_mode="mirror"), "Conv2d: padding_mode='mirror'; known: zeros, reflect"),
    (lambda: nn.ConvTranspose2d(2, 3, 3, padding_mode="reflect"), "the argument 'padding_mode' is not supported"),
    (lambda: nn.MaxPool2d(2, return_indices=True), "MaxPool2d: the argument 'return_indices' is not supported"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, WRONG, (ModelError, ShapeError))
