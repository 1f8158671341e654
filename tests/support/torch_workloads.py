"""The workloads of bench/workloads in PyTorch: the same weights, data, loss and update, as an independent trainer."""

import importlib
import sys

import numpy as np
import torch
from checkout import ROOT

sys.path.insert(0, str(ROOT / "bench" / "workloads"))

torch.set_num_threads(1)

F = torch.nn.functional


def lenet(z, weights):
    """W3; `weights()` gives the next layer's weight and bias."""
    for _ in range(2):
        z = F.max_pool2d(torch.relu(F.conv2d(z, *weights())), 2)
    z = torch.relu(F.linear(z.flatten(1), *weights()))
    return F.linear(torch.relu(F.linear(z, *weights())), *weights())


def mobile(z, weights):
    """W6; `weights()` gives the next layer's weight and bias."""
    z = F.relu6(F.conv2d(z, *weights(), stride=2, padding=1))
    for stride in (1, 2, 1):
        y = F.relu6(F.conv2d(z, *weights()))
        y = F.relu6(F.conv2d(y, *weights(), stride=stride, padding=1, groups=y.shape[1]))
        y = F.conv2d(y, *weights())
        z = z + y if stride == 1 else y
    return F.linear(z.mean((2, 3)), *weights())


# name -> (layers after each other, or a function of input and weights; loss over (scores, target), learning rate)
NETS = {
    "w1": (
        ["linear", torch.sigmoid, "linear", lambda z: torch.log_softmax(z, 1)],
        torch.nn.functional.nll_loss,
        0.01,
    ),
    "w2": (["linear", torch.relu, "linear"], torch.nn.functional.cross_entropy, 0.01),
    "w4": (["linear", torch.relu, "linear"], torch.nn.functional.cross_entropy, 0.5),
    "w5": (
        ["linear", torch.tanh, "linear", torch.tanh, "linear"],
        lambda z, t: torch.nn.functional.mse_loss(z, t, reduction="sum"),
        0.01,
    ),
    "w3b1": (lenet, F.cross_entropy, 0.01),
    "w3b8": (lenet, F.cross_entropy, 0.01),
    "w6": (mobile, F.cross_entropy, 0.01),
}
# Loss before steps 1, 2, 3 and 50, as the workload table gives them.
LOSSES = {
    "w1": (2.453889, 2.439670, 2.367322, 2.295177),
    "w2": (2.301092, 2.341620, 2.301990, 2.268713),
    "w3b1": (2.310572, 2.298470, 2.310704, 2.230236),
    "w3b8": (2.305544, 2.302616, 2.302368, 2.304837),
    "w6": (2.529197, 2.176987, 2.492754, 2.293700),
    "w4": (0.752308, 0.727958, 0.707499, 0.120398),
    "w5": (4.335761, 3.993061, 3.694051, 0.066000),
}


def workload(name):
    """The module of bench/workloads: its model, and batch(step)."""
    return importlib.import_module(name)


class Torch:
    """A workload in PyTorch; `state` are the weights by the model's names."""

    def __init__(self, name, state, dtype=torch.float32):
        self.layers, self.loss, lr = NETS[name]
        self.dtype = dtype
        self.parameters = {
            k: torch.tensor(np.asarray(v), dtype=dtype, requires_grad=True) for k, v in state.items()
        }
        self.optimizer = torch.optim.SGD(self.parameters.values(), lr=lr)

    def forward(self, x):
        weights = iter(self.parameters.items())
        ahead = next(weights, None)
        z = torch.tensor(np.asarray(x), dtype=self.dtype)
        if callable(self.layers):
            rest = iter(self.parameters.values())
            return self.layers(z, lambda: (next(rest), next(rest)))
        for layer in self.layers:
            if layer != "linear":
                z = layer(z)
                continue
            weight, bias = ahead[1], None
            ahead = next(weights, None)
            if ahead is not None and ahead[0].endswith("bias"):
                bias, ahead = ahead[1], next(weights, None)
            z = torch.nn.functional.linear(z, weight, bias)
        return z

    def train_step(self, x, target):
        """One step; the loss before it."""
        t = torch.tensor(np.asarray(target))
        t = t.to(self.dtype) if t.is_floating_point() else t.long()
        self.optimizer.zero_grad()
        loss = self.loss(self.forward(x), t)
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def state_dict(self):
        return {k: v.detach().numpy().copy() for k, v in self.parameters.items()}
