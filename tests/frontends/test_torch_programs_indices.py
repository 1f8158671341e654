"""Programs of PyTorch that choose elements: masks, indices, windows, and samples in another order."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch_program import LABEL, WORDS, X, check_training, two

pytestmark = [pytest.mark.torch, pytest.mark.cc]


def masked_encoder(m, words, label):
    """As BERT: token types of the words' shape, and a mask of the words that are not padding."""
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


def barlow_twins(m, a, b):
    """A diagonal that is changed in place, and two calls of one normalisation."""
    z = m["norm"](m["net"](a)).T @ m["norm"](m["net"](b)) / a.shape[0]
    on = torch.diagonal(z).add_(-1).pow_(2).sum()
    n = z.shape[0]
    return on + 0.01 * z.flatten()[:-1].view(n - 1, n + 1)[:, 1:].flatten().pow_(2).sum()


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


PROGRAMS = {
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
    "contrastive": (contrastive, [X, X], lambda: {"net": two()}),
    "patches": (patches, [(12,), (5,)], lambda: {"overlap": nn.Linear(4, 5), "apart": nn.Linear(3, 5)}),
    "prototypes": (prototypes, [X, X], lambda: {"net": two()}),
    "Barlow twins": (
        barlow_twins,
        [X, X],
        lambda: {"net": nn.Linear(6, 5), "norm": nn.BatchNorm1d(5, affine=False)},
    ),
    "mixed up": (mixed_up, [X, LABEL], lambda: {"net": two()}),
    "detected": (detected, [X, (2,), LABEL], lambda: {"net": two(6, 18)}),
    "pointed": (
        pointed,
        [X, LABEL],
        lambda: {"encoder": nn.LSTM(1, 4, batch_first=True), "score": nn.Linear(4, 1)},
    ),
    "masked by constants": (masked_by_constants, [X, X], lambda: {"net": two(), "masks": Masks()}),
    "without infinities": (without_infinities, [X, X], lambda: {"net": two()}),
}
FIXED = (
    "Barlow twins",
    "contrastive",
    "detected",
    "masked by constants",
    "mixed up",
    "prototypes",
    "without infinities",
)  # in these the batch is a number


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_generated_c_trains_as_the_module(name):
    check_training(*PROGRAMS[name], fixed_batch=name in FIXED)
