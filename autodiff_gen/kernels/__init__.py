"""The kernel contract, the tables of the backends, and kernel selection."""
