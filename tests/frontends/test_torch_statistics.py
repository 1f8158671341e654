"""Running statistics of PyTorch, and what reads, changes or updates them: the generated C trains and predicts as the
module does."""

import pytest
import torch
from module_training import trains_and_predicts_as_its_module
from torch import nn
from torch.nn import functional as F

pytestmark = [pytest.mark.torch, pytest.mark.cc]


class Stepped(nn.Module):
    """A layer that is also called with weights after steps by its gradient, as by SAM and MAML."""

    def __init__(self, steps, **options):
        super().__init__()
        self.net, self.steps = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3, **options)), steps

    def forward(self, x):
        moved = own = dict(self.net.named_parameters())
        for _ in range(self.steps):
            loss = torch.func.functional_call(self.net, moved, (x,)).square().mean()
            steps = torch.autograd.grad(loss, list(moved.values()), create_graph=True)
            moved = {n: moved[n] + 0.05 * g for n, g in zip(own, steps, strict=True)}
        return self.net(x.flip(1)) + torch.func.functional_call(self.net, moved, (x,))


class StatisticsRead(nn.Module):
    """Running statistics that are read between two updates, by a call in evaluation mode and by a layer's copy; one
    update comes from a call whose result nobody needs."""

    def __init__(self, norm):
        super().__init__()
        self.net, self.norm = nn.Linear(6, 3), norm

    def forward(self, x):
        z = self.net(x)
        with torch.no_grad():
            self.norm(2 * z)
        between = self.norm.running_mean.clone()
        y = self.norm(z)
        self.norm.eval()
        y = y + self.norm(z * between)
        self.norm.train(self.training)
        copies = {n: t.clone() for n, t in self.norm.named_buffers()}
        return y * torch.func.functional_call(self.norm, copies, (3 * z,))


class Normal(nn.Module):
    """A normalisation layer, and what reads or changes its statistics."""

    def __init__(self, change, **options):
        super().__init__()
        self.net, self.norm, self.change = nn.Linear(6, 3), nn.BatchNorm1d(3, **options), change

    def forward(self, x):
        return self.change(self.norm, self.net(x))


def changed_before(norm, z):
    if norm.training:
        norm.running_mean.mul_(0.5)
    return norm(z)


def part_read(norm, z):
    part = norm.running_mean[1:2]
    return norm(z) + part


def counter_read(norm, z):
    return norm(z) / (1 + norm.num_batches_tracked)


class OfMode(nn.Module):
    """Running statistics of two channels."""

    def __init__(self, change):
        super().__init__()
        self.net, self.other, self.change = nn.Linear(6, 3), nn.Linear(6, 3), change
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("var", torch.ones(2))

    def forward(self, x):
        return self.change(self, x)


def batch_statistics(of_mode):
    def normalised(m, x):
        parts = F.batch_norm(x.unflatten(1, (2, 3)), m.mean, m.var, training=of_mode(m))
        return m.net(parts.flatten(1)) + m.other(x)

    return normalised


def instance_statistics(m, x):
    parts = F.instance_norm(x.unflatten(1, (2, 3)), m.mean, m.var, use_input_stats=True)
    return m.net(parts.flatten(1)) + m.other(x)


def statistics_updated_and_read(m, x):
    parts = F.batch_norm(x.unflatten(1, (2, 3)), m.mean, m.var, training=True)
    return m.net(parts.flatten(1)) + m.other(x) * m.mean.sum()


NETWORKS = {
    "a step before": lambda: Stepped(1),
    "steps, momentum=None": lambda: Stepped(2, momentum=None),
    "statistics read": lambda: StatisticsRead(nn.BatchNorm1d(3)),
    "statistics read, no weights": lambda: StatisticsRead(nn.BatchNorm1d(3, affine=False)),
    "statistics changed before": lambda: Normal(changed_before),
    "part of statistics read": lambda: Normal(part_read),
    "counter read": lambda: Normal(counter_read),
    "counter read, momentum=None": lambda: Normal(counter_read, momentum=None),
    "batch statistics always": lambda: OfMode(batch_statistics(lambda m: True)),
    "batch statistics always, in evaluation mode": lambda: OfMode(batch_statistics(lambda m: True)).eval(),
    "batch statistics in evaluation mode": lambda: OfMode(batch_statistics(lambda m: not m.training)),
    "instance statistics always": lambda: OfMode(instance_statistics),
    "statistics updated always, and read": lambda: OfMode(statistics_updated_and_read),
    "momentum=None": lambda: nn.Sequential(nn.BatchNorm1d(6, momentum=None), nn.Linear(6, 3)),
}


# PyTorch has the gradients of "part of statistics read" as a module, but not as a program of torch.export.
@pytest.mark.parametrize("name", NETWORKS)
def test_the_generated_c_trains_and_predicts_as_the_module(name):
    torch.manual_seed(3)
    trains_and_predicts_as_its_module(NETWORKS[name](), name, of_program=name != "part of statistics read")
