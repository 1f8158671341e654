"""Layers and losses with the names, arguments, defaults and initialisation of torch.nn.

A `Module` holds parameters and modules as attributes and computes in `forward`. Parameters get their names
(those of PyTorch's state_dict) and their seeds when the outermost module is first called, or asked for its
parameters: a seed follows from the position in that module.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from . import functional as F
from . import init
from .dtypes import Type, f32
from .errors import ModelError
from .functional import torch_lacks
from .ir import STATE, State, Value, make_state


class Parameter:
    """A parameter before it has a name: an initialiser or an array. Becomes a graph value when its module is
    first called."""

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        self.data, self.requires_grad = data, requires_grad
        self.value: Value | None = None

    def bind(self, name: str, seed: int) -> Value:
        """The graph value; named by the first call."""
        if self.value is None:
            first = init.initialiser(name, self.data, seed)
            self.value = make_state(State(name, Type(f32, first.shape), first, self.requires_grad))
        return self.value


class Module:
    """Base of all layers and of the user's own networks: set parameters and modules as attributes, define
    `forward`."""

    def __init__(self) -> None:
        self._members()

    def _members(self) -> tuple[dict[str, Parameter | None], dict[str, Module | None]]:
        """The parameters and the modules by attribute; made on first use, so that a forgotten
        super().__init__() does no harm."""
        own = self.__dict__
        return own.setdefault("_parameters", {}), own.setdefault("_modules", {})

    def __setattr__(self, name: str, value: Any) -> None:
        parameters, modules = self._members()
        if isinstance(value, Value) and value.node.op is STATE:
            bound = Parameter(value.node.attrs["state"].init)
            bound.value = value
            value = bound
        for store in (parameters, modules, self.__dict__):
            store.pop(name, None)
        if isinstance(value, Parameter):
            parameters[name] = value
        elif isinstance(value, Module):
            modules[name] = value
        else:
            self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        parameters, modules = self._members()
        if name in parameters:
            parameter = parameters[name]
            return parameter.value if parameter is not None and parameter.value is not None else parameter
        if name in modules:
            return modules[name]
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set a parameter, or note that there is none (a layer without bias)."""
        self.__dict__.pop(name, None)
        self._members()[0][name] = param

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and those below it, each once, in state_dict order."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            below = [
                (f"{name}.{k}" if name else k, m) for k, m in module._members()[1].items() if m is not None
            ]
            stack.extend(reversed(below))

    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Value]]:
        """(name, graph value) of every parameter, each once, in state_dict order."""
        seen: set[int] = set()
        for module_name, module in self.named_modules(prefix):
            for k, parameter in module._members()[0].items():
                if parameter is not None and id(parameter) not in seen:
                    seen.add(id(parameter))
                    value = parameter.bind(f"{module_name}.{k}" if module_name else k, seed=len(seen))
                    yield value.node.attrs["state"].name, value

    def parameters(self) -> Iterator[Value]:
        return (v for _, v in self.named_parameters())

    def children(self) -> Iterator[Module]:
        return (m for m in self._members()[1].values() if m is not None)

    def forward(self, *inputs: Any) -> Any:
        raise ModelError(f"{type(self).__name__} defines no forward method")

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        for _ in self.named_parameters():  # gives names to those that have none yet
            pass
        return self.forward(*inputs, **options)


class Sequential(Module):
    """Modules one after the other; named "0", "1", ... or by the keys of an OrderedDict."""

    def __init__(self, *modules: Module | OrderedDict[str, Module]) -> None:
        super().__init__()
        named: list[tuple[str, object]]
        if len(modules) == 1 and isinstance(modules[0], dict):
            named = list(modules[0].items())
        else:
            named = [(str(i), m) for i, m in enumerate(modules)]
        for name, module in named:
            if not isinstance(module, Module):
                raise ModelError(
                    f"Sequential: {name!r} is {module!r}, not a module; did you forget the parentheses?"
                )
            self._members()[1][name] = module

    def __len__(self) -> int:
        return len(self._members()[1])

    def __getitem__(self, index: int) -> Module:
        return list(self.children())[index]

    def __iter__(self) -> Iterator[Module]:
        return self.children()

    def forward(self, input: Any) -> Any:
        for module in self.children():
            input = module(input)
        return input


