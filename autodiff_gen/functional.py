"""Functions on graph values, with the names, arguments, defaults and meaning of torch and
torch.nn.functional.

Every function takes graph values, NumPy arrays or numbers and returns a graph value; numbers take the dtype
of the value beside them. Wrong shapes, dtypes and axes raise ShapeError with the function, the operands and
the rule; arguments that PyTorch has and that are missing here are refused by name.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar, cast

from . import ops as _ops  # noqa: F401  (fills the registry)
from .dtypes import Dim, DType, Shape, Size, broadcast, dtype, normalise_axes, product
from .errors import ShapeError
from .ir import INPUT, Value, apply, apply_node, constant
from .op import OPS, View
from .ops.contraction import transposed
from .ops.elementwise import power

Dims: TypeAlias = int | Sequence[int] | None
_F = TypeVar("_F", bound=Callable[..., Any])


def torch_lacks(**defaults: Any) -> Callable[[_F], _F]:
    """Refuse, by name, arguments that PyTorch's function has and ours has not; PyTorch's default values
    pass."""

    def wrap(f: _F) -> _F:
        @functools.wraps(f)
        def checked(*args: Any, **kwargs: Any) -> Any:
            for name in [k for k in kwargs if k in defaults]:
                if kwargs.pop(name) != defaults[name]:
                    raise ShapeError(
                        f"{f.__qualname__.removesuffix('.__init__')}: the argument {name!r} is not supported"
                    )
            return f(*args, **kwargs)

        return cast(_F, checked)

    return wrap


def _value(x: Any) -> Value:
    """x as a graph value."""
    if isinstance(x, Value):
        return x
    return constant(float(x) if isinstance(x, int | float) else x)


def _shown(*values: Value) -> str:
    return ", ".join(f"{v.name}: {v.type}" if v.name else repr(v.type) for v in values)


def _refuse(name: str, values: Sequence[Value], rule: str) -> ShapeError:
    return ShapeError(f"{name}({_shown(*values)}): {rule}")


def _axes(name: str, x: Value, dim: Dims) -> tuple[int, ...]:
    """dim as sorted non-negative axes; None and () mean all of them."""
    try:
        return normalise_axes(
            None if dim is None or dim == () else dim if isinstance(dim, int) else tuple(dim), x.ndim
        )
    except ShapeError as error:
        raise _refuse(name, [x], f"dim={dim}: {error}") from None


def _axis(name: str, x: Value, dim: int) -> int:
    if not isinstance(dim, int):
        raise _refuse(name, [x], f"dim must be one integer, not {dim!r}")
    return _axes(name, x, dim)[0]


# Elementwise


def add(input: Any, other: Any) -> Value:
    return apply("add", input, other)


def sub(input: Any, other: Any) -> Value:
    return apply("sub", input, other)


def mul(input: Any, other: Any) -> Value:
    return apply("mul", input, other)


def div(input: Any, other: Any) -> Value:
    """input / other, of floats."""
    return apply("div", input, other)


def neg(input: Any) -> Value:
    return apply("neg", input)


def square(input: Any) -> Value:
    return apply("square", input)


def pow(input: Any, exponent: Any) -> Value:
    """input ** exponent; either may be a number. Constant exponents such as 2, 0.5 and -1 cost no call of
    powf."""
    if isinstance(exponent, int | float):
        return power(_value(input), float(exponent))
    return apply("pow", input, exponent)


def exp(input: Any) -> Value:
    return apply("exp", input)


def expm1(input: Any) -> Value:
    """exp(input) - 1, right for small input too."""
    return apply("expm1", input)


def log(input: Any) -> Value:
    return apply("log", input)


def sqrt(input: Any) -> Value:
    return apply("sqrt", input)


def sin(input: Any) -> Value:
    return apply("sin", input)


def cos(input: Any) -> Value:
    return apply("cos", input)


def tanh(input: Any) -> Value:
    return apply("tanh", input)


def sigmoid(input: Any) -> Value:
    return apply("sigmoid", input)


def relu(input: Any) -> Value:
    return apply("relu", input)


def abs(input: Any) -> Value:
    return apply("abs", input)


def maximum(input: Any, other: Any) -> Value:
    """The greater of two values, NaN when either is; where they tie, each gets half of the gradient."""
    return apply("maximum", input, other)


def minimum(input: Any, other: Any) -> Value:
    """The smaller of two values, NaN when either is; where they tie, each gets half of the gradient."""
    return apply("minimum", input, other)


def eq(input: Any, other: Any) -> Value:
    return apply("eq", input, other)


def ne(input: Any, other: Any) -> Value:
    return apply("ne", input, other)


def lt(input: Any, other: Any) -> Value:
    return apply("lt", input, other)


def le(input: Any, other: Any) -> Value:
    return apply("le", input, other)


def gt(input: Any, other: Any) -> Value:
    return apply("gt", input, other)


def ge(input: Any, other: Any) -> Value:
    return apply("ge", input, other)


def logical_and(input: Any, other: Any) -> Value:
    return apply("logical_and", input, other)


def logical_or(input: Any, other: Any) -> Value:
    return apply("logical_or", input, other)


def logical_not(input: Any) -> Value:
    return apply("logical_not", input)


def where(condition: Any, input: Any, other: Any) -> Value:
    """input where the mask `condition` holds, other elsewhere."""
    return apply("where", condition, input, other)


def to(input: Any, dtype: str | DType) -> Value:
    """input converted to another dtype ("f32", "s32", "s8", "u8", "bool"); a float loses its fraction on the
    way to an integer."""
    x, target = _value(input), _dtype(dtype)
    if x.dtype is target:
        return x
    if f"to_{target.name}" not in OPS:
        raise _refuse("to", [x], f"there is no conversion to {target}")
    return apply(f"to_{target.name}", x)


_dtype = dtype


def detach(input: Any) -> Value:
    """The same values, through which no gradient flows."""
    return apply("detach", input)


# Shapes


def reshape(input: Any, shape: Sequence[Size] | Size) -> Value:
    """The same elements, in row-major order, in another shape; one extent may be -1. The batch axis is
    written as -1 or x.shape[0]."""
    x = _value(input)
    wanted: Shape = (shape,) if isinstance(shape, int | Dim) else tuple(shape)
    if builtins.sum(1 for d in wanted if d == -1) > 1:
        raise _refuse("reshape", [x], f"only one extent of {list(wanted)} may be -1")
    if -1 in wanted:
        rest = product(tuple(d for d in wanted if d != -1))
        wanted = tuple(_quotient(x, wanted, product(x.shape), rest) if d == -1 else d for d in wanted)
    return x if wanted == x.shape else apply("reshape", x, shape=wanted)


def _quotient(x: Value, wanted: Shape, total: Size, rest: Size) -> Size:
    """What -1 stands for."""
    if isinstance(rest, Dim):
        if isinstance(total, Dim) and total.coef % rest.coef == 0:
            return total.coef // rest.coef
    elif rest > 0 and (total.coef if isinstance(total, Dim) else total) % rest == 0:
        return total // rest
    raise _refuse("reshape", [x], f"{total} elements do not fill the shape {list(wanted)}")


def flatten(input: Any, start_dim: int = 0, end_dim: int = -1) -> Value:
    """Axes start_dim to end_dim merged into one."""
    x = _value(input)
    if x.ndim == 0:
        return reshape(x, (1,))
    first, last = _axis("flatten", x, start_dim), _axis("flatten", x, end_dim)
    if first > last:
        raise _refuse("flatten", [x], f"start_dim={start_dim} comes after end_dim={end_dim}")
    return reshape(x, (*x.shape[:first], product(x.shape[first : last + 1]), *x.shape[last + 1 :]))


def squeeze(input: Any, dim: Dims = None) -> Value:
    """Without the axes of extent 1 (those in `dim` alone, when given)."""
    x = _value(input)
    axes = _axes("squeeze", x, dim)
    return reshape(x, tuple(d for i, d in enumerate(x.shape) if not (i in axes and d == 1)))


def unsqueeze(input: Any, dim: int) -> Value:
    """With an axis of extent 1 inserted at `dim`."""
    x = _value(input)
    if not -x.ndim - 1 <= dim <= x.ndim:
        raise _refuse("unsqueeze", [x], f"dim={dim} is out of range")
    at = dim % (x.ndim + 1)
    return reshape(x, (*x.shape[:at], 1, *x.shape[at:]))


def permute(input: Any, dims: Sequence[int]) -> Value:
    """Axis i of the result is axis dims[i] of the input; a view."""
    x = _value(input)
    return apply("permute", x, dims=tuple(d % x.ndim if -x.ndim <= d < x.ndim else d for d in dims))


def transpose(input: Any, dim0: int, dim1: int) -> Value:
    """Two axes exchanged; a view."""
    x = _value(input)
    a, b = _axis("transpose", x, dim0), _axis("transpose", x, dim1)
    order = list(range(x.ndim))
    order[a], order[b] = b, a
    return apply("permute", x, dims=tuple(order))


def broadcast_to(input: Any, shape: Sequence[Size]) -> Value:
    x = _value(input)
    return x if x.shape == tuple(shape) else apply("broadcast_to", x, shape=tuple(shape))


# Reductions


def _reduce(name: str, input: Any, dim: Dims, keepdim: bool) -> Value:
    x = _value(input)
    axes = _axes(name, x, dim)
    if all(x.shape[i] == 1 for i in axes) and x.dtype.kind == "f":  # nothing to reduce: a view will do
        return reshape(x, tuple(d for i, d in enumerate(x.shape) if keepdim or i not in axes))
    return apply(name, x, axes=axes, keepdim=keepdim)


@torch_lacks(dtype=None)
def sum(input: Any, dim: Dims = None, keepdim: bool = False) -> Value:
    """The sum over the axes `dim` (all by default)."""
    return _reduce("sum", input, dim, keepdim)


@torch_lacks(dtype=None)
def mean(input: Any, dim: Dims = None, keepdim: bool = False) -> Value:
    """The mean over the axes `dim` (all by default); over the batch axis, that of the samples given at run
    time."""
    x = _value(input)
    axes = _axes("mean", x, dim)
    total = _reduce("sum", x, axes, keepdim) if axes else x
    count = product(tuple(x.shape[i] for i in axes))
    if isinstance(count, int) and count == 1:
        return total
    size = apply("extent", extent=count) if isinstance(count, Dim) else float(count)
    # One division for a scalar; many elements are multiplied by one reciprocal.
    return total / size if product(total.shape) == 1 else total * (1.0 / size)


def amax(input: Any, dim: Dims = (), keepdim: bool = False) -> Value:
    """The greatest element over the axes `dim` (all by default); ties share the gradient evenly."""
    return _reduce("amax", input, dim, keepdim)


def amin(input: Any, dim: Dims = (), keepdim: bool = False) -> Value:
    """The smallest element over the axes `dim` (all by default); ties share the gradient evenly."""
    return _reduce("amin", input, dim, keepdim)


def _extreme(name: str, input: Any, dim: Any, keepdim: bool) -> Any:
    x = _value(input)
    if dim is None:
        return _reduce(f"a{name}", x, None, False)
    if isinstance(dim, Value):
        return apply(f"{name}imum", x, dim)
    axis = _axis(name, x, dim)
    return apply_node(f"{name}_with_index", x, axes=(axis,), keepdim=keepdim).results


def max(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The greatest element; with `dim`, the pair (values, s32 indices) along that axis; with a value as
    `dim`, maximum of two values."""
    return _extreme("max", input, dim, keepdim)


