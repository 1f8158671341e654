"""Quantised networks: 8-bit weights and activations. Weights that do not train are constants in flash.

`load` reads a network that was quantised elsewhere; `quantize` quantises a float network. Both return a module with a
float result, which a float head may read.
"""

from .load import load as load
from .network import Layer as Layer
from .network import Network as Network
from .quantize import Quantized as Quantized
from .quantize import quantize as quantize

__all__ = ["Layer", "Network", "Quantized", "load", "quantize"]
