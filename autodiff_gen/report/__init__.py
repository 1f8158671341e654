"""What is printed about a compiled model."""