def min(input: Any, dim: Any = None, keepdim: bool = False) -> Any:
    """The smallest element; with `dim`, the pair (values, s32 indices) along that axis; with a value as
    `dim`, minimum of two values."""
    return _extreme("min", input, dim, keepdim)


# Linear algebra


def matmul(input: Any, other: Any) -> Value:
    """The matrix product, as torch.matmul: vectors are rows or columns, leading axes broadcast."""
    a, b = _value(input), _value(other)
    if a.ndim == 0 or b.ndim == 0:
        raise _refuse("matmul", [a, b], "needs vectors or matrices, not a scalar")
    if a.ndim == b.ndim == 1 and a.shape == b.shape:
        return sum(a * b)
    if a.ndim == 1 or b.ndim == 1:
        left = reshape(a, (1, *a.shape)) if a.ndim == 1 else a
        right = reshape(b, (*b.shape, 1)) if b.ndim == 1 else b
        y = matmul(left, right)
        lost = ([y.ndim - 2] if a.ndim == 1 else []) + ([y.ndim - 1] if b.ndim == 1 else [])
        return reshape(y, tuple(d for i, d in enumerate(y.shape) if i not in lost))
    if a.shape[-1] != b.shape[-2]:
        raise _refuse(
            "matmul", [a, b], f"the inner extents differ: {a.shape[-1]} columns against {b.shape[-2]} rows"
        )
    if b.ndim == 2 and a.ndim > 2:  # one product of all the rows
        y = apply("matmul", reshape(a, (product(a.shape[:-1]), a.shape[-1])), b)
        return reshape(y, (*a.shape[:-1], b.shape[-1]))
    try:
        leading = broadcast(a.shape[:-2], b.shape[:-2])
    except ShapeError as error:
        raise _refuse("matmul", [a, b], f"leading axes: {error}") from None
    a, b = broadcast_to(a, (*leading, *a.shape[-2:])), broadcast_to(b, (*leading, *b.shape[-2:]))
    return apply("matmul", a, b)


