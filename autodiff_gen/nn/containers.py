"""Containers of modules and of parameters, as in torch.nn."""

from __future__ import annotations

import itertools
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self

from ..errors import ModelError
from .module import Module
from .parameter import Parameter


class _List(Module):
    """Base of the containers of ordered modules."""

    def append(self, module: Module) -> Self:
        """Append a module. Returns the list."""
        return self.insert(len(self), module)

    def extend(self, modules: Iterable[Module]) -> Self:
        """Append modules. Returns the list."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before the one at `index`; those after it are renamed. Returns the list."""
        modules: list[Module | None] = list(self.children())
        modules.insert(index, module)
        return self._with(modules)

    def _with(self, modules: Iterable[Module | None]) -> Self:
        """Replace the modules by others, with the names "0", "1", ... Returns the list."""
        self._members()[1].clear()
        for k, module in enumerate(modules):
            self.add_module(str(k), module)
        return self

    def __len__(self) -> int:
        return len(self._members()[1])

    def __getitem__(self, index: int | slice) -> Any:
        if not isinstance(index, slice):
            return list(self.children())[index]
        names = list(self._members()[1])[index]
        part = type(self)()
        for name in names:
            part.add_module(name, self._members()[1][name])
        return part

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(list(self._members()[1])[index], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self.children())
        del modules[index]
        self._with(modules)

    def __iter__(self) -> Iterator[Module]:
        return self.children()


class Sequential(_List):
    """Modules applied in order; named "0", "1", ... or by the keys of an OrderedDict."""

    def __init__(self, *modules: Module | OrderedDict[str, Module]) -> None:
        super().__init__()
        named: list[tuple[str, Any]]
        if len(modules) == 1 and isinstance(modules[0], dict):
            named = list(modules[0].items())
        else:
            named = [(str(i), m) for i, m in enumerate(modules)]
        for name, module in named:
            self.add_module(name, module)

    def forward(self, input: Any) -> Any:
        for name, module in self._members()[1].items():
            if module is None:
                raise ModelError(f"Sequential: module {name!r} is None; leave it out, or use nn.Identity()")
            input = module(input)
        return input


class ModuleList(_List):
    """A list of modules, named "0", "1", ..."""

    def _printed_children(self) -> list[str]:
        """The lines of `repr`; equal modules in a row are printed once, with their count."""
        lines, first = [], 0
        for text, group in itertools.groupby(map(repr, self)):
            count = len(list(group))
            name = f"({first}): " if count == 1 else f"({first}-{first + count - 1}): {count} x "
            lines.append(name + text)
            first += count
        return lines

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def __getitem__(self, index: int | slice) -> Any:
        return (
            ModuleList(list(self.children())[index])
            if isinstance(index, slice)
            else super().__getitem__(index)
        )


class ModuleDict(Module):
    """A dict of modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        self.add_module(name, module)

    def __getitem__(self, name: str) -> Module:
        if name not in self:
            raise ModelError(f"ModuleDict has no {name!r}; it has {', '.join(self.keys()) or 'nothing'}")
        return dict(self.items())[name]

    def __contains__(self, name: object) -> bool:
        return name in self._members()[1]

    def __len__(self) -> int:
        return len(self._members()[1])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> Iterable[str]:
        return self._members()[1].keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        return [(name, m) for name, m in self._members()[1].items() if m is not None]

    def values(self) -> Iterable[Module]:
        return list(self.children())

    def update(self, modules: Mapping[str, Module]) -> None:
        """Add modules, or replace modules of the same names."""
        for name, module in modules.items():
            self[name] = module

    def pop(self, name: str) -> Module:
        """Remove a module, and return it."""
        module = self[name]
        del self._members()[1][name]
        return module


class ParameterList(Module):
    """A list of parameters, named "0", "1", ..."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def append(self, value: Any) -> ParameterList:
        """Append a parameter; an initialiser or an array becomes one. Returns the list."""
        self.register_parameter(str(len(self)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Append parameters, initialisers or arrays. Returns the list."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._members()[0])

    def __getitem__(self, index: int) -> Any:
        return self.__getattr__(str(range(len(self))[index]))

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(len(self)))


class ParameterDict(Module):
    """A dict of parameters by name."""

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        super().__init__()
        for name, value in (parameters or {}).items():
            self[name] = value

    def __setitem__(self, name: str, value: Any) -> None:
        self.register_parameter(name, value if isinstance(value, Parameter) else Parameter(value))

    def __getitem__(self, name: str) -> Any:
        if name not in self:
            raise ModelError(f"ParameterDict has no {name!r}; it has {', '.join(self.keys()) or 'nothing'}")
        return self.__getattr__(name)

    def __contains__(self, name: object) -> bool:
        return name in self._members()[0]

    def __len__(self) -> int:
        return len(self._members()[0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys())

    def keys(self) -> Iterable[str]:
        return self._members()[0].keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        return [(name, self[name]) for name in self]

    def values(self) -> Iterable[Any]:
        return [self[name] for name in self]
