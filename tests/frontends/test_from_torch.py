"""Networks of PyTorch as ours: outputs, loss, gradients and training steps, and what carries over."""

import numpy as np
import pytest
import torch
from torch_networks import NETWORKS

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.check.compare_torch import comparisons
from autodiff_gen.device.weights import write_weights
from autodiff_gen.frontends.imported.source import network_source
from autodiff_gen.frontends.pytorch.convert import convert
from autodiff_gen.frontends.pytorch.export import originals, saved
from autodiff_gen.frontends.pytorch.pt2 import read

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
    """The batch has the example's size where our functions take a free one only whole; programs with changed views are
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
