"""A network, its samples and weights for rounds of federated training."""

from __future__ import annotations

import struct

import numpy as np

import autodiff_gen as ag
from autodiff_gen import nn, optim
from autodiff_gen.device.rounds import LocalWork, Round, shared_slots

RECORDS, WIDTH, CLASSES = 23, 12, 4


def network():
    return nn.Sequential(nn.Linear(WIDTH, 9), nn.BatchNorm1d(9), nn.Tanh(), nn.Linear(9, CLASSES))


def build(net, width=WIDTH, optimizer=None):
    return ag.Model.supervised(
        net, input=(5, width), loss=nn.CrossEntropyLoss(), optimizer=optimizer or optim.Adam(lr=0.01)
    )


def weights_of(program, rng):
    return {
        s.name: np.abs(rng.normal(0, 0.3, s.state.logical.shape)).astype(np.float32) + 0.01
        if s.role == "buffer"
        else rng.normal(0, 0.3, s.state.logical.shape).astype(np.float32)
        for s in shared_slots(program)
    }


WORK = LocalWork(steps=11, lr=0.02, seed=7)


def batches(library, samples, work, n=5):
    """The samples of each step, in the order of the board."""
    at = [
        library.c.ag_round_sample(k % RECORDS, RECORDS, work.seed, k // RECORDS)
        for k in range(work.steps * n)
    ]
    for k in range(work.steps):
        rows = samples.records[at[k * n : (k + 1) * n]]
        yield rows[:, :-1].astype(np.float32) / np.float32(255), rows[:, -1]


def whole_round(board, number, weights):
    round_ = Round(board, number, weights)
    round_.train(WORK)
    return round_.delta("s8", 9)


def request(board, number, layout, *numbers):
    """The status of a request."""
    return board.link.exchange(number, struct.pack(layout, *numbers))[0]
