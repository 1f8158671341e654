"""Less memory: recompute values, compute them for parts of the batch or strip by strip, or store them as bits."""
