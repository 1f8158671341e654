"""From a graph to loop nests and kernel calls: kernel selection, schedule and buffer assignment.

pipeline.py, plan_search.py: the stages in order, and the search for a plan within a budget
planner.py, kernel_calls.py, gemm.py, phases.py: the last stages, which make a plan of a graph
control_flow.py, region_inputs.py: of regions
plan.py, plan_printer.py: the plan, and its text
nests/: the loop nest of a fused node
schedule/: the order of the steps
arena/: where buffers and states are stored
c/: a syntax tree of C
"""
