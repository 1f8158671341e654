"""Models as the user writes them, the entries that train them, and the build of a model file."""
