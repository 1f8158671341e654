"""The command line: argument parsing and printing, one module per group of commands."""
