"""Buffers and parameters that a forward pass of PyTorch changes, and weights that share memory: the generated C trains
and predicts as the module does."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

import autodiff_gen as ag
from autodiff_gen.check.original import comparisons
from autodiff_gen.frontends.pytorch.export import originals

pytestmark = [pytest.mark.torch, pytest.mark.cc]

STEPS, BATCH = 3, 4


class Observed(nn.Module):
    """Running statistics of what is observed, and the number of steps."""

    def __init__(self, always=False, assigned=False, square=False):
        super().__init__()
        self.net, self.always, self.assigned = nn.Linear(6, 6 if square else 3), always, assigned
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("steps", torch.tensor(0))

    def forward(self, x):
        if self.training or self.always:
            self.steps += 1
            new = self.mean + (x.detach().mean(0) - self.mean) / self.steps
            if self.assigned:
                self.mean = new
            else:
                self.mean.copy_(new)
        return self.net(x - self.mean)


class Followed(nn.Module):
    """A target network, as BYOL has it. form: of its update."""

    def __init__(self, form):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(6, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 3))
        self.target, self.form = copy.deepcopy(self.online).requires_grad_(form != "no_grad"), form

    def forward(self, x):
        for p, q in zip(self.online.parameters(), self.target.parameters(), strict=True):
            if self.form == "data":
                q.data = 0.9 * q.data + 0.1 * p.data
            elif self.form == "a list":
                torch._foreach_lerp_([q.data], [p], 0.1)
            elif self.form == "data in place":
                q.data.mul_(0.9).add_(p.data, alpha=0.1)
            else:
                with torch.no_grad():
                    q.lerp_(p, 0.1)
        with torch.no_grad():
            wanted = self.target(x.flip(1))
        return self.online(x) - wanted


class Remembered(nn.Module):
    """A queue of features, a codebook that follows them, and the state of a cell."""

    def __init__(self):
        super().__init__()
        self.net, self.cell = nn.Linear(6, 3), nn.RNNCell(3, 3)
        self.register_buffer("queue", torch.arange(24.0).view(8, 3) / 24)
        self.register_buffer("state", torch.zeros(BATCH, 3))

    def forward(self, x):
        z = self.net(x)
        state = self.cell(z, self.state)
        y = state @ self.queue.clone().T[:3, :3]
        self.queue[:4] = self.queue[4:].clone()
        self.queue[4:] = z.detach()
        self.state = state.detach()
        return y


class Stepped(nn.Module):
    """A layer of which weights that took steps by its gradient are called too, as by SAM and MAML."""

    def __init__(self, steps, **options):
        super().__init__()
        self.net, self.steps = nn.Sequential(nn.Linear(6, 3), nn.BatchNorm1d(3, **options)), steps

    def forward(self, x):
        moved = own = dict(self.net.named_parameters())
        for _ in range(self.steps):
            loss = torch.func.functional_call(self.net, moved, (x,)).square().mean()
            steps = torch.autograd.grad(loss, list(moved.values()), create_graph=True)
            moved = {n: moved[n] + 0.05 * g for n, g in zip(own, steps, strict=True)}
        return self.net(x.flip(1)) + torch.func.functional_call(self.net, moved, (x,))


class StatisticsRead(nn.Module):
    """Running statistics that are read between two updates, by a call in evaluation mode and by a layer's copy; one
    update is that of a call whose result nobody needs."""

    def __init__(self, norm):
        super().__init__()
        self.net, self.norm = nn.Linear(6, 3), norm

    def forward(self, x):
        z = self.net(x)
        with torch.no_grad():
            self.norm(2 * z)
        between = self.norm.running_mean.clone()
        y = self.norm(z)
        self.norm.eval()
        y = y + self.norm(z * between)
        self.norm.train(self.training)
        copies = {n: t.clone() for n, t in self.norm.named_buffers()}
        return y * torch.func.functional_call(self.norm, copies, (3 * z,))


class Sn(nn.Module):
    def __init__(self, norm):
        super().__init__()
        self.net = norm(nn.Linear(6, 3))

    def forward(self, x):
        return self.net(x)


class Transposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(6, 3), nn.Linear(3, 6)
        self.decoder.weight = nn.Parameter(self.encoder.weight.t())
        self.out = nn.Linear(6, 3)

    def forward(self, x):
        return self.out(self.decoder(torch.tanh(self.encoder(x))))


class Parts(nn.Module):
    """A view of another shape, rows of it, a frozen one, and two halves of one tensor, which are no views."""

    def __init__(self):
        super().__init__()
        self.net, both = nn.Linear(6, 3), torch.randn(2, 3)
        self.flat = nn.Parameter(self.net.weight.view(2, 9))
        self.rows = nn.Parameter(self.net.weight.data[1:])
        self.register_buffer("frozen", self.net.weight.detach())
        self.first, self.second = nn.Parameter(both[0]), nn.Parameter(both[1])

    def forward(self, x):
        y = self.net(x) + self.flat.square().sum() * self.first + self.rows.sum() * self.second
        return y + x @ (self.frozen * self.net.weight).T


class Shown(nn.Module):
    """Tensors that are no weights and show the memory of one: they change as the optimizer steps."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)
        weight = self.net.weight
        self.transposed, self.listed, self.frozen = weight.t(), [weight.data[1]], {"t": weight.detach().t()}
        self.register_buffer("kept", weight.data[:, :3], persistent=False)
        self.register_buffer("steps", torch.zeros(2))
        self.second, bias = self.steps[1:], self.net.bias.detach()
        self.of_bias = lambda: bias

    def forward(self, x):
        if self.training:
            self.steps.add_(1)
        y = self.net(x) + torch.tanh(x @ self.transposed) * self.second + x @ self.frozen["t"]
        return y @ self.kept + self.listed[0].sum() * self.of_bias()


