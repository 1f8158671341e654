"""A module of PyTorch or a program of torch.export, in float64, without dropout and with the means of other random
numbers: the reference for imported networks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils._python_dispatch import TorchDispatchMode

from ..errors import ModelError, ToolError
from ..frontends.imported.program import WeightView
from ..frontends.pytorch.export import silence
from ..frontends.pytorch.python_state import state_kept
from ..frontends.pytorch.weight_aliases import shown_weights
from .pt2_copy import safe_copy

Arrays = Mapping[str, NDArray[Any]]
WIDER = {torch.float32: torch.float64, torch.complex64: torch.complex128}
DROPOUT = ("dropout", "feature_dropout", "native_dropout", "alpha_dropout")


def _full(size: Any, mean: float) -> Any:
    return torch.full(size, mean, dtype=torch.float64)


# Operators of random numbers -> the function that computes their mean. A name is without its overload; an in-place
# operator has its own entry, or the entry without the underscore.
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


def loaded(file: Path | IO[bytes]) -> Any:
    """The program of a file as a module in float64, without dropout and with the means of random numbers. Raises
    ModelError."""
    if not isinstance(file, Path):
        file.seek(0)
    given = safe_copy(file) if isinstance(file, Path) else file
    name = file.name if isinstance(file, Path) else "the program"
    try:
        with silence():
            module = torch.export.load(given).module()
    except Exception:  # PyTorch has no common class for damaged files
        raise ModelError(
            f"{name} cannot be loaded by PyTorch {torch.__version__}: it is damaged, or was exported by another "
            "version; export it anew by this one"
        ) from None
    module.double()
    for node in list(module.graph.nodes):
        _make_deterministic(module, node)
    module.recompile()
    return module


@contextmanager
def reference_module(
    given: Any, tied: Mapping[str, str], views: Mapping[str, WeightView]
) -> Iterator[ReferenceModule]:
    """The program of a file, or a module itself with all its hooks; the module is restored afterwards. tied: the name
    of a weight -> the name of the weight that it shares memory with; views: ImportedProgram.views."""
    if not isinstance(given, torch.nn.Module):
        module = loaded(given)
        share(module, tied, views)
        yield ReferenceModule(module)
        return
    with state_kept(torch, given), shown_weights(torch, given, type(given).__name__):
        given.zero_grad()
        given.double()
        share(given, tied, views)
        yield ReferenceModule(given, _Wide)


class ReferenceModule:
    """A module in float64, called, differentiated and trained as a user does. mode: makes the context in which it
    runs."""

    def __init__(self, module: Any, mode: Any = nullcontext) -> None:
        self.module, self.mode = module, mode
        self._start = {name: tensor.detach().clone() for name, tensor in self._states()}

    def outputs(self, inputs: Arrays) -> list[NDArray[Any]]:
        self._restore()
        return [t.detach().numpy() for t in self._results(inputs)]

    def derivatives(
        self, inputs: Arrays, targets: Sequence[NDArray[Any]]
    ) -> tuple[float, list[Any], dict[str, Any]]:
        """The loss, the outputs, and the gradients by name."""
        self._restore()
        loss, results = self._step(inputs, targets)
        named = self.module.named_parameters(remove_duplicate=False)
        gradients = {n: p.grad.numpy() for n, p in named if p.grad is not None}
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
            loss, _ = self._step(inputs, targets)
            optimizer.step()
            losses.append(float(loss.detach()))
        return {n: t.detach().numpy().copy() for n, t in self._states()}, losses

    def _states(self) -> list[tuple[str, Any]]:
        module = self.module
        return [
            *module.named_parameters(remove_duplicate=False),
            *module.named_buffers(remove_duplicate=False),
        ]

    def _restore(self) -> None:
        """Reset parameters and buffers to their first values, without gradients."""
        for name, tensor in self._states():
            tensor.detach().copy_(self._start[name])
            tensor.grad = None

    def _step(self, inputs: Arrays, targets: Sequence[NDArray[Any]]) -> tuple[Any, list[Any]]:
        """The loss, differentiated, and the results."""
        with self._running():
            results = _flat(self.module(*map(_tensor, inputs.values())))
            loss = _loss(results, targets)
            loss.backward()
        return loss, results

    def _results(self, inputs: Arrays) -> list[Any]:
        with self._running():
            return _flat(self.module(*map(_tensor, inputs.values())))

    @contextmanager
    def _running(self) -> Iterator[None]:
        """Raises ToolError for networks that PyTorch itself cannot run or differentiate."""
        before = torch.get_default_dtype()
        torch.set_default_dtype(torch.float64)  # for tensors that the program creates
        try:
            with self.mode():
                yield
        except (RuntimeError, TypeError, ValueError, IndexError) as error:
            reason = str(error).split(". ")[0].split(": ")[0].splitlines()[0]
            of_file = "" if self.mode is _Wide else "; save it without run_decompositions"
            raise ToolError(f"PyTorch cannot train this program in float64 ({reason}){of_file}") from None
        finally:
            torch.set_default_dtype(before)


def share(module: Any, tied: Mapping[str, str], views: Mapping[str, WeightView]) -> None:
    """Let weights share memory again, after a conversion to float64 or a file separated them. A weight in `tied`
    becomes the weight that it equals. A weight in `views`, which shows elements of another weight, is computed from it
    before each call."""
    paths = dict(module.named_modules())
    hooks: dict[str, list[Any]] = {}  # of the weights that are computed

    def held(name: str) -> bool:
        path, _, attribute = name.rpartition(".")
        return path in paths and hasattr(paths[path], attribute)

    def shown(*_: Any) -> None:
        for name in hooks:
            owner, attribute = _place(module, name)
            view = views[name]
            weight = getattr(*_place(module, view.base))
            weight = weight if view.trained else weight.detach()
            made = weight.flatten()[torch.from_numpy(view.elements)]
            vars(owner)[attribute] = made
            for hook in hooks[name] if made.requires_grad else ():
                made.register_hook(hook)

    for name, other in tied.items():
        if held(name) and held(other):
            setattr(*_place(module, name), getattr(*_place(module, other)))
    for name, view in views.items():
        if held(name) and held(view.base):
            hooks[name] = list((getattr(*_place(module, name))._backward_hooks or {}).values())
            delattr(*_place(module, name))
    module.register_forward_pre_hook(shown)


class _Wide(TorchDispatchMode):  # type: ignore[misc]
    """While a module runs: floats that it creates or holds are float64, and random numbers are their mean."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func._overloadpacket.__name__
        in_place = name.endswith("_")
        first = args[:1] if in_place else tuple(map(_wide, args[:1]))
        args, kwargs = (*first, *map(_wide, args[1:])), {k: _wide(v) for k, v in (kwargs or {}).items()}
        if name.startswith("rrelu_with_noise"):
            x, noise, low, high, *_ = args
            noise.copy_(torch.where(x < 0, (low + high) / 2, 1.0))
            return x.mul_(noise) if in_place else x * noise
        mean: Any = MEANS.get(name, MEANS.get(name.rstrip("_")))
        if mean is None:
            return func(*args, **kwargs)
        return args[0].copy_(mean(*args, **kwargs)) if in_place else mean(*args, **kwargs)


