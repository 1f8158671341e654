"""The operators of graph values and the methods of torch.Tensor: x + y is F.add(x, y), x.relu() is F.relu(x).

`functional` installs them on Value when it is imported, so that `ir` does not import the packages above it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import AttributeModelError, ModelError, unknown_name
from ..ir.build import apply
from ..ir.graph import State
from ..ir.node import Value
from ..ir.types import Dim, Size, product
from .alternatives import ALTERNATIVES, METHODS

# Operators that apply an op: method -> op. Operators in _REFLECTED also have a reflected form, such as __radd__.
_REFLECTED = {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div"}
_BINARY = {"lt": "lt", "le": "le", "gt": "gt", "ge": "ge", "and": "logical_and", "or": "logical_or"}
_UNARY = {"neg": "neg", "invert": "logical_not", "abs": "abs"}

# Methods that call the function of `functional` with the value as the first argument.
_METHODS = [
    "abs",
    "add",
    "amax",
    "all",
    "amin",
    "any",
    "argmax",
    "argmin",
    "argsort",
    "bmm",
    "broadcast_to",
    "chunk",
    "clamp",
    "cos",
    "ceil",
    "cumsum",
    "detach",
    "diagonal",
    "div",
    "dot",
    "eq",
    "erf",
    "exp",
    "expm1",
    "flatten",
    "floor",
    "gather",
    "ge",
    "gt",
    "index_add",
    "index_put",
    "index_select",
    "le",
    "log",
    "log1p",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logsumexp",
    "lt",
    "masked_fill",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mm",
    "movedim",
    "mul",
    "mv",
    "narrow",
    "ne",
    "neg",
    "norm",
    "outer",
    "pow",
    "prod",
    "reciprocal",
    "relu",
    "repeat_interleave",
    "roll",
    "round",
    "rsqrt",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "select",
    "sigmoid",
    "sign",
    "sin",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "std",
    "sub",
    "sum",
    "swapaxes",
    "take_along_dim",
    "tanh",
    "to",
    "topk",
    "transpose",
    "tril",
    "triu",
    "unbind",
    "unflatten",
    "unsqueeze",
    "var",
]
# The same; the second argument may be given as separate numbers, as in x.permute(1, 0).
_VARIADIC = ["expand", "flip", "permute", "repeat", "reshape", "tile"]


def install(functions: Mapping[str, Any]) -> None:
    """Install operators and methods on Value, and on Dim the operators whose result is no extent; `functions`: the
    functions of `functional` by name."""
    for name in ("add", "sub", "mul", "truediv", "pow"):
        for method in (f"__{name}__", f"__r{name}__"):
            setattr(Dim, method, _of_extent(method, getattr(Dim, method, None)))
    for method, op in _REFLECTED.items():
        _set(f"__{method}__", _binary(op))
        _set(f"__r{method}__", _reflected(op))
    for method, op in _BINARY.items():
        _set(f"__{method}__", _binary(op))
    for method, op in _UNARY.items():
        _set(f"__{method}__", _unary(op))
    matmul = functions["matmul"]
    _set("__pow__", functions["pow"])
    _set("__rpow__", _reflected("pow"))
    _set("__matmul__", matmul)
    _set("__rmatmul__", lambda self, other: matmul(other, self))
    _set("__getitem__", functions["getitem"])
    for name in _METHODS:
        _set(name, functions[name])
    for name in _VARIADIC:
        _set(name, _variadic(functions[name]))
    _set("view", _variadic(functions["reshape"]))
    for f in (contiguous, dim, numel, requires_grad_, size, t):
        _set(f.__name__, f)
    _set("T", property(t))
    _set("data", property(data))
    _set("__getattr__", _unknown)
    for name, dtype in (("float", "f32"), ("int", "s32"), ("long", "s32"), ("bool", "bool")):
        _set(name, _conversion(functions["to"], dtype))
    for name, function in (("expand_as", "broadcast_to"), ("view_as", "reshape"), ("reshape_as", "reshape")):
        _set(name, _like(functions[function]))
    _set("requires_grad", property(_requires_grad, _set_requires_grad))


def _set(name: str, member: Any) -> None:
    setattr(Value, name, member)


def _binary(op: str) -> Callable[[Value, Any], Value]:
    return lambda self, other: apply(op, self, other)


def _reflected(op: str) -> Callable[[Value, Any], Value]:
    return lambda self, other: apply(op, other, self)


def _unary(op: str) -> Callable[[Value], Value]:
    return lambda self: apply(op, self)


def _variadic(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def method(self: Value, *numbers: Any, **options: Any) -> Any:
        one = len(numbers) == 1 and not isinstance(numbers[0], int | Dim)
        return function(self, *(numbers if one or not numbers else (numbers,)), **options)

    return method


def _of_extent(method: str, own: Callable[[Dim, Any], Any] | None) -> Callable[[Dim, Any], Any]:
    """An operator of an extent and a number: Dim's operator `own` if it gives an extent, otherwise the operator of
    graph values, with the extent as a float."""

    def operate(self: Dim, other: Any) -> Any:
        result = own(self, other) if own is not None else NotImplemented
        if result is not NotImplemented or not isinstance(other, int | float):
            return result
        return getattr(apply("extent", extent=self), method)(other)

    return operate


def _unknown(self: Value, name: str) -> Any:
    known = [k for k in dir(Value) if not k.startswith("_")]
    raise unknown_name("a graph value", name, {**ALTERNATIVES, **METHODS}, known, AttributeModelError)


def _conversion(to: Callable[..., Value], dtype: str) -> Callable[[Value], Value]:
    return lambda self: to(self, dtype)


def _like(function: Callable[..., Value]) -> Callable[[Value, Value], Value]:
    return lambda self, other: function(self, other.shape)


def t(self: Value) -> Value:
    """The axes in reverse order, [m, n] -> [n, m]; a view."""
    return apply("permute", self, dims=tuple(reversed(range(len(self.type.shape)))))


def data(self: Value) -> Value:
    """A parameter itself, as in `layer.weight.data.zero_()`; otherwise the same values without gradient."""
    return self if self.node.attrs.get("state") is not None else apply("detach", self)


def contiguous(self: Value) -> Value:
    """The value itself: layouts are assigned by the compiler."""
    return self


def dim(self: Value) -> int:
    """The number of axes."""
    return len(self.type.shape)


def numel(self: Value) -> Size:
    """The number of elements."""
    return product(self.type.shape)


def _parameter(value: Value) -> State:
    state: State | None = value.node.attrs.get("state")
    if state is None or state.role != "parameter":
        raise ModelError(f"requires_grad: {value!r} is not a parameter")
    return state


def _requires_grad(self: Value) -> bool:
    return _parameter(self).trainable


def _set_requires_grad(self: Value, requires_grad: bool) -> None:
    requires_grad_(self, requires_grad)


def requires_grad_(self: Value, requires_grad: bool = True) -> Value:
    """Set whether models that are built afterwards train this parameter; returns it. Raises ModelError for a value that
    is not a parameter, and for a change to a parameter of a model that is built already."""
    state = _parameter(self)
    if state.trainable == requires_grad:
        return self
    if state.fixed:
        raise ModelError(
            f"requires_grad: {state.name!r} is in a model already; set it before the model is built"
        )
    state.edit(trainable=requires_grad)
    return self


def size(self: Value, dim: int | None = None) -> Any:
    """The shape, or one of its extents; an extent may follow the batch."""
    return self.type.shape if dim is None else self.type.shape[dim]
