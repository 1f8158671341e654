"""A syntax tree of C: lowering builds it, and codegen changes and prints it."""
