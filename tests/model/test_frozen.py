"""requires_grad: frozen parameters beside PyTorch, wherever it is set, names of parameters that were listed by a
part of the network, and parameters that are constants of the program."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch_weights import with_weights_of

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn, optim
from autodiff_gen.device.state import state_arrays, state_bytes
from autodiff_gen.device.weights import read_weights, write_weights
from autodiff_gen.errors import AutodiffError, ModelError
from autodiff_gen.ir.node import topological

CLIP, ROWS, SHAPE = 0.05, 4, (2, 6, 6)


def features(nn: Any) -> Any:
    return nn.Sequential(nn.Conv2d(2, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 3, 3))


def network(nn: Any, features: Any) -> Any:
    """`stem` comes first in the state_dict, however early `features` listed its parameters."""

    class Net(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.stem, self.features = nn.Conv2d(2, 2, 1), features
            self.head = nn.Sequential(nn.Flatten(), nn.Linear(12, 3))

        def forward(self, x: Any) -> Any:
            return self.head(self.features(self.stem(x)))

    return Net()


def by_parameter(nn: Any) -> Any:
    net = network(nn, features(nn))
    for p in net.features.parameters():
        p.requires_grad = False
    return net


def before_the_network_is(nn: Any) -> Any:
    body = features(nn)
    for _, p in body.named_parameters():
        p.requires_grad_(False)
    return network(nn, body)


def by_module(nn: Any) -> Any:
    net = network(nn, features(nn))
    net.features.requires_grad_(False)
    return net


def by_attribute(nn: Any) -> Any:
    net = network(nn, features(nn))
    net.features[1].requires_grad_(False)
    for layer in (net.features[0], net.features[3]):
        layer.weight.requires_grad_(False)
        layer.bias.requires_grad = False
    return net


def thawed(nn: Any) -> Any:
    net = network(nn, features(nn))
    net.requires_grad_(False)
    for part in (net.stem, net.head):
        for p in part.parameters():
            p.requires_grad = True
    return net


def norm_and_bias(nn: Any) -> Any:
    """Frozen weights of a BatchNorm whose running statistics go on, and one of two parameters of a layer."""
    net = network(nn, features(nn))
    list(net.features.parameters())
    net.features[1].requires_grad_(False)
    net.head[1].bias.requires_grad = False
    return net


WAYS = [by_parameter, before_the_network_is, by_module, by_attribute, thawed, norm_and_bias]


def model(net: Any) -> ag.Model:
    rate = optim.SGD(lr=0.1, momentum=0.9, weight_decay=0.1)
    return ag.Model.supervised(net, (ROWS, *SHAPE), nn.CrossEntropyLoss(), rate, clip_grad_norm=CLIP)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("way", WAYS)
def test_training_equals_pytorchs(way: Callable[[Any], Any]) -> None:
    import torch

    made = model(way(nn))
    trainer = made.on_host()
    twin = with_weights_of(way(torch.nn), trainer.state_dict())
    assert [k for k in trainer.state_dict() if "." in k and not k.endswith("buffer")] == list(
        twin.state_dict()
    )
    step = torch.optim.SGD(twin.parameters(), lr=0.1, momentum=0.9, weight_decay=0.1)
    rng = np.random.default_rng(3)
    for _ in range(6):
        x = rng.normal(size=(ROWS, *SHAPE)).astype(np.float32)
        label = rng.integers(0, 3, ROWS)
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label))
        step.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(twin.parameters(), CLIP)
        assert norm > CLIP  # or clipping would hide that frozen parameters count
        step.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=2e-5)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value, rtol=2e-4, atol=2e-5, err_msg=name)
    trained = {name for name, p in twin.named_parameters() if p.requires_grad}
    assert {s.name for s in made.entries()[0].updates if s.role == "parameter"} == trained


def starts(net: Any) -> dict[str, Any]:
    """Parameters and buffers of the network's model by name, in the order of a state_dict."""
    made = model(net)
    own = {s.name: s.init.array() for s in made.states if s.role in ("parameter", "buffer")} | made.frozen
    return {name: own[name] for name in made.state_names if name in own}


