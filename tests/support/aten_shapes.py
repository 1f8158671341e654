"""Operators of PyTorch that move elements: axes, parts, joins, indices, and constants of a shape."""

import torch
from torch.nn import functional as F

# The arguments: test_aten.py.
SHAPES = {
    "shapes": lambda x, y, p, i, s, k, m: (
        x.view(-1, 2, 3).flatten(1)
        + x.reshape(x.shape[0], 6)
        + x.unflatten(1, (3, 2)).reshape(-1, 6)
        + x.view_as(y)
    ),
    "axes": lambda x, y, p, i, s, k, m: (
        x.unsqueeze(1).squeeze(1)
        + i.permute(0, 2, 3, 1)[:, 0, :6, 0]
        + torch.movedim(s, 1, 2)[:, :6, 0]
        + s.swapaxes(1, 2).contiguous()[:, 1:7, 1]
        + m.square.T[0]
        + x.reshape_as(y).squeeze()
    ),
    "repetition": lambda x, y, p, i, s, k, m: (
        x[:, :1].expand(-1, 6)
        + x[:, 1:2].expand_as(y)
        + m.row.broadcast_to(x.shape[0], 6)
        + x[:, :3].repeat(1, 2)
        + x[:, :2].tile(3)
        + m.row[None, :3].repeat(x.shape[0], 2)
        + x[:, 3:].repeat_interleave(2, 1)
    ),
    "parts": lambda x, y, p, i, s, k, m: (
        sum(x.chunk(3, 1))
        + x.split(2, 1)[1]
        + x.split((2, 4), 1)[0]
        + x.narrow(1, 3, 2)
        + x[:, ::3]
        + x.select(1, -1)[:, None]
        + torch.stack(s.unbind(1)[:2], 1)[:, :, 0]
    ),
    "differences": lambda x, y, p, i, s, k, m: (
        x.diff()
        + x.diff(2, 1, prepend=y[:, :1])
        + i.mean(3).diff(dim=1, append=y[:, :1, None].expand(-1, 1, 8)).sum((1, 2))[:, None]
        + torch.cdist(s, s[:, :1] + 1).sum((1, 2))[:, None]
        + torch.meshgrid(m.row, m.row[:5], indexing="xy")[1][0, :5]
    ),
    "joins": lambda x, y, p, i, s, k, m: (
        torch.cat([x, y], 1).flip(1).roll(2, 1)
        + torch.concat([y, x], 1)
        + torch.concatenate([x.new_zeros(6, 6), m.square], 1)[:1]
    ),
    "padding": lambda x, y, p, i, s, k, m: (
        F.pad(i, (1, 1, 2, 2), value=2.0)
        + F.pad(i, (1, 1, 2, 2), mode="reflect")
        + F.pad(i, (1, 1, 2, 2), mode="replicate")
    ),
    "padding of signals": lambda x, y, p, i, s, k, m: (
        F.pad(s, (2, 1), "reflect") + F.pad(s, (2, 1), "replicate") + F.pad(s, (2, 1))
    ),
    "indices": lambda x, y, p, i, s, k, m: (
        x.index_select(1, m.order)
        + x[:, m.order]
        + x[:, m.order.view(2, 3)].flatten(1)
        + x.gather(1, k)
        + x.scatter_add(1, k, y)
        + x.index_add(1, m.order, y)
        + F.one_hot(k, 3).sum(2).float()
    ),
    "indices that replace": lambda x, y, p, i, s, k, m: (
        x.scatter(1, m.order[None, :3].expand(x.shape[0], 3), y[:, :3])
        + x.scatter(1, m.order[None, 1:4].expand(x.shape[0], 3), 0.5)
        + x.scatter_reduce(1, k, y, "amax")
        + s.diagonal(0, 1, 2).sum(1, keepdim=True)
        + torch.index_put(y, (y > 1,), m.row[0])
    ),
    "several indices": lambda x, y, p, i, s, k, m: (
        m.square[m.order, m.order[:1]]
        + torch.index_put(m.square, (m.order[:3], m.order[1:4]), m.row[:3], accumulate=True)[0]
        + i[:, m.order[:2], m.order[:2]].flatten(1)[:, :6]
        + i[:, m.order[:2], :, m.order[:2]].sum((0, 2)).sum()
        + s[torch.arange(x.shape[0]), k[:, 0], :6]
        + torch.cat([x, y])[x.shape[0] :]
        - torch.cat([x, y])[: x.shape[0]]
    ),
    "triangles": lambda x, y, p, i, s, k, m: x @ m.square.tril() + y @ torch.triu(m.square, 1),
    "constants": lambda x, y, p, i, s, k, m: (
        x @ torch.eye(6)
        + torch.linspace(0, 1, 6)
        + x * torch.ones(6)
        + torch.full((6,), 0.5)
        + torch.zeros(6)
        + torch.arange(6) * y
        + x.new_ones(6)
        + x.new_zeros(6)
    ),
    "constants of the batch": lambda x, y, p, i, s, k, m: (
        x
        + torch.zeros_like(x)
        + torch.ones_like(x) * y
        + torch.full_like(x, 2.0)
        + torch.full((x.shape[0], 6), 0.25)
        + x.new_full((x.shape[0], 6), 3.0)
        + torch.tensor(1.5)
    ),
    "sizes": lambda x, y, p, i, s, k, m: (
        i.reshape(x.shape[0] * 4 // 2, 128).reshape(x.shape[0], -1)[:, :6]
        + i.view(2 * x.shape[0], -1).reshape(x.shape[0], 256)[:, 6:12]
    ),
    "samples": lambda x, y, p, i, s, k, m: (
        x / x.shape[0]
        + (y.sum(0) - x.shape[0]) * (2 * x.shape[0])
        + x * (1.0 / x.shape[0])
        - y / (x.shape[0] - 0.5)
        + x * (x.shape[0] + 1) ** -0.5
        + (k + x.shape[0])
        + torch.zeros(x.shape[0], 6, dtype=torch.long)
        + torch.ones(x.shape[0], 1, dtype=torch.bool)
        + torch.matmul(torch.eye(x.shape[0]), x)
        + torch.broadcast_tensors(x, y[:, :1])[1]
    ),
    "windows": lambda x, y, p, i, s, k, m: (
        s.unfold(2, 4, 2).sum(1).flatten(1) * s.unfold(2, 3, 3).flatten(1)[:, :12]
        + s.unfold(1, 2, 1).sum(2).mean()
    ),
    "the rest of an axis": lambda x, y, p, i, s, k, m: (
        torch.cat([x[:, :6] * 2.0, x[:, 6:]], 1) * torch.split(x, [0, 4, 2], 1)[2][:, :1]
        + torch.split(x, [0, 6], 1)[1] * x.chunk(1, 1)[0] * x[:, None].unbind(1)[0]
    ),
    "triangle": lambda x, y, p, i, s, k, m: (
        x * m.square[torch.tril_indices(6, 6)[0], torch.tril_indices(6, 6)[1]].sum()
    ),
}
