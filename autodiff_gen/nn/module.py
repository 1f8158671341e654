"""A `Module` holds parameters and modules as attributes and computes in `forward`. Parameters get their names
(those of PyTorch's state_dict) and their seeds when the outermost module is first called, or asked for its
parameters: a seed follows from the position in that module.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import Any

from .. import init
from ..dtypes import Type, f32
from ..errors import ModelError
from ..ir import STATE, State, Value, make_state


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

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Whether the parameters of this module and of those below are trained; said before the network is called.
        Returns the module."""
        for name, module in self.named_modules():
            for k, parameter in module._members()[0].items():
                if parameter is None or parameter.requires_grad == requires_grad:
                    continue
                if parameter.value is not None:
                    raise ModelError(
                        f"requires_grad_: {f'{name}.{k}' if name else k!r} is part of a graph already; call "
                        "requires_grad_ before the network is called or asked for its parameters"
                    )
                parameter.requires_grad = requires_grad
        return self

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
