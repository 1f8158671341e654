"""Ops on tensors of 8-bit integers, and the ops on floats that they correspond to."""
