"""All ops; importing this package fills the registry."""

from . import constants, contraction, elementwise, reductions, views

__all__ = ["constants", "contraction", "elementwise", "reductions", "views"]