def linear(input: Any, weight: Any, bias: Any = None) -> Value:
    """input . weight' + bias: [..., in], [out, in], [out] -> [..., out]."""
    x, w = _value(input), _value(weight)
    if w.ndim != 2 or x.ndim == 0 or x.shape[-1] != w.shape[1]:
        raise _refuse(
            "linear", [x, w], "the input's last axis must be as long as a row of the weight [out, in]"
        )
    y = matmul(x, transposed(w))
    if bias is None:
        return y
    b = _value(bias)
    if b.shape != (w.shape[0],):
        raise _refuse("linear", [x, w, b], f"the bias must have shape [{w.shape[0]}]")
    return y + b


# Selection


def pick(input: Any, index: Any) -> Value:
    """input[..., index[...]]: one element of the last axis each, as torch.gather with one index does. An
    index that comes from outside is checked against the axis when the generated function is called."""
    x, i = _value(input), _value(index)
    y = apply("pick", x, i)
    source = i
    while isinstance(source.node.op.lower, View):
        source = source.node.operands[0]
    if source.node.op is INPUT:
        classes = builtins.min(source.node.attrs.get("classes", x.shape[-1]), x.shape[-1])
        source.node.attrs["classes"] = classes
    return y


# Normalised exponentials


def _shifted(name: str, input: Any, dim: int) -> tuple[Value, int]:
    """x - max(x), whose exponentials cannot overflow; the maximum cancels in the gradient, so none flows
    through it."""
    x = _value(input)
    axis = _axis(name, x, dim)
    if x.shape[axis] == 1:
        return x - detach(x), axis
    return x - detach(apply("amax", x, axes=(axis,), keepdim=True)), axis


