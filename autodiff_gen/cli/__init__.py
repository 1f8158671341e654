"""The command line: argument parsing and printing, one module per group of commands. A command imports its modules when
it runs, so that `boards` runs without NumPy."""
