"""The order of axes in memory: permutes cancel, weights are stored as kernels read them, the rest is copied."""