class Changing(nn.Module):
    def __init__(self, change, tensor=None):
        super().__init__()
        self.net, self.change = nn.Linear(6, 3), change
        self.register_buffer("kept", torch.zeros(6) if tensor is None else tensor)

    def forward(self, x):
        return self.change(self, x)


class Normal(nn.Module):
    """A normalisation layer, and what reads or changes its statistics."""

    def __init__(self, change, **options):
        super().__init__()
        self.net, self.norm, self.change = nn.Linear(6, 3), nn.BatchNorm1d(3, **options), change

    def forward(self, x):
        return self.change(self.norm, self.net(x))


def changed_before(norm, z):
    if norm.training:
        norm.running_mean.mul_(0.5)
    return norm(z)


def part_read(norm, z):
    part = norm.running_mean[1:2]
    return norm(z) + part


def counter_read(norm, z):
    return norm(z) / (1 + norm.num_batches_tracked)


class Moved(nn.Module):
    """Buffers that are assigned one another, and a result that is one of before."""

    def __init__(self):
        super().__init__()
        self.net = nn.Linear(6, 3)
        for name in ("last", "mean", "own"):
            self.register_buffer(name, torch.rand(3))
        self.register_forward_hook(hooked)

    def forward(self, x):
        y, own = self.net(x), self.own
        self.mean, self.last = self.last, self.mean
        return y - self.mean + own


def hooked(module, _, y):
    module.own = 0.9 * module.own + y.detach().mean(0)


class OfMode(nn.Module):
    """What depends on the mode, and running statistics of two channels."""

    def __init__(self, change):
        super().__init__()
        self.net, self.other, self.change = nn.Linear(6, 3), nn.Linear(6, 3), change
        self.register_buffer("mean", torch.zeros(2))
        self.register_buffer("var", torch.ones(2))

    def forward(self, x):
        return self.change(self, x)


def batch_statistics(of_mode):
    def normalised(m, x):
        parts = F.batch_norm(x.unflatten(1, (2, 3)), m.mean, m.var, training=of_mode(m))
        return m.net(parts.flatten(1)) + m.other(x)

    return normalised


def instance_statistics(m, x):
    parts = F.instance_norm(x.unflatten(1, (2, 3)), m.mean, m.var, use_input_stats=True)
    return m.net(parts.flatten(1)) + m.other(x)


def statistics_updated_and_read(m, x):
    parts = F.batch_norm(x.unflatten(1, (2, 3)), m.mean, m.var, training=True)
    return m.net(parts.flatten(1)) + m.other(x) * m.mean.sum()


