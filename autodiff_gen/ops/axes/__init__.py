"""Ops along axes: reductions, cumulative sums, standardisation, softmax, resampling."""
