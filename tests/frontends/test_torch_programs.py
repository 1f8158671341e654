"""Whole programs of PyTorch with losses inside: the generated C trains as the module does, or one line says why not."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

import autodiff_gen as ag
from autodiff_gen.check.original import comparisons
from autodiff_gen.frontends.pytorch.export import originals

pytestmark = [pytest.mark.torch, pytest.mark.cc]

STEPS, BATCH = 3, 4


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
    """A straight-through estimator, with a context of its own."""

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


def masked_encoder(m, words, label):
    """As BERT: token types of the words' shape, and a mask of what is no padding."""
    types = torch.zeros(words.size(), dtype=torch.long)
    mask = (1.0 - (words != 0).float()[:, None, :]) * torch.finfo(torch.float32).min
    h = m["words"](words) + m["types"](types)
    weights = F.softmax(m["query"](h) @ h.transpose(-1, -2) + mask, -1)
    return F.cross_entropy(m["out"]((weights @ h)[:, 0]), label, label_smoothing=0.1)


class Masks(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("causal", torch.ones(6, 6).tril().bool())
        self.register_buffer("kept", torch.tensor([True, False, True, True, False, True]))


def masked_by_buffers(m, x, label):
    """Masks that a state_dict has choose scores and elements."""
    h, masks = m["net"](x), m["masks"]
    scores = (h[:, :, None] * h[:, None]).masked_fill(~masks.causal, float("-inf"))
    y = (torch.softmax(scores, -1) @ h[:, :, None]).squeeze(-1) * masks.kept
    y[:, ~masks.kept] = 0.5
    return F.cross_entropy(m["out"](y), label)


def set_along_axes(m, x, label):
    """Indices of other axes than the first."""
    h = m["net"](x).view(-1, 2, 3)
    y = torch.tanh(h) * 2
    y[:, :, [2, 0]] = h[:, :, :2]
    y[:, [1, 0], 1] = h[:, :, 2] * 2
    y[:, 1:, [0]] = h[:, :1, 1:2]
    y[:, [[0, 1]], [[2], [1]]] = h[:, :, :2]
    return F.cross_entropy(m["out"](y.flatten(1)), label)


def distilled(m, x, label):
    with torch.no_grad():
        teacher = m["teacher"](x)
    scores = m["student"](x)
    soft = F.kl_div(F.log_softmax(scores / 2, 1), F.softmax(teacher / 2, 1), reduction="batchmean") * 4
    return soft + F.cross_entropy(scores, label, weight=m["weights"].weight[0].detach().abs())


def contrastive(m, a, b):
    """NT-Xent: the number of pairs is a number of the program."""
    z = F.normalize(torch.cat([m["net"](a), m["net"](b)]), dim=1)
    n = a.shape[0]
    similar = (z @ z.T / 0.5).masked_fill(torch.eye(2 * n, dtype=torch.bool), -1e9)
    return F.cross_entropy(similar, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


def patches(m, x, target):
    """Windows that overlap, windows that do not, and windows along an axis that is not the last."""
    y = m["overlap"](x.unfold(-1, 4, 2)).mean(1) + m["apart"](x.unfold(-1, 3, 3)).mean(1)
    return F.smooth_l1_loss(y + x[:, :6, None].unfold(1, 2, 3).mean((1, 2, 3))[:, None], target, beta=0.5)


def prototypes(m, support, query):
    centres = m["net"](support).view(2, 2, -1).mean(1)
    distances = (m["net"](query)[:, None] - centres[None]).pow(2).sum(2)
    scores = F.log_softmax(-distances, 1).view(2, -1, 2)
    return -scores.gather(2, torch.arange(2).view(2, 1, 1).expand(2, 2, 1)).squeeze().view(-1).mean()


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


def barlow_twins(m, a, b):
    """A diagonal that is changed in place, and two calls of one normalisation."""
    z = m["norm"](m["net"](a)).T @ m["norm"](m["net"](b)) / a.shape[0]
    on = torch.diagonal(z).add_(-1).pow_(2).sum()
    n = z.shape[0]
    return on + 0.01 * z.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten().pow_(2).sum()


def evidential(m, x, target):
    mean, nu, a, b = m["net"](x).chunk(4, 1)
    nu, a, b = F.softplus(nu), F.softplus(a) + 1, F.softplus(b)
    omega = 2 * b * (1 + nu)
    nll = 0.5 * torch.log(torch.pi / nu) - a * torch.log(omega) + torch.lgamma(a) - torch.lgamma(a + 0.5)
    return (nll + (a + 0.5) * torch.log(nu * (target - mean) ** 2 + omega)).mean()


def transcribed(m, x, words):
    """CTC of sequences of six, with two letters in each."""
    h = m["letters"](m["gru"](x[:, :, None])[0]).log_softmax(2)
    n = x.shape[0]
    return F.ctc_loss(h.transpose(0, 1), words[:, :2] + 1, (6,) * n, (2,) * n)


def spatial_transformer(m, x, label):
    theta = m["where"](x).view(-1, 2, 3)
    image = x.view(-1, 1, 3, 4)
    shown = F.grid_sample(image, F.affine_grid(theta, image.size(), align_corners=False), align_corners=False)
    return F.cross_entropy(m["net"](shown.flatten(1)), label)


def fourier_operator(m, x, target):
    """Three frequencies of a signal are multiplied by complex weights."""
    spectrum = torch.fft.rfft(x)
    filtered = torch.zeros(x.shape[0], 7, dtype=torch.cfloat)
    filtered[:, :3] = spectrum[:, :3] * torch.view_as_complex(m["weights"].weight)
    return F.mse_loss(m["net"](torch.fft.irfft(filtered, n=12) + x), target)


def spectral_loss(m, x, target):
    """Magnitudes of short-time spectra, of signals that are reflected at their ends."""
    spectra = [
        torch.stft(z, 4, 2, window=torch.hann_window(4), return_complex=True).abs().clamp(min=0.1)
        for z in (m["net"](x), target)
    ]
    return F.l1_loss(spectra[0].log(), spectra[1].log())


def spectra_of_silence(m, x, target):
    """Magnitudes that are 0, with numbers of the program that are complex."""
    spectrum = torch.fft.rfft(torch.relu(m["net"](x)) * (target > 9.0)) * (2 + 1j) + 0j
    return spectrum.abs().sum() + ((torch.fft.rfft(m["net"](x)) - 1.0) / 2j).abs().mean()


def rotary(m, words):
    """RoPE as complex numbers, which the program holds."""
    x = m["embedding"](words)
    rotated = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2)) * ROTATIONS
    y = torch.view_as_real(rotated).flatten(2)
    weights = F.softmax(y @ y.transpose(1, 2), -1)
    return F.cross_entropy(m["out"]((weights @ x)[:, :-1]).flatten(0, 1), words[:, 1:].flatten())


