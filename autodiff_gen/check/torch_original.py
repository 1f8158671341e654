"""A program of torch.export in PyTorch, in float64, without dropout and with the means of other random numbers: what
imported networks are compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..errors import ToolError
from ..frontends.imported.program import WeightView

Arrays = Mapping[str, NDArray[Any]]
DROPOUT = ("dropout", "feature_dropout", "native_dropout", "alpha_dropout")


def _full(size: Any, mean: float) -> Any:
    return torch.full(size, mean, dtype=torch.float64)


# Operators that draw, without overload and without the underscore of those in place -> what computes the mean.
MEANS = {
    "rand": lambda size, **_: _full(size, 0.5),
    "randn": lambda size, **_: _full(size, 0.0),
    "rand_like": lambda x, **_: torch.full_like(x, 0.5),
    "randn_like": lambda x, **_: torch.zeros_like(x),
    "uniform": lambda x, low=0.0, high=1.0, **_: torch.full_like(x, (low + high) / 2),
    "normal": lambda mean=0.0, std=1.0, size=None, **_: (
        mean + 0.0 * std if size is None else _full(size, mean)
    ),
    "normal_": lambda x, mean=0.0, std=1.0, **_: torch.full_like(x, mean),
    "rrelu": lambda x, low, high, *_: torch.nn.functional.leaky_relu(x, (low + high) / 2),
    "exponential": lambda x, rate=1.0, **_: torch.full_like(x, math.log(2.0) / rate),
    "bernoulli": lambda x, **_: (x > 0.5).to(x.dtype),
    "bernoulli_": lambda x, p=0.5, **_: (
        torch.full_like(x, p) if isinstance(p, float) else (p > 0.5).to(x.dtype)
    ),
}


class Original:
    """The program of a file, with the weights of the file. tied: the names of weights that are others -> those; views:
    as those of Program."""

    def __init__(
        self,
        file: Path | IO[bytes],
        tied: Mapping[str, str],
        views: Mapping[str, WeightView],
    ) -> None:
        if not isinstance(file, Path):
            file.seek(0)
        self.module = torch.export.load(file).module()
        self.module.double()
        for node in list(self.module.graph.nodes):
            _prepare(self.module, node)
        self.module.recompile()
        for name, other in tied.items():  # torch.export.load has made two parameters of them
            setattr(*_place(self.module, name), getattr(*_place(self.module, other)))
        share(self.module, views)
        self._start = {name: tensor.detach().clone() for name, tensor in self._states()}

    def outputs(self, inputs: Arrays) -> list[NDArray[Any]]:
        """The results."""
        self._restore()
        return [t.detach().numpy() for t in self._results(inputs)]

    def derivatives(
        self, inputs: Arrays, targets: Sequence[NDArray[Any]]
    ) -> tuple[float, list[Any], dict[str, Any]]:
        """The loss, the outputs, and the gradients by name."""
        self._restore()
        results = self._results(inputs)
        loss = _loss(results, targets)
        _backward(loss)
        gradients = {n: p.grad.numpy() for n, p in self.module.named_parameters() if p.grad is not None}
        return float(loss.detach()), [t.detach().numpy() for t in results], gradients

    def steps(
        self,
        inputs: Arrays,
        targets: Sequence[NDArray[Any]],
        rule: str,
        options: Mapping[str, Any],
        count: int,
    ) -> tuple[dict[str, Any], list[float]]:
        """Parameters and buffers after some steps, and the losses."""
        self._restore()
        trained = [p for p in self.module.parameters() if p.requires_grad]
        optimizer = getattr(torch.optim, rule)(trained, **options)
        losses = []
        for _ in range(count):
            optimizer.zero_grad()
            loss = _loss(self._results(inputs), targets)
            _backward(loss)
            optimizer.step()
            losses.append(float(loss.detach()))
        return {n: t.detach().numpy().copy() for n, t in self._states()}, losses

    def _states(self) -> list[tuple[str, Any]]:
        return [*self.module.named_parameters(), *self.module.named_buffers()]

    def _restore(self) -> None:
        """Parameters and buffers as in the file, without gradients."""
        for name, tensor in self._states():
            tensor.detach().copy_(self._start[name])
            tensor.grad = None

    def _results(self, inputs: Arrays) -> list[Any]:
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # of what the program creates
        try:
            return _flat(self.module(*map(_tensor, inputs.values())))
        finally:
            torch.set_default_dtype(before)


def share(module: Any, views: Mapping[str, WeightView]) -> None:
    """Compute weights that show elements of other ones from those before each call of a module, in which they have
    become weights of their own."""

    def shown(*_: Any) -> None:
        for name, view in views.items():
            owner, attribute = _place(module, name)
            weight = getattr(*_place(module, view.base))
            weight = weight if view.trained else weight.detach()
            vars(owner)[attribute] = weight.flatten()[torch.from_numpy(view.elements)]

    for name in views:
        delattr(*_place(module, name))
    module.register_forward_pre_hook(shown)


def _place(module: Any, name: str) -> tuple[Any, str]:
    """The module that has a parameter, and its attribute."""
    owner, _, attribute = name.rpartition(".")
    return module.get_submodule(owner), attribute


def _flat(results: Any) -> list[Any]:
    results = tuple(results.values()) if isinstance(results, dict) else results
    return [t for part in results for t in _flat(part)] if isinstance(results, tuple | list) else [results]


def _backward(loss: Any) -> None:
    """Raises ToolError for a program that PyTorch itself cannot differentiate."""
    try:
        loss.backward()
    except RuntimeError as error:
        reason = str(error).split(". ")[0].split(": ")[0]
        raise ToolError(
            f"PyTorch cannot train this program ({reason}); save it without run_decompositions"
        ) from None


def _tensor(array: NDArray[Any]) -> Any:
    return torch.from_numpy(np.array(array, np.float64 if array.dtype.kind == "f" else np.int64, order="C"))


def _loss(results: Sequence[Any], targets: Sequence[NDArray[Any]]) -> Any:
    """As in original.py: cross-entropy of class indices, the mean squared error of others, summed."""
    total: Any = 0.0
    for result, target in zip(results, targets, strict=True):
        of_classes = target.dtype.kind == "i"
        function = torch.nn.functional.cross_entropy if of_classes else torch.nn.functional.mse_loss
        total = total + function(result, _tensor(target))
    return total


def _prepare(module: Any, node: Any) -> None:
    """Floats of the program are float64; dropout is left out."""

    def wider(given: Any) -> Any:
        return torch.float64 if given is torch.float32 else given

    node.args = tuple(map(wider, node.args))
    node.kwargs = {k: wider(v) for k, v in node.kwargs.items()}
    name = str(node.target)
    if node.op == "get_attr":
        owner, _, attribute = name.rpartition(".")
        held = module.get_submodule(owner)
        tensor = getattr(held, attribute)
        if isinstance(tensor, torch.Tensor) and tensor.dtype == torch.float32:
            setattr(held, attribute, tensor.double())
    words = name.split(".")
    if words[:2] == ["autodiff_gen", "grad"]:
        *_, xs = node.args  # the program does not say which tensors it records gradients of
        for x in xs:
            with module.graph.inserting_after(x):
                module.graph.call_function(_recorded, (x,))
    if len(words) == 3 and words[0] == "aten":
        node.target = MEANS.get(words[1], MEANS.get(words[1].rstrip("_"), node.target))
        _without_dropout(node, words[1].rstrip("_"))
        if words[1] == "copy" or words[1:] == ["fill", "Tensor"]:  # PyTorch has no derivative of these
            node.target, node.args = torch.ops.aten.expand_as.default, node.args[1::-1]


def _recorded(x: Any) -> None:
    if not x.requires_grad:
        x.requires_grad_()


def _without_dropout(node: Any, op: str) -> None:
    if op in DROPOUT:
        node.args = (node.args[0], 0.0, *node.args[2:])
    elif op in ("gru", "lstm", "rnn_tanh", "rnn_relu"):
        node.args = (*node.args[:5], 0.0, *node.args[6:])
    elif op == "scaled_dot_product_attention" and len(node.args) > 4:
        node.args = (*node.args[:4], 0.0, *node.args[5:])
    if "dropout_p" in node.kwargs:
        node.kwargs = {**node.kwargs, "dropout_p": 0.0}