def _wide(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return given.to(_wide(given.dtype)) if given.dtype in WIDER else given
    if type(given) in (tuple, list):
        return type(given)(map(_wide, given))
    return WIDER.get(given, given) if isinstance(given, torch.dtype) else given


def _place(module: Any, name: str) -> tuple[Any, str]:
    """The module that has a parameter, and its attribute."""
    owner, _, attribute = name.rpartition(".")
    return module.get_submodule(owner), attribute


def _flat(results: Any) -> list[Any]:
    results = tuple(results.values()) if isinstance(results, dict) else results
    return [t for part in results for t in _flat(part)] if isinstance(results, tuple | list) else [results]


def _tensor(array: NDArray[Any]) -> Any:
    return torch.from_numpy(np.array(array, np.float64 if array.dtype.kind == "f" else np.int64, order="C"))


def _loss(results: Sequence[Any], targets: Sequence[NDArray[Any]]) -> Any:
    """The loss of in compare_torch.py: cross-entropy of class indices and the mean squared error of others, summed."""
    total: Any = 0.0
    for result, target in zip(results, targets, strict=True):
        of_classes = target.dtype.kind == "i"
        function = torch.nn.functional.cross_entropy if of_classes else torch.nn.functional.mse_loss
        total = total + function(result, _tensor(target))
    return total


def _make_deterministic(module: Any, node: Any) -> None:
    """Change a node of the program: its floats become float64, dropout gets probability 0, and random numbers become
    their mean."""

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
