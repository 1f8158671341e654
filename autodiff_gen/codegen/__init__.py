"""The C files of a program: functions, tables, the trainer struct and its templates.

compiler.py, program.py: the compiler as one call, and what it makes
files.py, source.py, link.py: the text of the files
entries.py, functions.py, control_flow.py: the functions as C trees
comments.py, formulas.py: what steps compute, in words
loops/: loops in the forms that the target is fast with
"""
