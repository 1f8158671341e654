"""Reports about a compiled model."""
