"""The kernel contract, the tables of the backends and the selection of a kernel."""
