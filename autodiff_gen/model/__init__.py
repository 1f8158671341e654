"""User-defined models, the entry functions that train them, and the build of a model file."""
