"""Benchmarks of training steps and kernels: instructions counted in QEMU, cycles measured on a board."""
