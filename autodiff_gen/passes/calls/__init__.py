"""Kernel calls: which nodes become calls, and the work that a call fuses with its product."""