ROTATIONS = torch.polar(torch.ones(6, 4), torch.outer(torch.arange(6.0), 0.1 ** torch.arange(4.0)))


def sum_over_batch(m, x, target):
    return (m["net"](x) - target).pow(2).sum() / x.shape[0] + torch.sum(m["net"](x).abs()) / (2 * x.size(0))


def mixed_up(m, x, label):
    """Mixup with samples in another order, whose classes are chosen of the labels."""
    n = x.shape[0]
    order = torch.arange(n - 1, -1, -1)
    scores = m["net"](0.7 * x + 0.3 * x[order])
    return 0.7 * F.cross_entropy(scores, label) + 0.3 * F.cross_entropy(scores, label[order])


def detected(m, x, box, label):
    """Each object in the cell and of the anchor that fit it, as YOLO assigns them; two may have one cell."""
    anchors = torch.tensor([[1.0, 1.0], [2.0, 1.5]])
    n, scores = x.shape[0], m["net"](x).view(-1, 2, 3, 3)
    size, column = box[:, :2].exp(), label
    best = (anchors - size[:, None]).abs().sum(2).min(1)[1]
    wanted, sizes = torch.zeros(n, 2, 3, 3), torch.zeros(n, 2, 3, 3)
    wanted[torch.arange(n)[:, None], best[:, None], column[:, None], torch.tensor([[1, 1, 2]])] = 1.0
    sizes[torch.arange(n), best, column, 0] = (size / anchors[best]).log().sum(1)
    return F.binary_cross_entropy_with_logits(scores, wanted) + F.mse_loss(scores, sizes)


