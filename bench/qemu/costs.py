"""Functions whose instructions tell what the operations of generated loops cost: see autodiff_gen/bench/costs.py.

Products are written as sums, so that they are loops on every core.
"""

from __future__ import annotations

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.node import Value

LENGTH = 96


def chain(x: Value, s: Value, additions: int) -> Value:
    for _ in range(additions):
        x = x + s
    return x


def product(m: int, k: int, n: int) -> ag.Function:
    """a' . b, as in the gradient of a weight."""
    a, b = ag.Input("a", (k, m)), ag.Input("b", (k, n))
    each = F.reshape(a, (k, m, 1)) * F.reshape(b, (k, 1, n))
    return ag.function([a, b], [F.sum(each, 0)], name=f"product_{k}")


def loops(dtype: str) -> list[ag.Function]:
    x, y, z = (ag.Input(name, (LENGTH,), dtype) for name in "xyz")
    s = ag.Input("s", (), dtype)
    return [
        ag.function([x, s], [chain(x, s, 1)], name=f"{dtype}_add_1"),
        ag.function([x, s], [chain(x, s, 9)], name=f"{dtype}_add_9"),
        ag.function([x, y, z], [x + y + z], name=f"{dtype}_load_3"),
        ag.function([x, s], [chain(x, s, 1), chain(x, s, 2)], name=f"{dtype}_store_2"),
    ]


functions = [*loops("f32"), *loops("s32"), *(product(4, k, 4) for k in (4, 8, 64, 96))]