@pytest.mark.parametrize("way", WAYS)
def test_names_order_and_first_values_do_not_depend_on_what_was_listed(way: Callable[[Any], Any]) -> None:
    want, got = starts(network(nn, features(nn))), starts(way(nn))
    assert list(got) == list(want)
    for name, array in want.items():
        np.testing.assert_array_equal(got[name], array, err_msg=name)


def test_a_part_called_by_itself_keeps_the_names_of_the_whole() -> None:
    net = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 2)))
    assert [name for name, _ in net[1].named_parameters()] == ["0.weight", "0.bias"]
    wanted = ["0.weight", "0.bias", "1.0.weight", "1.0.bias"]
    assert [name for name, _ in net.named_parameters()] == wanted
    net[1](net[0](ag.Input("x", (1, 2))))
    assert [name for name, _ in net.named_parameters()] == wanted


def test_no_gradient_is_computed_for_what_is_frozen() -> None:
    graphs = [model(net).entries()[0] for net in (network(nn, features(nn)), by_parameter(nn))]
    ops = [[node.op.name for node in topological(graph.roots)] for graph in graphs]
    assert [names.count("conv2d_dw") for names in ops] == [
        3,
        1,
    ]  # the stem's, whose gradient comes through the rest


def test_weights_are_loaded_after_freezing() -> None:
    net = by_parameter(nn)
    weights = {name: array + 1.0 for name, array in starts(by_parameter(nn)).items()}
    net.load_state_dict(weights)
    for name, array in starts(net).items():
        np.testing.assert_array_equal(array, weights[name], err_msg=name)


def test_copies_are_frozen_as_what_they_were_copied_from() -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8)
    for p in layer.self_attn.parameters():
        p.requires_grad = False
    net = nn.TransformerEncoder(layer, 2)
    found = {name: p.requires_grad for name, p in net.named_parameters()}
    assert len(found) == 2 * len(list(layer.parameters()))
    for name, trained in found.items():
        assert name.startswith("layers.") and trained == ("self_attn" not in name)
    first = copy.deepcopy(net.layers[0])
    assert [p.requires_grad for p in first.parameters()] == [p.requires_grad for p in layer.parameters()]


def test_reading_it() -> None:
    layer = nn.Linear(2, 2)
    assert layer.weight.requires_grad and layer.weight.requires_grad_(False) is layer.weight
    assert [p.requires_grad for p in layer.parameters()] == [False, True]
    assert layer.weight.requires_grad is False and layer.bias.requires_grad is True
    assert not ag.Param("w", np.ones(2), requires_grad=False).requires_grad


def test_it_counts_until_a_model_is_built() -> None:
    layer = nn.Linear(2, 2)
    x, t = ag.Input("x", (1, 2)), ag.Input("t", (1, 2))
    y = layer(x)
    layer.bias.requires_grad = False
    made = ag.Model([x], [t], {"y": y}, F.mse_loss(y, t), optim.SGD())
    assert [s.name for s in made.entries()[0].updates] == ["weight"]
    layer.bias.requires_grad = False  # no change
    with pytest.raises(
        AutodiffError, match=r"^requires_grad: 'bias' is in a model already; set it before the"
    ):
        layer.bias.requires_grad = True
    assert layer.bias.requires_grad is False


@pytest.mark.parametrize(
    "value", [ag.Input("x", (2,)), F.exp(ag.Param("w", np.ones(2))), ag.Buffer("b", np.ones(2))]
)
def test_other_values_have_none(value: Any) -> None:
    with pytest.raises(AutodiffError, match=r"^requires_grad: <.*> is not a parameter$"):
        value.requires_grad = False
    with pytest.raises(AutodiffError, match=r"^requires_grad: <.*> is not a parameter$"):
        print(value.requires_grad)


def frozen() -> ag.Model:
    x, t = ag.Input("x", (1, 2)), ag.Input("t", (1, 2))
    w, fixed = ag.Param("w", init.ones((2, 2))), ag.Param("fixed", init.ones((2, 2)), requires_grad=False)
    y = x @ w @ fixed
    return ag.Model([x], [t], {"y": y}, F.mse_loss(y, t), optim.SGD())


