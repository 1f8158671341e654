"""The command line: argument parsing and printing, one module per group of commands. A command imports what it needs
when it runs, so that `boards` runs without NumPy."""
