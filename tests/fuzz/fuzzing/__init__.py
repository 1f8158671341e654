"""Mutated files of every format that the project reads, each read in a process with limits that records what it does."""