def pointed(m, x, label):
    """A pointer network: what was chosen is masked, and the number of samples is read after the recurrent layer."""
    steps, (h, _) = m["encoder"](x[:, :, None])
    mask, loss = torch.zeros(x.size(0), 6, dtype=torch.bool), 0
    for _ in range(2):
        scores = m["score"](torch.tanh(steps + h[0][:, None])).squeeze(2).masked_fill(mask, -1e9)
        chosen = scores.argmax(1)
        mask = mask.scatter(1, chosen[:, None], True)
        loss = loss + F.cross_entropy(scores, label) + x[torch.arange(x.size(0)), chosen].mean()
    return loss * 1e-3


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


def masked_by_constants(m, a, b):
    """Masks whose values are known choose elements, and Python reads them."""
    z = F.normalize(torch.cat([m["net"](a), m["net"](b)]), dim=1)
    similar = z @ z.T
    apart = ~torch.eye(len(z), dtype=torch.bool)
    scores = similar[apart].view(len(z), -1)
    upper = torch.triu(torch.ones(len(z), len(z)), diagonal=1).bool()
    rows, columns = torch.triu_indices(len(z), len(z), 1)
    pairs = (
        torch.masked_select(similar, upper).sum() / int(upper.sum()) + similar[rows, columns].square().mean()
    )
    kept = m["masks"].kept[:3]
    z = z.masked_scatter(apart[:, :3] & upper[:, :3], torch.arange(24.0))
    z[:, kept] = z[:, kept] * 2
    return (
        F.cross_entropy(scores, torch.zeros(len(z), dtype=torch.long))
        + pairs
        + z[:, kept.nonzero()[:, 0]].mean()
    )


def without_infinities(m, a, b):
    z = m["net"](a) @ m["net"](b).T
    z.fill_diagonal_(float("-inf"))
    y = torch.where(torch.isinf(z), 0.0, z) + torch.isfinite(z) * z.exp()
    return y.square().mean() + torch.isneginf(z).sum()


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


