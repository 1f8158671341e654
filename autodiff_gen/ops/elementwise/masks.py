"""Comparisons, logical ops, selection by a mask, conversions, detach and in_range. An element of a mask is a byte, 0 or
1."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import ShapeError
from ...ir.build import apply
from ...ir.node import Op, Sample, define
from ...ir.op_kinds import ADD, ATOM, COMPARE, SELECT, UNARY, Elementwise
from ...ir.types import DTYPES, DType, Type, broadcast
from ..support import ONES, PAIRS, comparing, floating, same_dtype, simple

LOGICAL = 40  # the precedence of && and ||
CHOSEN = 20  # the least precedence of an operand of ?:, so that a nested ?: is put in parentheses


def _comparison(name: str, c: str, ref: Callable[[Any, Any], Any], equality: bool = False) -> Op:
    return define(
        name,
        infer=comparing,
        ref=ref,
        vjp=None,
        lower=Elementwise(f"{{0}} {c} {{1}}", COMPARE, ADD, cheap=True),
        samples=(*PAIRS, Sample(((2, 3), (3,)), dtypes={0: "s32", 1: "s32"}, high=3)),
        torch=f"a {c} b",
        comparison=True,
        equality=equality,
    )


eq = _comparison("eq", "==", np.equal, equality=True)
ne = _comparison("ne", "!=", np.not_equal)
lt = _comparison("lt", "<", np.less)
le = _comparison("le", "<=", np.less_equal)
gt = _comparison("gt", ">", np.greater)
ge = _comparison("ge", ">=", np.greater_equal)


def _masks(*types: Type) -> Type:
    for t in types:
        if t.dtype.kind != "b":
            raise ShapeError(f"needs masks (results of comparisons), not {t.dtype}")
    return comparing(*types)


_TWO_MASKS = (
    Sample(((2, 3), (2, 3)), dtypes={0: "bool", 1: "bool"}),
    Sample(((3, 1), (2,)), dtypes={0: "bool", 1: "bool"}),
)

logical_and = define(
    "logical_and",
    infer=_masks,
    ref=np.logical_and,
    vjp=None,
    lower=Elementwise("{0} && {1}", LOGICAL, COMPARE, cheap=True),
    samples=_TWO_MASKS,
    torch="torch.logical_and(a, b)",
)

logical_or = define(
    "logical_or",
    infer=_masks,
    ref=np.logical_or,
    vjp=None,
    lower=Elementwise("{0} || {1}", LOGICAL, COMPARE, cheap=True),
    samples=_TWO_MASKS,
    torch="torch.logical_or(a, b)",
)

logical_not = define(
    "logical_not",
    infer=_masks,
    ref=np.logical_not,
    vjp=None,
    lower=Elementwise("{0} == 0", COMPARE, ADD, cheap=True),
    samples=(Sample(((2, 3),), dtypes={0: "bool"}),),
    torch="torch.logical_not(a)",
)


def _where_type(mask: Type, a: Type, b: Type) -> Type:
    if mask.dtype.kind != "b":
        raise ShapeError(f"the condition must be a mask (the result of a comparison), not {mask.dtype}")
    same_dtype(a, b)
    return Type(a.dtype, broadcast(mask.shape, a.shape, b.shape))


where = define(
    "where",  # y = mask ? a : b
    infer=_where_type,
    ref=np.where,
    vjp=simple(
        None,
        lambda dy, m, a, b, y: apply("where", m, dy, 0.0),
        lambda dy, m, a, b, y: apply("where", m, 0.0, dy),
    ),
    lower=Elementwise("{0} ? {1} : {2}", SELECT, CHOSEN, cheap=True),
    samples=(
        Sample(((2, 3), (2, 3), (2, 3)), dtypes={0: "bool"}),
        Sample(((2, 1), (3,), ()), dtypes={0: "bool"}),
        Sample(((), (2, 3), (1, 3)), dtypes={0: "bool"}),
    ),
    torch="torch.where(a, b, c)",
    chooses=(1, 2),
)

_TORCH = {
    "f32": "a.dtype if a.is_floating_point() else torch.float32",
    "s32": "torch.int32",
    "s8": "torch.int8",
    "u8": "torch.uint8",
    "bool": "torch.bool",
}


def _conversion(to: DType) -> Op:
    """`to_<dtype>`: a float is truncated to an integer; a mask is `!= 0`."""
    c = "{0} != 0" if to.kind == "b" else f"({to.c}){{0}}"
    # A conversion to float propagates the gradient; integers have none.
    vjp = simple(lambda dy, x, y: dy) if to.kind == "f" else None
    return define(
        f"to_{to.name}",
        infer=lambda x: Type(to, x.shape),
        ref=lambda x: x if x.dtype.kind == "f" and to.kind == "f" else x.astype(to.numpy),
        vjp=vjp,
        lower=Elementwise(
            c,
            COMPARE if to.kind == "b" else UNARY,
            ADD if to.kind == "b" else UNARY,
            cheap=True,
            converts=True,
        ),
        samples=tuple(
            Sample(((2, 3),), dtypes={0: d}, high=2 if d == "bool" else 9)
            for d in ("f32", "s32", "u8", "bool")
        ),
        torch=f"a.to({_TORCH[to.name]})",
    )


for _name in _TORCH:
    _conversion(DTYPES[_name])

detach = define(
    "detach",  # the identity, without gradient
    infer=floating,
    ref=lambda x: x,
    vjp=simple(None),
    lower=Elementwise("{0}", ATOM, ATOM, cheap=True),
    samples=ONES,
    torch="a.detach()",
    chooses=(0,),
)


def _integer_type(x: Type, *, low: int, high: int, index_of_inputs: Any = None) -> Type:
    if x.dtype.kind not in "iu":
        raise ShapeError(f"needs integers, not {x.dtype}")
    return x


def _as_it_is(x: Any, **attrs: Any) -> Any:
    return x


# x, whose elements are from low to high: by construction, or because the generated code checks `index_of_inputs`.
in_range = define(
    "in_range",
    infer=_integer_type,
    ref=_as_it_is,
    vjp=simple(None),
    lower=Elementwise("{0}", ATOM, ATOM, cheap=True),
    samples=(Sample(((2, 3),), {"low": 0, "high": 4}, dtypes={0: "s32"}, high=5),),
    torch="a",
    chooses=(0,),
    known_range=lambda attrs: (attrs["low"], attrs["high"]),
)
