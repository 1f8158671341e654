"""Modules: names and order of their parameters, state_dict, default weights, and layers without parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from small_models import mlp

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn, optim
from autodiff_gen.errors import AutodiffError
from autodiff_gen.ir.interpreter import evaluate


class Net(nn.Module):
    """Modules and parameters in a chosen order, one module used twice, one parameter shared."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.scale = nn.Parameter(init.ones((4,)))
        self.body = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Tanh())
        self.last = nn.Linear(4, 4)
        self.last.weight = self.first_of_body().weight

    def first_of_body(self) -> nn.Module:
        return self.body[0]

    def forward(self, x: Any) -> Any:
        h = F.relu(self.first(x)) * self.scale
        return self.last(self.body(self.body(h)))


def test_names_and_order_are_those_of_state_dict() -> None:
    assert [n for n, _ in Net().named_parameters()] == [
        "scale", "first.weight", "first.bias", "body.0.weight", "last.bias",
    ]  # fmt: skip
    named = nn.Sequential(OrderedDict(fc=nn.Linear(2, 3), act=nn.ReLU(), out=nn.Linear(3, 1, bias=False)))
    assert [n for n, _ in named.named_parameters()] == ["fc.weight", "fc.bias", "out.weight"]


@pytest.mark.torch
def test_names_are_torchs() -> None:
    import torch

    class Theirs(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(3, 4)
            self.scale = torch.nn.Parameter(torch.ones(4))
            self.body = torch.nn.Sequential(torch.nn.Linear(4, 4, bias=False), torch.nn.Tanh())
            self.last = torch.nn.Linear(4, 4)
            self.last.weight = self.body[0].weight

    ours, theirs = dict(Net().named_parameters()), dict(Theirs().named_parameters())
    assert list(ours) == list(theirs)
    assert [v.shape for v in ours.values()] == [tuple(t.shape) for t in theirs.values()]


def test_a_module_is_printed_as_a_tree() -> None:
    net = nn.Sequential(nn.Conv2d(1, 8, 3, bias=False), nn.Sequential(nn.ReLU(), nn.Linear(3, 4)))
    net.get_submodule("1.1").requires_grad_(False)
    assert repr(net).split("\n") == [
        "Sequential(",
        "  (0): Conv2d(1, 8, kernel_size=(3, 3), stride=(1, 1), bias=False)",
        "  (1): Sequential(",
        "    (0): ReLU()",
        "    (1): Linear(in_features=3, out_features=4, bias=True)",
        "  )",
        ")",
    ]
    assert (
        repr(nn.Parameter(np.ones((2, 3), np.float32)))
        == "Parameter containing: f32[2, 3], requires_grad=True"
    )


def test_a_tied_weight_is_one_state_whose_gradient_sums_both_uses() -> None:
    model = ag.Model.supervised(Net(), (2, 3), nn.MSELoss(), optim.SGD(lr=0.1))
    assert [s.name for s in model.states] == [
        "scale",
        "first.weight",
        "first.bias",
        "body.0.weight",
        "last.bias",
    ]


@pytest.mark.torch
def test_a_state_dict_of_torch_is_where_a_module_starts() -> None:
    import torch

    theirs = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    for _ in range(2):
        theirs(torch.randn(5, 3))
    ours = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))
    ours.load_state_dict(theirs.state_dict())
    held = {**dict(ours.named_parameters()), **dict(ours.named_buffers())}
    assert held.keys() == theirs.state_dict().keys()
    for name, value in held.items():
        np.testing.assert_array_equal(value.node.attrs["state"].init.array(), theirs.state_dict()[name])


def test_a_state_dict_may_be_of_a_part_and_of_a_shared_weight() -> None:
    net = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2))
    net[1].weight = net[0].weight
    shared, given = np.eye(2), {"1.weight": np.eye(2), "other": 3.0}
    with pytest.raises(
        AutodiffError, match=r"unknown: other; missing: 1\.bias; the module has 0\.weight, 1\.bias, "
    ):
        net.load_state_dict(given)
    net.load_state_dict(given, strict=False)
    assert [k for k, _ in net.named_parameters()] == ["0.weight", "1.bias"]
    np.testing.assert_array_equal(
        dict(net.named_parameters())["0.weight"].node.attrs["state"].init.array(), shared
    )


