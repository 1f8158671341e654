"""Every operator of the importer's table beside PyTorch: values and gradients of one network that returns them all."""

import numpy as np
import pytest
import torch
from aten_elementwise import ELEMENTWISE
from aten_layers import LAYERS
from aten_reductions import REDUCTIONS
from aten_shapes import SHAPES
from aten_spectra import SPECTRA
from torch import nn

from autodiff_gen.check.compare_torch import comparisons
from autodiff_gen.frontends.pytorch.aten import TABLE
from autodiff_gen.frontends.pytorch.convert import convert
from autodiff_gen.frontends.pytorch.export import saved
from autodiff_gen.frontends.pytorch.pt2 import read

pytestmark = [pytest.mark.torch, pytest.mark.slow]  # all of it, so that the network is exported once

# x, y: [n, 6]; p: x * x + 0.5; i: images [n, 4, 8, 8]; s: [n, 4, 9]; k: integers [n, 6], 0 or 1; m: the network.
EXPRESSIONS = {**ELEMENTWISE, **REDUCTIONS, **SHAPES, **LAYERS, **SPECTRA}
# Operators that only programs after run_decompositions have.
DECOMPOSED = (
    "_log_softmax _native_batch_norm_legit_functional _native_batch_norm_legit_no_training _softmax _to_copy "
    "_unsafe_view alias_copy constant_pad_nd convolution copy detach_copy diagonal_scatter empty_permuted "
    "fill grid_sampler_2d lift lift_fresh max_pool2d_with_indices native_dropout native_layer_norm nll_loss "
    "nll_loss2d_forward nll_loss_forward norm reflection_pad1d reflection_pad2d replication_pad1d "
    "replication_pad2d scalar_tensor select_scatter slice_scatter"
)
# Operators in tests/support/torch_networks.py, test_from_torch.py, test_torch_programs*.py, test_torch_states.py and
# test_torch_statistics.py.
ELSEWHERE = "batch_norm fill_diagonal isfinite isinf isneginf take_along_dim triu_indices"
OURS = "batch_norm custom_gradient gradient_of"


class Everything(nn.Module):
    def __init__(self):
        super().__init__()
        self.square, self.row = nn.Parameter(torch.randn(6, 6) / 2), nn.Parameter(torch.randn(6) / 2)
        self.kernel, self.words = nn.Parameter(torch.randn(4, 4, 3, 3) / 4), nn.Embedding(3, 6)
        self.norm = nn.InstanceNorm2d(4, affine=True)
        self.dropouts = nn.Sequential(nn.Dropout(0.1), nn.Dropout2d(0.2))
        self.register_buffer("order", torch.tensor([2, 0, 1, 5, 4, 3]), persistent=False)
        self.register_buffer("pi", torch.tensor(np.pi, dtype=torch.float64), persistent=False)
        self.gru, self.lstm = nn.GRU(9, 3, batch_first=True), nn.LSTM(9, 3, batch_first=True)
        self.rnn = nn.RNN(9, 3, batch_first=True)
        self.relu_rnn = nn.RNN(9, 3, batch_first=True, nonlinearity="relu")
        self.gru_cell, self.lstm_cell, self.rnn_cell = nn.GRUCell(6, 6), nn.LSTMCell(6, 6), nn.RNNCell(6, 6)
        self.prelu = nn.PReLU(6)
        self.normed = nn.utils.parametrizations.weight_norm(nn.Linear(6, 3))
        self.relu_cell = nn.RNNCell(6, 6, nonlinearity="relu")

    def forward(self, x, y, i, s, k):
        return tuple(f(x, y, x * x + 0.5, i, s, k, self) for f in EXPRESSIONS.values())


@pytest.fixture(scope="module")
def everything():
    torch.manual_seed(1)
    examples = torch.randn(2, 6), torch.randn(2, 6), torch.randn(2, 4, 8, 8), torch.randn(2, 4, 9)
    file = saved(Everything(), (*examples, torch.randint(0, 2, (2, 6))))
    return read(file, "Everything"), file


def test_values_and_gradients(everything):
    exported, file = everything
    program = convert(exported, "Everything")
    rows = comparisons(program, file, "Everything")
    names = dict(zip([r.tensor for r in rows if r.what == "outputs"], EXPRESSIONS, strict=True))
    wrong = [(row.what, names.get(row.tensor, row.tensor), row.error) for row in rows if not row.good]
    assert not wrong and np.isfinite([row.error for row in rows]).all(), wrong


def test_every_operator_is_there(everything):
    exported, _ = everything
    seen = {".".join(node.target.split(".")[:2]) for node in exported.nodes}
    seen |= {name.removesuffix("_") for name in seen}
    rest = {f"aten.{name}" for name in f"{DECOMPOSED} {ELSEWHERE}".split()}
    assert TABLE.keys() - seen == rest | {f"autodiff_gen.{name}" for name in OURS.split()}
