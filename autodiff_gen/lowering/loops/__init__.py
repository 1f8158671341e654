"""Loops of entries: what they read and write, as the plan knows it, and the forms that the target is fast with.

memory.py: memory, and the places of elements in it
accesses.py: the accesses of statements; innermost loops
schedule.py: the order of what follows
collapsed_loops.py, independent_loops.py, if_conversion.py, masked_sums.py, row_results.py, sums_in_order.py,
vector_loops.py: for compilers
block_moves.py: for instructions that move several floats
tiles_from_zero.py: loops from 0
"""
