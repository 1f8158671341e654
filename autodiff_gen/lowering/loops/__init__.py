"""What loops read and write, as the plan knows it.

memory.py: memory, and the places of elements in it
accesses.py: the accesses of statements; innermost loops
"""
