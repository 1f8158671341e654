"""Networks of PyTorch as ours: outputs, loss, gradients and training steps, and what carries over."""

import numpy as np
import pytest
import torch
from torch_networks import NETWORKS

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.check.original import comparisons
from autodiff_gen.device.weights import write_weights
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.pytorch.convert import convert
from autodiff_gen.frontends.pytorch.export import originals, saved
from autodiff_gen.frontends.pytorch.pt2 import read
from autodiff_gen.model.loader import load_model

pytestmark = pytest.mark.torch


def imported(name):
    torch.manual_seed(3)
    make, example = NETWORKS[name]
    file = saved(make(), example)
    return convert(read(file, name), name), file


@pytest.mark.parametrize("name", NETWORKS)
def test_values_gradients_and_steps(name):
    program, file = imported(name)
    assert all(shape[0] is None for n, shape in program.shapes.items() if n in program.inputs), "a free batch"
    wrong = [row for row in comparisons(program, file, name) if not row.good]
    assert not wrong, network_source(program)[0]


class Carried(torch.nn.Module):
    """A frozen part in evaluation mode, a tied weight, a buffer, a constant, dropout, and an unused parameter."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(
            torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4), torch.nn.Dropout(), torch.nn.Linear(4, 4)
        )
        self.norm = torch.nn.BatchNorm1d(4, momentum=0.2)
        self.again = torch.nn.Linear(4, 4)
        self.again.weight = self.body[0].weight
        self.register_buffer("shift", torch.arange(4.0))
        self.constant = torch.arange(4.0)
        self.unused = torch.nn.Parameter(torch.zeros(3))
        self.body.eval().requires_grad_(False)
        self.again.weight.requires_grad_(True)

    def forward(self, x):
        return self.norm(self.again(self.body(x)) + self.shift) * self.constant


def test_modes_frozen_parameters_ties_and_buffers_carry_over():
    torch.manual_seed(2)
    module = Carried()
    file = saved(module, (1, 4))
    text = network_source(convert(read(file, "Carried"), "Carried"))[0].partition("net = ")[2]
    for line in (
        "net.body.eval()",
        "net.again.weight = net.body[0].weight",
        "net.body[1].requires_grad_(False)",
    ):
        assert line in text.splitlines(), text
    net = ag.from_torch(module, (1, 4))
    parameters = dict(module.named_parameters())
    trained = {name: p.requires_grad for name, p in net.named_parameters()}
    assert trained == {name: parameters[name].requires_grad for name in parameters if name != "unused"}
    assert {n for n, _ in net.named_buffers()} == {n for n, _ in module.named_buffers()}
    assert isinstance(net.body[1], nn.BatchNorm1d)
    assert (net.body[1].training, net.norm.training, net.norm.momentum) == (False, True, 0.2)


def test_any_number_of_inputs_and_named_results():
    class Sum(torch.nn.Module):
        def forward(self, x, *rest):
            return {"sum": x + sum(rest), "first": x * 2}

    program = convert(read(saved(Sum(), (torch.ones(1, 3),) * 3), "Sum"), "Sum")
    assert [program.shapes[n] for n in program.inputs] == [(None, 3)] * 3
    assert len(program.outputs) == 2


def test_a_network_whose_batch_is_a_number_keeps_it():
    class Fixed(torch.nn.Module):
        def forward(self, x):
            return x.reshape(3, 2, 2).sum(0) * torch.ones(2, 2)

    program = convert(read(saved(Fixed(), (3, 4)), "Fixed"), "Fixed")
    assert program.shapes["x"] == (3, 4)


def changed_view(x):
    y = x * 2
    z = y[:, :2]
    z.add_(1)
    return y + z.sum(1, keepdim=True)


def assigned_parts(x):
    y, h = x * 2, torch.zeros(x.shape[0], 4, 2)
    y[:, 0] = 1.0
    y[:, -2:] = x[:, :2]
    y[:, 1::2] = x[:, :2] + 1
    y[y > 2] = 0.5
    for k in range(4):
        h[:, k] = y[:, k : k + 1] * x[:, :2]
    return h.flatten(1)


def shifted_words(x):
    """As decoders of translators shift their targets: integers, and a number in front."""
    words = (x > 0).long()
    shifted = words.new_zeros(words.shape)
    shifted[:, 1:] = words[:, :-1].clone()
    shifted[:, 0] = torch.tensor(2)
    return x * shifted


def assigned_samples(x):
    y = x * 2
    y[1:3, 2] = x[:2, 0]
    return y


# What takes or assigns parts of tensors or of their batch, or has that on two axes of a result: the batch -> functions.
PARTS = {
    None: (
        lambda x: torch.cat([x, -x])[x.shape[0] :],
        lambda x: x @ x.T,
        lambda x: x[torch.arange(x.shape[0]), (x[:, 0] > 0).long()],
        changed_view,
        assigned_parts,
        shifted_words,
    ),
    4: (
        lambda x: (x[1:] - x[:-1]).flip(0),
        lambda x: x[: x.shape[0] // 2] * x[x.shape[0] // 2 :],
        assigned_samples,
    ),
}


@pytest.mark.parametrize("batch", PARTS)
def test_parts_of_tensors_and_of_the_batch(batch):
    """The batch is that of the example where our functions take a free one only whole; programs with changed views are
    imported without in-place operators, also with a dropout."""
    functions = PARTS[batch]
    parts = Function(lambda x: tuple(f(x) for f in functions))
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), parts)
    ag.from_torch(module, (4, 4))
    original = originals.pop()
    assert original.program.shapes[next(iter(original.program.inputs))] == (batch, 4)
    wrong = [row for row in comparisons(original.program, original.file, "Parts") if not row.good]
    assert not wrong


def test_children_may_have_names_that_python_text_needs():
    """As BERT's attention, whose child is `self`, and graph networks, whose child is `nn`."""

    class Named(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.ones(2))
            self.self = torch.nn.Linear(4, 3)
            self.nn, self.super = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2)

        def forward(self, x):
            h = self.self(x)
            return self.scale * self.nn(h) + self.super(h)

    net = ag.from_torch(torch.nn.Sequential(Named()), (1, 4))
    names = [n for n, _ in net.named_parameters()]
    assert names == [n for n, _ in torch.nn.Sequential(Named()).named_parameters()]


