"""A `Module` holds parameters, buffers and modules as attributes and computes in `forward`. Parameters and buffers get
their names, as in PyTorch's state_dict, and their seeds when the outermost module is called or lists them. The seed
follows from the position in that module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from .. import init
from ..errors import AttributeModelError, ModelError, unknown_name
from ..functional import torch_lacks
from ..ir.names import set_output
from ..ir.node import STATE, Value
from ..ir.origin import building, current
from .alternatives import MODULE
from .parameter import Buffer, Parameter, QuantizedParameter, Stored
from .printed import printed_arguments
from .trained_selection import current as selection_now


class Module:
    """Base class of layers and of the user's networks: set parameters, buffers and modules as attributes, and define
    `forward`.

    `training`: whether a layer is in training mode in a training step. `eval()`, called before the network is called,
    keeps it in evaluation mode (fixed running statistics, no dropout). `predict` always uses evaluation mode.
    """

    training = True
    printed: ClassVar[str] = ""  # the arguments that `repr` shows: see printed.py
    fixed_batch: int | None = None  # the batch size, if the shapes of an imported network contain it

    def __init__(self) -> None:
        self._members()

    def _members(self) -> tuple[dict[str, Parameter | None], dict[str, Module | None]]:
        """The parameters and the modules by attribute; created on first use, so that a missing super().__init__() is
        harmless."""
        own = self.__dict__
        return own.setdefault("_parameters", {}), own.setdefault("_modules", {})

    def _own_buffers(self) -> dict[str, Buffer | None]:
        buffers: dict[str, Buffer | None] = self.__dict__.setdefault("_buffers", {})
        return buffers

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "requires_grad":  # PyTorch stores it, but never reads it
            raise ModelError(
                f"{type(self).__name__}: requires_grad of a module freezes nothing; call requires_grad_({value})"
            )
        parameters, modules = self._members()
        buffers = self._own_buffers()
        if isinstance(value, Value) and value.node.op is STATE:
            state = value.node.attrs["state"]
            bound = Buffer(state.init) if state.role == "buffer" else Parameter(state.init)
            bound.value, bound.called = value, True  # its name is the user's
            value = bound
        for store in (parameters, buffers, modules, self.__dict__):
            store.pop(name, None)
        if isinstance(value, Parameter):
            parameters[name] = value
        elif isinstance(value, Buffer):
            buffers[name] = value
        elif isinstance(value, Module):
            modules[name] = value
        else:
            self.__dict__[name] = value

    def __getattr__(self, name: str) -> Any:
        parameters, modules = self._members()
        tensors: dict[str, Any] = {**parameters, **self._own_buffers()}
        if name in tensors:
            own = tensors[name]
            return own.value if own is not None and own.value is not None else own
        if name in modules:
            return modules[name]
        if name in MODULE:
            raise unknown_name(type(self).__name__, name, MODULE, (), AttributeModelError)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __delattr__(self, name: str) -> None:
        for store in (*self._members(), self._own_buffers(), self.__dict__):
            if store.pop(name, self) is not self:  # a parameter may be None
                return
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        """The tree of modules as PyTorch prints it."""
        own, below = self.extra_repr(), self._printed_children()
        inside = "".join(f"\n{line}" for line in ([own] if own else []) + below).replace("\n", "\n  ") + "\n"
        return f"{type(self).__name__}({inside if below else own})"

    def extra_repr(self) -> str:
        """The module's arguments in `repr`; by default those that its class lists in `printed`."""
        return printed_arguments(self)

    def _printed_children(self) -> list[str]:
        return [f"({name}): {module!r}" for name, module in self.named_children()]

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Set a parameter; None: the module has no such parameter, for example no bias."""
        self.__dict__.pop(name, None)
        self._members()[0][name] = param

    @torch_lacks(persistent=True)
    def register_buffer(self, name: str, tensor: Any) -> None:
        """Set a buffer from a Buffer, an initialiser, an array or a constant value such as F.arange(3); None: the
        module has no such buffer."""
        self.__dict__.pop(name, None)
        if tensor is not None and not isinstance(tensor, Buffer):
            kind = tensor.dtype.kind if isinstance(tensor, Value) else "f"
            tensor = Buffer(tensor, {"b": "bool", "i": "s32"}.get(kind, "f32"))
        self._own_buffers()[name] = tensor

    def train(self, mode: bool = True) -> Module:
        """Set `training` of this module and its descendants; call it before the network is called. Returns the
        module."""
        for _, module in self.named_modules():
            module.training = mode
        return self

    def eval(self) -> Module:
        """train(False): evaluation mode, also in training steps. Returns the module."""
        return self.train(False)

    def modules(self) -> Iterator[Module]:
        """This module and its descendants, each once."""
        return (module for _, module in self.named_modules())

    def named_modules(self, prefix: str = "") -> Iterator[tuple[str, Module]]:
        """This module and its descendants, each once, in state_dict order."""
        seen: set[int] = set()
        stack: list[tuple[str, Module]] = [(prefix, self)]
        while stack:
            name, module = stack.pop()
            if id(module) in seen:
                continue
            seen.add(id(module))
            yield name, module
            children = [
                (f"{name}.{k}" if name else k, m) for k, m in module._members()[1].items() if m is not None
            ]
            stack.extend(reversed(children))

    @torch_lacks(recurse=True, remove_duplicate=True)
    def named_parameters(self, prefix: str = "") -> Iterator[tuple[str, Value]]:
        """(name, graph value) of every parameter, each once, in state_dict order. Names are relative to this module
        until a module around it is called or lists its parameters."""
        yield from self._named("parameter", prefix)

    def _named(self, role: str, prefix: str = "", called: bool = False) -> Iterator[tuple[str, Value]]:
        """(name, graph value) of the states of one role, after all states of both roles have been given their names and
        seeds. In each module, parameters come before buffers."""
        seen: dict[int, list[str]] = {}  # all names of each
        found: list[Value] = []
        count = 0
        for module_name, module in self.named_modules(prefix):
            for k, own in (*module._members()[0].items(), *module._own_buffers().items()):
                if own is None:
                    continue
                name = f"{module_name}.{k}" if module_name else k
                if id(own) in seen:
                    seen[id(own)].append(name)
                    own.share(*seen[id(own)])
                    continue
                seen[id(own)] = [name]
                count += isinstance(own, Parameter)
                found.append(own.bind(name, count, called))
                if k == "weight":
                    own.set_channel_axis(getattr(module, "channel_axis", None))
        states = [(v.node.attrs["state"], v) for v in found]
        return ((state.name, v) for state, v in states if state.role == role)

    @torch_lacks(recurse=True)
    def parameters(self) -> Iterator[Value]:
        """The graph value of every parameter; `p.requires_grad = False` freezes one, as requires_grad_ does."""
        return (v for _, v in self.named_parameters())

    @torch_lacks(recurse=True, remove_duplicate=True)
    def named_buffers(self, prefix: str = "") -> Iterator[tuple[str, Value]]:
        """(name, graph value) of every buffer, each once, in state_dict order."""
        yield from self._named("buffer", prefix)

    @torch_lacks(recurse=True)
    def buffers(self) -> Iterator[Value]:
        return (v for _, v in self.named_buffers())

    def requires_grad_(self, requires_grad: bool = True) -> Module:
        """Set whether models that are built afterwards train the parameters of this module and its descendants. Returns
        the module. Raises ModelError for a change to a parameter of a model that is built already."""
        for _, module in self.named_modules():
            for parameter in module._members()[0].values():
                if parameter is not None:
                    parameter.requires_grad = requires_grad
        return self

    @torch_lacks(assign=False)
    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> None:
        """Set the initial values from arrays or PyTorch's tensors by name (`torch_net.state_dict()`). Call it before
        the network is called. With strict=False names may be missing or unknown.

        Raises ModelError for missing or unknown names, for other shapes, and after the network was called; then
        nothing has changed.
        """
        held = self._held()
        found = {name: held[name] for name in state_dict if name in held}
        reached = {id(own) for own in found.values()}  # one that two modules share has two names
        wrong = [f"unknown: {name}" for name in state_dict if name not in held]
        wrong += [f"missing: {name}" for name, own in held.items() if id(own) not in reached]
        if strict and wrong:
            raise ModelError(
                f"load_state_dict: {'; '.join(wrong)}; the module has {', '.join(held) or 'nothing'}"
            )
        for name, stored in found.items():
            if stored.fixed:
                raise ModelError(
                    f"load_state_dict: {name!r} is part of a graph already; call load_state_dict before the network is "
                    "called"
                )
            shape, given = stored.shape, np.shape(state_dict[name])
            if given != shape:
                raise ModelError(f"load_state_dict: {name} has shape {list(shape)}, got {list(given)}")
            if isinstance(stored, QuantizedParameter):
                stored.check(name, np.asarray(state_dict[name]))
        values = {name: init.initialiser(name, np.asarray(state_dict[name]), 0) for name in found}
        for name, stored in found.items():
            stored.load(values[name])

    def children(self) -> Iterator[Module]:
        return (m for _, m in self.named_children())

    def named_children(self) -> Iterator[tuple[str, Module]]:
        return ((name, m) for name, m in self._members()[1].items() if m is not None)

    def add_module(self, name: str, module: Module | None) -> None:
        """Set a module; None: there is no such module."""
        if module is not None and not isinstance(module, Module):
            raise ModelError(
                f"{type(self).__name__}: {name!r} is {module!r}, not a module; did you forget the parentheses?"
            )
        if not name or "." in name:
            raise ModelError(f"{type(self).__name__}: {name!r} cannot be the name of a module")
        self.__dict__.pop(name, None)
        self._members()[1][name] = module

    register_module = add_module

    def apply(self, fn: Callable[[Module], Any]) -> Module:
        """Call `fn` with every descendant, then with this module: `net.apply(init_weights)`. Returns the module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def get_submodule(self, target: str) -> Module:
        """The module called `target`, such as "features.0"; this module for an empty name."""
        found = dict(self.named_modules()).get(target)
        if found is None:
            raise ModelError(f"{type(self).__name__} has no module {target!r}")
        return found

    def get_parameter(self, target: str) -> Any:
        """The parameter called `target`, such as "features.0.weight"."""
        module, _, name = target.rpartition(".")
        parameters = self.get_submodule(module)._members()[0]
        if parameters.get(name) is None:
            raise ModelError(f"{type(self).__name__} has no parameter {target!r}")
        return getattr(self.get_submodule(module), name)

    def state_dict(self) -> dict[str, Any]:
        """The initial values of all parameters and buffers, arrays by name."""
        self._named("parameter")
        return {name: stored.initial().array() for name, stored in self._held().items()}

    def _held(self, prefix: str = "") -> dict[str, Stored]:
        """Parameters and buffers by name; they have two names if two modules share them."""
        held: dict[str, Stored] = {}
        for k, own in (*self._members()[0].items(), *self._own_buffers().items()):
            if own is not None:
                held[prefix + k] = own
        for k, module in self.named_children():
            held |= module._held(f"{prefix}{k}.")
        return held

    def forward(self, *inputs: Any) -> Any:
        raise ModelError(f"{type(self).__name__} defines no forward method")

    def _select(self) -> None:
        """Apply the innermost `selection.training_only`, if there is one, to all parameters."""
        for selection in selection_now[-1:]:
            for name, own in self._held().items():
                if isinstance(own, Parameter):
                    selection.apply(name, own)

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        self._named("parameter", called=True)  # names parameters that no module around this one has named
        scope, paths = current().scope, current().paths
        if paths is None:
            scope, paths = "", {id(module): name for name, module in self.named_modules()}
            self._select()
        scope = paths.get(id(self), scope)
        with building(scope, paths=paths):
            result = self.forward(*inputs, **options)
        first = result[0] if isinstance(result, tuple) and result else result
        if isinstance(first, Value):
            set_output(first, scope)
        return result
