"""The command line: parsing and printing only, one module per group of commands."""
