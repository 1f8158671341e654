"""Initialisers that change parameters, beside the initialisers of torch.nn.init."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rejections import all_rejected

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn
from autodiff_gen.errors import ModelError

SHAPE = (200, 100)
# Where the numbers themselves are random: their mean, deviation and limits are compared.
DRAWN: list[tuple[str, dict[str, Any]]] = [
    ("uniform_", {}),
    ("uniform_", {"a": -0.5, "b": 0.25}),
    ("normal_", {"mean": 1.0, "std": 0.5}),
    ("trunc_normal_", {}),
    ("trunc_normal_", {"std": 0.02}),
    ("trunc_normal_", {"mean": 0.5, "std": 2.0, "a": -1.0, "b": 1.5}),
    ("xavier_uniform_", {"gain": 2.0}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {"a": 0.3}),
    ("kaiming_normal_", {"mode": "fan_out", "nonlinearity": "relu"}),
    ("orthogonal_", {"gain": 1.5}),
]


def start_of(value: Any) -> Any:
    return value.node.attrs["state"].init.array()


@pytest.mark.torch
@pytest.mark.parametrize("name, options", DRAWN)
def test_random_numbers_are_distributed_as_torchs(name: str, options: dict[str, Any]) -> None:
    import torch

    layer = nn.Linear(SHAPE[1], SHAPE[0])
    assert getattr(nn.init, name)(layer.weight, **options) is layer.weight
    got = layer.state_dict()["weight"]
    torch.manual_seed(0)
    want = getattr(torch.nn.init, name)(torch.empty(SHAPE), **options).numpy()
    assert got.shape == SHAPE and got.dtype == np.float32
    deviation = want.std()
    assert abs(got.mean() - want.mean()) < 0.03 * deviation
    assert got.std() == pytest.approx(deviation, rel=0.02)
    if name not in ("orthogonal_", "normal_", "xavier_normal_", "kaiming_normal_") and options != {
        "std": 0.02
    }:
        np.testing.assert_allclose([got.min(), got.max()], [want.min(), want.max()], atol=0.02 * deviation)
    if name == "orthogonal_":
        np.testing.assert_allclose(got.T @ got, 1.5**2 * np.eye(100), atol=1e-5)


def test_numbers_follow_from_the_position_in_the_network() -> None:
    def net() -> nn.Module:
        made = nn.Sequential(*(nn.Linear(4, 4) for _ in range(3)))
        made[0].apply(lambda m: nn.init.orthogonal_(m.weight))
        list(made[1].named_parameters())  # has a name, and a graph value, before it is in the network
        nn.init.orthogonal_(made[1].weight)
        nn.init.normal_(next(made[2].parameters()))
        return made

    one, other = net().state_dict(), net().state_dict()
    for name, array in one.items():
        np.testing.assert_array_equal(array, other[name])
    assert not np.allclose(one["0.weight"], one["1.weight"])


FIXED: list[tuple[str, Callable[[Any], Any], Any]] = [
    ("constant_", lambda w: nn.init.constant_(w, 0.5), np.full((2, 3), 0.5)),
    ("ones_", nn.init.ones_, np.ones((2, 3))),
    ("zeros_", nn.init.zeros_, np.zeros((2, 3))),
    ("eye_", nn.init.eye_, np.eye(2, 3)),
    ("zero_", lambda w: w.data.zero_(), np.zeros((2, 3))),
    ("fill_", lambda w: w.data.fill_(2.0), np.full((2, 3), 2.0)),
    ("copy_", lambda w: w.copy_(np.arange(6).reshape(2, 3)), np.arange(6).reshape(2, 3)),
]


@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("change, want", [row[1:] for row in FIXED], ids=[row[0] for row in FIXED])
def test_numbers_that_are_given(change: Callable[[Any], Any], want: Any, listed: bool) -> None:
    """Before and after the parameter has a graph value, in a network around the layer too."""
    layer = nn.Linear(3, 2)
    net = nn.Sequential(nn.Identity(), layer)
    weight = next(layer.parameters()) if listed else layer.weight
    assert weight.dim() == weight.ndim == 2 and weight.numel() == 6 and tuple(weight.shape) == (2, 3)
    assert weight.size(0) == 2 and tuple(weight.size()) == (2, 3)
    change(weight)
    net(ag.Input("x", (1, 3)))
    np.testing.assert_array_equal(start_of(dict(net.named_parameters())["1.weight"]), want)


@pytest.mark.cc
def test_initialisation_as_it_is_written_for_torch() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
            self.scale = nn.Parameter(F.ones(2))
            self.reset_parameters()

        def reset_parameters(self) -> None:
            for m in self.modules():
                if isinstance(m, nn.Linear):
                    nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
                    if m.bias is not None:
                        nn.init.zeros_(m.bias)
            for p in self.body[2].parameters():
                if p.dim() > 1:
                    nn.init.uniform_(p, -0.1, 0.1)

        def forward(self, x: Any) -> Any:
            return self.body(x) * self.scale

    model = ag.Model.supervised(Net(), (2, 4), nn.MSELoss(), ag.optim.SGD(lr=0.1))
    state = model.on_host().state_dict()
    assert list(state) == ["scale", "body.0.weight", "body.0.bias", "body.2.weight", "body.2.bias"]
    np.testing.assert_array_equal(state["scale"], np.ones(2))
    assert not state["body.0.bias"].any() and 0 < np.abs(state["body.2.weight"]).max() <= 0.1
    assert np.abs(state["body.0.weight"]).max() > 0.5  # not the default, which is below 0.5


@pytest.mark.torch
@pytest.mark.parametrize(
    "arguments",
    [
        ("linear",),
        ("conv2d",),
        ("sigmoid",),
        ("tanh",),
        ("relu",),
        ("selu",),
        ("leaky_relu",),
        ("leaky_relu", 0.2),
    ],
)
def test_gains_are_torchs(arguments: tuple[Any, ...]) -> None:
    import torch

    assert nn.init.calculate_gain(*arguments) == pytest.approx(torch.nn.init.calculate_gain(*arguments))


CALLED = nn.Linear(3, 2)
CALLED(ag.Input("x", (1, 3)))

REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: nn.init.zeros_(CALLED.weight), "^'weight' is part of a graph already; set its initial values before"),
    (lambda: nn.init.zeros_(np.ones(3)), r"^nn.init.zeros_: array\(.*\) is not a parameter of a module$"),
    (lambda: nn.init.zeros_(F.ones(3)), "^nn.init.zeros_: .* is not a parameter of a module$"),
    (lambda: nn.init.zeros_(ag.Param("p", init.ones(3))), "^nn.init.zeros_: .* is not a parameter of a module$"),
    (lambda: nn.init.eye_(nn.Linear(2, 2).bias), r"^nn.init.eye_: shape \[2\] is not two-dimensional$"),
    (lambda: nn.init.orthogonal_(nn.Linear(2, 2).bias), "^nn.init.orthogonal_: .* needs at least two axes$"),
    (lambda: nn.init.trunc_normal_(nn.Linear(2, 2).bias, a=2.0, b=1.0), "^nn.init.trunc_normal_: .* holds no numbers"),
    (lambda: nn.Parameter(ag.Input("x", (3,)) + 1.0), "depends on inputs or parameters, and cannot be the start"),
]  # fmt: skip


def test_rejected_in_one_line(subtests: pytest.Subtests) -> None:
    all_rejected(subtests, REJECTED, ModelError)
