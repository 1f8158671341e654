"""Values of the forward pass that the backward pass computes again: that training stays PyTorch's, and how large the
arena is beside the bound of the network: each convolution's output once, and the largest working set."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from checkout import ROOT
from training_comparison import trains_as_pytorchs

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.codegen.compiler import compile_model
from autodiff_gen.codegen.program import Program
from autodiff_gen.host.compiler import Compiler, find_compiler
from autodiff_gen.host.trainer import Trainer
from autodiff_gen.ir.origin import BACKWARD
from autodiff_gen.lowering import left_out_stages
from autodiff_gen.lowering.arena.network_bound import network_bound
from autodiff_gen.model.loader import load_file
from autodiff_gen.passes.layout import copy_insertion
from autodiff_gen.passes.memory import rematerialize as memory_rematerialize
from autodiff_gen.passes.memory.rematerialize import rematerialize
from autodiff_gen.targets import board

sys.path.insert(0, str(ROOT / "bench" / "workloads"))
BOARD = str(ROOT / "bench" / "qemu" / "mps2_an386_psram.toml")
CLASSES = 5


def chain(nn: Any) -> Any:
    """Normalised convolutions."""
    layers = []
    for k in range(4):
        layers += [nn.Conv2d(8 if k else 3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU6()]
    return nn.Sequential(*layers, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(8, CLASSES))


def residual(nn: Any) -> Any:
    """Sums of several normalised convolutions."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.norm = nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8)
            self.second = nn.Conv2d(8, 8, 1)

        def forward(self, x: Any) -> Any:
            return x + self.second(nn.functional_silu(self.norm(self.first(x))))

    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        *(Block() for _ in range(3)),
        nn.AvgPool2d(8),
        nn.Flatten(),
        nn.Linear(8, CLASSES),
    )


def tokens(nn: Any) -> Any:
    """Layer normalisation of sums that are stored nowhere, before products and activations of tokens."""

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(nn.LayerNorm(64), nn.ReLU(), nn.Linear(64, 64))

        def forward(self, x: Any) -> Any:
            return x + self.layers(x)

    blocks = (Block() for _ in range(4))
    return nn.Sequential(nn.Flatten(2), nn.Linear(64, 64), *blocks, nn.Flatten(), nn.Linear(192, CLASSES))


def joined(nn: Any) -> Any:
    """A U-Net: joined values are computed again from their parts, which the backward pass reads too."""

    def block(inputs: int, outputs: int) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    class Joined(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Sequential(*block(3, 8))
            self.narrow = nn.Sequential(
                nn.MaxPool2d(2), *block(8, 16), *block(16, 16), nn.Upsample(scale_factor=2)
            )
            self.head = nn.Sequential(*block(24, 8), nn.AvgPool2d(8), nn.Flatten(), nn.Linear(8, CLASSES))

        def forward(self, x: Any) -> Any:
            wide = self.wide(x)
            return self.head(nn.functional_cat([self.narrow(wide), wide], 1))

    return Joined()


def dense(nn: Any) -> Any:
    """A dense block: each layer reads what all before it have made, parts of the last concatenation."""

    class Layer(nn.Module):
        def __init__(self, inputs: int) -> None:
            super().__init__()
            self.norm = nn.BatchNorm2d(inputs)
            self.conv = nn.Conv2d(inputs, 4, 3, padding=1, bias=False)

        def forward(self, x: Any) -> Any:
            return nn.functional_cat([x, self.conv(nn.functional_relu(self.norm(x)))], 1)

    layers = (Layer(8 + 4 * k) for k in range(4))
    head = (nn.BatchNorm2d(24), nn.ReLU(), nn.AvgPool2d(8), nn.Flatten(), nn.Linear(24, CLASSES))
    return nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *layers, *head)


def grouped(nn: Any) -> Any:
    """Convolutions with biases before group normalisations of several groups, whose channels all have weights."""
    layers = [
        *(nn.Conv2d(3, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.ReLU()),
        *(nn.Conv2d(8, 12, 3, padding=1), nn.GroupNorm(4, 12), nn.ReLU()),
    ]
    return nn.Sequential(*layers, nn.AvgPool2d(8), nn.Flatten(), nn.Linear(12, CLASSES))


def gated(nn: Any) -> Any:
    """Squeeze and excitation of an activation that calls a function, as in an EfficientNet: two loops of a layer, with
    kernels between them, need the function's result."""

    class Block(nn.Module):
        def __init__(self, inputs: int) -> None:
            super().__init__()
            self.expand, self.first = nn.Conv2d(inputs, 32, 1, bias=False), nn.BatchNorm2d(32)
            self.conv = nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False)
            self.second = nn.BatchNorm2d(32)
            self.squeeze, self.excite = nn.Linear(32, 4), nn.Linear(4, 32)
            self.project = nn.Conv2d(32, 8, 1, bias=False)

        def forward(self, x: Any) -> Any:
            y = nn.functional_silu(self.first(self.expand(x)))
            y = nn.functional_silu(self.second(self.conv(y)))
            scale = self.excite(nn.functional_silu(self.squeeze(y.mean((2, 3)))))
            return self.project(y * scale[:, :, None, None])

    return nn.Sequential(Block(3), Block(8), Block(8), nn.AvgPool2d(8), nn.Flatten(), nn.Linear(8, CLASSES))


