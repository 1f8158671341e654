"""Selection of elements by indices; index_limits.py says how their range is checked."""

from __future__ import annotations

from ..ir.build import apply, constant
from ..ir.node import Value
from ..ir.origin import named
from ..ir.types import Dim, Shape, Size, plain
from ..ops.support import as_s32
from .arguments import TensorLike, as_value, axis_of, shape_error, torch_lacks
from .elementwise import detach, eq, to, where
from .index_limits import checked, from_end, in_range, known_index
from .joining import pad
from .shapes import broadcast_to, flatten, permute, reshape, unsqueeze
from .slicing import cut, extent_of, whole

__all__ = [
    "diagonal",
    "embedding",
    "gather",
    "index_add",
    "index_select",
    "one_hot",
    "pick",
    "scatter_add",
    "take_along_dim",
]


def pick(input: TensorLike, index: TensorLike) -> Value:
    """y[i, j] = input[i, j, index[i, j]]: [..., C], [...] -> [...], as torch.gather with one index.

    The generated function checks an index that is computed from inputs. Raises ShapeError for an index that depends on
    parameters, because nothing would check it.
    """
    x, i = as_value(input), as_value(index)
    y = apply("pick", x, i)
    known = known_index("pick", x, i)
    return y if known is i else apply("pick", x, known)


