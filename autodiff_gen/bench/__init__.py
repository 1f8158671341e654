"""What a training step and a kernel cost: instructions counted in QEMU, cycles on a board."""
