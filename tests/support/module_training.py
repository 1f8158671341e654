"""A module of PyTorch beside its generated C: three steps of training, then prediction."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import autodiff_gen as ag
from autodiff_gen.check.compare_torch import comparisons
from autodiff_gen.frontends.pytorch.export import originals

STEPS, BATCH = 3, 4  # steps of training, rows of six numbers


class Changing(nn.Module):
    """A layer, a buffer, and a function of the module that may change the buffer."""

    def __init__(self, change: Any, tensor: Any = None) -> None:
        super().__init__()
        self.net, self.change = nn.Linear(6, 3), change
        self.register_buffer("kept", torch.zeros(6) if tensor is None else tensor)

    def forward(self, x: Any) -> Any:
        return self.change(self, x)


def trains_and_predicts_as_its_module(module: Any, name: str, of_program: bool = True) -> None:
    """of_program: PyTorch has the gradients of the program of torch.export too."""
    numbers, mode = np.random.default_rng(4), module.training
    before = {n: t.clone() for n, t in module.state_dict().items()}
    net = ag.from_torch(module, (BATCH, 6))
    assert module.training is mode and all(torch.equal(t, before[n]) for n, t in module.state_dict().items())
    original = originals.pop()
    for given in (module, original.file) if of_program else (module,):
        assert not [row for row in comparisons(original.program, given, name, steps=2) if not row.good]
    assert all(torch.equal(t, before[n]) for n, t in module.state_dict().items())
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9)
    trainer = ag.Model.supervised(net, (BATCH, 6), nn.MSELoss(), optimizer).on_host()
    for _ in range(STEPS):
        x, wanted = (numbers.normal(size=(BATCH, d)).astype(np.float32) for d in (6, 3))
        optimizer.zero_grad()
        loss = F.mse_loss(module(torch.from_numpy(x)), torch.from_numpy(wanted))
        loss.backward()
        optimizer.step()
        assert trainer.train_step(x, wanted) == pytest.approx(loss.item(), rel=1e-4)
    ours, theirs = trainer.state_dict(), module.state_dict()
    shared = original.program.views.keys() | original.program.tied.keys()
    unused = {n for n in theirs if n.endswith("num_batches_tracked")}
    assert theirs.keys() - ours.keys() <= shared | unused
    for n in theirs.keys() & ours.keys():
        np.testing.assert_allclose(ours[n], theirs[n].numpy(), rtol=1e-3, atol=1e-5, err_msg=n)
    predicted, after = trainer.predict(x), trainer.state_dict()
    np.testing.assert_allclose(predicted, module.eval()(torch.from_numpy(x)).detach(), rtol=1e-3, atol=1e-5)
    assert all(np.array_equal(after[n], ours[n]) for n in ours)
