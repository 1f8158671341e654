"""All ops; importing this package fills the registry."""

from . import (
    activations,
    constants,
    contraction,
    elementwise,
    functions,
    masks,
    modes,
    pooling,
    reductions,
    rounding,
    selection,
    views,
)

__all__ = [
    "activations",
    "constants",
    "contraction",
    "elementwise",
    "functions",
    "masks",
    "modes",
    "pooling",
    "reductions",
    "rounding",
    "selection",
    "views",
]