def other_branch(m, x):
    if m.training:
        x = torch.tanh(x) + 0.5
    y = m.net(x) * (2.0 if m.training else 1.0) + m.other(x)
    return y if m.training else y.softmax(1) * m.var.mean() - m.mean.sum()


class AlwaysTraining(nn.Sequential):
    def train(self, mode=True):
        super().train(mode)
        self[0].train()
        return self


def part_changed(m, x):
    m.kept[0].add_(1)
    return m.net(x) * m.kept[0]


def changed_with_gradient(m, x):
    y = m.net(x)
    m.kept.mul_(0.9).add_(0.1 * y.mean(0))
    return y - m.kept.detach()


def mapped(m, x):
    return torch.vmap(lambda row: m.net(row) * row[:3] + m.kept[:3])(x)


NETWORKS = {
    "observed in training": Observed,
    "observed always": lambda: Observed(always=True),
    "observed, assigned": lambda: Observed(assigned=True),
    "observed always, assigned": lambda: Observed(always=True, assigned=True),
    "observed, assigned below": lambda: nn.Sequential(Observed(assigned=True)),
    "observed twice": lambda: nn.Sequential(observed := Observed(square=True), observed, nn.Linear(6, 3)),
    "a step before": lambda: Stepped(1),
    "steps, momentum=None": lambda: Stepped(2, momentum=None),
    "statistics read": lambda: StatisticsRead(nn.BatchNorm1d(3)),
    "statistics read, no weights": lambda: StatisticsRead(nn.BatchNorm1d(3, affine=False)),
    "statistics changed before": lambda: Normal(changed_before),
    "part of statistics read": lambda: Normal(part_read),
    "counter read": lambda: Normal(counter_read),
    "counter read, momentum=None": lambda: Normal(counter_read, momentum=None),
    "moved": Moved,
    "moved below": lambda: nn.Sequential(Moved()),
    "part changed": lambda: Changing(part_changed, torch.zeros(2, 3)),
    "view changed with gradient": lambda: Changing(changed_with_gradient, torch.zeros(2, 3)[0]),
    "vmap": lambda: Changing(mapped),
    "batch statistics always": lambda: OfMode(batch_statistics(lambda m: True)),
    "batch statistics always, in evaluation mode": lambda: OfMode(batch_statistics(lambda m: True)).eval(),
    "batch statistics in evaluation mode": lambda: OfMode(batch_statistics(lambda m: not m.training)),
    "instance statistics always": lambda: OfMode(instance_statistics),
    "statistics updated always, and read": lambda: OfMode(statistics_updated_and_read),
    "a layer always in training mode": lambda: AlwaysTraining(nn.BatchNorm1d(6), nn.Linear(6, 3)).train(),
    "another branch": lambda: OfMode(other_branch),
    "assigned in training, twice": lambda: nn.Sequential(
        observed := Observed(assigned=True, square=True), observed, nn.Linear(6, 3)
    ),
    "followed, a list": lambda: Followed("a list"),
    "followed, data": lambda: Followed("data"),
    "followed, data in place": lambda: Followed("data in place"),
    "followed, no_grad": lambda: Followed("no_grad"),
    "remembered": Remembered,
    "spectral norm": lambda: Sn(nn.utils.parametrizations.spectral_norm),
    "spectral norm of before": lambda: Sn(nn.utils.spectral_norm),
    "momentum=None": lambda: nn.Sequential(nn.BatchNorm1d(6, momentum=None), nn.Linear(6, 3)),
    "transposed": Transposed,
    "shown": Shown,
    "parts": Parts,
}


@pytest.mark.parametrize("name", NETWORKS)
def test_the_generated_c_trains_and_predicts_as_the_module(name):
    torch.manual_seed(3)
    module, numbers = NETWORKS[name](), np.random.default_rng(4)
    mode = module.training
    before = {n: t.clone() for n, t in module.state_dict().items()}
    net = ag.from_torch(module, (BATCH, 6))
    assert module.training is mode and all(torch.equal(t, before[n]) for n, t in module.state_dict().items())
    original = originals.pop()
    # Of these PyTorch has a gradient as modules, but not as programs of torch.export.
    of_module = name in ("remembered", "part of statistics read")
    for given in (module,) if of_module else (module, original.file):
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


