"""Operators of PyTorch that layers use: convolutions, normalisation, attention, recurrent cells, random numbers."""

import torch
from torch.nn import functional as F


def gradients(x, y):
    return sum(torch.autograd.grad((torch.sin(x) * y * y).sum(), (x, y), create_graph=True))


# The arguments: test_aten.py.
LAYERS = {
    "images": lambda x, y, p, i, s, k, m: (
        F.pixel_unshuffle(F.pixel_shuffle(i, 2), 4)[:, :4].mean((2, 3), keepdim=True)
        + F.channel_shuffle(i, 2)[:, :, :1, :1]
        + F.interpolate(i, scale_factor=2)
        + F.interpolate(i, (16, 16), mode="bilinear", align_corners=True)
    ),
    "convolutions": lambda x, y, p, i, s, k, m: (
        F.conv2d(i, m.kernel, stride=2, padding=1)[:, :, :3, :3]
        + F.conv2d(i, m.kernel[:, :2], padding="same", groups=2, dilation=2)[:, :, :3, :3]
        + F.conv_transpose2d(i, m.kernel, stride=2, padding=1, output_padding=1)[:, :, :3, :3]
        + F.conv1d(s, m.kernel[:, :, 0], stride=2)[:, :, None, :3]
        + F.conv_transpose1d(s, m.kernel[:, :, 0], stride=2, padding=1)[:, :, None, :3]
    ),
    "pooling": lambda x, y, p, i, s, k, m: (
        F.max_pool2d(i, 2)
        + F.avg_pool2d(i, 3, 2, 1, count_include_pad=False)
        + F.adaptive_avg_pool2d(i, (4, 4))
        + F.adaptive_max_pool2d(i, 4)
    ),
    "pooling of signals": lambda x, y, p, i, s, k, m: (
        F.max_pool1d(s, 3) + F.avg_pool1d(s, 3) + F.adaptive_avg_pool1d(s, 3) + F.adaptive_max_pool1d(s, 3)
    ),
    "normalisation": lambda x, y, p, i, s, k, m: (
        F.layer_norm(i, (8, 8))
        + F.group_norm(i, 2)
        + F.instance_norm(i, eps=0.01)
        + F.rms_norm(i, (8,), eps=0.1)
        + m.norm(i)
        + F.local_response_norm(i, 3, 0.5)
        + F.local_response_norm(i.flatten(2), 2, 0.5).view_as(i)
    ),
    "embedding": lambda x, y, p, i, s, k, m: (
        F.embedding(k, m.square, padding_idx=1).sum(1) + m.words(k).sum(1)
    ),
    "attention": lambda x, y, p, i, s, k, m: F.scaled_dot_product_attention(
        i, i, i, attn_mask=m.square[:1, :1] * torch.ones(8, 8), scale=0.4
    ),
    "dropout": lambda x, y, p, i, s, k, m: m.dropouts(i) + F.dropout(i, 0.3),
    "random": lambda x, y, p, i, s, k, m: (
        x * torch.randn_like(y)
        + (x + torch.rand_like(x)) * torch.floor(torch.rand(x.shape[0], 1) + 0.8)
        + (torch.bernoulli(torch.sigmoid(x)) + torch.randn(6) - torch.normal(y, p)) * y
        + F.gumbel_softmax(x, 0.5)
    ),
    "random_in_place": lambda x, y, p, i, s, k, m: (
        x.new_empty(x.shape[0], 1).bernoulli_(0.8) * torch.empty_like(y).normal_(1.0, 0.1)
        + torch.empty_like(y).uniform_(-1.0, 2.0) * y
        + torch.normal(1.0, 0.5, (6,))
    ),
    "grids": lambda x, y, p, i, s, k, m: F.grid_sample(
        i, F.affine_grid(x.view(-1, 2, 3), i.shape, align_corners=False) / 2, align_corners=False
    ).sum((2, 3)),
    "gradients": lambda x, y, p, i, s, k, m: gradients(x.clone(), m.prelu(y)),
    "recurrent": lambda x, y, p, i, s, k, m: (
        m.gru(s)[0] + m.lstm(s)[0] + m.rnn(s)[0] + m.relu_rnn(s, torch.zeros(1, s.shape[0], 3) + 0.5)[0]
    ),
    "cells": lambda x, y, p, i, s, k, m: (
        m.gru_cell(x, y) + m.lstm_cell(x, (y, x))[0] + m.rnn_cell(x, y) + m.relu_cell(x, y)
    ),
}