class Positions(torch.nn.Module):
    """Stores its table for the next call."""

    def __init__(self):
        super().__init__()
        self.register_buffer("table", None, persistent=False)
        self.scale = torch.nn.Parameter(torch.ones(1))

    def forward(self, n):
        if self.table is None:
            self.register_buffer("table", torch.arange(n).float(), persistent=False)
        return self.table * self.scale


class Attention(torch.nn.Module):
    """Calls a module that it was given, and does not have."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 4)

    def forward(self, x, positions):
        return self.layer(x) + positions(x.shape[1])


class Positioned(torch.nn.Module):
    def __init__(self, fixed):
        super().__init__()
        self.fixed, self.positions, self.attention = fixed, Positions(), Attention()

    def forward(self, x):
        return self.attention(x.flip(0) if self.fixed else x, self.positions)


@pytest.mark.parametrize("fixed", (False, True))
def test_a_module_that_another_one_is_given_and_that_stores_a_table(fixed):
    """With a number as its batch it is exported twice."""
    module = Positioned(fixed)
    ag.from_torch(module, (4, 4))
    original = originals.pop()
    wrong = [row for row in comparisons(original.program, original.file, "Positioned") if not row.good]
    assert not wrong and module.positions.table is None
    text = network_source(original.program)[0]
    assert "self.positions(" not in text and "forward(self, )" not in text


DECOMPOSED = {
    "rot90": lambda x: torch.rot90(x.reshape(-1, 2, 2), 1, (1, 2)).flatten(1),
    "tensordot": lambda x: torch.tensordot(x, x[0] * torch.eye(4), 1),
    "losses": lambda x: (
        torch.nn.functional.smooth_l1_loss(x, x.flip(1), reduction="none")
        + torch.nn.functional.kl_div(x.log_softmax(1), x.flip(1).softmax(1), reduction="none")
    ),
    "unfold": lambda x: torch.nn.functional.unfold(x.reshape(-1, 1, 2, 2), 2, padding=1).flatten(1),
    "logit": lambda x: torch.logit(torch.sigmoid(x)) + torch.sinc(x),
    "take_along_dim": lambda x: torch.take_along_dim(x, torch.argsort(x, 1), 1),
}


@pytest.mark.parametrize("name", DECOMPOSED)
def test_operators_that_pytorch_decomposes(name):
    """Those without counterpart are computed by others, with a free batch where PyTorch allows it."""
    torch.manual_seed(4)
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), Function(DECOMPOSED[name]))
    ag.from_torch(module, (4, 4))
    original = originals.pop()
    wrong = [row for row in comparisons(original.program, original.file, name) if not row.good]
    assert not wrong, network_source(original.program)[0]


class PartlyTrained(torch.nn.Module):
    """A body that no gradient reaches, but for one result that is detached, and a value of it that is returned."""

    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3))
        self.neck, self.head = torch.nn.Linear(4, 3), torch.nn.Linear(3, 2)

    def forward(self, x):
        with torch.no_grad():
            y = self.body(x)
            z = y.sum(1, keepdim=True)
        w = self.neck(x)
        return self.head(y + w + w.detach() * z), z


def test_what_is_detached_and_without_gradient_stays_so():
    torch.manual_seed(6)
    file = saved(PartlyTrained(), (1, 4))
    program = convert(read(file, "PartlyTrained"), "PartlyTrained")
    wrong = [row for row in comparisons(program, file, "PartlyTrained") if not row.good]
    assert not wrong, network_source(program)[0]


def test_a_program_with_a_changed_view_names_its_other_form():
    program = read(saved(Function(changed_view), (4, 4)), "Function")
    with pytest.raises(ag.AutodiffError, match=r"changes a view in place; save the program after run_decomp"):
        convert(program, "Function")


class Function(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


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
        r"aten.special_i0 has no counterpart \(test_from_torch.py:\d+\); aten._linalg_det has no counterpart"
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


@pytest.mark.cc
def test_the_original_loads_what_pull_writes_of_tied_weights(tmp_path):
    torch.manual_seed(4)
    module = NETWORKS["language_model"][0]()
    net = ag.from_torch(module, torch.zeros(2, 6, dtype=torch.long))
    index, target = ag.Input("index", (2, 6), "s32"), ag.Input("target", (2, 6, 20))
    scores = net(index)
    model = ag.Model([index], [target], {"scores": scores}, nn.MSELoss()(scores, target), optim.SGD(lr=0.5))
    trainer = model.on_host()
    trainer.train_step(np.ones((2, 6), np.int32), np.ones((2, 6, 20), np.float32))
    state = trainer.state_dict()
    write_weights(tmp_path / "weights.pt", trainer.program, state, 1)
    module.load_state_dict(torch.load(tmp_path / "weights.pt"))
    np.testing.assert_array_equal(module.head.weight.detach(), state["tokens.weight"])
    assert module.head.weight is module.tokens.weight and "head.weight" not in state
