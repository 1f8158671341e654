"""Products of matrices and vectors, and the epilogues that kernels apply to their results."""
