"""Quantised networks: 8-bit weights and activations, whose values are constants in flash.

`load` reads parameters that were quantised elsewhere; what it returns is a module, whose result a float head may read.
"""

from .load import load as load
from .network import Network as Network

__all__ = ["Network", "load"]
