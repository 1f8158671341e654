"""Less memory: values are computed again, in parts of the batch or strip by strip, or stored as bits."""
