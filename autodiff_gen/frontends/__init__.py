"""Other ways to write a model; each builds the same IR."""