def test_a_frozen_parameter_is_a_constant() -> None:
    model = frozen()
    assert [s.name for s in model.states] == ["w"]
    assert [s.name for s in model.entries()[0].updates] == ["w"]
    assert model.state_names == ("w", "fixed") and set(model.frozen) == {"fixed"}


@pytest.mark.cc
def test_a_state_dict_has_frozen_parameters_and_rejects_other_values_of_them() -> None:
    trainer = frozen().on_host()
    state = trainer.state_dict()
    assert list(state) == ["w", "fixed"] and trainer.nbytes < 4 * (4 + 4 + 12)
    trainer.load_state_dict(state)
    trainer.load_state_dict({"w": state["w"]})
    with pytest.raises(
        ModelError, match="fixed is frozen: a constant of the program; give its value to the network"
    ):
        trainer.load_state_dict({**state, "fixed": state["fixed"] + 1})
    assert "static const float fixed[4] = { /* [2,2] */" in trainer.source["model.c"]


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("suffix", [".pt", ".npz"])
def test_files_of_weights_have_frozen_parameters(suffix: str, tmp_path: Path) -> None:
    trainer = frozen().on_host()
    data = state_bytes(trainer.program, trainer.state_dict())
    file = tmp_path / f"weights{suffix}"
    write_weights(file, trainer.program, state_arrays(trainer.program, data), 3)
    state, _ = read_weights(file)
    assert list(state) == ["w", "fixed"]
    assert state_bytes(trainer.program, state) == data


def test_a_mask_in_a_buffer_is_a_constant_that_the_state_dict_has() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = nn.Linear(4, 3)
            self.kept = nn.Buffer(np.array([True, False, True]), "bool")

        def forward(self, x: Any) -> Any:
            return F.where(self.kept, self.net(x), 0.0)

    made = ag.Model.supervised(Net(), (2, 4), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    assert [s.name for s in made.states] == ["net.weight", "net.bias"]
    kept = made.frozen["kept"]
    assert kept.dtype == bool and kept.tolist() == [True, False, True]
    trainer = made.on_host()
    assert (trainer.predict(np.ones((2, 4), np.float32)) != 0).tolist() == [[True, False, True]] * 2
    state = trainer.state_dict()
    trainer.load_state_dict(state)
    with pytest.raises(ModelError, match=r"^kept is frozen"):
        trainer.load_state_dict(state | {"kept": ~kept})


@pytest.mark.cc
def test_statistics_and_tables_that_nothing_updates_are_constants() -> None:
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(2, 4, 3, bias=False).requires_grad_(False), nn.BatchNorm2d(4)
            self.norm.requires_grad_(False).eval()
            self.norm.running_mean = nn.Buffer(init.uniform((4,), 0.5, seed=1))
            self.norm.running_var = nn.Buffer(np.array([0.5, 1.0, 1.5, 2.0]))
            self.table = nn.Buffer(init.uniform((4, 4, 4), 0.5, seed=2))
            self.head = nn.Linear(64, 3)

        def forward(self, x: Any) -> Any:
            return self.head(F.flatten(F.relu(self.norm(self.conv(x))) + self.table, 1))

    net = Net()
    model = ag.Model.supervised(net, (2, 2, 6, 6), nn.CrossEntropyLoss(), optim.SGD(lr=0.1))
    assert [s.name for s in model.states] == ["head.weight", "head.bias"]
    trainer = model.on_host()
    state, text = trainer.state_dict(), trainer.source["model.c"]
    scale = state["norm.weight"] / np.sqrt(state["norm.running_var"] + np.float32(1e-5))
    first = state["conv.weight"][0, 0, 0, 0] * scale[0]
    assert f"static const float norm_scaled_weights[72] = {{ /* [4,3,3,2] */\n    {first:.6f}" in text
    assert "conv_weight" not in text and "norm_scale[" not in text and "sqrt" not in text
    assert "static const float norm_shift[4]" in text and "norm_running" not in text
    assert "static const float table[64] = { /* [4,4,4] */" in text
    trainer.load_state_dict(state)
    with pytest.raises(ModelError, match=r"^norm.running_mean is frozen"):
        trainer.load_state_dict(state | {"norm.running_mean": state["norm.running_mean"] + 1})
