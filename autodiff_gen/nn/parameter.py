"""The parameters and buffers of a module; they become graph values when a module is called or lists them."""

from __future__ import annotations

import copy
import math
import weakref
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from .. import init
from ..errors import ModelError
from ..functional.inputs import make_buffer
from ..functional.quantized_arguments import weight_arrays
from ..ir.build import make_state
from ..ir.graph import Channels, State
from ..ir.interpreter import evaluate
from ..ir.node import INPUT, STATE, Value, topological
from ..ir.quantization import HIGH, LOW
from ..ir.types import Type, f32, s8


def _constant(value: Value) -> Any:
    """The array of a value that depends on no input: nn.Parameter(F.zeros(3))."""
    if any(node.op in (INPUT, STATE) for node in topological([value])):
        raise ModelError(f"{value!r} depends on inputs or parameters, and cannot be the start of a parameter")
    return evaluate([value], {})[0]


class Stored(ABC):
    """Base of parameters and buffers: the initial values, and the graph value that is made from them."""

    of_state: ClassVar[weakref.WeakValueDictionary[State, Stored]] = weakref.WeakValueDictionary()

    def __init__(self, data: Any) -> None:
        if isinstance(data, Value) and data.node.op is not STATE:
            data = _constant(data)
        self.start = data
        self.value: Value | None = None
        self.seed = 0
        self.called = False  # whether a module with it was called, which fixes its name; listing does not

    @abstractmethod
    def made(self, name: str, seed: int) -> Value:
        """A new graph value of that name."""

    @property
    def fixed(self) -> bool:
        """Whether name and initial values can no longer change."""
        return self.called or (self.value is not None and self._state.fixed)

    def fix(self) -> None:
        """Let name and initial values no longer change."""
        if self.value is not None:
            self._state.fix()

    def bind(self, name: str, seed: int, called: bool) -> Value:
        """The graph value. Its name and seed come from the outermost module that was called or listed it:
        `net.features.parameters()` names a parameter "0.weight", and `net` renames it to "features.0.weight"."""
        if self.value is None:
            self.value, self.seed = self.made(name, seed), seed
            self.of_state[self._state] = self
        elif not self.fixed and name.count(".") >= self._state.name.count("."):
            new = self.made(name, seed)
            self._state.edit(name=name, init=new.node.attrs["state"].init)
            self.value.node.serial, self.seed = new.node.serial, seed
        self.called = self.called or called
        return self.value

    def share(self, name: str, *aliases: str) -> None:
        """Store further names of a parameter that several modules hold, if `name` is the name of the graph value."""
        if self.value is not None and not self._state.fixed and self._state.name == name:
            self._state.edit(aliases=aliases)

    def set_channel_axis(self, axis: int | None) -> None:
        """Store the axis of the input channels; `update_channels` can train some of the channels."""
        if self.value is not None and not self._state.fixed:
            self._state.edit(channel_axis=axis)

    def load(self, data: Any) -> None:
        """Set the initial values to an initialiser or numbers. Raises ModelError if `fixed`."""
        if self.fixed:
            raise ModelError(
                f"{self._state.name!r} is part of a graph already; set its initial values before the network is called"
            )
        self.start = data
        if self.value is not None:
            self._state.edit(init=init.initialiser(self._state.name, data, self.seed))

    def __array__(self, *args: Any, **options: Any) -> Any:
        raise ModelError(
            f"a {type(self).__name__} of shape {list(self.shape)} that no module holds cannot be an operand; assign it "
            "to an attribute of the module, a list of them as nn.ParameterList"
        )

    def initial(self) -> init.Initialiser:
        """The initial values; random numbers depend on the seed, which is 0 before it has a name."""
        if self.value is None:
            return init.initialiser("", self.start, self.seed)
        initial: init.Initialiser = self._state.init
        return initial

    @property
    def data(self) -> Self:
        """The parameter itself, as in `layer.weight.data.zero_()`."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the axes."""
        return tuple(np.shape(self.start))

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def dim(self) -> int:
        """The number of axes."""
        return self.ndim

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one of its extents."""
        return self.shape if dim is None else self.shape[dim]

    def numel(self) -> int:
        """The number of elements."""
        return math.prod(self.shape)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """A copy with the same initialiser, but without a graph value: the module that holds the copy names it."""
        copied = copy.copy(self)
        copied.start, copied.value, copied.called = copy.deepcopy(self.start, memo), None, False
        return copied

    @property
    def _state(self) -> State:
        assert self.value is not None
        state: State = self.value.node.attrs["state"]
        return state


class Parameter(Stored):
    """A parameter, f32. data: an initialiser, an array, a number, or a constant value such as F.zeros(3).

    requires_grad: whether models that are built afterwards train it; the graph value has the same property.
    """

    def __init__(self, data: Any, requires_grad: bool = True) -> None:
        super().__init__(data)
        self._requires_grad = requires_grad
        self._channels: Channels | None = None

    def __repr__(self) -> str:
        return f"Parameter containing: f32{list(self.shape)}, requires_grad={self.requires_grad}"

    @property
    def channels(self) -> Channels | None:
        """The channels that train; None: all of them."""
        return self._channels if self.value is None else self._state.channels

    @channels.setter
    def channels(self, channels: Channels | None) -> None:
        if self.value is not None:
            if self._state.fixed and channels != self._state.channels:
                raise ModelError(
                    f"update_channels: {self._state.name!r} is in a model already; choose the channels before the "
                    "model is built"
                )
            self._state.edit(channels=channels)
        self._channels = channels

    @property
    def requires_grad(self) -> bool:
        return self._requires_grad if self.value is None else self.value.requires_grad

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        if self.value is not None:
            self.value.requires_grad = requires_grad
        self._requires_grad = requires_grad

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        copied = super().__deepcopy__(memo)
        copied._requires_grad, copied._channels = self.requires_grad, self.channels
        return copied

    def requires_grad_(self, requires_grad: bool = True) -> Parameter:
        """Set requires_grad; returns the parameter."""
        self.requires_grad = requires_grad
        return self

    def made(self, name: str, seed: int) -> Value:
        first = init.initialiser(name, self.start, seed)
        return make_state(
            State(name, Type(f32, first.shape), first, self._requires_grad, channels=self._channels)
        )


class QuantizedParameter(Parameter):
    """A parameter of int8 `values`, which represent the real numbers scale * values, with one scale, or one for each
    element along `axis`. F.dequantize gives the real numbers; update rules see them too. Raises ShapeError for values
    that are not int8, and for scales that are not greater than 0."""

    def __init__(self, values: Any, scale: Any, axis: int = 0, requires_grad: bool = True) -> None:
        array, self.quantization = weight_arrays("QuantizedParameter", values, scale, axis)
        super().__init__(array, requires_grad)

    def check(self, name: str, values: Any) -> None:
        """Raise ModelError unless all numbers of an array are 8-bit integers."""
        wrong = values[~((values >= LOW) & (values <= HIGH) & (values == np.rint(values)))]
        if wrong.size:
            raise ModelError(f"load_state_dict: {name} has 8-bit integers, got {wrong.flat[0]:g}")

    def made(self, name: str, seed: int) -> Value:
        first = init.initialiser(name, self.start, seed)
        return make_state(
            State(
                name,
                Type(s8, first.shape, self.quantization),
                first,
                self._requires_grad,
                channels=self._channels,
            )
        )


class Buffer(Stored):
    """Data of a module in addition to its parameters, such as running statistics: without a gradient, but part of the
    state_dict.

    data: as for Parameter; dtype: "f32", "s32" or "bool". F.with_updates updates buffers that are not bool; a buffer
    that no training step updates is a constant of the generated code.
    """

    def __init__(self, data: Any, dtype: str = "f32") -> None:
        super().__init__(data)
        self.dtype = dtype

    def made(self, name: str, seed: int) -> Value:
        return make_buffer(name, self.start, self.dtype)
