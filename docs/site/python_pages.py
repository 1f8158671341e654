"""The reference of the Python interface: an entry of mkdocstrings for each public name, from its docstring."""

from __future__ import annotations

import importlib
import inspect
import types
from collections.abc import Iterable
from typing import Any

from intro import intro

import autodiff_gen as ag
from autodiff_gen import functional, init, nn, optim, quant
from autodiff_gen.frontends import graph
from autodiff_gen.host import trainer
from autodiff_gen.optim import lr_scheduler

# The pages of single modules: title, introduction, module.
MODULES = {
    "optim": ("optim", "Update rules, clipping and averages, as in torch.optim.", optim),
    "lr_scheduler": (
        "optim.lr_scheduler",
        "Learning rates that the device computes, as in torch.optim.lr_scheduler.",
        lr_scheduler,
    ),
    "init": ("init", "Initial values of `Param`, drawn on the device, as in torch.nn.init.", init),
    "nn.init": ("nn.init", "Initial values of a module's parameters, as in torch.nn.init.", nn.init),
    "quant": ("quant", "Quantised networks: [how to use them](../../quantization.md).", quant),
    "graph": ("frontends.graph", "The functions of [the graph API](../../graph-api.md).", graph),
    "host": ("on_host", "What `Model.on_host` returns: the generated C, compiled for the host.", trainer),
}


def public(module: types.ModuleType) -> list[str]:
    """The public names of a module: the names in its `__all__`, or the functions and classes that it defines."""
    named = getattr(module, "__all__", None)
    own = [
        k for k, v in vars(module).items() if getattr(v, "__module__", "") == module.__name__ and callable(v)
    ]
    return [k for k in named or own if not k.startswith("_") and not inspect.ismodule(getattr(module, k))]


def home(module: types.ModuleType, name: str) -> str:
    """The module that defines a public name: `module` itself if the name is neither a function nor a class."""
    value = getattr(module, name)
    defined = getattr(value, "__module__", module.__name__)
    found = importlib.import_module(defined)
    own = getattr(found, name, None)  # which the package may wrap
    return defined if own is not None and inspect.unwrap(own) is inspect.unwrap(value) else module.__name__


def entries(names: Iterable[tuple[types.ModuleType, str]], level: int = 2) -> str:
    """An entry for each name. Classes are shown with the methods that have their own docstring."""
    return "\n".join(
        _entry(f"{home(module, name)}.{name}", getattr(module, name), level) for module, name in names
    )


def _entry(path: str, value: Any, level: int) -> str:
    options = [f"heading_level: {level}", "show_root_full_path: false"]
    if inspect.isclass(value):
        documented = {k: v for k, v in vars(value).items() if k[0] != "_" and getattr(v, "__doc__", None)}
        kinds = (property, classmethod, staticmethod, types.FunctionType)
        shown = [k for k, v in documented.items() if isinstance(v, kinds) and _own(value, v)]
        options += [f"members: [{', '.join(shown)}]" if shown else "members: false"]
    return "\n".join([f"::: {path}", "    options:", *(f"      {o}" for o in options)]) + "\n"


def _own(owner: type, member: Any) -> bool:
    """Whether a member is of the class's own module, and not a function of another module that the class calls."""
    return getattr(inspect.unwrap(member), "__module__", owner.__module__) == owner.__module__


def _families(package: types.ModuleType) -> dict[str, list[str]]:
    """The public names of a package by the module that defines them, as the package imports them."""
    found: dict[str, list[str]] = {}
    for name in public(package):
        module = home(package, name).removeprefix(package.__name__).lstrip(".")
        found.setdefault(module, []).append(name)
    return found


def _about(package: types.ModuleType, family: str) -> str:
    return " ".join((importlib.import_module(f"{package.__name__}.{family}").__doc__ or "").split())


def _title(family: str) -> str:
    return family.replace("_", " ").capitalize()


def _families_of(package: types.ModuleType, folder: str, about: str) -> dict[str, str]:
    """A page for each module of a package, and an index of all names."""
    made, rows = {}, []
    for family, names in sorted(_families(package).items()):
        made[f"{folder}/{family}.md"] = (
            f"# {_title(family)}\n\n{_about(package, family)}\n\n{entries((package, n) for n in names)}"
        )
        links = ", ".join(f"[`{n}`][{home(package, n)}.{n}]" for n in sorted(names, key=str.lower))
        rows.append(f"| [{_title(family)}]({family}.md) | {links} |")
    return {f"{folder}/index.md": f"{about}\n\n| page | |\n|---|---|\n" + "\n".join(rows) + "\n", **made}


def pages() -> dict[str, str]:
    """The pages of reference/python, reference/layers and reference/functions."""
    names = [n for n in ag._HOME if not inspect.ismodule(getattr(ag, n))]
    made = {
        "reference/python/index.md": f"{intro('python')}\n{entries((ag, n) for n in [*names, 'scons_tools'])}"
    }
    for file, (title, about, module) in MODULES.items():
        listed = entries((module, n) for n in public(module))
        made[f"reference/python/{file}.md"] = f"# {title}\n\n{about}\n\n{listed}"
    made |= _families_of(nn, "reference/layers", intro("layers"))
    made |= _families_of(functional, "reference/functions", intro("functions"))
    return made
