"""Ops on tensors of 8-bit integers, and what they compute of the ops on floats."""