def assigned(m, x):
    m.kept = x.mean(1)
    return m.net(x)


def emptied(m, x):
    m.kept = None
    return m.net(x)


def made(m, x):
    m.new = m.net(x).detach()
    return m.new


def following(m, x):
    m.kept = m.net.weight.detach()
    return m.net(x) - x @ m.kept.T


def shared(m, x):
    m.kept = m.kept + 1
    return m.net(x) * m.other[0]


def with_other(change, other):
    """A module that has one more buffer, or tensor, of its buffer."""
    module = Changing(change)
    if other is None:
        module.register_buffer("new", None)
    else:
        module.register_buffer("other", module.kept) if other is shared else setattr(
            module, "other", other(module.kept)
        )
    return module


def first_changed(m, x):
    m.other.detach()[:2] = x[0, :2].detach()
    return m.net(x) * m.kept[0]


def first_in_a_list(m, x):
    torch._foreach_add_([m.other], 1.0)
    return m.net(x) * m.kept[0]


def first_as_statistics(m, x):
    return F.batch_norm(m.net(x), m.other, torch.ones(3), training=True) * m.kept[0]


def fused(m, x):
    torch._fused_sgd_(
        [m.kept],
        [x[0]],
        [],
        weight_decay=0.0,
        momentum=0.0,
        lr=0.1,
        dampening=0.0,
        nesterov=False,
        maximize=False,
        is_first_step=True,
    )
    return m.net(x) * m.kept[0]


def read_as_integers(m, x):
    return m.net(x) * (m.other > 0).sum()


def clipped(m, x):
    m.net.weight.data.clamp_(-0.1, 0.1)
    return m.net(x)


def flagged(m, x):
    m.kept.fill_(True)
    return m.net(x)


def chosen(m, x):
    y = m.net(x[:, m.kept < 2].sum(1, keepdim=True) * x)
    m.kept.add_(1)
    return y


def overlapping():
    module, both = nn.Module(), torch.randn(5, 6)
    module.first, module.second = nn.Parameter(both[:3]), nn.Parameter(both[2:])
    module.forward = lambda x: x @ module.first.T + x @ module.second.T
    return module


def overlapping_tensor():
    module, both = nn.Module(), torch.randn(5, 6)
    module.first, module.second = nn.Parameter(both[:3]), both[2:]
    module.forward = lambda x: x @ module.first.T + x @ module.second.T
    return module


def repeated():
    module = nn.Module()
    module.scale = nn.Parameter(torch.randn(1).expand(6))
    module.forward = lambda x: x * module.scale
    return module


REJECTED = {
    "a trained weight": (
        lambda: Changing(clipped),
        "changes 'net.weight' in place, which the optimizer trains; compute with a new tensor of it, or",
    ),
    "a mask": (
        lambda: Changing(flagged, torch.tensor(False)),
        "changes 'kept' in place, which is a mask; keep integers in its place",
    ),
    "a state of another shape": (
        lambda: Changing(assigned),
        r"forward assigns 'kept' a tensor of another shape or dtype, float32\[4\] instead of float32\[6\]; keep",
    ),
    "a state without tensor": (
        lambda: Changing(emptied),
        "forward assigns 'kept' no tensor; keep a buffer, and assign zeros in place of None",
    ),
    "a state that is none before": (
        lambda: with_other(made, None),
        "forward assigns 'new', which is no tensor before; give it a tensor of its shape in __init__",
    ),
    "a state in the memory of a weight": (
        lambda: Changing(following, torch.zeros(3, 6)),
        r"forward assigns 'kept' the memory of 'net.weight', with which it would change; assign a clone\(\)",
    ),
    "a state of two names": (
        lambda: with_other(shared, shared),
        "forward assigns 'kept', and 'kept' and 'other' are one tensor; change it in place by copy_",
    ),
    "a part of a state by another tensor": (
        lambda: with_other(first_changed, lambda kept: kept[:4]),
        r"shows a part of 'kept' is changed in place \(test_torch_states.py:\d+\); change that part of 'kept' itself",
    ),
    "a part of a state in a list": (
        lambda: with_other(first_in_a_list, lambda kept: kept[:4]),
        r"shows a part of 'kept' is changed in place \(test_torch_states.py:\d+\); change that part of 'kept' itself",
    ),
    "a part of a state as statistics": (
        lambda: with_other(first_as_statistics, lambda kept: kept[:3]),
        r"shows a part of 'kept' is changed in place \(test_torch_states.py:\d+\); change that part of 'kept' itself",
    ),
    "an operator of optimizers": (lambda: Changing(fused), "aten._fused_sgd_ has no counterpart"),
    "a state as another dtype": (
        lambda: with_other(read_as_integers, lambda kept: kept.view(torch.int32)),
        r"shows the memory of 'kept' as torch.int32 \(test_torch_states.py:\d+\); compute it in forward from the",
    ),
    "a choice by a state": (
        lambda: Changing(chosen),
        "masks or control flow depend on 'kept', which it changes; use torch.where",
    ),
    "a part in common": (
        overlapping,
        "the weights '(first|second)' and '(first|second)' have a part of their memory in common; make each of a clone",
    ),
    "a part in common with a tensor": (
        overlapping_tensor,
        r"a tensor shows a part of the memory of 'first', and more \(test_torch_states.py:\d+\); make it of a clone",
    ),
    "elements in common": (repeated, "elements of the parameter 'scale' share memory; make it of a clone"),
}


