"""Buffers and parameters that a forward pass of PyTorch changes: the generated C trains and predicts as the
module does."""

import copy

import pytest
import torch
from module_training import BATCH, Changing, trains_and_predicts_as_its_module
from torch import nn
from torch_changes import older_than_needed

pytestmark = [pytest.mark.torch, pytest.mark.cc]


class Observed(nn.Module):
    """Running statistics of observed values, and the number of steps."""

    def __init__(self, always=False, assigned=False, square=False):
        super().__init__()
        self.net, self.always, self.assigned = nn.Linear(6, 6 if square else 3), always, assigned
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        if self.training or self.always:
            self.steps += 1
            new = self.mean + (x.detach().mean(0) - self.mean) / self.steps
            if self.assigned:
                self.mean = new
            else:
                self.mean.copy_(new)
        return self.net(x - self.mean)


class Followed(nn.Module):
    """A target network, as BYOL has it. form: of its update."""

    def __init__(self, form):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
        self.target, self.form = copy.deepcopy(self.online).requires_grad_(form != "no_grad"), form

    def forward(self, x):
        for p, q in zip(self.online.parameters(), self.target.parameters(), strict=True):
            if self.form == "data":
                q.data = 0.9 * q.data + 0.1 * p.data
            elif self.form == "a list":
                torch._foreach_lerp_([q.data], [p], 0.1)
            elif self.form == "data in place":
                q.data.mul_(0.9).add_(p.data, alpha=0.1)
            else:
                with torch.no_grad():
                    q.lerp_(p, 0.1)
        with torch.no_grad():
            wanted = self.target(x.flip(1))
        return self.online(x) - wanted


class Remembered(nn.Module):
    """A queue of features, a codebook that follows them, and the state of a cell."""

    def __init__(self):
        super().__init__()
        self.net, self.cell = nn.Linear(6, 3), nn.RNNCell(3, 3)
        self.register_buffer("queue", torch.arange(24.0).view(8, 3) / 24)
        self.register_buffer("state", torch.zeros(BATCH, 3))

    def forward(self, x):
        z = self.net(x)
        state = self.cell(z, self.state)
        y = state @ self.queue.clone().T[:3, :3]
        self.queue[:4] = self.queue[4:].clone()
        self.queue[4:] = z.detach()
        self.state = state.detach()
        return y


class Sn(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.net = norm(nn.Linear(6, 3))

    def forward(self, x):
        return self.net(x)


class Moved(nn.Module):
    """Buffers that are assigned one another, and a result that is one of before."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)
        for name in ("last", "mean", "own"):
            self.register_buffer(name, torch.rand(3))
        self.register_forward_hook(hooked)

    def forward(self, x):
        y, own = self.net(x), self.own
        self.mean, self.last = self.last, self.mean
        return y - self.mean + own


def hooked(module, _, y):
    module.own = 0.9 * module.own + y.detach().mean(0)


def part_changed(m, x):
    m.kept[0].add_(1)
    return m.net(x) * m.kept[0]


def changed_with_gradient(m, x):
    y = m.net(x)
    m.kept.mul_(0.9).add_(0.1 * y.mean(0))
    return y - m.kept.detach()


def mapped(m, x):
    return torch.vmap(lambda row: m.net(row) * row[:3] + m.kept[:3])(x)


NETWORKS = {
    "observed in training": Observed,
    "observed always": lambda: Observed(always=True),
    "observed, assigned": lambda: Observed(assigned=True),
    "observed always, assigned": lambda: Observed(always=True, assigned=True),
    "observed, assigned below": lambda: nn.Sequential(Observed(assigned=True)),
    "observed twice": lambda: nn.Sequential(observed := Observed(square=True), observed, nn.Linear(6, 3)),
    "moved": Moved,
    "moved below": lambda: nn.Sequential(Moved()),
    "part changed": lambda: Changing(part_changed, torch.zeros(2, 3)),
    "view changed with gradient": lambda: Changing(changed_with_gradient, torch.zeros(2, 3)[0]),
    "vmap": lambda: Changing(mapped),
    "assigned in training, twice": lambda: nn.Sequential(
        observed := Observed(assigned=True, square=True), observed, nn.Linear(6, 3)
    ),
    "followed, a list": lambda: Followed("a list"),
    "followed, data": lambda: Followed("data"),
    "followed, data in place": lambda: Followed("data in place"),
    "followed, no_grad": lambda: Followed("no_grad"),
    "remembered": Remembered,
    "spectral norm": lambda: Sn(nn.utils.parametrizations.spectral_norm),
    "spectral norm of before": lambda: Sn(nn.utils.spectral_norm),
}


# PyTorch has the gradients of "remembered" as a module, but not as a program of torch.export.
@pytest.mark.parametrize("name", [n for n in NETWORKS if not older_than_needed(n)])
def test_the_generated_c_trains_and_predicts_as_the_module(name):
    torch.manual_seed(3)
    trains_and_predicts_as_its_module(NETWORKS[name](), name, of_program=name != "remembered")
