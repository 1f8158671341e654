"""Functions for loops of generated C that steps have in common, and their names."""
