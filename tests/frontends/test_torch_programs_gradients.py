"""Programs of PyTorch that change gradients: functions with custom gradients, gradients in the loss, hooks,
and tensors that are detached."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch_program import LABEL, Program, X, check_training, drawn, tensors, two

import autodiff_gen as ag
from autodiff_gen.check.compare_torch import comparisons
from autodiff_gen.frontends.pytorch.export import originals

pytestmark = [pytest.mark.torch, pytest.mark.cc]


class Reversed(torch.autograd.Function):
    """A gradient that is reversed, as in domain-adversarial training."""

    @staticmethod
    def forward(ctx, x, scale):
        ctx.scale = scale
        return x.view_as(x)

    @staticmethod
    def backward(ctx, dy):
        return -ctx.scale * dy, None


class Spike(torch.autograd.Function):
    """A surrogate gradient of a step."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return (x > 0).float()

    @staticmethod
    def backward(ctx, dy):
        (x,) = ctx.saved_tensors
        return dy / (1 + (torch.pi * x) ** 2)


class Sign(torch.autograd.Function):
    """A straight-through estimator, with a context."""

    @staticmethod
    def forward(x):
        return x.sign()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, dy):
        return dy * (ctx.saved_tensors[0].abs() <= 1)


class Mixed(torch.autograd.Function):
    """Two results, and a gradient of one element that depends on others."""

    @staticmethod
    def forward(ctx, x, weight):
        ctx.save_for_backward(x, weight)
        return x @ weight.T, x.sum(1)

    @staticmethod
    def backward(ctx, dy, dz):
        x, weight = ctx.saved_tensors
        return (dy @ weight).cumsum(-1) + dz[:, None], (2 * dy.T @ x).clamp(-0.1, 0.1)


def adversarial(m, x, label, domain):
    h = m["features"](x)
    return F.cross_entropy(m["head"](h), label) + F.cross_entropy(m["domain"](Reversed.apply(h, 0.5)), domain)


def spiking(m, x, label):
    potential, out = torch.zeros(x.size(0), 8), 0
    for _ in range(3):
        potential = 0.9 * potential + m["first"](x)
        spikes = Spike.apply(potential - 0.5)
        potential = potential - spikes.detach()
        out = out + m["second"](spikes)
    return F.cross_entropy(out, label)


def binary(m, x, label):
    return F.cross_entropy(F.linear(Sign.apply(m["first"](x)), Sign.apply(m["second"].weight)), label)


def physics_informed(m, xt, border, start):
    """Burgers' equation: second derivatives in the loss."""
    x, t = xt[:, :1].clone().requires_grad_(True), xt[:, 1:].clone().requires_grad_(True)
    u = m["net"](torch.cat([x, t], 1))
    u_x, u_t = torch.autograd.grad(u, (x, t), torch.ones_like(u), create_graph=True)
    u_xx = torch.autograd.grad(u_x, x, torch.ones_like(u_x), create_graph=True)[0]
    return (u_t + u * u_x - 0.1 * u_xx).pow(2).mean() + F.mse_loss(m["net"](border), start)


def gradient_penalty(m, real, fake, share):
    mixed = (share[:, None].sigmoid() * real + (1 - share[:, None].sigmoid()) * fake).requires_grad_(True)
    d = m["critic"](mixed)
    g = torch.autograd.grad(outputs=d, inputs=mixed, grad_outputs=torch.ones_like(d), create_graph=True)[0]
    scores = m["critic"](fake).mean() - m["critic"](real).mean()
    return scores + 10 * (g.norm(2, dim=1) - 1).pow(2).mean()


def meta_learning(m, support, wanted, query, target):
    """MAML: two steps of gradient descent, through which the gradient goes."""
    parameters = [m["net"].weight, m["net"].bias]
    for _ in range(2):
        loss = F.mse_loss(torch.tanh(F.linear(support, *parameters)), wanted)
        gradients = torch.autograd.grad(loss, parameters, create_graph=True)
        parameters = [p - 0.1 * g for p, g in zip(parameters, gradients, strict=True)]
    return F.mse_loss(torch.tanh(F.linear(query, *parameters)), target)


