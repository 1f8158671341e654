"""Names of the ops of a float graph in reports and messages."""

from __future__ import annotations

from ...ir.node import Node


def name_of(node: Node) -> str:
    """A layer's name; the name of an op where a module computes it from the results of layers inside."""
    module = node.origin.module
    if module and module == node.origin.scope:
        return module
    return f"{module}.{node.op.name}" if module else node.op.name


def described(node: Node) -> str:
    """An op and its module, for messages."""
    module = node.origin.module
    return f"{node.op.name} of {f'layer {module!r}' if module else 'the outermost module'}"
