"""Loops of generated C in the forms that the target is fast with, and functions for those in common."""
