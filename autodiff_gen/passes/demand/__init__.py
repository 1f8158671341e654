"""Compute only the parts of values that are read."""