@torch_lacks(dtype=None)
def softmax(input: Any, dim: int) -> Value:
    """exp(x) / sum(exp(x)) along `dim`."""
    z, axis = _shifted("softmax", input, dim)
    e = exp(z)
    return e * (1.0 / sum(e, axis, keepdim=True))


@torch_lacks(dtype=None)
def log_softmax(input: Any, dim: int) -> Value:
    """log(softmax(x)) along `dim`, without its loss of digits."""
    z, axis = _shifted("log_softmax", input, dim)
    return z - log(sum(exp(z), axis, keepdim=True))


# Losses


def _reduced(name: str, losses: Value, reduction: str) -> Value:
    if reduction == "none":
        return losses
    if reduction == "sum":
        return sum(losses)
    if reduction == "mean":
        return mean(losses)
    raise ShapeError(f'{name}: reduction={reduction!r}; known: "mean", "sum", "none"')


def _check_classes(name: str, x: Value, target: Value) -> None:
    if target.dtype.kind not in "iu":
        raise _refuse(name, [x, target], "the target must hold class indices, of an integer dtype")
    if x.ndim not in (1, 2) or target.shape != x.shape[:-1]:
        raise _refuse(
            name,
            [x, target],
            f"scores [N, C] want a target [N], scores [C] a scalar; got {list(target.shape)}",
        )


