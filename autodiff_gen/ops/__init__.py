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
    slices,
    views,
    windows,
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
    "slices",
    "views",
    "windows",
]
