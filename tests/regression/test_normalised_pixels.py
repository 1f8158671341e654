"""A group normalisation whose groups are of the pixels of each channel of a convolution, for which no layout could be
assigned: the weight varies along all axes of a group except axes of extent 1."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen import optim


@pytest.mark.cc
@pytest.mark.torch
def test_training_equals_pytorchs(rng: np.random.Generator) -> None:
    import torch

    arrays = {"k": (6, 2, 3, 3), "w": (12,), "b": (12,)}
    first = {name: rng.normal(size=shape).astype(np.float32) for name, shape in arrays.items()}
    x = ag.Input("x", (1, 2, 5, 6))
    k, w, b = (ag.Param(name, value) for name, value in first.items())
    y = F.group_norm(F.reshape(F.conv2d(x, k), (6, 12, 1)), 2, w, b)
    loss = F.mean(F.square(F.tanh(y)))
    trainer = ag.Model([x], [], {"y": y}, loss, optim.SGD(lr=0.1)).on_host()
    of = {name: torch.tensor(value, requires_grad=True) for name, value in first.items()}
    image = rng.normal(size=(1, 2, 5, 6)).astype(np.float32)
    rows = torch.nn.functional.conv2d(torch.tensor(image), of["k"]).reshape(6, 12, 1)
    expected = torch.nn.functional.group_norm(rows, 2, of["w"], of["b"]).tanh().square().mean()
    expected.backward()
    assert trainer.train_step(image) == pytest.approx(expected.item(), rel=1e-5)
    for name, value in of.items():
        after = value.detach() - 0.1 * value.grad
        np.testing.assert_allclose(trainer.state_dict()[name], after, rtol=1e-4, atol=1e-6, err_msg=name)