def test_default_weights_follow_from_the_position_alone() -> None:
    """Two networks of one form start alike, layers of one form do not, and what was built before does not
    matter."""

    def weights() -> dict[str, Any]:
        net = mlp(4, 4, 4)
        return {n: v.node.attrs["state"].init.array() for n, v in net.named_parameters()}

    first = weights()
    nn.Linear(3, 3)(ag.Input("x", (1, 3)))
    second = weights()
    for name, array in first.items():
        np.testing.assert_array_equal(array, second[name])
    assert not np.array_equal(first["0.weight"], first["2.weight"])


def test_linear_starts_as_pytorchs_does() -> None:
    layer = nn.Linear(25, 400)
    arrays = {n: v.node.attrs["state"].init.array() for n, v in layer.named_parameters()}
    for array in arrays.values():
        assert array.dtype == np.float32
        assert 0.19 < np.abs(array).max() <= 0.2
        assert abs(array.mean()) < 0.02


@pytest.mark.parametrize(
    "module, shape, expected",
    [
        (nn.Sigmoid(), (2, 3), lambda x: 1 / (1 + np.exp(-x))),
        (nn.Tanh(), (2, 3), np.tanh),
        (nn.ReLU(), (2, 3), lambda x: np.maximum(x, 0)),
        (nn.ReLU(inplace=True), (2, 3), lambda x: np.maximum(x, 0)),
        (nn.Identity(), (2, 3), lambda x: x),
        (nn.Flatten(), (2, 3, 4), lambda x: x.reshape(2, 12)),
        (nn.Softmax(dim=1), (2, 3), lambda x: np.exp(x) / np.exp(x).sum(1, keepdims=True)),
        (nn.LogSoftmax(dim=-1), (2, 3), lambda x: x - np.log(np.exp(x).sum(-1, keepdims=True))),
    ],
)
def test_layers_without_parameters(
    module: nn.Module, shape: tuple[int, ...], expected: Callable[..., Any]
) -> None:
    x = ag.Input("x", shape)
    array = np.random.default_rng(0).uniform(-2, 2, shape)
    assert list(module.named_parameters()) == []
    np.testing.assert_allclose(evaluate([module(x)], {x: array})[0], expected(array), rtol=1e-5, atol=1e-6)


@pytest.mark.torch
@pytest.mark.parametrize(
    "name, options",
    [
        ("ReLU6", {}),
        ("ReLU6", {"inplace": True}),
        ("Hardtanh", {"min_val": -0.5, "max_val": 2.0}),
        ("LeakyReLU", {"negative_slope": 0.2}),
        ("ELU", {"alpha": 0.5}),
        ("SELU", {}),
        ("GELU", {}),
        ("GELU", {"approximate": "tanh"}),
        ("SiLU", {}),
        ("Mish", {}),
        ("Softplus", {"beta": 2.0, "threshold": 3.0}),
        ("Softsign", {}),
        ("Hardsigmoid", {}),
        ("Hardswish", {}),
        ("LogSigmoid", {}),
        ("CELU", {"alpha": 0.5}),
        ("Hardshrink", {"lambd": 1.0}),
        ("Softshrink", {}),
    ],
)
def test_activations_against_torch(name: str, options: dict[str, Any]) -> None:
    import torch

    array = np.linspace(-8, 8, 41, dtype=np.float32)
    x = ag.Input("x", array.shape)
    for given in (options, {}):  # and with the defaults
        want = getattr(torch.nn, name)(**given)(torch.tensor(array)).numpy()
        (got,) = evaluate([getattr(nn, name)(**given)(x)], {x: array})
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
