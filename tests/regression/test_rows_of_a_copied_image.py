"""The gradient of a convolution's weights by blocks of channels, under a rule that reads it, read a copy of a broadcast
gradient as an image whose channels are next to each other; the copy was the transpose of that."""

import numpy as np
import pytest

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.host.trainer import host_trainer

pytestmark = [pytest.mark.cc, pytest.mark.torch]


def test_a_convolution_before_a_mean_trains_as_pytorchs(rng: np.random.Generator) -> None:
    import torch

    def network(nn):  # type: ignore[no-untyped-def]
        layers = nn.Conv2d(3, 12, 1), nn.AvgPool2d(2), nn.Conv2d(12, 12, 1), nn.AdaptiveAvgPool2d(1)
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(12, 3))

    model = ag.Model.supervised(
        network(nn), input=(1, 3, 4, 4), loss=nn.CrossEntropyLoss(), optimizer=optim.RMSprop(lr=0.01)
    )
    trainer, twin = host_trainer(model), network(torch.nn)
    own = trainer.state_dict()
    twin.load_state_dict({k: torch.tensor(own[k]).reshape(v.shape) for k, v in twin.state_dict().items()})
    update = torch.optim.RMSprop(twin.parameters(), lr=0.01)
    for _ in range(3):
        x, label = rng.standard_normal((1, 3, 4, 4)).astype(np.float32), rng.integers(0, 3, 1)
        loss = torch.nn.functional.cross_entropy(twin(torch.tensor(x)), torch.tensor(label))
        update.zero_grad()
        loss.backward()
        update.step()
        assert trainer.train_step(x, label) == pytest.approx(loss.item(), rel=1e-4)
    for name, value in twin.state_dict().items():
        np.testing.assert_allclose(trainer.state_dict()[name], value, rtol=1e-3, atol=1e-5, err_msg=name)
