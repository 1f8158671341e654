"""Rewrites of graphs, one per file; lowering/pipeline.py has their order."""
