"""Loops of steps: from a loop nest to its C, in the form that is fast on the target.

statements.py, expressions.py, c_expression.py: the statements of a nest, and its expressions
nest_accesses.py: which memory a nest reads and writes, in order, before there is C of it
c_tree.py: the tree of a nest
pointed_memory.py, accesses.py: memory, places of elements in it, and the accesses of a tree's statements
schedule.py: the order of the changes of trees
collapsed_loops.py, independent_loops.py, if_conversion.py, row_results.py, sums_in_order.py, vector_loops.py:
changes for compilers
block_moves.py, block_operands.py, loop_normalization.py: for instructions that move several floats
outlining.py, outlined_form.py, outlined_function.py, outlined_names.py: functions of loops that steps have in common
"""
