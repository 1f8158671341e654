"""The example import_torch: its model.py is what export.py and the importer make, and it trains as in PyTorch."""

import runpy

import numpy as np
import pytest
import torch
from checkout import ROOT

from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.pytorch.convert import convert
from autodiff_gen.frontends.pytorch.export import saved
from autodiff_gen.frontends.pytorch.pt2 import read
from autodiff_gen.model.loader import load_model

FOLDER = ROOT / "examples" / "import_torch"
pytestmark = [pytest.mark.torch, pytest.mark.slow]


@pytest.fixture(scope="module")
def network():
    return runpy.run_path(str(FOLDER / "export.py"))["network"]()


def test_the_model_is_what_is_imported(network):
    program = convert(read(saved(network, (1, 3, 96, 96)), "net"), "net")
    text, program = network_source(program)
    assert text in (FOLDER / "model.py").read_text()
    with np.load(FOLDER / "weights.npz") as file:
        for name, weight in program.weights.items():
            np.testing.assert_array_equal(file[name].astype(weight.array.dtype), weight.array, err_msg=name)


@pytest.mark.cc
def test_three_steps_are_those_of_pytorch(network):
    trainer = load_model("import_torch")[0].on_host("host,ref")
    optimizer = torch.optim.SGD([p for p in network.parameters() if p.requires_grad], lr=0.005)
    generator = np.random.default_rng(1)
    for label in (9, 3, 9):
        x = generator.integers(0, 256, (1, 96, 96, 3), np.uint8)
        image = (torch.from_numpy(x).permute(0, 3, 1, 2).float() - 128) / 64
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(network(image), torch.tensor([label]))
        loss.backward()
        optimizer.step()
        assert trainer.train_step(x, np.array([label], np.uint8)) == pytest.approx(loss.item(), rel=1e-4)
    state = trainer.state_dict()
    for name, theirs in network.state_dict().items():
        np.testing.assert_allclose(state[name], theirs.numpy(), rtol=1e-4, atol=1e-5, err_msg=name)