class Linear(Module):
    """y = x . weight' + bias; weight [out_features, in_features]. Both start uniform within 1 /
    sqrt(in_features)."""

    @torch_lacks(device=None, dtype=None)
    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__()
        for name, n in (("in_features", in_features), ("out_features", out_features)):
            if not isinstance(n, int) or n < 1:
                raise ModelError(f"Linear: {name}={n!r} must be a whole number of at least 1")
        self.in_features, self.out_features = in_features, out_features
        bound = 1.0 / math.sqrt(in_features)
        self.weight = Parameter(init.uniform((out_features, in_features), bound))
        if bias:
            self.bias = Parameter(init.uniform((out_features,), bound))
        else:
            self.register_parameter("bias", None)

    def forward(self, input: Any) -> Value:
        return F.linear(input, self.weight, self.bias)


class Identity(Module):
    def forward(self, input: Any) -> Any:
        return input


class Sigmoid(Module):
    def forward(self, input: Any) -> Value:
        return F.sigmoid(input)


class Tanh(Module):
    def forward(self, input: Any) -> Value:
        return F.tanh(input)


class ReLU(Module):
    """max(x, 0). `inplace` is accepted and means nothing: the planner decides where results lie."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.relu(input)


class ReLU6(Module):
    """x between 0 and 6. `inplace` means nothing, here and below."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.relu6(input)


class Hardtanh(Module):
    @torch_lacks(min_value=None, max_value=None)
    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.min_val, self.max_val = min_val, max_val

    def forward(self, input: Any) -> Value:
        return F.hardtanh(input, self.min_val, self.max_val)


class LeakyReLU(Module):
    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope

    def forward(self, input: Any) -> Value:
        return F.leaky_relu(input, self.negative_slope)


class ELU(Module):
    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha

    def forward(self, input: Any) -> Value:
        return F.elu(input, self.alpha)


class SELU(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.selu(input)


class GELU(Module):
    """x times the normal distribution's integral up to x; approximate="tanh" is a formula without erf."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Any) -> Value:
        return F.gelu(input, self.approximate)


class SiLU(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.silu(input)


class Mish(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.mish(input)


class Softplus(Module):
    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Any) -> Value:
        return F.softplus(input, self.beta, self.threshold)


class Softsign(Module):
    def forward(self, input: Any) -> Value:
        return F.softsign(input)


class Hardsigmoid(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.hardsigmoid(input)


class Hardswish(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()

    def forward(self, input: Any) -> Value:
        return F.hardswish(input)


class LogSigmoid(Module):
    def forward(self, input: Any) -> Value:
        return F.logsigmoid(input)


class Softmax(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.softmax(input, self.dim)


class LogSoftmax(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Any) -> Value:
        return F.log_softmax(input, self.dim)


class Flatten(Module):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Any) -> Value:
        return F.flatten(input, self.start_dim, self.end_dim)


class _Loss(Module):
    """A loss over (input, target); `reduction` is "mean", "sum" or "none"."""

    takes_classes = False  # whether the target holds class indices, for Model.supervised

    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        if reduction not in ("mean", "sum", "none"):
            raise ModelError(f'{type(self).__name__}: reduction={reduction!r}; known: "mean", "sum", "none"')
        self.reduction = reduction


class NLLLoss(_Loss):
    """Of log-probabilities f32[N, C] and class indices [N]."""

    takes_classes = True

    @torch_lacks(weight=None, size_average=None, ignore_index=-100, reduce=None)
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Value:
        return F.nll_loss(input, target, self.reduction)


class CrossEntropyLoss(_Loss):
    """Of scores f32[N, C] and class indices [N] or probabilities f32[N, C]."""

    takes_classes = True

    @torch_lacks(weight=None, size_average=None, ignore_index=-100, reduce=None, label_smoothing=0.0)
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Value:
        return F.cross_entropy(input, target, self.reduction)


class MSELoss(_Loss):
    """Of values and targets of one shape."""

    @torch_lacks(size_average=None, reduce=None)
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Value:
        return F.mse_loss(input, target, self.reduction)


class BCELoss(_Loss):
    """Of probabilities and targets in [0, 1] of one shape."""

    @torch_lacks(weight=None, size_average=None, reduce=None)
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__(reduction)

    def forward(self, input: Any, target: Any) -> Value:
        return F.binary_cross_entropy(input, target, self.reduction)
