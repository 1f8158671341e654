"""Ops with regions: scan and cond."""
