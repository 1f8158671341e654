"""Gradients against finite differences and PyTorch, and kernels against their reference."""
