"""Programs of PyTorch, which compute a loss from layers and inputs, and the comparison of their training with the
generated C."""

import numpy as np
import pytest
import torch
from torch import nn

import autodiff_gen as ag

STEPS, BATCH = 3, 4
X, LABEL, WORDS = (6,), ("label", 3), ("words", 7)  # kinds of inputs


class Program(nn.Module):
    """A loss as a function of layers and inputs."""

    def __init__(self, loss, **layers):
        super().__init__()
        self.loss = loss
        self.layers = nn.ModuleDict(layers)

    def forward(self, *inputs):
        return self.loss(self.layers, *inputs)


def two(inputs=6, outputs=3):
    return nn.Sequential(nn.Linear(inputs, 8), nn.Tanh(), nn.Linear(8, outputs))


def drawn(kinds, numbers):
    shapes = {"label": (BATCH,), "words": (BATCH, 6)}
    return [
        numbers.integers(0, kind[1] if kind[0] == "label" else 5, shapes[kind[0]]).astype(np.int32)
        if kind and isinstance(kind[0], str)
        else numbers.normal(size=(BATCH, *kind)).astype(np.float32)
        for kind in kinds
    ]


def tensors(arrays):
    return [torch.from_numpy(a).long() if a.dtype.kind == "i" else torch.from_numpy(a) for a in arrays]


def check_training(loss, kinds, layers, fixed_batch=False, untrained=()):
    """Compare steps of the generated C with steps of the module. fixed_batch: the batch is a number of the program;
    untrained: parameters without a gradient."""
    torch.manual_seed(3)
    module, numbers = Program(loss, **layers()), np.random.default_rng(4)
    first = drawn(kinds, numbers)
    net = ag.from_torch(module, tuple(tensors(first)))
    batch_axis = None if fixed_batch else 0
    inputs = [
        ag.Input(f"x{k}", a.shape, "s32" if a.dtype.kind == "i" else "f32", batch_axis=batch_axis)
        for k, a in enumerate(first)
    ]
    value = net(*inputs)
    trained = [p for p in module.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=0.1, momentum=0.9)
    trainer = ag.Model(inputs, [], {"loss": value}, value, optimizer).on_host()
    for _ in range(STEPS):
        arrays = drawn(kinds, numbers)
        optimizer.zero_grad()
        theirs = module(*tensors(arrays))
        theirs.backward()
        optimizer.step()
        assert trainer.train_step(*arrays) == pytest.approx(theirs.item(), rel=1e-4)
    ours = trainer.state_dict()
    assert ours.keys() >= {n for n, _ in module.named_parameters()} - set(untrained)
    for n, p in ((n, p) for n, p in module.named_parameters() if n in ours):
        np.testing.assert_allclose(ours[n], p.detach().numpy(), rtol=1e-3, atol=1e-5, err_msg=n)
