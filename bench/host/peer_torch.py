"""PyTorch: eager, and torch.compile of network and loss. One thread; the optimizer is torch.optim.SGD."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from workload import Workload

torch.set_num_threads(1)


class Block(nn.Module):
    """W6: pointwise, relu6, depthwise 3x3, relu6, pointwise; plus the input where the shape is unchanged."""

    def __init__(self, inputs: int, hidden: int, outputs: int, stride: int = 1) -> None:
        super().__init__()
        self.expand = nn.Conv2d(inputs, hidden, 1)
        self.depthwise = nn.Conv2d(hidden, hidden, 3, stride, 1, groups=hidden)
        self.project = nn.Conv2d(hidden, outputs, 1)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x: Any) -> Any:
        y = self.project(F.relu6(self.depthwise(F.relu6(self.expand(x)))))
        return y + x if self.residual else y


def lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 6, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10)),
    )


NETS = {
    "w1": lambda: nn.Sequential(
        nn.Linear(784, 32, bias=False), nn.Sigmoid(), nn.Linear(32, 10, bias=False), nn.LogSoftmax(dim=1)
    ),
    "w2": lambda: nn.Sequential(nn.Linear(784, 32, bias=False), nn.ReLU(), nn.Linear(32, 10, bias=False)),
    "w3b1": lenet,
    "w3b8": lenet,
    "w4": lambda: nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 2)),
    "w5": lambda: nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 1)),
    "w6": lambda: nn.Sequential(
        *(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU6(), Block(16, 48, 16), Block(16, 48, 24, 2), Block(24, 72, 24)),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)),
    ),
}
LOSSES = {"w1": F.nll_loss, "w5": lambda y, target: F.mse_loss(y, target, reduction="sum")}


class Torch:
    """Steps of one workload; `compiled` uses torch.compile in its default mode."""

    def __init__(self, workload: Workload, compiled: bool = False) -> None:
        self._workload = workload
        self._net = workload.network(nn) if workload.network else NETS[workload.name]()
        loss = LOSSES.get(workload.name, F.cross_entropy)
        torch._dynamo.reset()  # its limit of 8 compilations is one for all workloads
        forward = lambda x, y: loss(self._net(x), y)
        self._forward = torch.compile(forward) if compiled else forward
        own = self._net.state_dict()  # it has the statistics that do not change
        self._weights = {**own, **{k: torch.tensor(v) for k, v in workload.weights.items()}}
        self._optimizer = torch.optim.SGD(self._net.parameters(), lr=workload.lr)
        y = torch.tensor(workload.y)
        y = y if y.dtype == torch.float32 else y.long()
        self._batches = list(zip(torch.tensor(workload.x), y, strict=True))

    def _steps(self, steps: int) -> list[Any]:
        losses = []
        for i in range(steps):
            x, y = self._batches[i % len(self._batches)]
            self._optimizer.zero_grad()
            loss = self._forward(x, y)
            loss.backward()
            self._optimizer.step()
            losses.append(loss.detach())
        return losses

    def losses(self, steps: int) -> list[float]:
        """The losses of the first steps."""
        self._net.load_state_dict(self._weights)
        return [float(v) for v in self._steps(steps)]

    def seconds(self, steps: int) -> float:
        """Processor time of the first steps in seconds."""
        self._net.load_state_dict(self._weights)
        start = time.process_time()
        self._steps(steps)
        return time.process_time() - start
