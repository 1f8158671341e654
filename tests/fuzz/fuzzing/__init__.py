"""Mutated files of every format that the project reads: each is read in a process with limits."""
