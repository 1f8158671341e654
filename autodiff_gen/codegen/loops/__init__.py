"""Loops of generated C in the forms that the target is fast with, and functions for those in common.

collapsed_loops.py, independent_loops.py, if_conversion.py, masked_sums.py, reduction_loops.py, row_results.py,
vector_loops.py: for compilers
block_moves.py: for instructions that move several floats
outlining.py, loop_forms.py, loop_functions.py, role_names.py: functions for loops in common, and their names
tiles_from_zero.py: loops from 0
"""
