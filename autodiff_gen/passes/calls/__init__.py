"""Which calls of kernels there are, and what a call computes with its product."""
