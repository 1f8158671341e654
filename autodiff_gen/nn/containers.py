"""Containers of modules without a forward method, as in torch.nn; for Sequential see module.py."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..errors import ModelError
from .module import Module


def _module(owner: str, name: str, module: Any) -> Module:
    if not isinstance(module, Module):
        raise ModelError(f"{owner}: {name!r} is {module!r}, not a module; did you forget the parentheses?")
    return module


class ModuleList(Module):
    """A list of modules, named "0", "1", ..."""

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def append(self, module: Module) -> ModuleList:
        """Append a module. Returns the list."""
        name = str(len(self))
        self._members()[1][name] = _module("ModuleList", name, module)
        return self

    def extend(self, modules: Iterable[Module]) -> ModuleList:
        """Append modules. Returns the list."""
        for module in modules:
            self.append(module)
        return self

    def __len__(self) -> int:
        return len(self._members()[1])

    def __getitem__(self, index: int | slice) -> Any:
        selected = list(self.children())[index]
        return ModuleList(selected) if isinstance(selected, list) else selected

    def __iter__(self) -> Iterator[Module]:
        return self.children()


class ModuleDict(Module):
    """A dict of modules by name."""

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        for name, module in (modules or {}).items():
            self[name] = module

    def __setitem__(self, name: str, module: Module) -> None:
        self._members()[1][name] = _module("ModuleDict", name, module)

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
