"""Values whose gradients do not follow from their formulas: gradient hooks, and torch.autograd.Function.

A gradient is a function of the gradient of the result, which exists only after differentiation. Until then a
placeholder represents the gradient of the result:

    g = gradient_of(y)
    z = custom_gradient(y, g, x, mul(g, mask))   # y; the gradient that arrives at z arrives at x times mask

Both are in a graph until gradients are known; they have no lowering to C.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ..errors import ShapeError
from ..ir.build import filled
from ..ir.node import OptionalValues, Sample, Value, Values, Wanted, define
from ..ir.op_kinds import Attrs, Composite
from ..ir.rewrite import replaced
from ..ir.types import Type
from .support import check_float, floating

gradient_of = define(
    "gradient_of",  # a placeholder of the gradient of its operand, in operands of custom_gradient
    infer=floating,
    ref=np.zeros_like,
    vjp=None,
    lower=Composite(lambda operands, _: [filled(0.0, operands[0].type)]),
    samples=(Sample(((2, 3),)),),
    torch="torch.zeros_like(a)",
)


def parts(count: int, operands: Sequence[Value]) -> tuple[Values, Values, Values, Values]:
    """The operands divided into `count` results, placeholders of their gradients, inputs, and the gradients of the
    inputs."""
    inputs = (len(operands) - 2 * count) // 2
    ends = (0, count, 2 * count, 2 * count + inputs, 2 * count + 2 * inputs)
    results, gradients, xs, dxs = (operands[a:b] for a, b in itertools.pairwise(ends))
    return results, gradients, xs, dxs


def _types(*operands: Type, count: int, exact: bool = False) -> Type | tuple[Type, ...]:
    check_float(*operands)
    if len(operands) % 2 or len(operands) < 2 * count:
        raise ShapeError("needs a gradient for each result and for each input")
    inputs = (len(operands) - 2 * count) // 2
    of_results = zip(operands[:count], operands[count : 2 * count], strict=True)
    of_inputs = zip(operands[2 * count : 2 * count + inputs], operands[2 * count + inputs :], strict=True)
    for value, gradient in (*of_results, *of_inputs):
        if value != gradient:
            raise ShapeError(f"the gradient of {value} is {gradient}")
    return operands[0] if count == 1 else operands[:count]


def _vjp(dys: OptionalValues, inputs: Values, outs: Values, attrs: Attrs, wanted: Wanted) -> OptionalValues:
    count = attrs["count"]
    _, gradients, xs, dxs = parts(count, inputs)
    arriving = {
        g: filled(0.0, y.type) if dy is None else dy for g, dy, y in zip(gradients, dys, outs, strict=True)
    }
    first = 2 * count
    reached = [dx for k, dx in enumerate(dxs) if wanted[first + k]]
    found = iter(replaced(reached, arriving))
    return [
        *(None for _ in range(first)),
        *(next(found) if wanted[first + k] else None for k in range(len(xs))),
        *(None for _ in dxs),
    ]


custom_gradient = define(
    # Operands: `count` results, placeholders of their gradients, inputs, and the gradients of the inputs. `exact`:
    # these gradients equal the derivatives of the results.
    "custom_gradient",
    infer=_types,
    ref=lambda *operands, count, exact=False: operands[0] if count == 1 else operands[:count],
    vjp=_vjp,
    lower=Composite(
        lambda operands, attrs: operands[: attrs["count"]],
        own_gradient=True,
        is_shorthand=lambda attrs: bool(attrs.get("exact")),
    ),
    samples=(
        Sample(((2, 3), (2, 3), (2, 3), (2, 3)), {"count": 1}),
        Sample(((2, 3), (2,), (2, 3), (2,)), {"count": 2}),
    ),
    torch="operands[0] if count == 1 else tuple(operands[:count])",
)
