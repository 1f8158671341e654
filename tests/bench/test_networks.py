"""The networks of the benchmark are the same in autodiff_gen and PyTorch: one file defines both."""

import sys

import numpy as np
import pytest
import torch
from checkout import ROOT

from autodiff_gen.check.torch_oracle import torch_values
from autodiff_gen.host.trainer import host_trainer
from autodiff_gen.targets import installation

sys.path.insert(0, str(ROOT / "bench" / "host"))
import workload

DEEP = ("mobilenetv1", "mobilenetv2")  # their losses after an update only differ by rounding errors


@pytest.mark.torch
@pytest.mark.parametrize("name", installation.networks())
def test_loss_and_update_are_those_of_its_twin(name):
    """In float64, in which nothing but a difference of the formulas is left."""
    w = workload.load(f"{name}b2")
    step = w.model.entries(guard=None)[0]
    given = {"x": w.x[0], "label": w.y[0], "lr": np.float32(1)}
    feeds = {v: given[v.name] for v in step.inputs}
    for node in step.nodes:
        if (state := node.attrs.get("state")) is not None:
            feeds[node.results[0]] = state.stored(w.weights[state.name])
    loss, *updates = torch_values([step.outputs["loss"], *step.updates.values()], feeds, 2)

    twin = w.network(torch.nn).double()
    twin.load_state_dict({**twin.state_dict(), **{k: torch.tensor(v) for k, v in w.weights.items()}})
    trained, before = dict(twin.named_parameters()), {k: v.clone() for k, v in twin.state_dict().items()}
    wanted = torch.nn.functional.cross_entropy(
        twin(torch.tensor(w.x[0]).double()), torch.tensor(w.y[0]).long()
    )
    wanted.backward()
    torch.optim.SGD(twin.parameters(), lr=1).step()
    assert loss == pytest.approx(wanted.item(), rel=1e-12)
    after = twin.state_dict()
    changed = {k for k, v in after.items() if not torch.equal(v, before[k])}
    assert {state.name for state in step.updates} == trained.keys() | changed
    for state, value in zip(step.updates, updates, strict=True):
        change = np.abs(after[state.name].numpy() - w.weights[state.name]).max()
        error = np.abs(state.restored(value) - after[state.name].numpy()).max()
        assert error <= 1e-6 * change + 1e-12, state.name


@pytest.mark.cc
@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in installation.networks() if name not in DEEP])
def test_generated_c_trains_it_as_pytorch_does(name):
    from peer_torch import Torch

    w = workload.load(f"{name}b8")
    trainer = host_trainer(w.model, kernels=["host", "ref"], opt="-O1")
    losses = [trainer.train_step(w.x[i % w.batches], w.y[i % w.batches]) for i in range(5)]
    assert losses == pytest.approx(Torch(w).losses(5), rel=1e-5)
