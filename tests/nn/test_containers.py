"""Modules that hold modules, and layers that surround images, beside torch.nn's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from against_torch import check_float64, check_layer

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import init, nn
from autodiff_gen.errors import ModelError

PLACES = np.float32(np.tril(np.full((5, 5), -9.0), -1))
CAUSAL = np.float32([[0, -9, -9], [0, 0, -9], [0, 0, 0]])
IMAGES, SERIES = (2, 3, 4, 5), (2, 6, 4)

LAYERS: list[tuple[Callable[[Any], Any], tuple[int, ...]]] = [
    (lambda nn: nn.ZeroPad1d(1), SERIES),
    (lambda nn: nn.ZeroPad2d((1, 2, 0, 3)), IMAGES),
    (lambda nn: nn.ConstantPad1d(2, 1.5), SERIES),
    (lambda nn: nn.ConstantPad2d((1, 0, -1, 2), 1.5), IMAGES),
    (lambda nn: nn.ReflectionPad1d((0, 2)), (3, 4)),
    (lambda nn: nn.ReflectionPad2d(2), IMAGES),
    (lambda nn: nn.ReplicationPad1d((3, 1)), SERIES),
    (lambda nn: nn.ReplicationPad2d((0, 2, 1, 1)), IMAGES),
    (lambda nn: nn.CircularPad1d((0, 2)), SERIES),
    (lambda nn: nn.CircularPad2d(1), IMAGES),
    (lambda nn: nn.Unflatten(1, (3, 2)), SERIES),
    (lambda nn: nn.Identity(5, unused=3), SERIES),
    (lambda nn: nn.Upsample(7, mode="linear"), SERIES),
    (lambda nn: nn.Upsample(scale_factor=(2, 1.5), mode="bilinear", align_corners=True), IMAGES),
    (lambda nn: nn.UpsamplingNearest2d(scale_factor=2), IMAGES),
    (lambda nn: nn.UpsamplingBilinear2d((3, 9)), IMAGES),
    (lambda nn: nn.PixelShuffle(2), (2, 4, 3, 2)),
    (lambda nn: nn.PixelUnshuffle(2), (2, 3, 4, 2)),
    (lambda nn: nn.ChannelShuffle(3), (2, 6, 3, 2)),
    (lambda nn: nn.LocalResponseNorm(2, 0.5), IMAGES),
]


@pytest.mark.torch
@pytest.mark.parametrize("make, shape", LAYERS)
def test_layers_without_weights(make: Callable[[Any], Any], shape: tuple[int, ...]) -> None:
    import torch

    row = "", lambda _, a: make(torch.nn if isinstance(a, torch.Tensor) else nn)(a), [shape]
    check_float64(row, 1e-6)  # weights of interpolations are constants in float32


WITH_WEIGHTS: list[tuple[Callable[[Any], Any], list[Any]]] = [
    (lambda nn: nn.PReLU(), [IMAGES]),
    (lambda nn: nn.PReLU(3, init=0.5), [IMAGES]),
    (lambda nn: nn.Bilinear(3, 2, 4), [(5, 3), (5, 2)]),
    (lambda nn: nn.Bilinear(3, 2, 1, bias=False), [(2, 5, 3), (2, 5, 2)]),
    (lambda nn: nn.CosineSimilarity(dim=-1, eps=0.5), [(5, 3), (5, 3)]),
    (lambda nn: nn.PairwiseDistance(1, keepdim=True), [(5, 3), (5, 3)]),
]


def decoder(**options: Any) -> Callable[[Any], Any]:
    def made(nn: Any) -> Any:
        layer = nn.TransformerDecoderLayer(4, 2, 8, **options)
        return nn.TransformerDecoder(layer, 2, nn.LayerNorm(4) if options.get("bias", True) else None)

    return made


WITH_WEIGHTS += [
    (decoder(), [(3, 2, 4), (5, 2, 4)]),
    (decoder(batch_first=True, activation="gelu"), [(2, 3, 4), (2, 5, 4), CAUSAL]),
    (decoder(norm_first=True, bias=False), [(3, 4), (5, 4), CAUSAL]),
    (
        lambda nn: nn.Transformer(4, 2, 1, 2, 8, batch_first=True, norm_first=True),
        [(2, 5, 4), (2, 3, 4), PLACES, CAUSAL],
    ),
]


@pytest.mark.torch
@pytest.mark.parametrize("make, operands", WITH_WEIGHTS)
def test_layers_against_torch(make: Callable[[Any], Any], operands: list[Any]) -> None:
    check_layer(make, operands)


def network(nn: Any) -> Any:
    class Network(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
            self.blocks.append(nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)))
            self.by_name = nn.ModuleDict({"relu": nn.ReLU(), "head": nn.Linear(4, 2)})

        def forward(self, x: Any) -> Any:
            for block in self.blocks:
                x = self.by_name["relu"](block(x))
            assert len(self.blocks) == 3 and list(self.by_name) == ["relu", "head"]
            return self.by_name["head"](self.blocks[:1][0](x))

    return Network()


@pytest.mark.cc
@pytest.mark.torch
def test_state_dict_has_torchs_names_in_torchs_order() -> None:
    import torch

    twin = network(torch.nn)
    loss, optimizer = nn.MSELoss(), ag.optim.SGD(lr=0.1)
    trainer = ag.Model.supervised(network(nn), (3, 4), loss=loss, optimizer=optimizer).on_host()
    assert list(trainer.state_dict()) == list(twin.state_dict())
    trainer.load_state_dict(twin.state_dict())
    x = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.testing.assert_allclose(
        trainer.predict(x), twin.eval()(torch.tensor(x)).detach().numpy(), rtol=1e-5, atol=1e-6
    )
    assert twin.load_state_dict({k: torch.tensor(v) for k, v in trainer.state_dict().items()})


def edited(nn: Any, start: Any) -> Any:
    """Modules added, replaced and removed by name and by number; `start` makes the first numbers of a parameter."""

    class Edited(nn.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.body = nn.Sequential(nn.Linear(3, 4), nn.Tanh()).append(nn.Linear(4, 4))
            self.body.insert(1, nn.Linear(4, 4))
            self.body[0] = nn.Linear(3, 4, bias=False)
            del self.body[2]
            self.body.extend([nn.ReLU(), nn.Linear(4, 4)])
            self.rest = self.body[3:]
            self.add_module("head", nn.Linear(4, 2))
            self.register_module("none", None)
            self.gone = nn.Linear(3, 3)
            del self.gone
            self.by_name = nn.ModuleDict({"a": nn.Linear(4, 4), "b": nn.ReLU()})
            self.by_name.update({"b": nn.Linear(4, 4, bias=False)})
            self.by_name.pop("a")
            self.scales = nn.ParameterList([nn.Parameter(start((4,))), nn.Parameter(start((4,)))])
            self.scales.append(nn.Parameter(start((2,))))
            self.shifts = nn.ParameterDict({"by_row": nn.Parameter(start((4,)))})
            self.register_buffer("offset", start((2,)))

        def forward(self, x: Any) -> Any:
            y = self.by_name["b"](self.body(x)) * self.scales[0]
            for scale in list(self.scales)[:2]:
                y = self.rest(y) * scale + self.shifts["by_row"]
            return self.head(y) * self.scales[-1] + self.offset

    return Edited()


@pytest.mark.torch
def test_edited_networks_have_the_modules_of_torchs() -> None:
    import torch

    ours, twin = edited(nn, init.ones), edited(torch.nn, torch.ones)
    assert list(ours.state_dict()) == list(twin.state_dict())
    assert [type(m).__name__ for m in ours.modules()] == [type(m).__name__ for m in twin.modules()]
    assert [k for k, _ in ours.named_children()] == [k for k, _ in twin.named_children()]
    assert [k for k, _ in ours.named_modules()] == [k for k, _ in twin.named_modules()]
    seen: dict[Any, list[str]] = {ours: [], twin: []}
    for net, names in seen.items():
        assert net.apply(lambda m, names=names: names.append(type(m).__name__)) is net
        assert type(net.get_submodule("body.1")).__name__ == "Linear"
        assert tuple(net.get_parameter("scales.2").shape) == (2,)
        assert len(net.scales) == 3 and list(net.shifts) == ["by_row"] and not hasattr(net, "gone")
    assert seen[ours] == seen[twin]
    check_layer(lambda of: edited(of, init.ones if of is nn else torch.ones), [(5, 3)])


@pytest.mark.cc
def test_freezing_as_it_is_written_for_torch() -> None:
    net = nn.Sequential(nn.Linear(3, 4), nn.Linear(4, 4), nn.Linear(4, 2))
    for p in net.parameters():
        p.requires_grad = False
    for p in net[2].parameters():
        p.requires_grad = True
    groups = [{"params": net[2].weight}, {"params": [net[2].bias], "lr": 0.01}]
    model = ag.Model.supervised(net, (2, 3), nn.MSELoss(), ag.optim.SGD(groups, lr=0.1))
    assert [s.name for s in model.states] == ["2.weight", "2.bias"]
    assert list(model.frozen) == ["0.weight", "0.bias", "1.weight", "1.bias"]


def encoder(nn: Any, **options: Any) -> Any:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, **options)
    return nn.TransformerEncoder(layer, 2, nn.LayerNorm(4))


@pytest.mark.torch
def test_an_encoder_of_several_layers() -> None:
    import torch

    from autodiff_gen.ir.interpreter import evaluate

    twin, ours = encoder(torch.nn).eval(), encoder(nn)
    array = np.random.default_rng(0).normal(size=(2, 5, 4)).astype(np.float32)
    x = ag.Input("x", array.shape)
    y = ours(x)
    weights = dict(ours.named_parameters())
    assert list(weights) == [name for name, _ in twin.named_parameters()]
    given = {value: twin.state_dict()[name].numpy() for name, value in weights.items()}
    f = ag.function([x, *weights.values()], [y])
    (got,) = evaluate(f.graph.roots, {x: array, **given})
    np.testing.assert_allclose(got, twin(torch.tensor(array)).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_dropout_of_an_encoder_acts_in_training() -> None:
    """Its default is PyTorch's, 0.1: on the weights of attention, between the linear layers, and on branches."""
    from autodiff_gen.ir.node import topological

    x = ag.Input("x", (2, 5, 4))
    drawn = [n for n in topological([encoder(nn)(x)]) if n.op.name == "rand_u32"]
    assert len(drawn) == 2 * 4
    assert not [n for n in topological([encoder(nn, dropout=0.0)(x)]) if n.op.name == "rand_u32"]
    assert not [n for n in topological([encoder(nn).eval()(x)]) if n.op.name == "rand_u32"]


