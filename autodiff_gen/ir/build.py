"""Making nodes: inputs, states, constants, and applications of ops with their types inferred."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ShapeError
from .graph import State
from .node import CONST, INPUT, OPS, STATE, Node, Value, inferred
from .origin import Label, Origin, current
from .quantization import Quantization
from .types import DTYPES, Dim, DType, Shape, Type, bool_, conversion, f32, s32


def make_input(name: str, type: Type, layer: str = "", **attrs: Any) -> Value:
    return Node(INPUT, (), {"name": name, **attrs}, (type,), origin=Origin(layer)).results[0]


def make_state(state: State) -> Value:
    """The old value of a state, as a graph value."""
    layer = Origin(state.name.rpartition(".")[0] or state.name)
    return Node(STATE, (), {"state": state}, (state.type,), origin=layer).results[0]


def numbers(given: Any) -> NDArray[Any]:
    """A number or an array of numbers as an array. Raises ShapeError for anything else."""
    if isinstance(given, list | tuple) and any(isinstance(v, Value) for v in given):
        raise ShapeError(
            f"a {type(given).__name__} of {len(given)} cannot be an operand; take one graph value of it, as in "
            "`y, state = lstm(x)`, or join them by F.stack or F.cat"
        )
    try:
        array = np.asarray(given)
    except ValueError:  # lists of different lengths
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        raise ShapeError(f"{given!r} cannot be an operand; give a graph value, a NumPy array or a number")
    return array


def constant(
    value: Any, dtype_: DType | None = None, quantization: Quantization | None = None, role: str = ""
) -> Value:
    """A constant of the graph. Floats become f32 unless `dtype_` says otherwise; the interpreter, in float64, takes a
    number as it was before the conversion (the attribute `exact`). role: its role in the layer that is being built."""
    array = given = numbers(value)
    if dtype_ is None:
        if array.dtype.kind == "f":
            dtype_ = f32
        elif array.dtype.kind == "b":
            dtype_ = bool_
        elif array.dtype.name in (d.numpy for d in DTYPES.values()):
            dtype_ = next(d for d in DTYPES.values() if d.numpy == array.dtype.name)
        else:
            dtype_ = s32
    array = np.array(array, dtype=dtype_.numpy)
    array.flags.writeable = False
    attrs: dict[str, Any] = {"value": array}
    if dtype_.kind == "f" and given.ndim == 0 and given.dtype == np.float64 and float(given) != float(array):
        attrs["exact"] = float(given)
    scope = current().scope if role else ""
    origin = Origin(scope, labels={0: Label(role, scope)} if role else {})
    return Node(CONST, (), attrs, (Type(dtype_, array.shape, quantization),), origin=origin).results[0]


def _as_values(operands: Sequence[Any]) -> tuple[Value, ...]:
    """Operands as values; Python scalars, and the number of samples, are weakly typed: they take the dtype of the first
    value or array among them.
    """
    if all(isinstance(v, Value) for v in operands):
        return tuple(operands)
    arrays = [isinstance(v, list | tuple) or (isinstance(v, np.ndarray) and v.ndim > 0) for v in operands]
    given = [constant(v) if array else v for v, array in zip(operands, arrays, strict=True)]
    types = [v.type for v in given if isinstance(v, Value)]
    like = next((t.dtype for t in types if t.dtype.kind != "b"), f32)
    out = []
    for v in given:
        if isinstance(v, Value):
            out.append(v)
            continue
        if isinstance(v, Dim):
            number = apply("extent", extent=v)
            out.append(number if like.kind == "f" else apply(f"to_{like}", number))
            continue
        array = numbers(v)
        weak = array.ndim == 0 and array.dtype.kind != "b"
        if weak and array.dtype.kind == "f" and like.kind != "f":
            raise ShapeError(
                f"the float {v!r} cannot be combined with a value of dtype {like}; {conversion(*types)}"
            )
        out.append(constant(array, like if weak else None))
    return tuple(out)


def batch_hint(values: Sequence[Value]) -> str:
    """A hint for errors of shapes: how inputs without a free batch get the batch of the others."""
    most = {d.cap for v in values for d in v.type.shape if isinstance(d, Dim)}
    fixed = (v for v in values if v.node.op is INPUT and v.type.shape and v.type.shape[0] in most)
    return "".join(f"; give ag.Input({v.name!r}, ...) batch_axis=0, as the others have it" for v in fixed)


def apply_node(name: str, *operands: Any, **attrs: Any) -> Node:
    """Build a node of op `name`, its types inferred; ShapeError names the op, the operand types and the rule."""
    op = OPS[name]
    values = _as_values(operands)
    try:
        types = inferred(op, [v.type for v in values], attrs)
    except ShapeError as error:
        shown = ", ".join(f"{v.name}: {v.type}" if v.name else repr(v.type) for v in values)
        raise ShapeError(f"{name}({shown}): {error}{batch_hint(values)}") from None
    node = Node(op, values, attrs, types)
    node.inferred = values
    return node


def apply(name: str, *operands: Any, **attrs: Any) -> Value:
    """Like apply_node, for an op with one result."""
    (result,) = apply_node(name, *operands, **attrs).results
    return result


def with_shape(v: Value, shape: Shape) -> Value:
    """The value reshaped, or itself where it has the shape."""
    return v if v.type.shape == shape else apply("reshape", v, shape=shape)


def broadcast_to(v: Value, shape: Shape) -> Value:
    """The value broadcast, or itself where it has the shape."""
    return v if v.type.shape == shape else apply("broadcast_to", v, shape=shape)


def filled(number: Any, type: Type) -> Value:
    """A value of this type whose elements are all one constant number."""
    return broadcast_to(constant(number, type.dtype), type.shape)
