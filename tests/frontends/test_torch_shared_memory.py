"""Weights of PyTorch that share memory, transposed or not, and tensors that show it: they stay one parameter."""

import pytest
import torch
from module_training import BATCH, trains_and_predicts_as_its_module
from torch import nn

import autodiff_gen as ag

pytestmark = [pytest.mark.torch, pytest.mark.cc]


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 3), nn.Linear(3, 6)
        self.decoder.weight = nn.Parameter(self.encoder.weight.t())
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.decoder(torch.tanh(self.encoder(x))))


class Parts(nn.Module):
    """A view of another shape, rows of it, a frozen one, and two halves of one tensor, which are no views."""

    def __init__(self):
        super().__init__()
        self.net, both = nn.Linear(6, 3), torch.randn(2, 3)
        self.flat = nn.Parameter(self.net.weight.view(2, 9))
        self.rows = nn.Parameter(self.net.weight.data[1:])
        self.register_buffer("frozen", self.net.weight.detach())
        self.first, self.second = nn.Parameter(both[0]), nn.Parameter(both[1])

    def forward(self, x):
        y = self.net(x) + self.flat.square().sum() * self.first + self.rows.sum() * self.second
        return y + x @ (self.frozen * self.net.weight).T


class Shown(nn.Module):
    """Tensors that are no weights and show the memory of one: they change as the optimizer steps."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)
        weight = self.net.weight
        self.transposed, self.listed, self.frozen = weight.t(), [weight.data[1]], {"t": weight.detach().t()}
        self.register_buffer("kept", weight.data[:, :3], persistent=False)
        self.register_buffer("steps", torch.zeros(2))
        self.second, bias = self.steps[1:], self.net.bias.detach()
        self.of_bias = lambda: bias

    def forward(self, x):
        if self.training:
            self.steps.add_(1)
        y = self.net(x) + torch.tanh(x @ self.transposed) * self.second + x @ self.frozen["t"]
        return y @ self.kept + self.listed[0].sum() * self.of_bias()


NETWORKS = {
    "transposed": Transposed,
    "shown": Shown,
    "parts": Parts,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_generated_c_trains_and_predicts_as_the_module(name):
    torch.manual_seed(3)
    trains_and_predicts_as_its_module(NETWORKS[name](), name)


def overlapping():
    module, both = nn.Module(), torch.randn(5, 6)
    module.first, module.second = nn.Parameter(both[:3]), nn.Parameter(both[2:])
    module.forward = lambda x: x @ module.first.T + x @ module.second.T
    return module


def overlapping_tensor():
    module, both = nn.Module(), torch.randn(5, 6)
    module.first, module.second = nn.Parameter(both[:3]), both[2:]
    module.forward = lambda x: x @ module.first.T + x @ module.second.T
    return module


def repeated():
    module = nn.Module()
    module.scale = nn.Parameter(torch.randn(1).expand(6))
    module.forward = lambda x: x * module.scale
    return module


REJECTED = {
    "a part in common": (
        overlapping,
        "the weights '(first|second)' and '(first|second)' have a part of their memory in common; make each of a clone",
    ),
    "a part in common with a tensor": (
        overlapping_tensor,
        r"a tensor shows a part of the memory of 'first', and more \(test_torch_shared_memory.py:\d+\); make it of a",
    ),
    "elements in common": (repeated, "elements of the parameter 'scale' share memory; make it of a clone"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_memory_that_cannot_be_imported_is_one_line(name):
    make, message = REJECTED[name]
    with pytest.raises(ag.AutodiffError, match=message) as error:
        ag.from_torch(make(), (BATCH, 6))
    assert "\n" not in str(error.value)


def test_an_optimizer_of_torch_has_all_parameters_that_share_memory():
    module = Transposed()
    net = ag.from_torch(module, (BATCH, 6))
    for optimizer, message in (
        (
            torch.optim.Adam(module.parameters()),
            "torch.optim.Adam updates the memory that .* share twice in each",
        ),
        (
            torch.optim.SGD(module.parameters(), weight_decay=0.1),
            "torch.optim.SGD updates the memory that .* twice",
        ),
        (
            torch.optim.SGD(module.decoder.parameters()),
            "has 'decoder.weight', but in this group not 'encoder.weight'",
        ),
    ):
        with pytest.raises(ag.AutodiffError, match=f"^optimizer: .*{message}"):
            ag.Model.supervised(net, (BATCH, 6), nn.MSELoss(), optimizer)
