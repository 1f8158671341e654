"""Elementwise arithmetic and functions; operands broadcast as in NumPy."""

from __future__ import annotations

import numpy as np

from ..ir import apply
from ..op import ADD, ATOM, MUL, UNARY, Elementwise, Op, Sample, register
from .support import broadcasting, floating, simple

PAIRS = (Sample(((2, 3), (2, 3))), Sample(((2, 3), (3,))), Sample(((2, 1), (1, 3))), Sample(((), (4,))), Sample(((1,), (1,))))
ONES = (Sample(((2, 3),)), Sample(((1,),)), Sample(((),)))

add = register(
    Op(
        "add",
        infer=broadcasting,
        ref=lambda a, b: a + b,
        vjp=simple(lambda dy, a, b, y: dy, lambda dy, a, b, y: dy),
        lower=Elementwise("{0} + {1}", ADD, (ADD, MUL), cheap=True),
        samples=PAIRS,
        torch="a + b",
    )
)

mul = register(
    Op(
        "mul",
        infer=broadcasting,
        ref=lambda a, b: a * b,
        vjp=simple(lambda dy, a, b, y: dy * b, lambda dy, a, b, y: dy * a),
        lower=Elementwise("{0} * {1}", MUL, (MUL, UNARY), cheap=True),
        samples=PAIRS,
        torch="a * b",
    )
)

exp = register(
    Op(
        "exp",
        infer=floating,
        ref=np.exp,
        vjp=simple(lambda dy, x, y: dy * y),
        lower=Elementwise("ag_expf({0})", ATOM),
        samples=ONES,
        torch="torch.exp(a)",
    )
)

neg = register(
    Op(
        "neg",
        infer=broadcasting,
        ref=np.negative,
        vjp=simple(lambda dy, x, y: -dy),
        lower=Elementwise("-{0}", UNARY, ATOM, cheap=True),
        samples=ONES,
        torch="-a",
    )
)

sub = register(
    Op(
        "sub",
        infer=broadcasting,
        ref=lambda a, b: a - b,
        vjp=simple(lambda dy, a, b, y: dy, lambda dy, a, b, y: apply("neg", dy)),
        lower=Elementwise("{0} - {1}", ADD, (ADD, MUL), cheap=True),
        samples=PAIRS,
        torch="a - b",
    )
)
