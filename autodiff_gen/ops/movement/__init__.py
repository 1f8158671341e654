"""Ops that move or select elements and compute nothing: views, slices, copies, indexing."""
