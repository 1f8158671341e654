"""JAX: loss, gradient and update of one step under jit, parameters donated; one thread."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"

import jax
import numpy as np
from jax import lax
from jax import numpy as jnp
from workload import Workload


def linear(p: dict[str, Any], name: str, x: Any) -> Any:
    y = x @ p[f"{name}.weight"].T
    return y + p[f"{name}.bias"] if f"{name}.bias" in p else y


def conv(p: dict[str, Any], name: str, x: Any, stride: int = 1, pad: int = 0, groups: int = 1) -> Any:
    y = lax.conv_general_dilated(
        x, p[f"{name}.weight"], (stride, stride), ((pad, pad), (pad, pad)), feature_group_count=groups
    )
    return y + p[f"{name}.bias"][None, :, None, None]


def pool(x: Any) -> Any:
    return lax.reduce_window(x, -jnp.inf, lax.max, (1, 1, 2, 2), (1, 1, 2, 2), "VALID")


def relu6(x: Any) -> Any:
    """With a gradient of 0 at 0 and 6, as in PyTorch; jax.nn.relu6 has 1/2."""
    return jnp.where(x > 0.0, jnp.where(x < 6.0, x, 6.0), 0.0)


def w1(p: dict[str, Any], x: Any) -> Any:
    return linear(p, "2", jax.nn.sigmoid(linear(p, "0", x)))


def w2(p: dict[str, Any], x: Any) -> Any:
    return linear(p, "2", jax.nn.relu(linear(p, "0", x)))


def lenet(p: dict[str, Any], x: Any) -> Any:
    x = pool(jax.nn.relu(conv(p, "0", x)))
    x = pool(jax.nn.relu(conv(p, "3", x)))
    x = jax.nn.relu(linear(p, "7", x.reshape(len(x), -1)))
    return linear(p, "11", jax.nn.relu(linear(p, "9", x)))


def w5(p: dict[str, Any], x: Any) -> Any:
    return linear(p, "4", jnp.tanh(linear(p, "2", jnp.tanh(linear(p, "0", x)))))


def w6(p: dict[str, Any], x: Any) -> Any:
    x = relu6(conv(p, "0", x, 2, 1))
    for name, stride, hidden, residual in (("2", 1, 48, True), ("3", 2, 48, False), ("4", 1, 72, True)):
        y = relu6(conv(p, f"{name}.expand", x))
        y = relu6(conv(p, f"{name}.depthwise", y, stride, 1, hidden))
        y = conv(p, f"{name}.project", y)
        x = y + x if residual else y
    return linear(p, "7", x.mean((2, 3)))


NETS = {"w1": w1, "w2": w2, "w3b1": lenet, "w3b8": lenet, "w4": w2, "w5": w5, "w6": w6}


def cross_entropy(scores: Any, labels: Any) -> Any:
    return -jnp.take_along_axis(jax.nn.log_softmax(scores), labels[:, None], 1).mean()


class Jax:
    """Steps of one workload."""

    def __init__(self, workload: Workload) -> None:
        self._workload = workload
        net = NETS[workload.name]

        def loss_of(p: dict[str, Any], x: Any, y: Any) -> Any:
            found = net(p, x)
            return jnp.square(found - y).sum() if workload.name == "w5" else cross_entropy(found, y)

        @partial(jax.jit, donate_argnums=0)
        def step(p: dict[str, Any], x: Any, y: Any) -> Any:
            loss, gradients = jax.value_and_grad(loss_of)(p, x, y)
            return jax.tree.map(lambda v, g: v - workload.lr * g, p, gradients), loss

        self._step = step
        y = workload.y if workload.y.dtype == np.float32 else workload.y.astype(np.int32)
        self._batches = [(jnp.asarray(a), jnp.asarray(b)) for a, b in zip(workload.x, y, strict=True)]

    def _start(self) -> dict[str, Any]:
        return {k: jnp.array(v) for k, v in self._workload.weights.items()}

    def losses(self, steps: int) -> list[float]:
        """The losses of the first steps."""
        p, losses = self._start(), []
        for i in range(steps):
            p, loss = self._step(p, *self._batches[i % len(self._batches)])
            losses.append(float(loss))
        return losses

    def seconds(self, steps: int) -> float:
        """Processor time of the first steps in seconds."""
        p = jax.block_until_ready(self._start())
        start = time.process_time()
        for i in range(steps):
            p, loss = self._step(p, *self._batches[i % len(self._batches)])
        jax.block_until_ready((p, loss))
        return time.process_time() - start
