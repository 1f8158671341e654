"""Training of 8-bit weights and their biases, compiled for the host, against a simulation of the same arithmetic in
PyTorch: sums and rounding in float64, gradients that pass rounding but no limits."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import autodiff_gen as ag
from autodiff_gen import nn, optim, quant
from autodiff_gen.check.gradcheck import check
from autodiff_gen.errors import ModelError, ShapeError
from autodiff_gen.ir.counter_rng import rand_u32
from autodiff_gen.ir.node import Value
from autodiff_gen.ir.quantization import fixed_points, requantized

pytestmark = pytest.mark.cc

STEPS, BATCH, CLASSES = 100, 8, 4
LAYERS: list[dict[str, Any]] = [
    {"name": "input", "op": "quantize", "scale": 0.02, "zero_point": 3},
    {"name": "first", "op": "conv2d", "scale": 0.02, "zero_point": -128, "stride": 2, "padding": 1},
    {"name": "depthwise", "op": "conv2d", "scale": 0.03, "zero_point": -128, "padding": 1, "groups": 8},
    {"name": "pointwise", "op": "conv2d", "scale": 0.04, "zero_point": -3},
    {"name": "sum", "op": "add", "inputs": ["pointwise", "first"], "scale": 0.05, "zero_point": 0},
    {"name": "pool", "op": "avg_pool2d"},
    {"name": "flat", "op": "flatten"},
    {"name": "fc", "op": "linear", "scale": 0.04, "zero_point": 5},
]
SHAPES = {"first": (8, 3, 3, 3), "depthwise": (8, 1, 3, 3), "pointwise": (8, 8, 1, 1), "fc": (12, 8)}


def arrays() -> dict[str, Any]:
    rng = np.random.default_rng(4)
    found: dict[str, Any] = {}
    for name, shape in SHAPES.items():
        real = rng.normal(0, 1.2 / np.sqrt(np.prod(shape[1:])), shape)
        scales = np.abs(real).reshape(len(real), -1).max(1) / 127
        found[f"{name}.weight"] = np.rint(real / along(scales, real)).astype(np.int8)
        found[f"{name}.weight_scales"] = scales.astype(np.float32)
        found[f"{name}.bias"] = rng.integers(-500, 500, len(real)).astype(np.int32)
    return found


def along(scales: Any, array: Any) -> Any:
    return scales.reshape(-1, *(1,) * (array.ndim - 1))


def loaded() -> quant.Network:
    return quant.load({**arrays(), "layers": LAYERS})


def images() -> tuple[Any, Any]:
    """Images of each class around a class image."""
    rng = np.random.default_rng(5)
    kinds = rng.normal(0, 0.7, (CLASSES, 3, 9, 9))
    labels = np.arange(STEPS * BATCH) % CLASSES
    return (kinds[labels] + rng.normal(0, 0.4, (len(labels), 3, 9, 9))).astype(np.float32), labels.astype(
        np.uint8
    )


class Net(nn.Module):
    def __init__(self, backbone: quant.Network) -> None:
        super().__init__()
        self.backbone = backbone
        self.head = nn.Linear(12, CLASSES)

    def forward(self, x: Value) -> Value:
        return self.head(self.backbone(x))


def trained(choose: Callable[[quant.Network], Any], optimizer: Any, **options: Any) -> Any:
    net = Net(loaded())
    choose(net.backbone)
    model = ag.Model.supervised(net, (BATCH, 3, 9, 9), nn.CrossEntropyLoss(), optimizer, **options)
    return model.on_host()


# The simulation


class Limited(torch.autograd.Function):
    """The numbers that the integers q represent in place of x; gradients pass where these are between the limits."""

    @staticmethod
    def forward(ctx: Any, x: Any, q: Any, scale: float, zero: int) -> Any:
        q = torch.as_tensor(q) + zero
        ctx.inside = (q > -128) & (q < 127)
        return (q.clamp(-128, 127) - zero).to(x.dtype) * scale

    @staticmethod
    def backward(ctx: Any, dy: Any) -> Any:
        return dy * ctx.inside, None, None, None


def quantised(x: Any, scale: float, zero: int) -> Any:
    return ((torch.round(x / scale) + zero).clamp(-128, 127) - zero) * scale


def requantised(sums: Any, ratios: Any) -> Any:
    """Integers times ratios, with the rounding of CMSIS-NN."""
    multiplier, shift = fixed_points(np.atleast_1d(ratios))
    return requantized(sums, multiplier, shift)


class Simulation:
    """weights, biases: the real numbers that are trained, by layer; all are rounded where they are used."""

    def __init__(self, head: Any) -> None:
        given = arrays()
        inputs = {"first": 0.02, "depthwise": 0.02, "pointwise": 0.03, "fc": 0.05}
        self.scales = {k: torch.tensor(given[f"{k}.weight_scales"], dtype=torch.float64) for k in SHAPES}
        self.units = {k: self.scales[k] * inputs[k] for k in SHAPES}
        self.weights = {k: torch.tensor(given[f"{k}.weight"], dtype=torch.float64) for k in SHAPES}
        self.weights = {k: w * along(self.scales[k], w) for k, w in self.weights.items()}
        self.biases = {k: torch.tensor(given[f"{k}.bias"]) * self.units[k] for k in SHAPES}
        self.head = [torch.tensor(head[f"head.{k}"], dtype=torch.float64) for k in ("weight", "bias")]

    def require(self, *names: str) -> list[Any]:
        own = [
            self.weights[n.partition(".")[0]] if n.endswith("weight") else self.biases[n.partition(".")[0]]
            for n in names
        ]
        return [p.requires_grad_() for p in (*own, *self.head)]

    def integers(self, name: str) -> Any:
        w = self.weights[name]
        return torch.round(w / along(self.scales[name], w)).clamp(-128, 127)

    def product(self, f: Any, name: str, x: Any, of_x: float, scale: float, zero: int, **options: Any) -> Any:
        """f of x, whose scale is of_x, the weights and the bias."""
        w, b, units = self.weights[name], self.biases[name], self.units[name]
        whole, first = self.integers(name).detach(), torch.round(b.detach() / units)
        sums = f(torch.round(x.detach() / of_x), whole, first, **options).numpy().astype(np.int64)
        q = np.moveaxis(requantised(np.moveaxis(sums, 1, -1), (units / scale).numpy()), -1, 1)
        inside = (w.detach() / along(self.scales[name], w) + 0.5).abs() < 128
        straight = w * inside + (whole * along(self.scales[name], w) - w * inside).detach()
        return Limited.apply(f(x, straight, b, **options), q, scale, zero)

    def loss(self, x: Any, label: Any) -> Any:
        conv = torch.nn.functional.conv2d
        x = quantised(torch.tensor(x, dtype=torch.float64), 0.02, 3)
        first = self.product(conv, "first", x, 0.02, 0.02, -128, stride=2, padding=1)
        y = self.product(conv, "depthwise", first, 0.02, 0.03, -128, padding=1, groups=8)
        y = self.product(conv, "pointwise", y, 0.03, 0.04, -3)
        terms = [
            (np.rint(v.detach().numpy() / of).astype(np.int64) << 20, of)
            for v, of in ((y, 0.04), (first, 0.02))
        ]
        common = [requantised(v, of / 0.08) for v, of in terms]
        y = Limited.apply(y + first, requantised(sum(common), 0.08 / (2**20 * 0.05)), 0.05, 0)
        total = np.rint(y.detach().numpy() / 0.05).sum((2, 3))
        count = y.shape[2] * y.shape[3]
        mean = np.trunc((total + np.where(total > 0, count // 2, -(count // 2))) / count)
        y = Limited.apply(y.mean((2, 3)), mean, 0.05, 0)
        y = self.product(torch.nn.functional.linear, "fc", y, 0.05, 0.04, 5)
        scores = torch.nn.functional.linear(y, *self.head)
        return torch.nn.functional.cross_entropy(scores, torch.tensor(label.astype(np.int64)))


WEIGHTS = ("depthwise", "pointwise", "fc")


def some(backbone: quant.Network, master: bool = False) -> None:
    """Three layers' weights and two biases."""
    for name, layer in backbone.named_modules():
        if name in WEIGHTS:
            if master:
                layer.use_master_copy()
            layer.weight.requires_grad = True
        if name in ("pointwise", "fc"):
            layer.bias.requires_grad = True


