"""The C files of a program: functions, tables, the trainer struct and its templates.

compiler.py, program.py, specification.py: the compiler as one call, its output, and its input
program_regions.py, does_not_fit.py, budget_notes.py: regions of memory, and messages about a RAM budget
files.py, source.py, link.py, link_layout.py: the text of the files
entries.py, entry_body.py, entry_names.py, call_statement.py, control_flow.py: the functions as C trees
constants.py, geometry.py, init_function.py, state_dict.py: tables, initial weights, and the state by its names
comments.py, formulas.py, view_text.py: comments of steps with their formulas
c_printer.py: C trees as text
"""