REJECTED: list[tuple[Callable[[], Any], str]] = [
    (lambda: nn.ReLU().cuda(), "^ReLU.cuda is not supported; leave it out: the board is chosen when"),
    (lambda: nn.ReLU().register_forward_hook(print), "^ReLU.register_forward_hook is not supported; compute in"),
    (lambda: nn.ReLU().add_module("a.b", nn.ReLU()), "^ReLU: 'a.b' cannot be the name of a module$"),
    (lambda: nn.ReLU().add_module("a", nn.ReLU), "^ReLU: 'a' is <class .*> *, not a module; did you forget"),
    (lambda: nn.Sequential(nn.ReLU()).get_submodule("1"), "^Sequential has no module '1'$"),
    (lambda: nn.Sequential(nn.ReLU(), None)(ag.Input("x", (2,))), "^Sequential: module '1' is None; leave it out, or"),
    (lambda: nn.Linear(2, 2, bias=False).get_parameter("bias"), "^Linear has no parameter 'bias'$"),
    (lambda: nn.ParameterDict()["a"], "^ParameterDict has no 'a'; it has nothing$"),
    (lambda: nn.ModuleList([nn.Linear]), r"^ModuleList: '0' is <class.*not a module; did you forget the parent"),
    (lambda: nn.ModuleDict({"a": F.relu}), r"^ModuleDict: 'a' is <function.*not a module"),
    (lambda: nn.ModuleDict({"a": nn.ReLU()})["b"], r"^ModuleDict has no 'b'; it has a$"),
    (lambda: nn.PReLU(0), r"^PReLU: num_parameters=0 must be an integer of at least 1$"),
    (lambda: nn.Bilinear(2, 0, 1), r"^Bilinear: in2_features=0 must be an integer of at least 1$"),
    (lambda: nn.ZeroPad2d((1, 2)), r"^ZeroPad2d: padding=\(1, 2\) must be an integer, or 4 of them$"),
    (lambda: nn.TransformerDecoderLayer(4, 2, activation="tanh"), '^TransformerDecoderLayer: .*; known: "relu"'),
    (lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2), 0), "^TransformerDecoder: num_layers=0 must be"),
    (lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2), 0), r"num_layers=0 must be an integer"),
]  # fmt: skip


@pytest.mark.parametrize("build, message", REJECTED)
def test_rejected_in_one_line(build: Callable[[], Any], message: str) -> None:
    with pytest.raises(ModelError, match=message):
        build()
