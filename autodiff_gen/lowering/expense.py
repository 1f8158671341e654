"""Which values cost more to compute again than to read."""

from __future__ import annotations

from ..ir.node import Node
from ..ir.op_kinds import Elementwise


def is_expensive(node: Node) -> bool:
    """Whether the node calls a function."""
    return isinstance(node.op.lower, Elementwise) and not node.op.lower.cheap


def is_work(node: Node) -> bool:
    """Whether computing the node in every iteration of a loop costs more than reading it: random numbers are drawn
    again rather than kept from step to step, but not for every place of a channel."""
    return is_expensive(node) or (isinstance(node.op.lower, Elementwise) and bool(node.op.lower.header))