X, LABEL, WORDS = (6,), ("label", 3), ("words", 7)
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
    "masked encoder": (
        masked_encoder,
        [WORDS, LABEL],
        lambda: {
            "words": nn.Embedding(5, 8, padding_idx=0),
            "types": nn.Embedding(2, 8),
            "query": nn.Linear(8, 8),
            "out": nn.Linear(8, 3),
        },
    ),
    "masked by buffers": (
        masked_by_buffers,
        [X, LABEL],
        lambda: {"net": nn.Linear(6, 6), "masks": Masks(), "out": nn.Linear(6, 3)},
    ),
    "set along axes": (
        set_along_axes,
        [X, LABEL],
        lambda: {"net": nn.Linear(6, 6), "out": nn.Linear(6, 3)},
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
    "contrastive": (contrastive, [X, X], lambda: {"net": two()}),
    "patches": (patches, [(12,), (5,)], lambda: {"overlap": nn.Linear(4, 5), "apart": nn.Linear(3, 5)}),
    "prototypes": (prototypes, [X, X], lambda: {"net": two()}),
    "physics-informed": (physics_informed, [(2,), (2,), (1,)], lambda: {"net": two(2, 1)}),
    "gradient penalty": (gradient_penalty, [X, X, ()], lambda: {"critic": two(6, 1)}),
    "meta-learning": (meta_learning, [X, (3,), X, (3,)], lambda: {"net": nn.Linear(6, 3)}),
    "adversarial examples": (adversarial_examples, [X, LABEL], lambda: {"net": two()}),
    "Hamiltonian": (hamiltonian, [(2,), (2,)], lambda: {"energy": two(2, 1)}),
    "curvature": (curvature, [X, X], lambda: {"energy": two(6, 1)}),
    "Barlow twins": (
        barlow_twins,
        [X, X],
        lambda: {"net": nn.Linear(6, 5), "norm": nn.BatchNorm1d(5, affine=False)},
    ),
    "evidential": (evidential, [X, (1,)], lambda: {"net": two(6, 4)}),
    "transcribed": (
        transcribed,
        [X, WORDS],
        lambda: {"gru": nn.GRU(1, 4, batch_first=True), "letters": nn.Linear(4, 6)},
    ),
    "spatial transformer": (
        spatial_transformer,
        [(12,), LABEL],
        lambda: {"where": nn.Linear(12, 6), "net": nn.Linear(12, 3)},
    ),
    "Fourier operator": (
        fourier_operator,
        [(12,), (3,)],
        lambda: {"weights": nn.Linear(2, 3, bias=False), "net": two(12)},
    ),
    "spectral loss": (spectral_loss, [(12,), (12,)], lambda: {"net": nn.Linear(12, 12)}),
    "spectra of silence": (spectra_of_silence, [(12,), (12,)], lambda: {"net": nn.Linear(12, 12)}),
    "rotary": (rotary, [WORDS], lambda: {"embedding": nn.Embedding(5, 8), "out": nn.Linear(8, 5)}),
    "mixed up": (mixed_up, [X, LABEL], lambda: {"net": two()}),
    "detected": (detected, [X, (2,), LABEL], lambda: {"net": two(6, 18)}),
    "pointed": (
        pointed,
        [X, LABEL],
        lambda: {"encoder": nn.LSTM(1, 4, batch_first=True), "score": nn.Linear(4, 1)},
    ),
    "sharpness-aware": (sharpness_aware, [X, LABEL], lambda: {"net": two()}),
    "adapted": (adapted, [X, (3,), X, (3,)], lambda: {"net": two()}),
    "hidden from autograd": (hidden_from_autograd, [X, LABEL], lambda: {"net": two()}),
    "masked by constants": (masked_by_constants, [X, X], lambda: {"net": two(), "masks": Masks()}),
    "without infinities": (without_infinities, [X, X], lambda: {"net": two()}),
    "checkpointed": (
        lambda m, x, label: F.cross_entropy(checkpoint(m["net"], m["first"](x), use_reentrant=True), label),
        [X, LABEL],
        lambda: {"first": nn.Linear(6, 6), "net": two()},
    ),
    "sum over the batch": (sum_over_batch, [X, (3,)], lambda: {"net": two()}),
}
FIXED = (
    "Barlow twins",
    "contrastive",
    "detected",
    "masked by constants",
    "mixed up",
    "prototypes",
    "transcribed",
    "without infinities",
)  # in these the batch is a number


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_generated_c_trains_as_the_module(name):
    loss, kinds, layers = PROGRAMS[name]
    torch.manual_seed(3)
    module, numbers = Program(loss, **layers()), np.random.default_rng(4)
    first = drawn(kinds, numbers)
    net = ag.from_torch(module, tuple(tensors(first)))
    batch_axis = None if name in FIXED else 0
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
    assert name == "Hamiltonian" or ours.keys() >= {n for n, _ in module.named_parameters()}
    for n, p in ((n, p) for n, p in module.named_parameters() if n in ours):
        np.testing.assert_allclose(ours[n], p.detach().numpy(), rtol=1e-3, atol=1e-5, err_msg=n)


