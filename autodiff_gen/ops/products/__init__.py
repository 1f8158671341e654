"""Products of matrices and vectors, and what kernels do to each of their results."""
