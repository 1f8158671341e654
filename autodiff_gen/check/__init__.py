"""Compare gradients with finite differences and PyTorch, imported networks with their originals, and kernels with the
reference kernels."""
