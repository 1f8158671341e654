"""All ops; importing this package fills the registry."""

from . import constants, contraction, elementwise, functions, masks, reductions, selection, views

__all__ = [
    "constants",
    "contraction",
    "elementwise",
    "functions",
    "masks",
    "reductions",
    "selection",
    "views",
]