def diagonal(input: TensorLike, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Value:
    """The elements [i, i + offset] of two axes, as the last axis of the result; a view, unless both axes follow the
    batch."""
    x, name = as_value(input), "diagonal"
    first, second, k = (
        axis_of(name, x, dim1),
        axis_of(name, x, dim2),
        whole(name, x, "offset", offset),
    )
    if first == second:
        raise shape_error(name, [x], f"dim1={dim1} and dim2={dim2} are the same axis")
    y = permute(x, [*(a for a in range(x.ndim) if a not in (first, second)), first, second])
    rows, columns = y.shape[-2:]
    if isinstance(rows, Dim) and rows == columns and k == 0:
        return pick(y, apply("iota", size=rows))
    n, m = extent_of(name, x, first), extent_of(name, x, second)
    size = min(n, m - k) if k > 0 else min(n + k, m)
    if size < 1:
        raise shape_error(name, [x], f"offset={k} is outside the axes of extents {n} and {m}")
    flat = reshape(y, (*y.shape[:-2], n * m))
    return cut(flat, flat.ndim - 1, k if k > 0 else -k * m, size, m + 1)


def _cut_to(name: str, x: Value, values: list[Value], shape: Shape, dim: int | None) -> Value:
    """x cropped to the extents `shape` along all axes except `dim`."""
    for axis, d in enumerate(shape):
        if axis == dim or d == x.shape[axis]:
            continue
        if isinstance(d, Dim) or isinstance(x.shape[axis], Dim) or d > x.shape[axis]:
            raise shape_error(
                name,
                values,
                f"axis {axis} of the index has extent {d}, more than the input; only axis dim={dim} may be longer",
            )
        x = cut(x, axis, 0, d)
    return x


@torch_lacks(sparse_grad=False)
def gather(input: TensorLike, dim: int, index: TensorLike) -> Value:
    """y[i, j, k] = input[i, index[i, j, k], k] for dim=1. The result has the index's shape, which may be shorter than
    the input's along other axes."""
    x = as_value(input)
    axis = axis_of("gather", x, dim)
    i = in_range("gather", x, index, extent_of("gather", x, axis))
    if i.ndim != x.ndim:
        raise shape_error("gather", [x, i], "the index must have as many axes as the input")
    return apply("gather", _cut_to("gather", x, [x, i], i.shape, axis), i, dim=axis)


def take_along_dim(input: TensorLike, indices: TensorLike, dim: int | None = None) -> Value:
    """gather, in which the other axes of input and indices broadcast, and negative indices count from the end. Without
    dim, both are flattened, and negative indices are rejected, as in PyTorch."""
    x, name = as_value(input), "take_along_dim"
    i = indices if isinstance(indices, Value) else constant(indices)
    if dim is None:
        return gather(flatten(x), 0, flatten(i))
    axis = axis_of(name, x, dim)
    if i.ndim != x.ndim:
        raise shape_error(name, [x, i], "the indices must have as many axes as the input")
    for k, (a, b) in enumerate(zip(x.shape, i.shape, strict=True)):
        if k != axis and a != b and 1 not in (a, b):
            raise shape_error(name, [x, i], f"axis {k}: {a} and {b} do not broadcast")
    shape = [b if a == 1 else a for a, b in zip(x.shape, i.shape, strict=True)]
    of_x = tuple(x.shape[k] if k == axis else d for k, d in enumerate(shape))
    of_i = tuple(i.shape[k] if k == axis else d for k, d in enumerate(shape))
    i = from_end(name, x, i, extent_of(name, x, axis))
    return gather(broadcast_to(x, of_x), axis, broadcast_to(i, of_i))


def index_select(input: TensorLike, dim: int, index: TensorLike) -> Value:
    """y[i, j, k] = input[i, index[j], k] for dim=1; index: integer [n] or a scalar."""
    x = as_value(input)
    axis = axis_of("index_select", x, dim)
    i = in_range("index_select", x, index, extent_of("index_select", x, axis))
    if i.ndim > 1:
        raise shape_error("index_select", [x, i], "the index must have one axis")
    return apply("index_select", x, reshape(i, (1,)) if i.ndim == 0 else i, dim=axis)


@torch_lacks(max_norm=None, norm_type=2.0, scale_grad_by_freq=False, sparse=False)
def embedding(input: TensorLike, weight: TensorLike, padding_idx: int | None = None) -> Value:
    """weight[input]: integer [...], f32[V, D] -> f32[..., D]. The row `padding_idx` gets no gradient.

    Only indexed rows are read, and an update by SGD without momentum writes only these rows.
    """
    w, name = as_value(weight), "embedding"
    if w.ndim != 2 or isinstance(w.shape[0], Dim):
        raise shape_error(name, [w], "the weight must have the shape [rows, columns]")
    rows = w.shape[0]
    i = in_range(name, w, input, rows)
    y = apply("index_select", w, i, dim=0)
    if padding_idx is None:
        return y
    if not -rows <= whole(name, w, "padding_idx", padding_idx) < rows:
        raise shape_error(name, [w], f"padding_idx={padding_idx} is outside 0 to {rows - 1}")
    return where(eq(unsqueeze(as_s32(i), -1), padding_idx % rows), detach(y), y)


def one_hot(tensor: TensorLike, num_classes: int = -1) -> Value:
    """Integer [...] -> s32[..., num_classes] (PyTorch: int64): 1 at the index, 0 elsewhere. num_classes must be given.

    An index that depends on parameters and is out of range gives only zeros; PyTorch raises an error."""
    t = tensor if isinstance(tensor, Value) else constant(tensor)
    num_classes = plain(num_classes)
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 1:
        raise shape_error("one_hot", [t], f"num_classes={num_classes!r} must be an integer of at least 1")
    if t.dtype.kind not in "iu":
        raise shape_error(
            "one_hot",
            [t],
            f"the index must be of an integer dtype, not {t.dtype}; ag.Input(..., dtype='s32') has one",
        )
    found = checked("one_hot", t, t, num_classes)
    t = t if found is None else found
    return one_hot_of(t, num_classes)


@named("one_hot")
def one_hot_of(tensor: Value, num_classes: Size) -> Value:
    """one_hot without a check of the index."""
    return to(eq(unsqueeze(as_s32(tensor), -1), apply("iota", size=num_classes)), "s32")


@torch_lacks(reduce=None)
def scatter_add(input: TensorLike, dim: int, index: TensorLike, src: TensorLike) -> Value:
    """input with src[i, j, k] added at [i, index[i, j, k], k] for dim=1. The index may be shorter than src along each
    axis, and than input along the other axes. Sums run over ascending j."""
    x, s, name = as_value(input), as_value(src), "scatter_add"
    axis = axis_of(name, x, dim)
    d = extent_of(name, x, axis)
    i = in_range(name, x, index, d)
    if not i.ndim == x.ndim == s.ndim:
        raise shape_error(name, [x, i, s], "input, index and src must have as many axes")
    s = _cut_to(name, s, [x, i, s], i.shape, None)
    _cut_to(name, x, [x, i, s], i.shape, axis)
    added = apply("scatter_sum", as_s32(i), s, dim=axis, size=d)
    missing: list[int] = []
    for k in reversed(range(x.ndim)):
        missing += [0, 0 if x.shape[k] == added.shape[k] else x.shape[k] - added.shape[k]]
    return x + pad(added, missing)


def index_add(
    input: TensorLike, dim: int, index: TensorLike, source: TensorLike, *, alpha: float = 1.0
) -> Value:
    """input with alpha * source[i, j, k] added at [i, index[j], k] for dim=1. Sums run over ascending j."""
    x, s, name = as_value(input), as_value(source), "index_add"
    axis = axis_of(name, x, dim)
    d = extent_of(name, x, axis)
    i = in_range(name, x, index, d)
    if i.ndim != 1 or s.shape != (*x.shape[:axis], *i.shape, *x.shape[axis + 1 :]):
        raise shape_error(
            name,
            [x, i, s],
            f"source must have the input's shape, except along axis {axis} the index's length",
        )
    added = apply("index_sum", as_s32(i), s, dim=axis, size=d)
    return x + (added if alpha == 1 else alpha * added)