@pytest.mark.parametrize("name", REJECTED)
def test_states_that_cannot_be_imported_are_one_line(name):
    make, message = REJECTED[name]
    with pytest.raises(ag.AutodiffError, match=message) as error:
        ag.from_torch(make(), (BATCH, 6))
    assert "\n" not in str(error.value)


class Merged(nn.Module):
    """Adds its second weight to the first in evaluation mode."""

    def __init__(self):
        super().__init__()
        self.net, self.more = nn.Linear(6, 3), nn.Parameter(torch.randn(3, 6))

    def train(self, mode=True):
        if self.training and not mode:
            self.net.weight.data += self.more
        return super().train(mode)

    def forward(self, x):
        return self.net(x) + x @ self.more.T if self.training else self.net(x)


def two_results(m, x):
    return m.net(x) if m.training else (m.net(x), m.net(-x))


def sorted_out(m, x):
    y = m.net(x)
    return y if m.training else y[y.sum(1) > 0]


ONLY_TRAINING = {
    "other weights": (Merged, "its weight 'net.weight' has other values"),
    "other results": (lambda: Changing(two_results), "it returns other results"),
    "a mask": (lambda: Changing(sorted_out), r"it cannot be imported \(.*has a mask, so that the size .*\)"),
}


@pytest.mark.parametrize("name", ONLY_TRAINING)
def test_an_import_says_where_predict_is_not_evaluation_mode(name):
    make, reason = ONLY_TRAINING[name]
    module, x = make(), torch.randn(BATCH, 6)
    wanted = module(x).detach()
    with pytest.warns(
        UserWarning, match=rf"predict computes what forward computes in .*, as in .* mode {reason}$"
    ):
        net = ag.from_torch(module, (BATCH, 6))
    trainer = ag.Model.supervised(net, (BATCH, 6), nn.MSELoss(), ag.optim.SGD(lr=0.1)).on_host()
    np.testing.assert_allclose(trainer.predict(x.numpy()), wanted, rtol=1e-4, atol=1e-5)
    assert torch.equal(module(x), wanted)


def test_an_optimizer_of_torch_has_all_parameters_that_share_memory():
    module = Transposed()
    net = ag.from_torch(module, (BATCH, 6))
    for optimizer, message in (
        (
            torch.optim.Adam(module.parameters()),
            "torch.optim.Adam updates the memory that .* share twice in each",
        ),
        (
            torch.optim.SGD(module.parameters(), weight_decay=0.1),
            "torch.optim.SGD updates the memory that .* twice",
        ),
        (
            torch.optim.SGD(module.decoder.parameters()),
            "has 'decoder.weight', but in this group not 'encoder.weight'",
        ),
    ):
        with pytest.raises(ag.AutodiffError, match=f"^optimizer: .*{message}"):
            ag.Model.supervised(net, (BATCH, 6), nn.MSELoss(), optimizer)
