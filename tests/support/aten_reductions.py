"""Operators of PyTorch that combine elements: sums, extremes, orders, products of matrices, and losses."""

import torch
from torch.nn import functional as F

# The arguments: test_aten.py.
REDUCTIONS = {
    "moments": lambda x, y, p, i, s, k, m: (
        torch.std_mean(x, 1, keepdim=True)[0] * torch.var_mean(s, 2, unbiased=False)[1].sum(1, keepdim=True)
        + torch.var_mean(x)[0]
    ),
    "similarity": lambda x, y, p, i, s, k, m: F.cosine_similarity(x, y) + F.normalize(x).sum(1),
    "distance": lambda x, y, p, i, s, k, m: (
        F.pairwise_distance(x, y, eps=0.01)
        + torch.norm(x, dim=1)
        + F.bilinear(x, y, torch.stack([m.square, m.square * 2])).sum(1)
    ),
    "order": lambda x, y, p, i, s, k, m: y.gather(1, torch.argsort(x, 1, True)),
    "sorting": lambda x, y, p, i, s, k, m: x.topk(3)[0] * s.sort(2, descending=True)[0][:, 0, :3],
    "sums": lambda x, y, p, i, s, k, m: (
        x.sum() + i.sum((1, 3)).mean() + s.mean(-1, keepdim=True).sum(1) + i.prod(3).sum()
    ),
    "extremes": lambda x, y, p, i, s, k, m: (
        i.amax((2, 3))
        + s.amin(-1)
        + s.max(2)[0]
        + s.min(dim=2)[0]
        + torch.max(s[:, :, 0], 2 * s[:, :, 1])
        + x.max() * x.min()
    ),
    "indices of extremes": lambda x, y, p, i, s, k, m: (
        s.argmax(2).float() * s[:, :, 1] + s.argmin(2) * s[:, :, 2]
    ),
    "statistics": lambda x, y, p, i, s, k, m: (
        s.var(2)
        + s.std(2, unbiased=False)
        + s.logsumexp(2)
        + s.norm(dim=2)
        + torch.linalg.vector_norm(s, 1, dim=2)
    ),
    "truths": lambda x, y, p, i, s, k, m: (
        x * (s > 1).any(2)[:, :1] + y * (s > -1).all(dim=2, keepdim=True)[:, 0]
    ),
    "softmax": lambda x, y, p, i, s, k, m: x.softmax(-1) * y.log_softmax(1) + x.cumsum(1),
    "products": lambda x, y, p, i, s, k, m: (
        (s @ s.mT)
        + s.bmm(s.transpose(1, 2))
        + torch.einsum("nct,ndt->ncd", s, s)
        + torch.baddbmm(s[:, :, :4], s, s.mT)
    ),
    "matrices": lambda x, y, p, i, s, k, m: (
        torch.mm(x, m.square)
        + torch.addmm(y, x, m.square)
        + F.linear(x, m.square, m.row)
        + x.mv(m.row)[:, None]
    ),
    "vectors": lambda x, y, p, i, s, k, m: (
        x
        + torch.outer(m.row, m.row.dot(m.square[0]) * m.row)[0]
        + m.square.t()[1]
        + x @ m.square.H
        + torch.vdot(m.row, m.row)
    ),
    "compositions": lambda x, y, p, i, s, k, m: (
        torch.addmm(y, x, m.square, beta=0.5, alpha=2)
        + torch.addmv(m.row, m.square, m.row, alpha=0.5)
        + torch.logaddexp2(x, y) * torch.dist(x, y)
        + x.cumprod(1)
        + s.cumprod(1).flatten(1)[:, :6]
        + torch.linalg.cross(x.view(-1, 2, 3), y.view(-1, 2, 3)).flatten(1)
        + torch.linalg.cross(s[:, :3], s[:, 1:], dim=1).flatten(1)[:, :6]
        + torch.cross(i[:, :3, 0, :6], i[:, :3, 1, :6], dim=1).sum(1)
        + s.kthvalue(2, 2, keepdim=True)[0].sum(1)
        + s.median(1)[0][:, :6]
        + m.square.median()
        + x.gather(1, x.median(1, keepdim=True)[1])
    ),
    "losses": lambda x, y, p, i, s, k, m: (
        x * F.cross_entropy(x, k[:, 0], label_smoothing=0.1)
        + y * F.cross_entropy(i, k[:, :1, None].expand(k.shape[0], 8, 8), reduction="sum")
        + F.nll_loss(F.log_softmax(x, 1), k[:, 1], m.row.detach().abs(), ignore_index=1, reduction="none")[
            :, None
        ]
        + F.mse_loss(x, y) * F.l1_loss(x, y, reduction="none")
        + F.smooth_l1_loss(x, y, beta=0.5, reduction="sum") * F.huber_loss(x, y, delta=0.5)
        + F.binary_cross_entropy(torch.sigmoid(x), torch.sigmoid(y), reduction="none")
        + F.binary_cross_entropy_with_logits(x, torch.sigmoid(y), pos_weight=m.row.detach().abs())
        + F.kl_div(F.log_softmax(x, 1), F.softmax(y, 1), reduction="batchmean")
        + F.kl_div(x, y, log_target=True, reduction="none")
    ),
    "margins": lambda x, y, p, i, s, k, m: (
        x * F.soft_margin_loss(x, y)
        + F.hinge_embedding_loss(x, torch.ones_like(x), reduction="none")
        + F.cosine_embedding_loss(x, y, torch.ones(x.shape[0]), 0.1)
        + F.margin_ranking_loss(x, y, torch.ones_like(x), 0.1, reduction="none")
        + F.triplet_margin_loss(x, y, p, swap=True, reduction="sum")
        + F.poisson_nll_loss(x, p, full=True)
        + F.multi_margin_loss(x, k[:, 0])
    ),
    "extremes so far": lambda x, y, p, i, s, k, m: (
        s.cummax(2)[0].mean(2).sum(1, keepdim=True)
        + x.cummin(1)[0] * k.cumsum(1).clamp(max=1).float().cummax(1)[1]
    ),
    "alignments": lambda x, y, p, i, s, k, m: F.ctc_loss(
        s.permute(2, 0, 1).log_softmax(2),
        k[:, :3] + 1,
        torch.full((x.shape[0],), 9),
        torch.full((x.shape[0],), 3),
        reduction="none",
    ),
}
