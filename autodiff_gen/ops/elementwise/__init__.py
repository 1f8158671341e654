"""Ops that compute each element of the result from one element of each operand."""
