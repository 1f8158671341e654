"""Evaluate a graph op by op in PyTorch, and differentiate it by autograd: an independent backward pass. `floats`: the
dtype of all floats, float64, or float32 to see the effect of rounding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ..ir.interpreter import bind
from ..ir.node import CONST, Node, Region, Value, topological
from ..ir.op_kinds import Cond, Leaf, Scan
from ..ir.types import u32


class NoTorch(Exception):
    """An op between a parameter and the loss has no PyTorch expression; the argument is its name."""


def torch_gradients(
    loss: Value, variables: Sequence[Value], feeds: Mapping[Value, Any], n: int, floats: str = "float64"
) -> list[Any]:
    """d loss / d variable as arrays. `feeds`: arrays for all inputs and states; `n`: the batch size. Raises NoTorch."""
    evaluation = _Evaluation(n, floats)
    env = evaluation.input_tensors(feeds, variables)
    evaluation.run([loss], env)
    grads = torch.autograd.grad(env[loss], [env[v] for v in variables], allow_unused=True)
    return [np.zeros(env[v].shape) if g is None else g.numpy() for v, g in zip(variables, grads, strict=True)]


def torch_values(
    roots: Sequence[Value], feeds: Mapping[Value, Any], n: int, floats: str = "float64"
) -> list[Any]:
    """The values of `roots` as NumPy arrays."""
    evaluation = _Evaluation(n, floats)
    env = evaluation.input_tensors(feeds, ())
    evaluation.run(roots, env)
    return [env[v].detach().numpy() for v in roots]


@dataclass(frozen=True)
class _Evaluation:
    n: int  # the batch size
    floats: str

    def input_tensors(self, feeds: Mapping[Value, Any], variables: Sequence[Value]) -> dict[Value, Any]:
        env = {v: self._tensor(array, v) for v, array in feeds.items()}
        for v in variables:
            env[v].requires_grad_()
        return env

    def run(self, roots: Sequence[Value], env: dict[Value, Any]) -> None:
        """Add the roots and the values that they depend on to `env`."""
        for node in topological(roots):
            if node.results[0] not in env:
                env.update(zip(node.results, self._compute(node, env), strict=True))

    def _tensor(self, array: Any, v: Value) -> Any:
        return torch.from_numpy(np.array(array, dtype=self._name(v)))

    def _name(self, v: Value) -> str:
        return self.floats if v.type.dtype.kind == "f" else v.type.dtype.numpy

    def _compute(self, node: Node, env: Mapping[Value, Any]) -> list[Any]:
        if node.op is CONST:
            return [self._tensor(node.attrs.get("exact", node.attrs["value"]), node.results[0])]
        assert not isinstance(node.op.lower, Leaf), node.results[0]
        operands = [env[v] for v in node.operands]
        if isinstance(node.op.lower, Scan):
            return self._scan(node, operands)
        if isinstance(node.op.lower, Cond):
            return self._region(node.regions[0 if operands[0] else 1], operands[1:])
        attrs = {k: bind(a, self.n) for k, a in node.attrs.items()}
        # PyTorch has few ops for uint32 (counters, random bits), which has no gradient.
        in_numpy = any(v.type.dtype is u32 for v in (*node.operands, *node.results))
        if node.op.torch is not None and not in_numpy:
            names = dict(zip("abcdefgh", operands, strict=False))
            # All names are globals, because lambdas in an expression cannot access locals of eval.
            out = eval(node.op.torch, {"torch": torch, **attrs, **names, "operands": operands})
        elif any(t.requires_grad for t in operands):
            raise NoTorch(node.op.name)
        else:
            out = node.op.ref(*(t.numpy() for t in operands), **attrs)
        outs = out if isinstance(out, tuple) else (out,)
        return [self._cast(o, r) for o, r in zip(outs, node.results, strict=True)]

    def _region(self, region: Region, given: Sequence[Any]) -> list[Any]:
        env = dict(zip(region.params, given, strict=True))
        self.run(region.results, env)
        return [env[v] for v in region.results]

    def _scan(self, node: Node, given: Sequence[Any]) -> list[Any]:
        """The loop of a scan, as in ops/control_flow/scan.py."""
        (region,), carries, xs = node.regions, node.attrs["carries"], node.attrs["xs"]
        times = range(node.attrs["length"])
        state = list(given[:carries])
        out: list[list[Any]] = [[] for _ in times]
        for t in reversed(times) if node.attrs["reverse"] else times:
            arguments = [*state, *(x[t] for x in given[carries : carries + xs]), *given[carries + xs :]]
            results = self._region(region, arguments)
            state, out[t] = results[:carries], results[carries:]
        stacks = zip(zip(*out, strict=True), node.attrs["axes"], strict=True)
        return [*state, *(torch.stack(values, axis) for values, axis in stacks)]

    def _cast(self, out: Any, result: Value) -> Any:
        if not isinstance(out, torch.Tensor):
            return self._tensor(out, result)
        return out.to(getattr(torch, self._name(result)))
