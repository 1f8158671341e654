"""Gradient checks against finite differences and PyTorch, and kernel checks against the reference kernels."""
