"""Quantised networks: 8-bit weights and activations, whose values are constants in flash.

`load` reads parameters that were quantised elsewhere, and returns a module, whose result a float head may read.
"""

from .load import load as load
from .network import Layer as Layer
from .network import Network as Network
from .quantize import Quantized as Quantized
from .quantize import quantize as quantize

__all__ = ["Layer", "Network", "Quantized", "load", "quantize"]