def adversarial_examples(m, x, label):
    """The fast gradient sign method: a gradient that none goes through."""
    a = x.detach().clone().requires_grad_(True)
    (g,) = torch.autograd.grad(F.cross_entropy(m["net"](a), label), a)
    return F.cross_entropy(m["net"](x + 0.1 * g.sign()), label)


def hamiltonian(m, x, motion):
    """The last bias has no gradient: PyTorch's optimizers leave it as it is."""
    x = x.requires_grad_()
    dq, dp = torch.autograd.grad(m["energy"](x).sum(), x, create_graph=True)[0].chunk(2, -1)
    return F.mse_loss(torch.cat([dp, -dq], -1), motion)


def curvature(m, x, target):
    """A Hessian matrix times the gradient, which is a constant of this product."""
    x = x.requires_grad_()
    energy = m["energy"](x)
    (g,) = torch.autograd.grad(energy.sum(), x, create_graph=True)
    (hg,) = torch.autograd.grad(g, x, grad_outputs=g, create_graph=True)
    return F.mse_loss(hg, target) + energy.square().mean()


def sharpness_aware(m, x, label):
    """SAM: a module that is called with its own parameters, and with others."""
    own = dict(m["net"].named_parameters())
    gradients = torch.autograd.grad(F.cross_entropy(m["net"](x), label), list(own.values()))
    norm = sum(g.square().sum() for g in gradients).sqrt()
    moved = {n: p + 0.05 * g / norm for (n, p), g in zip(own.items(), gradients, strict=True)}
    return F.cross_entropy(torch.func.functional_call(m["net"], moved, (x,)), label)


def adapted(m, support, wanted, query, target):
    """MAML of a module."""
    own = dict(m["net"].named_parameters())
    loss = F.mse_loss(m["net"](support), wanted)
    gradients = torch.autograd.grad(loss, list(own.values()), create_graph=True)
    moved = {n: p - 0.1 * g for (n, p), g in zip(own.items(), gradients, strict=True)}
    return F.mse_loss(torch.func.functional_call(m["net"], moved, (query,)), target) + loss


def hidden_from_autograd(m, x, label):
    """A change that autograd does not record leaves a tensor its gradient."""
    h = m["net"](x)
    h.data.clamp_(-0.5, 0.5)
    q, seen = h.clone(), h.detach()
    q.data = (h > 0).float()
    with torch.no_grad():
        h.mul_(2)
        inner = h * 2
        inner.add_(1)
    return F.cross_entropy(q * h.data.exp() + h * m["net"][0].weight.data.norm() + inner * seen, label)


def mixed(m, x, label):
    scores, sums = Mixed.apply(m["features"](x), m["head"].weight)
    return F.cross_entropy(scores, label) + sums.square().mean()


def generative(m, noise, real):
    """A GAN's two losses in one: the discriminator is not trained by the generator's."""
    fake = m["generator"](noise)
    loss = F.softplus(-m["judge"](real)).mean() + F.softplus(m["judge"](fake.detach())).mean()
    m["judge"].requires_grad_(False)
    loss = loss + F.softplus(-m["judge"](fake)).mean()
    m["judge"].requires_grad_(True)
    return loss


def taught(m, x, label):
    """A teacher that learns by another loss, and a copy of its scores in inference mode."""
    with torch.inference_mode():
        wanted = m["teacher"](x)
    return F.mse_loss(m["student"](x), wanted.clone()) + F.cross_entropy(m["teacher"](x), label)


def hooked_inside(m, x, label):
    h = m["first"](x)
    positive = (h > 0).float()
    h.register_hook(lambda g: g * positive)
    h.register_hook(lambda g: g / (1 + g.norm()))
    with torch.no_grad():
        h.clamp_(-0.5, 0.5)
    return F.cross_entropy(m["second"](h), label) + h.sum() * 0.1


def hooks_of_parameters():
    """A mask, a clipped gradient, and one that is changed in place after it was scaled."""
    first, second = nn.Linear(6, 8), nn.Linear(8, 3)
    first.weight.register_hook((torch.arange(6) % 2).float().mul)
    first.bias.register_hook(lambda g: g.clamp(-0.01, 0.01))
    second.weight.register_hook(lambda g: 0.5 * g)
    second.weight.register_hook(lambda g: g.add_(second.weight.detach(), alpha=0.1) * 1.0)
    return {"first": first, "second": second}


