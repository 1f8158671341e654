"""Other front ends; each builds the same IR."""
