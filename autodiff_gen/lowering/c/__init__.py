"""A syntax tree of C: what lowering builds, and codegen changes and prints."""
