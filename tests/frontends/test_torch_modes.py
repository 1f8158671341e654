"""Modules of PyTorch that compute something else in evaluation mode, which `predict` computes."""

import numpy as np
import pytest
import torch
from module_training import BATCH, Changing, trains_and_predicts_as_its_module
from torch import nn

import autodiff_gen as ag

pytestmark = [pytest.mark.torch, pytest.mark.cc]


class OfMode(nn.Module):
    """Another result in each mode, and buffers that only evaluation mode reads."""

    def __init__(self, change):
        super().__init__()
        self.net, self.other, self.change = nn.Linear(6, 3), nn.Linear(6, 3), change
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("var", torch.ones(2))

    def forward(self, x):
        return self.change(self, x)


def other_branch(m, x):
    if m.training:
        x = torch.tanh(x) + 0.5
    y = m.net(x) * (2.0 if m.training else 1.0) + m.other(x)
    return y if m.training else y.softmax(1) * m.var.mean() - m.mean.sum()


class AlwaysTraining(nn.Sequential):
    def train(self, mode=True):
        super().train(mode)
        self[0].train()
        return self


NETWORKS = {
    "a layer always in training mode": lambda: AlwaysTraining(nn.BatchNorm1d(6), nn.Linear(6, 3)).train(),
    "another branch": lambda: OfMode(other_branch),
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_generated_c_trains_and_predicts_as_the_module(name):
    torch.manual_seed(3)
    trains_and_predicts_as_its_module(NETWORKS[name](), name)


class Merged(nn.Module):
    """Adds its second weight to the first in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.net, self.more = nn.Linear(6, 3), nn.Parameter(torch.randn(3, 6))

    def train(self, mode=True):
        if self.training and not mode:
            self.net.weight.data += self.more
        return super().train(mode)

    def forward(self, x):
        return self.net(x) + x @ self.more.T if self.training else self.net(x)


def two_results(m, x):
    return m.net(x) if m.training else (m.net(x), m.net(-x))


def sorted_out(m, x):
    y = m.net(x)
    return y if m.training else y[y.sum(1) > 0]


ONLY_TRAINING = {
    "other weights": (Merged, "its weight 'net.weight' has other values"),
    "other results": (lambda: Changing(two_results), "it returns other results"),
    "a mask": (lambda: Changing(sorted_out), r"it cannot be imported \(.*has a mask, so that the size .*\)"),
}


@pytest.mark.parametrize("name", ONLY_TRAINING)
def test_an_import_says_where_predict_is_not_evaluation_mode(name):
    make, reason = ONLY_TRAINING[name]
    module, x = make(), torch.randn(BATCH, 6)
    wanted = module(x).detach()
    with pytest.warns(
        UserWarning, match=rf"predict computes what forward computes in .*, as in .* mode {reason}$"
    ):
        net = ag.from_torch(module, (BATCH, 6))
    trainer = ag.Model.supervised(net, (BATCH, 6), nn.MSELoss(), ag.optim.SGD(lr=0.1)).on_host()
    np.testing.assert_allclose(trainer.predict(x.numpy()), wanted, rtol=1e-4, atol=1e-5)
    assert torch.equal(module(x), wanted)
