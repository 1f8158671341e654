"""The C files of a program: functions, tables, the trainer struct and its templates.

compiler.py, program.py, specification.py: the compiler as one call, its output, and its input
program_regions.py, budget_error.py, budget_notes.py: regions of memory, and messages about a RAM budget
files.py, source.py, board_link_source.py, board_link_layout.py: the text of the files
entries.py, entry_body.py, entry_names.py, call_statement.py, control_flow.py, index_check.py: the functions as C trees
constants.py, convolution_structs.py, init_function.py, state_dict.py: tables, initial weights, the state by its names
exchanged_part.py, shared_part.py: the parts of the state that boards exchange
comments.py, formulas.py, library_calls.py, gradient_calls.py, view_text.py: comments of steps with their formulas
entry_docs.py, function_comments.py, legend.py, step_names.py: other comments, and the names of functions of loops
instruction_estimate.py, executed_trees.py, stack.py: estimates of instructions and stack from the C trees
c_printer.py, line_breaking.py: C trees as text
"""