def extremes(nn: Any) -> Any:
    """Points less their largest ones, which compare what functions give, after each layer but the last."""

    class Points(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.third = nn.Linear(3, 64), nn.Linear(64, 64), nn.Linear(64, 64)
            self.head = nn.Linear(64, CLASSES)

        def forward(self, x: Any) -> Any:
            x = x.flatten(2).transpose(1, 2)
            for layer in (self.first, self.second):
                x = nn.functional_silu(layer(x))
                x = x - x.amax(1, keepdim=True)
            return self.head(nn.functional_silu(self.third(x)).amax(1))

    return Points()


def attended(nn: Any) -> Any:
    """Spatial attention, as in a CBAM: the largest of the channels at each place, and all of them after a kernel."""

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16)
            self.place = nn.Conv2d(1, 1, 3, padding=1)
            self.head = nn.Sequential(nn.AvgPool2d(8), nn.Flatten(), nn.Linear(16, CLASSES))

        def forward(self, x: Any) -> Any:
            y = nn.functional_silu(self.norm(self.conv(x)))
            return self.head(y * nn.functional_silu(self.place(y.amax(1, keepdim=True))))

    return Attention()


def model(net: nn.Module, batch: int) -> ag.Model:
    return ag.Model.supervised(
        net, input=(batch, 3, 8, 8), loss=nn.CrossEntropyLoss(), optimizer=optim.SGD(lr=0.1)
    )


