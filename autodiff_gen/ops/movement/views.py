"""Views, which alias the operand's memory with another shape, and copies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.node import Sample, define
from ...ir.op_kinds import Attrs, Elementwise, View, ViewKind
from ...ir.strides import dense
from ...ir.types import Shape, Type, broadcast, product
from ...ir.views import split_or_merge
from ..support import simple


def _reshape_type(x: Type, *, shape: Shape) -> Type:
    if product(x.shape) != product(shape):
        raise ShapeError(f"{product(x.shape)} elements do not fill the shape {list(shape)}")
    if split_or_merge(dense(x.shape), tuple(shape)) is None:
        raise ShapeError(
            f"the shape {list(shape)} splits or merges axes around the batch axis n where it is not the "
            "outermost; permute it to the front first"
        )
    return Type(x.dtype, tuple(shape))


def _reshape_dims(a: Shape, b: Shape, attrs: Attrs) -> tuple[int | None, ...] | None:
    """The axis of a for each axis of b, if only axes of extent 1 are added or removed; None if axes are split or
    merged."""
    axes = [i for i, d in enumerate(a) if d != 1]
    if [a[i] for i in axes] != [d for d in b if d != 1]:
        return None
    remaining = iter(axes)
    return tuple(None if d == 1 else next(remaining) for d in b)


reshape = define(
    "reshape",  # the same elements in row-major order
    infer=_reshape_type,
    ref=lambda x, *, shape: np.reshape(x, shape),
    vjp=lambda dys, ins, outs, attrs, wanted: [apply("reshape", dys[0], shape=ins[0].type.shape)],
    lower=View(_reshape_dims, ViewKind.RESHAPE),
    samples=(
        Sample(((2, 6),), {"shape": (3, 4)}),
        Sample(((1, 3, 1),), {"shape": (3,)}),
        Sample(((1,),), {"shape": ()}),
    ),
    torch="torch.reshape(a, shape)",
)


def _permute_type(x: Type, *, dims: Sequence[int]) -> Type:
    if sorted(dims) != list(range(len(x.shape))):
        raise ShapeError(f"dims={tuple(dims)} is no permutation of {len(x.shape)} axes")
    return Type(x.dtype, tuple(x.shape[i] for i in dims))


permute = define(
    "permute",  # axis k of y is axis dims[k] of x
    infer=_permute_type,
    ref=lambda x, *, dims: np.transpose(x, dims),
    vjp=lambda dys, ins, outs, attrs, wanted: [
        apply("permute", dys[0], dims=tuple(int(i) for i in np.argsort(attrs["dims"])))
    ],
    lower=View(lambda a, b, attrs: tuple(attrs["dims"]), ViewKind.PERMUTE),
    samples=(Sample(((2, 3),), {"dims": (1, 0)}), Sample(((2, 3, 4),), {"dims": (2, 0, 1)})),
    torch="a.permute(dims)",
)


def _broadcast_type(x: Type, *, shape: Shape) -> Type:
    if len(shape) < len(x.shape) or broadcast(x.shape, shape) != tuple(shape):
        raise ShapeError(f"cannot be broadcast to {list(shape)}")
    return Type(x.dtype, tuple(shape))


def _broadcast_dims(a: Shape, b: Shape, attrs: Attrs) -> tuple[int | None, ...]:
    added = len(b) - len(a)
    return tuple(None if i < added or a[i - added] != b[i] or b[i] == 1 else i - added for i in range(len(b)))


broadcast_to = define(
    "broadcast_to",  # explicit NumPy broadcasting
    infer=_broadcast_type,
    ref=lambda x, *, shape: np.broadcast_to(x, shape),
    vjp=simple(lambda dy, x, y: dy),
    lower=View(_broadcast_dims, ViewKind.BROADCAST),
    samples=(
        Sample(((3, 1),), {"shape": (3, 4)}),
        Sample(((4,),), {"shape": (2, 3, 4)}),
        Sample(((),), {"shape": (2, 2)}),
    ),
    torch="torch.broadcast_to(a, shape)",
)

copy = define(
    "copy",  # the identity, materialised in its own memory; `snapshot`: it keeps a state from before its update
    infer=lambda x, *, snapshot=False: x,
    ref=lambda x, *, snapshot=False: np.array(x),
    vjp=lambda dys, ins, outs, attrs, wanted: [dys[0]],
    lower=Elementwise("{0}", cheap=True),
    samples=(Sample(((2, 3),)),),
    torch="a.clone()",
    chooses=(0,),
    materializes=True,
)

place = define(
    "place",  # the identity, stored with `layout`; created when a scan's body is planned
    infer=lambda x, *, layout, of: x,
    ref=lambda x, *, layout, of: np.array(x),
    vjp=None,
    lower=Elementwise("{0}", cheap=True),
    chooses=(0,),
    materializes=True,
)
