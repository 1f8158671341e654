"""Recurrent layers of PyTorch are exported without running their steps, as the same program."""

from contextlib import nullcontext

import pytest
import torch
from call_count import calls
from torch import nn
from torch_changes import older_than_states

import autodiff_gen as ag
from autodiff_gen.frontends.pytorch import export
from autodiff_gen.frontends.pytorch.pt2 import read

pytestmark = pytest.mark.torch

LAYERS = {
    "two layers, both directions": (nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True), (2, 5, 3)),
    "projected": (nn.LSTM(3, 4, batch_first=True, proj_size=2), (2, 5, 3)),
    "steps first": (nn.GRU(3, 4), (5, 2, 3)),
    "ReLU, both directions, steps first": (nn.RNN(3, 4, nonlinearity="relu", bidirectional=True), (5, 2, 3)),
    "tanh": (nn.RNN(3, 4, batch_first=True), (2, 5, 3)),
    "without a batch": (nn.LSTM(3, 4), (5, 3)),
}


class Network(nn.Module):
    """All results of a layer."""

    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        y, states = self.layer(x)
        return y, *(states if isinstance(states, tuple) else (states,))


@pytest.mark.parametrize("functional", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_the_program_is_that_of_all_steps(name, functional, monkeypatch):
    layer, shape = LAYERS[name]
    programs = []
    for context in (export.shapes_without_steps, lambda torch: nullcontext()):
        monkeypatch.setattr(export, "shapes_without_steps", context)
        exports = export._Exports(Network(layer), shape)
        made = [read(exports.saved(functional, free), name) for free in (False, True)]
        programs.append([repr(p.nodes if older_than_states(name) else p) for p in made])
    assert programs[0] == programs[1]


def test_the_work_does_not_grow_with_the_steps():
    def work(steps):
        layer = Network(nn.LSTM(3, 4, batch_first=True))
        return lambda: export.saved(layer, (2, steps, 3))

    for steps in (10, 1000):  # sympy caches facts about a number
        work(steps)()
    assert calls(work(1000)) < 1.1 * calls(work(10))


@pytest.mark.parametrize("layer", [nn.GRU(3, 4), nn.LSTM(3, 4), nn.RNN(3, 4)])
def test_an_input_without_a_batch_is_one_line(layer):
    with pytest.raises(ag.AutodiffError, match=r"has an input without a batch; give it one, as by") as e:
        ag.from_torch(Network(layer), (5, 3))
    assert "\n" not in str(e.value)


def test_pytorch_runs_the_steps_again_afterwards():
    layer, x = nn.LSTM(3, 4, batch_first=True), torch.randn(2, 5, 3)
    before = [dict(torch.ops.aten.lstm.input.py_kernels), layer(x)[0]]
    export.saved(Network(layer), (2, 5, 3))
    assert before[0] == torch.ops.aten.lstm.input.py_kernels
    assert torch.equal(before[1], layer(x)[0])