def program(made: ag.Model) -> Program:
    return compile_model(made, "model", ["ref"], board.load(BOARD), ram=1 << 24)


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.parametrize("batch", [1, 4])
@pytest.mark.parametrize(
    "network", [chain, residual, tokens, joined, dense, grouped, gated, extremes, attended]
)
def test_training_equals_pytorchs(
    network: Callable[[Any], Any], batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch

    monkeypatch.setattr(nn, "functional_silu", ag.functional.silu, raising=False)
    monkeypatch.setattr(torch.nn, "functional_silu", torch.nn.functional.silu, raising=False)
    monkeypatch.setattr(nn, "functional_cat", ag.functional.cat, raising=False)
    monkeypatch.setattr(torch.nn, "functional_cat", torch.cat, raising=False)
    monkeypatch.setattr(nn, "functional_relu", ag.functional.relu, raising=False)
    monkeypatch.setattr(torch.nn, "functional_relu", torch.relu, raising=False)
    made = program(model(network(nn), batch))
    trainer = Trainer(made, Compiler(find_compiler(None), ""))
    twin = network(torch.nn)
    step = torch.optim.SGD(twin.parameters(), lr=0.1)
    # none of its activations is so near 0 that another rounding has another mask
    rng = np.random.default_rng(16)
    batches = [
        (rng.normal(size=(batch, 3, 8, 8)).astype(np.float32), rng.integers(0, CLASSES, batch))
        for _ in range(4)
    ]
    trains_as_pytorchs(trainer, twin, step, batches)
    with left_out_stages.without([rematerialize.__name__]):
        assert made.arena_words < program(model(network(nn), batch)).arena_words


# Bytes of the arena at batch 1, and the network's bound.
NETWORKS = {
    "dscnn": (326_144, 320_000),
    "mobilenetv2": (2_203_104, 2_108_392),
    "resnet8": (377_728, 360_448),
    "speechnet": (120_560, 112_336),
    "vit": (854_272, 835_584),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_arena_of_networks(name: str) -> None:
    bytes_, bound = NETWORKS[name]
    made = compile_model(load_file(name).made, name, ["armv7em", "ref"], board.load(BOARD), ram=1 << 24)
    assert bound == network_bound(made.entries[0].plan) <= 4 * made.arena_words <= bytes_


def stored(made: ag.Model) -> list[int]:
    """The channels of the images that are stored for the backward pass."""
    plan = program(made).entries[0].plan
    image = 8 * 8 * 4
    first = next(s.number for s in plan.steps if s.node.origin.phase == BACKWARD)
    return [b.bytes // image for b in plan.placed if b.start < first < b.end - 2 and b.bytes >= image]


def test_a_dense_block_stores_its_last_concatenation(monkeypatch: pytest.MonkeyPatch) -> None:
    """And nothing else as large for the backward pass: 24 channels, not 8, 12, 16, 20 and 24."""
    monkeypatch.setattr(nn, "functional_cat", ag.functional.cat, raising=False)
    monkeypatch.setattr(nn, "functional_relu", ag.functional.relu, raising=False)
    assert stored(model(dense(nn), 1)) == [24]


def test_of_a_group_normalisation_its_input_is_stored() -> None:
    assert stored(model(grouped(nn), 1)) == [8, 12]


def test_layers_at_the_peak_have_copies_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """A function's result is computed again for each of two loops, not stored from one to the other; an image less
    for at most as much of the time."""
    monkeypatch.setattr(nn, "functional_silu", ag.functional.silu, raising=False)
    apart = program(model(gated(nn), 1)).arena_words
    monkeypatch.setattr(memory_rematerialize, "_with_fewer_shared", lambda best, *_: best)
    shared = program(model(gated(nn), 1)).arena_words
    assert shared - apart >= 32 * 8 * 8 - 64


def test_only_comparisons_read_what_is_compared_with_its_extreme(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of the first layers stores one image for the backward pass, the function's operand, which
    elements are the largest, a byte for each."""
    monkeypatch.setattr(nn, "functional_silu", ag.functional.silu, raising=False)
    plan = program(model(extremes(nn), 1)).entries[0].plan
    points = 64 * 64 * 4
    first = next(s.number for s in plan.steps if s.node.origin.phase == BACKWARD)
    kept = [b.bytes for b in plan.placed if b.start < first < b.end - 2 and b.bytes >= points // 4]
    assert sorted(kept) == [points // 4] * 2 + [points] * 3


def test_comparisons_are_stored_and_not_what_they_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop of the backward pass does not compare values again that only the forward pass has: of 16 channels the
    convolution's are stored, the derivatives of their activations, and a byte for each comparison, not the activations.
    """
    monkeypatch.setattr(nn, "functional_silu", ag.functional.silu, raising=False)
    plan = program(model(attended(nn), 1)).entries[0].plan
    image = 16 * 8 * 8 * 4
    first = next(s.number for s in plan.steps if s.node.origin.phase == BACKWARD)
    kept = [b.bytes for b in plan.placed if b.start < first < b.end - 2 and b.bytes >= image // 4]
    assert sorted(kept) == [image // 4, image, image]


def test_hosts_have_memory() -> None:
    made = model(chain(nn), 1)
    on_host = compile_model(made, "model", ["ref"], board.load("host"))
    assert on_host.arena_words > program(made).arena_words


def decoder() -> ag.Model:
    """The first layer's output is an image in PyTorch's order, which both passes of the next layer read as copies."""
    layers = [nn.Linear(8, 16 * 7 * 7), nn.ELU(), nn.Unflatten(1, (16, 7, 7))]
    layers += [nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1), nn.ELU()]
    layers += [nn.ConvTranspose2d(8, 1, 4, stride=2, padding=1)]
    return ag.Model.supervised(nn.Sequential(*layers), (1, 8), nn.MSELoss(), optim.SGD(lr=0.1))


@pytest.mark.cc
def test_what_both_passes_copy_is_copied_again_where_that_saves_memory(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    again = program(decoder())
    monkeypatch.setattr(copy_insertion, "is_after_loss", lambda origin: False)
    once = program(decoder())
    assert (once.arena_words - again.arena_words) * 4 >= 4 * 16 * 7 * 7
    both = [Trainer(made, Compiler(find_compiler(None), "")) for made in (again, once)]
    for _ in range(3):
        x, target = (rng.normal(size=s).astype(np.float32) for s in ((1, 8), (1, 1, 28, 28)))
        assert len({trainer.train_step(x, target) for trainer in both}) == 1


def test_each_value_of_a_chain_is_visited_once() -> None:
    """Not once for each path to it: there are 3^60 paths."""

    class Logistic(nn.Module):
        def forward(self, x: Any) -> Any:
            for _ in range(60):
                x = x + 0.01 * (x - x * x)
            return x

    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), Logistic(), nn.Linear(16, CLASSES))
    assert program(model(net, 1)).arena_words > 0
