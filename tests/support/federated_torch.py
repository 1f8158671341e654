"""The federated training of `federated_problem` in PyTorch, in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from federated_problem import CLASSES, HIDDEN, LR, PARTS, ROUNDS, WIDTH, Problem

Server = Callable[[int, Any, Any], Any]  # round, a weight, its mean difference -> the new weight


def averaging() -> list[Server]:
    """Federated averaging, for each weight."""
    return [lambda number, w, delta: w + delta] * 4


def adam(eta: float, beta1: float = 0.9, beta2: float = 0.99, tau: float = 1e-3) -> list[Server]:
    """FedAdam (Reddi et al., 2021, algorithm 2) for each weight, with Flower's correction of the bias."""

    def one() -> Server:
        m = v = 0.0

        def step(number: int, w: Any, delta: Any) -> Any:
            nonlocal m, v
            m = beta1 * m + (1 - beta1) * delta
            v = beta2 * v + (1 - beta2) * delta**2
            rate = eta * np.sqrt(1 - beta2 ** (number + 1)) / (1 - beta1 ** (number + 1))
            return w + rate * m / (v**0.5 + tau)

        return step

    return [one() for _ in range(4)]


def in_pytorch(problem: Problem, servers: list[Server], mu: float = 0.0) -> list[Any]:
    """Weights after the rounds: local SGD on each board's samples, w -= lr mu (w - w0) after each step, the mean of the
    differences weighted by the samples, and a server's step of each weight."""
    net = torch.nn.Sequential(
        torch.nn.Linear(WIDTH, HIDDEN), torch.nn.Tanh(), torch.nn.Linear(HIDDEN, CLASSES)
    ).double()
    start = [torch.tensor(problem.weights[slot.name], dtype=torch.float64) for slot in problem.slots]
    for number in range(1, ROUNDS + 1):
        total = [torch.zeros_like(p) for p in start]
        for k, part in enumerate(PARTS):
            with torch.no_grad():
                for p, w in zip(net.parameters(), start, strict=True):
                    p.copy_(w)
            for rows in problem.rows(number, k):
                x = torch.tensor(problem.arrays["x"][rows], dtype=torch.float64)
                loss = torch.nn.functional.cross_entropy(net(x), torch.tensor(problem.arrays["target"][rows]))
                net.zero_grad()
                loss.backward()
                with torch.no_grad():
                    for p, w in zip(net.parameters(), start, strict=True):
                        p -= LR * p.grad
                        p -= LR * mu * (p - w)
            for t, p, w in zip(total, net.parameters(), start, strict=True):
                t += len(part) * (p.detach() - w)
        steps = zip(servers, start, total, strict=True)
        start = [step(number, w, t / sum(map(len, PARTS))) for step, w, t in steps]
    return [w.numpy() for w in start]
