"""Rewrites of graphs, one per file; lowering/pipeline.py has their order.

training/: from a model to its entries: the mode, gradients, updates, constants, the guard
layout/: the order of axes in memory, and copies of values that no view can show
demand/: compute only the parts of values that are read
simplify/: constants, equal values, operations on smaller operands, dead results
calls/: which nodes become kernel calls, and the work that a call fuses with its product
memory/: recompute values, compute them in micro-batches or strips, or store them as bits
fusion/: which nodes become one loop nest
loops/: the loops of a nest, and the values that the loops store for each other
arena_use.py, profitability.py: how much of the arena a graph takes, and whether less is worth the time
regions.py: a pass that is applied to a graph and to its regions
context.py, costs.py, work_estimate.py: the arguments of all passes, and decisions by the target's cost table
"""
