"""Rewrites of graphs, one per file; lowering/pipeline.py has their order.

training/: from a model to its entries: the mode, gradients, updates, constants, the guard
layout/: the order of axes in memory, and copies of what no view shows
parts/: compute only the parts of values that are read
simplify/: constants, equal values, joined values, dead results
calls/: which calls of kernels there are, and what a call computes with its product
memory/: values are computed again, in micro-batches, in strips, or stored as bits
fusion/: which nodes become one loop nest
loops/: the loops of a nest, and the values that the loops store for each other
arena_use.py, worth.py: how much of the arena a graph takes, and whether less is worth the time
regions.py: a pass that is applied to a graph and to its regions
context.py, costs.py, work.py: the arguments of all passes, and the decisions that depend on the target's cost table
"""