@torch_lacks(weight=None, size_average=None, ignore_index=-100, reduce=None)
def nll_loss(input: Any, target: Any, reduction: str = "mean") -> Value:
    """Minus the log-probability of the right class. input: f32[N, C] log-probabilities; target: integer [N]
    class indices."""
    x, t = _value(input), _value(target)
    _check_classes("nll_loss", x, t)
    return neg(_reduced("nll_loss", pick(x, t), reduction))


@torch_lacks(weight=None, size_average=None, ignore_index=-100, reduce=None, label_smoothing=0.0)
def cross_entropy(input: Any, target: Any, reduction: str = "mean") -> Value:
    """Cross-entropy of softmax(input) against `target`: integer class indices [N], or probabilities of the
    input's shape f32[N, C]."""
    x, t = _value(input), _value(target)
    if t.dtype.kind == "f":
        if x.ndim not in (1, 2) or t.shape != x.shape:
            raise _refuse(
                "cross_entropy", [x, t], "probabilities must have the shape of the scores, [N, C] or [C]"
            )
        return _reduced("cross_entropy", neg(sum(t * log_softmax(x, -1), -1)), reduction)
    _check_classes("cross_entropy", x, t)
    z, axis = _shifted("cross_entropy", x, -1)
    return _reduced("cross_entropy", log(sum(exp(z), axis)) - pick(z, t), reduction)


def _check_same(name: str, x: Value, target: Value) -> None:
    if x.shape != target.shape:
        raise _refuse(name, [x, target], "input and target must have the same shape")


@torch_lacks(size_average=None, reduce=None, weight=None)
def mse_loss(input: Any, target: Any, reduction: str = "mean") -> Value:
    """(input - target)^2; both of one shape (PyTorch broadcasts them with a warning)."""
    x, t = _value(input), _value(target)
    _check_same("mse_loss", x, t)
    return _reduced("mse_loss", square(x - t), reduction)


def _log_or_minus_100(p: Value) -> Value:
    """max(log(p), -100), whose gradient is 0 and not NaN where p is 0."""
    positive = p > 0.0
    return maximum(where(positive, log(where(positive, p, 1.0)), -100.0), -100.0)


@torch_lacks(weight=None, size_average=None, reduce=None)
def binary_cross_entropy(input: Any, target: Any, reduction: str = "mean") -> Value:
    """-(t log(p) + (1 - t) log(1 - p)) of probabilities p; each logarithm is at least -100, as in PyTorch."""
    p, t = _value(input), _value(target)
    _check_same("binary_cross_entropy", p, t)
    losses = (t - 1.0) * _log_or_minus_100(1.0 - p) - t * _log_or_minus_100(p)
    return _reduced("binary_cross_entropy", losses, reduction)
