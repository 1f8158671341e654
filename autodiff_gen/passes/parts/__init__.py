"""What is read in part is computed in part."""