REJECTED = {
    "a complex result": (
        lambda m, x: torch.fft.fft(m["net"](x)),
        r"Program returns complex numbers; return torch.view_as_real of them",
    ),
    "an operator of complex numbers": (
        lambda m, x: torch.fft.fft(m["net"](x)).tanh().real.sum(),
        r"aten.tanh.default has complex numbers; compute with torch.view_as_real, or with the real and imaginary parts",
    ),
    "real and complex parts": (
        lambda m, x: (
            torch.cat([torch.fft.fft(m["net"](x)), torch.fft.rfft(x)[:, :1] + x[:, :1]], 1).abs().sum()
        ),
        r"mixes real and complex tensors; make the real ones complex by torch.complex",
    ),
    "torch.func": (
        lambda m, x: torch.func.grad(lambda z: m["net"](z).sum())(x).mean(),
        r"it cannot trace torch.func; use torch.autograd.grad\(y, x, create_graph=True\)",
    ),
    "batches of gradients": (
        lambda m, x: torch.autograd.grad(m["net"](x.clone()), x, torch.eye(3), is_grads_batched=True)[
            0
        ].sum(),
        "has is_grads_batched=True; call it for each gradient",
    ),
    "the gradient of a constant": (
        lambda m, x: torch.autograd.grad(
            (m["net"](x) * (factor := torch.ones(3, requires_grad=True))).sum(), factor
        )[0].sum(),
        r"has a gradient with respect to a constant; compute it from an input, as by torch.zeros_like\(x\)",
    ),
    "a copy of a module": (
        lambda m, x: copy.deepcopy(m["net"])(x).sum(),
        r"it does not record a tensor that forward makes; compute with functions of torch of the inputs, .*"
        r" \(test_torch_programs.py:\d+\)$",
    ),
    "an error of its own": (
        lambda m, x: m["net"](x) / 0 @ x,
        r"must have same .* \(test_torch_programs.py:\d+\)$",
    ),
    "other memory": (
        lambda m, x: x.clone().set_(m["net"](x)).sum(),
        r"forward calls set_ \(test_torch_programs.py:\d+\), which gives a tensor other memory; compute with a new",
    ),
    "targets in one axis": (
        lambda m, x: F.ctc_loss(m["net"](x)[:, None], torch.ones(3, dtype=torch.long), (BATCH,), (3,)),
        r"targets of all sequences in one axis; pad them to one length, as \[N, S\]",
    ),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_torch_export_cannot_trace_is_one_line(name):
    loss, message = REJECTED[name]
    with pytest.raises(ag.AutodiffError, match=message) as e:
        ag.from_torch(Program(loss, net=two()), (BATCH, 6))
    assert "\n" not in str(e.value)


def counted(m, x):
    m.calls = getattr(m, "calls", 0) + 1
    return m["net"](x).sum() * (0.5 if m.calls % 10 == 0 else 1.0)


def smoothed(m, x):
    m.mean = 0.9 * getattr(m, "mean", 0.0) + 0.1 * x.detach().mean()
    return ((m["net"](x) - m.mean) ** 2).sum()


def late(m, x):
    h = m["net"](x)
    y = h.sum()
    h.register_hook(torch.sign)
    return y


def frozen(m, x):
    m["net"][0].weight.requires_grad = False
    return m["net"](x).sum()


def part_changed(m, x):
    h = m["net"](x)
    with torch.no_grad():
        h[:, 0] = 1.0
    return h.square().sum()


def hidden_part_changed(m, x):
    h = m["net"](x)
    h.data[:, 0] = 1.0
    return h.square().sum()


def with_hook(register, of=lambda net: net[0]):
    def layers():
        net = two()
        register(of(net))
        return {"net": net}

    return layers


def adding_up(m, x):
    m["net"][0].bias.register_hook(lambda g: 0.5 * g)
    return m["net"](x).sum()


def plain(m, x):
    return m["net"](x).square().sum()


def weight(net):
    return net[0].weight


HERE = r"test_torch_programs.py:\d+"
NOT_RECORDED = {
    "a counter": (
        counted,
        None,
        "Program computes other numbers in each call: a number or tensor that Python",
    ),
    "a number of random": (
        lambda m, x: m["net"](x).sum() * random.random(),
        None,
        f"call, first at {HERE}: a",
    ),
    "a tensor of before": (
        smoothed,
        None,
        f"Program computes other numbers in each call, first at {HERE}: a",
    ),
    "hooks that add up": (
        adding_up,
        None,
        "Program computes other numbers in each call.*: a number or tensor",
    ),
    "a late hook": (late, None, rf"the hook sign of a value \({HERE}\) is registered after other values"),
    "requires_grad": (
        frozen,
        None,
        "forward leaves requires_grad=False at the parameter 'layers.net.0.weight'; set",
    ),
    "a hidden part": (
        hidden_part_changed,
        None,
        rf"changes a part of a detached tensor in place; compute all of it by torch.where \({HERE}\)",
    ),
    "a part": (part_changed, None, rf"changes a part of a tensor in place in torch.no_grad\(\) \({HERE}\)"),
    "backward": (
        lambda m, x: m["net"](x).sum().backward(),
        None,
        rf"forward calls backward \({HERE}\); return",
    ),
    "grad_fn": (
        lambda m, x: (h := m["net"](x), h.grad_fn.register_hook(print))[0].sum(),
        None,
        rf"forward uses grad_fn \({HERE}\).register_hook; register the hook on the tensor, by register_hook",
    ),
    "a branch": (
        plain,
        with_hook(lambda w: w.register_hook(lambda g: g if g.norm() < 1 else g / g.norm()), weight),
        rf"the hook lambda \({HERE}\) of the parameter 'layers.net.0.weight' cannot be traced; .*depends on data",
    ),
    "a hook after the gradient": (
        plain,
        with_hook(lambda w: w.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(0.5)), weight),
        rf"the hook lambda \({HERE}\) of the parameter 'layers.net.0.weight' runs after its gradient is stored;",
    ),
    "an old hook": (
        plain,
        with_hook(lambda m: m.register_backward_hook(lambda *_: None)),
        rf"the hook lambda \({HERE}\) of the module 'layers.net.0' was registered by register_backward_hook; use",
    ),
    "a hook of a recurrent layer": (
        plain,
        lambda: (net := nn.GRU(6, 3), net.bias_hh_l0.register_hook(lambda g: 0.5 * g), {"net": net})[2],
        rf"the hook lambda \({HERE}\) of the parameter 'layers.net.bias_hh_l0' is one of a recurrent layer",
    ),
    "gradients of results": (
        plain,
        with_hook(
            lambda m: m.register_full_backward_hook(lambda m, g, d: (d[0].mean() * g[0],)), lambda n: n[2]
        ),
        rf"the hook lambda \({HERE}\) of the module 'layers.net.2' computes with grad_output; compute",
    ),
}


@pytest.mark.parametrize("name", NOT_RECORDED)
def test_what_torch_export_does_not_record_is_one_line(name):
    loss, layers, message = NOT_RECORDED[name]
    module = Program(loss, **(layers() if layers else {"net": two()}))
    with pytest.raises(ag.AutodiffError, match=message) as e:
        ag.from_torch(module, (BATCH, 6))
    assert "\n" not in str(e.value)


def test_hooks_of_all_modules_are_one_line():
    handle = nn.modules.module.register_module_full_backward_hook(lambda *_: None)
    try:
        with pytest.raises(
            ag.AutodiffError, match=r"the backward hook lambda .* is one of all modules; register"
        ):
            ag.from_torch(Program(plain, net=two()), (BATCH, 6))
    finally:
        handle.remove()


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


def test_a_spectrum_over_the_batch_makes_it_a_number():
    module = Program(lambda m, x: torch.fft.fft(m["net"](x), dim=0).abs().sum() + x.shape[0], net=two())
    assert ag.from_torch(module, (BATCH, 6)).fixed_batch == BATCH
