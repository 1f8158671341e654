"""What `from_torch` cannot import, and wrong arguments of it: one line each."""

import pytest
import torch

import autodiff_gen as ag
from autodiff_gen.model.loader import load_model

pytestmark = pytest.mark.torch


def half_precision(self, x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return x @ x


class Bad(torch.nn.Module):
    def __init__(self, forward, **weights):
        super().__init__()
        self.function = forward
        self.register_buffer("running_var", torch.zeros(()))
        self.lstm = torch.nn.LSTM(4, 4, proj_size=2)
        for name, tensor in weights.items():
            setattr(self, name, torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point()))

    def forward(self, x):
        return self.function(self, x)


BAD = {
    "half precision": (
        half_precision,
        "computes in half precision; export the network without torch.autocast",
    ),
    "no elements": (
        lambda self, x: x + x[:, 4:].sum(),
        "computes with a tensor without elements; leave it out",
    ),
    "no elements to sum over": (
        lambda self, x: torch.einsum("ni,ij->nj", x[:, 4:], torch.zeros(0, 4)),
        "computes with a tensor without elements; leave it out",
    ),
    "no elements at all": (
        lambda self, x: (x, x[:, 4:]),
        "Bad returns a tensor without elements; leave it out",
    ),
    "unknown": (
        lambda self, x: torch.special.i0(x) + torch.linalg.det(x @ x.T) + torch.special.i0(x),
        r"aten.special_i0 has no counterpart \(test_from_torch_rejected.py:\d+\); aten._linalg_det has no counterpart"
        r"|aten.special_i0 has no counterpart.*; aten.linalg_det has no counterpart",
    ),
    "alternative": (
        lambda self, x: torch.inverse(x),
        r"aten.inverse has no counterpart; solve before the model, or iterate in F.scan \(test_",
    ),
    "random integers": (
        lambda self, x: x + torch.randint(0, 5, (4, 4)),
        r"aten.randint has no counterpart; use floor\(rand\(size\) \* n\), or draw in the data pipeline \(test_",
    ),
    "random integers of a shape": (
        lambda self, x: x + torch.randint_like(x, 5),
        r"aten.randint_like has no counterpart; use floor\(rand_like\(x\) \* n\), or draw in the data pipeline \(",
    ),
    "factorization": (
        lambda self, x: torch.linalg.cholesky(x.T @ x),
        r"aten.linalg_cholesky has no counterpart; factor constants before the model; of a normal distribution use",
    ),
    "random, if decomposed": (
        lambda self, x: torch.nn.functional.alpha_dropout(x, 0.5, True),
        r"aten.alpha_dropout has no counterpart; use F.dropout \(test_",
    ),
    "constant": (lambda self, x: torch.ones(3), "Bad: the result 'ones' depends on no input; leave it out"),
    "nothing": (lambda self, x: None, "Bad returns no tensor"),
    "branch": (lambda self, x: x if x.sum() > 0 else -x, "control flow depends on data"),
    "mask": (
        lambda self, x: x[x > 0],
        r"aten.index.Tensor has a mask, so that the size of the result depends on data; use torch.where \([^;]*$",
    ),
    "cond": (
        lambda self, x: torch.cond(x.sum() > 0, torch.sin, torch.cos, (x,)),
        "control flow depends on data; use torch.where, or fix the condition before the export",
    ),
    "item": (lambda self, x: x * x.sum().item(), "control flow (that )?depends on data"),
    "input": (lambda self, x: x.add_(1) * 2, r"changes its input 'x' in place; change a clone\(\)"),
    "projection": (
        lambda self, x: self.lstm(x[:, None])[0],
        "lstm.input has a proj_size; train an LSTM without it, and a linear layer after it, in its place",
    ),
    "volumes": (
        lambda self, x: torch.nn.functional.avg_pool3d(x[:, None, None, None], (1, 1, 2)),
        "averages over several of three axes; use avg_pool2d",
    ),
    "indices": (
        lambda self, x: torch.nn.functional.max_pool2d_with_indices(x[:, None, None], (1, 2)),
        "has further results without counterpart; use only the first",
    ),
    "packed": (
        lambda self, x: self.lstm(torch.nn.utils.rnn.pack_padded_sequence(x[:, None], torch.ones(4), True))[
            1
        ][0],
        r"cannot be exported by torch.export for input=\(4, 4\): has packed sequences; pad them",
    ),
    "double": (lambda self, x: x.double(), "aten.to.dtype converts to float64; use float32"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_cannot_be_imported_is_one_line(name):
    function, message = BAD[name]
    with pytest.raises(ag.AutodiffError, match=message) as error:
        ag.from_torch(Bad(function), (4, 4))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("dtype", ("float64", "float16", "bfloat16", "int32"))
def test_weights_of_other_dtypes(dtype):
    module = Bad(lambda self, x: x * self.w, w=torch.ones(4).to(getattr(torch, dtype)))
    with pytest.raises(ag.AutodiffError, match=f"'w' is {dtype}"):
        ag.from_torch(module, (1, 4))


def test_arguments():
    for module, example, message in (
        (3, (1, 4), "expected a torch.nn.Module, got int"),
        (torch.nn.Linear(4, 2), "x", "input='x' is neither a shape nor example tensors"),
        (
            torch.nn.Linear(4, 2).double(),
            torch.zeros(1, 4).double(),
            r"the input 'input' is float64; convert it .*, and a network in another dtype by net.float\(\)",
        ),
        (
            torch.nn.Linear(4, 2),
            (5, 3),
            r"Linear cannot be exported by torch.export for input=\(5, 3\): .*5, 3",
        ),
    ):
        with pytest.raises(ag.AutodiffError, match=message):
            ag.from_torch(module, example)


def test_a_file_of_pytorch_is_no_model_yet(tmp_path):
    (tmp_path / "net.py").write_text("import torch\nmine = torch.nn.Linear(4, 2)\n")
    message = r"defines no `model`, but a network of PyTorch: .*ag.from_torch\(mine, input=SHAPE\)"
    with pytest.raises(ag.AutodiffError, match=message):
        load_model(str(tmp_path / "net.py"))
