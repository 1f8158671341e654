"""Whole programs of PyTorch with losses inside: the generated C trains as the module does.

Programs of one topic are in test_torch_programs_*.py."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_program import BATCH, LABEL, WORDS, Program, X, check_training, two

import autodiff_gen as ag

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def language_model(m, words):
    """PyTorch's tutorial: time first, and a mask that is not said to be causal."""
    source = words[:, :-1].transpose(0, 1)
    mask = nn.Transformer.generate_square_subsequent_mask(len(source))
    y = m["out"](m["encoder"](m["embedding"](source) * 2.0, mask)).transpose(0, 1)
    return F.cross_entropy(y.flatten(0, 1), words[:, 1:].flatten())


def actor_critic(m, x, action, reward):
    policy = torch.distributions.Categorical(logits=m["policy"](x))
    advantage = reward - m["value"](x).squeeze(-1)
    policy_loss = -(policy.log_prob(action) * advantage.detach()).mean()
    return policy_loss + advantage.pow(2).mean() - 0.01 * policy.entropy().mean()


def gaussian_policy(m, x, action, advantage):
    normal = torch.distributions.Normal(m["mean"](x), F.softplus(m["scale"].weight[0]))
    ratio = normal.log_prob(action).sum(-1).exp()
    return -torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean()


def distilled(m, x, label):
    with torch.no_grad():
        teacher = m["teacher"](x)
    scores = m["student"](x)
    soft = F.kl_div(F.log_softmax(scores / 2, 1), F.softmax(teacher / 2, 1), reduction="batchmean") * 4
    return soft + F.cross_entropy(scores, label, weight=m["weights"].weight[0].detach().abs())


def evidential(m, x, target):
    mean, nu, a, b = m["net"](x).chunk(4, 1)
    nu, a, b = F.softplus(nu), F.softplus(a) + 1, F.softplus(b)
    omega = 2 * b * (1 + nu)
    nll = 0.5 * torch.log(torch.pi / nu) - a * torch.log(omega) + torch.lgamma(a) - torch.lgamma(a + 0.5)
    return (nll + (a + 0.5) * torch.log(nu * (target - mean) ** 2 + omega)).mean()


def sum_over_batch(m, x, target):
    return (m["net"](x) - target).pow(2).sum() / x.shape[0] + torch.sum(m["net"](x).abs()) / (2 * x.size(0))


PROGRAMS = {
    "language model": (
        language_model,
        [WORDS],
        lambda: {
            "embedding": nn.Embedding(5, 8),
            "encoder": nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0), 1),
            "out": nn.Linear(8, 5),
        },
    ),
    "actor critic": (actor_critic, [X, LABEL, ()], lambda: {"policy": two(), "value": two(6, 1)}),
    "Gaussian policy": (
        gaussian_policy,
        [X, (3,), ()],
        lambda: {"mean": two(), "scale": nn.Linear(3, 1, bias=False)},
    ),
    "distilled": (
        distilled,
        [X, LABEL],
        lambda: {
            "teacher": two().requires_grad_(False),
            "student": two(),
            "weights": nn.Linear(3, 1, bias=False).requires_grad_(False),
        },
    ),
    "evidential": (evidential, [X, (1,)], lambda: {"net": two(6, 4)}),
    "sum over the batch": (sum_over_batch, [X, (3,)], lambda: {"net": two()}),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_generated_c_trains_as_the_module(name):
    check_training(*PROGRAMS[name])


def test_an_import_leaves_the_module_as_it_was():
    """Attributes, hooks, gradients, statistics and random numbers; `calls` counts, though nothing depends on it."""

    def loss(m, x):
        m.calls.append(len(m.calls))
        return m["norm"](x).sum() * (1 + m["weight"].weight.sum())

    module = Program(loss, norm=nn.BatchNorm1d(6), weight=nn.Linear(1, 1))
    module.layers.calls = []
    before, numbers = {n: t.clone() for n, t in module.state_dict().items()}, torch.get_rng_state()
    ag.from_torch(module, (BATCH, 6))
    assert module.layers.calls == [] and all(p.grad is None for p in module.parameters())
    assert all(torch.equal(t, before[n]) for n, t in module.state_dict().items())
    assert torch.equal(numbers, torch.get_rng_state()) and torch.is_grad_enabled()
