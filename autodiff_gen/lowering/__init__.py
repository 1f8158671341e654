"""From a graph to loop nests and kernel calls: kernel selection, schedule and buffer assignment.

pipeline.py, plan_search.py: the stages in order, and the search for a plan within a budget
planner.py, phases.py: the last stages, which make a plan of a graph
step_order.py: the order of the steps, and which memory results reuse
control_flow.py, region_inputs.py: the plans of regions
drop_recomputations.py, left_out_stages.py: steps and stages that are left out
plan.py, plan_printer.py, plan_macs.py: the plan, its text, and its multiply-accumulates
loops/: from a loop nest to its C, in the form that is fast on the target
arena/: where buffers and states are stored
c/: a syntax tree of C
"""
