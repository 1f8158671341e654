"""Param: a graph value of the graph API, and its arithmetic operators."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import functional as F
from ..errors import GraphError, ModelError, ShapeError
from ..ir.build import make_state
from ..ir.graph import State
from ..ir.node import STATE, Value
from ..ir.types import Type, f32

_ids = itertools.count(1)


class Param:
    """A parameter or input of the model, or a value computed from others; f32.

    data: the initial values, an array or number that is written into the generated C, or None for memory that the
    caller sets; then `shape` is needed. `id` is unique in the process. Raises ShapeError and ModelError.
    """

    __array_ufunc__ = None  # so that numpy_array * param calls Param.__rmul__

    id: int
    var_name: str | None
    require_grads: bool
    data: np.ndarray[Any, Any] | None
    value: Value
    sources: tuple[Param, ...]

    def __init__(
        self,
        data: Any,
        shape: int | Sequence[int] | None = None,
        var_name: str | None = None,
        require_grads: bool = True,
    ) -> None:
        self.id, self.var_name, self.require_grads, self.sources = next(_ids), var_name, require_grads, ()
        self.data = None if data is None else _array(self, data)
        extents = _extents(self, shape)
        self.value = make_state(State(var_name or "", Type(f32, extents), None))

    @classmethod
    def computed(cls, value: Value, *sources: Any, var_name: str | None = None) -> Param:
        """The result of a function of `sources`."""
        param = cls.__new__(cls)
        param.id, param.var_name, param.require_grads, param.data = next(_ids), var_name, True, None
        param.value, param.sources = value, tuple(s for s in sources if isinstance(s, Param))
        return param

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.shape  # type: ignore[no-any-return]

    @property
    def is_leaf(self) -> bool:
        """Whether it is a parameter or input, not the result of a function."""
        return self.value.node.op is STATE and not self.sources

    @property
    def state(self) -> State:
        return self.value.node.attrs["state"]  # type: ignore[no-any-return]

    def t(self) -> Param:
        """The transpose of a matrix; a view."""
        if len(self.shape) != 2:
            raise ShapeError(f"t: {self!r} is not a matrix; t() transposes two axes")
        return self.computed(self.value.T, self)

    def reshape(self, *shape: Any) -> Param:
        """The same elements with another shape, given as numbers or one tuple; one extent may be -1."""
        wanted = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], tuple | list) else shape
        return self.computed(F.reshape(self.value, wanted), self)

    def exp(self) -> Param:
        return on_values(F.exp, self)

    def __add__(self, other: Any) -> Param:
        return on_values(F.add, self, other)

    def __radd__(self, other: Any) -> Param:
        return on_values(F.add, other, self)

    def __sub__(self, other: Any) -> Param:
        return on_values(F.sub, self, other)

    def __rsub__(self, other: Any) -> Param:
        return on_values(F.sub, other, self)

    def __mul__(self, other: Any) -> Param:
        return on_values(F.mul, self, other)

    def __rmul__(self, other: Any) -> Param:
        return on_values(F.mul, other, self)

    def __neg__(self) -> Param:
        return on_values(F.neg, self)

    def __bool__(self) -> bool:
        raise GraphError(
            f"{self!r} has no value while the graph is built, so it cannot be a condition of `if`"
        )

    def __repr__(self) -> str:
        return f"{self.var_name or f'Param {self.id}'} {list(self.shape)}"


def _array(param: Param, data: Any) -> np.ndarray[Any, Any]:
    array = np.asarray(data)
    if array.dtype.kind not in "fiu":
        raise ModelError(
            f"Param {param.var_name or param.id}: data must be numbers or None, got {type(data).__name__}"
        )
    with np.errstate(over="ignore"):  # reported below
        array = array.astype(np.float32)
    if not np.isfinite(array).all():
        raise ModelError(
            f"Param {param.var_name or param.id}: data has an element that is not a finite float32"
        )
    return array


def _extents(param: Param, shape: int | Sequence[int] | None) -> tuple[int, ...]:
    name = param.var_name or param.id
    if shape is None:
        if param.data is None:
            raise ShapeError(
                f"Param {name}: without data it needs a shape; write Param(None, shape=(1, 784))"
            )
        return tuple(param.data.shape)
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if not all(isinstance(d, int) and not isinstance(d, bool) and d >= 1 for d in extents):
        raise ShapeError(f"Param {name}: shape {list(extents)} must be made of integers of at least 1")
    if param.data is not None and tuple(param.data.shape) != extents:
        raise ShapeError(f"Param {name}: data has shape {list(param.data.shape)}, but shape={list(extents)}")
    return extents


def _value(x: Any) -> Any:
    return x.value if isinstance(x, Param) else x


def on_values(function: Any, *operands: Any, **options: Any) -> Param:
    """`function` of autodiff_gen.functional on Params, arrays and numbers."""
    return Param.computed(function(*(_value(x) for x in operands), **options), *operands)