def hooks_of_modules():
    """Guided backpropagation, gradients of results, and hooks that only look."""
    middle = nn.ReLU()
    middle.register_full_backward_hook(lambda m, before, after: (before[0].clamp(min=0.0),))
    middle.register_full_backward_pre_hook(lambda m, after: (after[0] * 2,))
    second, seen = nn.Linear(8, 3), []
    second.register_full_backward_hook(lambda m, before, after: seen.append(after[0].norm().item()))
    second.register_forward_hook(lambda m, given, made: made * 3)
    return {"first": nn.utils.weight_norm(nn.Linear(6, 8)), "middle": middle, "second": second}


def in_a_row(m, x, label):
    for layer in m.values():
        x = layer(x)
    return F.cross_entropy(x, label)


PROGRAMS = {
    "adversarial": (
        adversarial,
        [X, LABEL, LABEL],
        lambda: {"features": two(), "head": two(3), "domain": two(3)},
    ),
    "spiking": (spiking, [X, LABEL], lambda: {"first": nn.Linear(6, 8), "second": nn.Linear(8, 3)}),
    "mixed": (mixed, [X, LABEL], lambda: {"features": nn.Linear(6, 8), "head": nn.Linear(8, 3, bias=False)}),
    "generative": (
        generative,
        [(3,), X],
        lambda: {"generator": two(3, 6), "judge": two(6, 1)},
    ),
    "taught": (taught, [X, LABEL], lambda: {"teacher": two(), "student": two()}),
    "hooked inside": (
        hooked_inside,
        [X, LABEL],
        lambda: {"first": nn.Linear(6, 8), "second": nn.Linear(8, 3)},
    ),
    "hooks of parameters": (in_a_row, [X, LABEL], hooks_of_parameters),
    "hooks of modules": (in_a_row, [X, LABEL], hooks_of_modules),
    "binary": (binary, [X, LABEL], lambda: {"first": nn.Linear(6, 8), "second": nn.Linear(8, 3, bias=False)}),
    "physics-informed": (physics_informed, [(2,), (2,), (1,)], lambda: {"net": two(2, 1)}),
    "gradient penalty": (gradient_penalty, [X, X, ()], lambda: {"critic": two(6, 1)}),
    "meta-learning": (meta_learning, [X, (3,), X, (3,)], lambda: {"net": nn.Linear(6, 3)}),
    "adversarial examples": (adversarial_examples, [X, LABEL], lambda: {"net": two()}),
    "Hamiltonian": (hamiltonian, [(2,), (2,)], lambda: {"energy": two(2, 1)}),
    "curvature": (curvature, [X, X], lambda: {"energy": two(6, 1)}),
    "sharpness-aware": (sharpness_aware, [X, LABEL], lambda: {"net": two()}),
    "adapted": (adapted, [X, (3,), X, (3,)], lambda: {"net": two()}),
    "hidden from autograd": (hidden_from_autograd, [X, LABEL], lambda: {"net": two()}),
    "checkpointed": (
        lambda m, x, label: F.cross_entropy(checkpoint(m["net"], m["first"](x), use_reentrant=True), label),
        [X, LABEL],
        lambda: {"first": nn.Linear(6, 6), "net": two()},
    ),
}
UNTRAINED = {"Hamiltonian": ["layers.energy.2.bias"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_generated_c_trains_as_the_module(name):
    check_training(*PROGRAMS[name], untrained=UNTRAINED.get(name, ()))


@pytest.mark.parametrize(
    "name", ("generative", "hooked inside", "hooks of parameters", "hooks of modules", "mixed")
)
def test_check_compares_with_the_module_itself(name):
    """Also if a hook that the import does not know is registered afterwards: then the tensors differ."""
    loss, kinds, layers = PROGRAMS[name]
    torch.manual_seed(3)
    module = Program(loss, **layers())
    ag.from_torch(module, tuple(tensors(drawn(kinds, np.random.default_rng(4)))))
    imported = originals.pop()
    assert all(row.good for row in comparisons(imported.program, module, name, steps=2))
    first = next(iter(module.parameters()))
    first.register_hook(lambda g: 0.9 * g)
    rows = comparisons(imported.program, module, name, steps=2)
    assert any(row.what == "gradients" and not row.good for row in rows)
