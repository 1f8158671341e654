"""Scalar expressions as C functions of their value and their derivatives."""

import autodiff_gen as ag
from autodiff_gen import functional as F

x, y = ag.Input("x", ()), ag.Input("y", ())


def with_derivatives(name, value, of):
    """A C function `name` of the inputs `of`: the value, then its derivative by each of them."""
    derivatives = {f"d{v.name}": d for v, d in zip(of, ag.grad(value, of), strict=True)}
    return ag.function(of, {"value": value, **derivatives}, name)


shared = x * y + F.sqrt(x)

functions = [
    with_derivatives("polynomial", 3 * x + x**2 - F.sqrt(x), [x]),
    with_derivatives("quotient", (x + 2 * y) / (x * y + 1), [x, y]),
    with_derivatives("power", x**y + 2**x + y**-1.5, [x, y]),
    with_derivatives("twice", shared * shared - (shared - y) / shared + (y - shared) * shared**y, [x, y]),
]