NAMES = ("depthwise.weight", "pointwise.weight", "pointwise.bias", "fc.weight", "fc.bias")


def compared(t: Any, simulation: Simulation, step_of: Any) -> None:
    """The losses of STEPS steps; step_of: (loss of the simulation, number of the step) makes one of the simulation."""
    x, label = images()
    losses = []
    for step in range(STEPS):
        at = slice(step * BATCH, (step + 1) * BATCH)
        want = simulation.loss(x[at], label[at])
        losses.append((t.train_step(x[at], label[at]), want.item()))
        step_of(want, step)
    got, expected = np.transpose(losses)
    assert expected[-20:].mean() < 0.75 * expected[:10].mean()
    np.testing.assert_allclose(got, expected, atol=1e-3)


OPTIMIZERS = {
    "SGD": lambda o, p: o.SGD(p, lr=0.3),
    "momentum": lambda o, p: o.SGD(p, lr=0.05, momentum=0.9),
    "Adam": (lambda o, p: o.Adam(p, lr=0.01)),
    "AdamW": (lambda o, p: o.AdamW(p, lr=0.01, weight_decay=0.1)),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_a_master_copy_trains_as_in_pytorch(name: str) -> None:
    t = trained(lambda net: some(net, master=True), OPTIMIZERS[name](optim, None))
    simulation = Simulation(t.state_dict())
    rule = OPTIMIZERS[name](torch.optim, simulation.require(*NAMES))

    def step_of(loss: Any, step: int) -> None:
        rule.zero_grad()
        loss.backward()
        rule.step()

    compared(t, simulation, step_of)
    for layer in WEIGHTS:
        scales = along(simulation.scales[layer].numpy(), simulation.weights[layer])
        integers = np.rint(t.state_dict()[f"backbone.{layer}.weight"] / scales).clip(-128, 127)
        np.testing.assert_array_equal(integers, simulation.integers(layer).detach().numpy())


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_8_bit_weights_train_as_in_pytorch(name: str) -> None:
    t = trained(some, OPTIMIZERS[name](optim, None))
    simulation = Simulation(t.state_dict())
    rule = OPTIMIZERS[name](torch.optim, simulation.require(*NAMES))

    def step_of(loss: Any, step: int) -> None:
        before = {layer: simulation.integers(layer).detach() for layer in WEIGHTS}
        rule.zero_grad()
        loss.backward()
        rule.step()
        for layer in WEIGHTS:
            w, q = simulation.weights[layer], before[layer]
            change = (w.detach() / along(simulation.scales[layer], w) - q).numpy()
            whole = np.floor(change)
            up = change - whole > random_numbers(f"backbone.{layer}.weight", step + 1, change.shape)
            w.data = (q + torch.tensor(whole + up)).clamp(-128, 127) * along(simulation.scales[layer], w)

    compared(t, simulation, step_of)
    for layer in WEIGHTS:
        got = t.state_dict()[f"backbone.{layer}.weight"]
        assert got.dtype == np.int8 and (got != arrays()[f"{layer}.weight"]).mean() > 0.3
        np.testing.assert_array_equal(got, simulation.integers(layer).detach().numpy())


def test_some_input_channels_train_as_in_pytorch() -> None:
    """With a master copy of the pointwise weights; the depthwise ones train as integers."""
    chosen = {"pointwise": [0, 3, 6], "depthwise": [1, 2]}

    def choose(backbone: quant.Network) -> None:
        layers = dict(backbone.named_modules())
        layers["pointwise"].use_master_copy()
        for name, channels in chosen.items():
            nn.update_channels(layers[name], channels)

    t = trained(choose, optim.SGD(lr=0.3))
    first = t.state_dict()
    simulation = Simulation(first)
    rule = torch.optim.SGD(simulation.require("pointwise.weight", "depthwise.weight"), lr=0.3)

    def step_of(loss: Any, step: int) -> None:
        before = simulation.integers("depthwise").detach()
        rule.zero_grad()
        loss.backward()
        for name, axis in (("pointwise", 1), ("depthwise", 0)):
            gradient = torch.zeros_like(simulation.weights[name])
            some = (slice(None),) * axis + (chosen[name],)
            gradient[some] = simulation.weights[name].grad[some]
            simulation.weights[name].grad = gradient
        rule.step()
        w = simulation.weights["depthwise"]
        change = (w.detach() / along(simulation.scales["depthwise"], w) - before).numpy()
        whole, up = np.floor(change), np.zeros(change.shape, bool)
        part = change[chosen["depthwise"]]
        up[chosen["depthwise"]] = part - np.floor(part) > random_numbers(
            "backbone.depthwise.weight", step + 1, part.shape
        )
        q = (before + torch.tensor(whole + up)).clamp(-128, 127)
        w.data = q * along(simulation.scales["depthwise"], w)

    compared(t, simulation, step_of)
    got = t.state_dict()
    np.testing.assert_array_equal(
        got["backbone.depthwise.weight"], simulation.integers("depthwise").detach().numpy()
    )
    scales = along(simulation.scales["pointwise"].numpy(), simulation.weights["pointwise"])
    np.testing.assert_array_equal(
        np.rint(got["backbone.pointwise.weight"] / scales).clip(-128, 127),
        simulation.integers("pointwise").detach().numpy(),
    )
    for name, axis in (("pointwise", 1), ("depthwise", 0)):
        others = np.delete(got[f"backbone.{name}.weight"], chosen[name], axis)
        np.testing.assert_array_equal(others, np.delete(first[f"backbone.{name}.weight"], chosen[name], axis))


def random_numbers(name: str, step: int, shape: tuple[int, ...]) -> Any:
    """From 0 to 1, in the order in which the weights are stored."""
    order = (0, 1) if len(shape) == 2 else (2, 3, 0, 1) if shape[1] == 1 else (0, 2, 3, 1)
    bits = rand_u32(zlib.crc32(name.encode()), step, np.arange(np.prod(shape), dtype=np.uint32))
    stored = (np.asarray(bits, np.uint32) >> 8).reshape([shape[k] for k in order]) * 2.0**-24
    return stored.transpose(np.argsort(order))


def test_what_does_not_train_is_no_state() -> None:
    t = trained(some, optim.Adam(lr=0.01))
    assert {k for k in t.state_dict() if k.startswith("backbone")} >= {f"backbone.{n}" for n in NAMES}
    assert not any(k.startswith("backbone.first") for k in t.state_dict())


def test_options_of_training(tmp_path: Any) -> None:
    """Clipping, the guard of gradients, which leaves integers as they are, and sums over small batches."""
    t = trained(some, optim.SGD(lr=0.05), clip_grad_norm=1.0, guard="gradients", accumulate="mean")
    x, label = images()
    before = t.state_dict()
    with pytest.raises(Exception, match="finite"):
        t.train_step(np.full((BATCH, 3, 9, 9), np.nan, np.float32), label[:BATCH])
    for k, v in t.state_dict().items():
        np.testing.assert_array_equal(v, before[k])
    losses = [t.train_step(x[k : k + BATCH], label[k : k + BATCH]) for k in range(0, 30 * BATCH, BATCH)]
    assert np.mean(losses[-5:]) < np.mean(losses[:5])
    t.accumulate(x[:BATCH], label[:BATCH])
    t.apply()
    t.save(tmp_path / "weights.npz")
    other = trained(some, optim.SGD(lr=0.05), clip_grad_norm=1.0, guard="gradients", accumulate="mean")
    other.load(tmp_path / "weights.npz")
    np.testing.assert_array_equal(other.predict(x[:BATCH]), t.predict(x[:BATCH]))


def test_rejected() -> None:
    with pytest.raises(
        ModelError, match=r"ema: the parameter 'backbone.depthwise.weight' is quantised, and has no"
    ):
        trained(some, optim.SGD(lr=0.05), ema=optim.EMA(0.9))
    net = loaded()
    with pytest.raises(ModelError, match="layer 'sum' has no 8-bit weights to copy"):
        dict(net.named_modules())["sum"].use_master_copy()
    net(ag.Input("x", (1, 3, 9, 9)))
    with pytest.raises(ModelError, match=r"requires_grad: 'first.weight' is in a model already"):
        dict(net.named_modules())["first"].weight.requires_grad = True


@pytest.mark.parametrize("master", [False, True])
def test_trained_weights_are_loaded_into_a_network_that_does_not_train(master: bool) -> None:
    t = trained(lambda net: some(net, master), optim.SGD(lr=0.05))
    x, label = images()
    for k in range(0, 10 * BATCH, BATCH):
        t.train_step(x[k : k + BATCH], label[k : k + BATCH])

    def load(backbone: quant.Network) -> None:
        if master:
            for name in WEIGHTS:
                dict(backbone.named_modules())[name].use_master_copy()
        names = {
            k.removeprefix("backbone."): v for k, v in t.state_dict().items() if k.startswith("backbone.")
        }
        backbone.load_state_dict(names, strict=False)

    frozen = trained(load, optim.SGD(lr=0.05))
    assert not any(k.startswith("backbone") for k in frozen.state_dict())
    head = {k: v for k, v in t.state_dict().items() if k.startswith("head")}
    frozen.load_state_dict({**frozen.state_dict(), **head})
    np.testing.assert_array_equal(frozen.predict(x[:BATCH]), t.predict(x[:BATCH]))


def test_check_says_which_gradients_pass_rounding() -> None:
    net = Net(loaded())
    some(net.backbone)
    model = ag.Model.supervised(net, (BATCH, 3, 9, 9), nn.CrossEntropyLoss(), optim.SGD(lr=0.05))
    report, good = check(model, "net")
    assert good and "all other gradients agree" in report
    names = ", ".join(sorted(f"backbone.{name}" for name in NAMES))
    assert (
        "not compared, as their gradients pass the rounding to 8-bit integers unchanged or belong to a hook or "
        f"Function: {names}" in report
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([1.5], 0.1), "the values must be int8, not float64[1]"),
        (([300], 0.1), "the values must be int8, not int64[1]"),
        ((np.zeros((2, 3), np.int8), [0.1] * 3), "3 scales for the 2 elements along axis 0"),
        (
            (np.zeros((2, 3), np.int8), [0.1, 0.0]),
            "scale 0.0: scales must be finite and greater than 0, from 2^-126 to 2^126",
        ),
        ((np.zeros((2, 3), np.int8), 0.1, 2), "the values have no axis 2, only 2"),
    ],
)
def test_rejected_parameters(arguments: Any, message: str) -> None:
    with pytest.raises(ShapeError) as error:
        nn.QuantizedParameter(*arguments)
    assert str(error.value) == f"QuantizedParameter: {message}"


@pytest.mark.parametrize("value", [0.5, 128, np.nan])
def test_weights_that_are_no_8_bit_integers_are_not_loaded(value: float) -> None:
    net = loaded()
    with pytest.raises(ModelError, match=f"load_state_dict: first.weight has 8-bit integers, got {value:g}"):
        net.load_state_dict({"first.weight": np.full(SHAPES["first"], value)}, strict=False)
