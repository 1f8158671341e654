"""Functions whose instructions tell the cost of the operations in generated loops: bench/measure_cost_table.py.

Products are written as sums, so that they are loops on every core.
"""

from __future__ import annotations

import autodiff_gen as ag
from autodiff_gen import functional as F
from autodiff_gen.ir.node import Value

LENGTH = 97


def chain(x: Value, s: Value, additions: int) -> Value:
    for _ in range(additions):
        x = x + s
    return x


def product(letters: str, m: int, k: int, n: int) -> ag.Function:
    """a . b, where `letters` has a t for an operand that is stored transposed."""
    a = ag.Input("a", (m, k) if letters[0] == "n" else (k, m))
    b = ag.Input("b", (k, n) if letters[1] == "n" else (n, k))
    left, right = (x if letter == "n" else x.T for x, letter in zip((a, b), letters, strict=True))
    each = F.reshape(left, (m, k, 1)) * F.reshape(right, (1, k, n))
    return ag.function([a, b], [F.sum(each, 1)], name=f"product_{letters}_{m}_{k}_{n}")


def products() -> list[ag.Function]:
    """Of few terms, which are written out, and of many; their results are a tile, blocks of one, or a single sum."""
    results = ((1, 1), (2, 2), (3, 5), (4, 4), (1, 8), (8, 1), (1, 32))
    terms = (4, 8, 32, 64)
    return [product(letters, m, k, n) for m, n in results for letters in ("nn", "nt", "tn") for k in terms]


def loops(dtype: str) -> list[ag.Function]:
    x, y, z = (ag.Input(name, (LENGTH,), dtype) for name in "xyz")
    s = ag.Input("s", (), dtype)
    return [
        ag.function([x, s], [chain(x, s, 1)], name=f"{dtype}_add_1"),
        ag.function([x, s], [chain(x, s, 9)], name=f"{dtype}_add_9"),
        ag.function([x, y, z], [x + y + z], name=f"{dtype}_load_3"),
        ag.function([x, s], [chain(x, s, 1), chain(x, s, 2)], name=f"{dtype}_store_2"),
    ]


functions = [*loops("f32"), *loops("s32"), *products()]
